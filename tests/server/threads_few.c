/* Which threads a client has: those that it needs, for as long as it does. */
#include "scene.h"
#include "tasks.h"

static uint64_t reconnects(const scene *s)
{
    return stats_of(s->cl).reconnects;
}

/* The keeper's connection breaks, and is made anew. */
static void break_connection(scene *s)
{
    uint64_t before = reconnects(s);
    proxy_cut_all(s->px);
    EVENTUALLY(SOON, reconnects(s) > before);
}

TEST(threads_few, one_that_connects_is_there_only_while_it_is_needed)
{
    scene s = scene_held_proxied(0, 0);
    EXPECT_INT(tasks_named("rlock-connector"), 0);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EVENTUALLY(SOON, tasks_named("rlock-connector") == 1);
    proxy_refuse(s.px, false);
    EVENTUALLY(SOON, reconnects(&s) > 0);
    EVENTUALLY(SOON, tasks_named("rlock-connector") == 0);
    scene_stop(&s);
}

TEST(threads_few, another_one_connects_after_the_first_has_ended)
{
    scene s = scene_held_proxied(0, 0);
    for (int i = 0; i < 3; i++) {
        break_connection(&s);
        EVENTUALLY(SOON, tasks_named("rlock-connector") == 0);
    }
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(threads_few, a_client_is_closed_while_one_connects)
{
    scene s = scene_held_proxied(0, 0);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EVENTUALLY(SOON, tasks_named("rlock-connector") == 1);
    scene_stop(&s);
    EXPECT_INT(tasks_named("rlock-"), 0);
}
