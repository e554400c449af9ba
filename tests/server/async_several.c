/*
 * Started calls on a Multi lock whose owner, or one of whose clients, goes at a
 * bad moment.
 */
#include "loop.h"
#include "multi_scene.h"
#include "nodes.h"

/* --- its owner is freed ---------------------------------------------------- */

/* Another owner of the client waits for what it had got. */
TEST(async_several, an_owner_that_is_freed_while_it_waits_keeps_nothing)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    request r = request_new(m.all), next = request_new(m.lk[0]);
    take_by_hand(s.sv, "b", 0);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_STATUS(request_acquire(&next, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    waiters_settle(s.sv, 0, s.cl, 2);
    EXPECT_INT(levels(s.sv, "a"), 1);
    int64_t began_ms = test_now_ms();
    request_free(&r);
    LOOP_UNTIL(s.cl, r.told && next.told);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    EXPECT_STATUS(next.status, RLOCK_OK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(loop_unlock(s.cl, &next), RLOCK_OK);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 0);
    request_free(&next);
    multi_scene_end(&m, &s);
}

/* First its unlock asks the Red lock's nodes, and then the other's server. */
TEST(async_several, an_owner_that_is_freed_during_an_unlock_leaves_nothing)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    scene s = scene_start(0, 0);
    rlock *both;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.lk, p.lk}, 2, &both), RLOCK_OK);
    request r = request_new(both);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    for (size_t i = 0; i < ns.n; i++)
        server_pause(ns.sv[i]);
    EXPECT_STATUS(request_unlock(&r), RLOCK_OK);
    request_free(&r);
    for (size_t i = 0; i < ns.n; i++)
        server_resume(ns.sv[i]);
    LOOP_UNTIL(s.cl, r.told == 2);
    EXPECT_STATUS(r.status, RLOCK_OK);
    expect_nothing_left(s.sv);
    nodes_expect_all_undone(&ns);
    rlock_free(both);
    scene_stop(&s);
    party_end(&p, &ns);
}

/* --- its home is freed ----------------------------------------------------- */

/* What it had got of the other client's is another program's now. */
static void lose_to_another(scene *t, const char *name)
{
    server_cmd(t->sv, "DEL %s", name);
    take_by_hand(t->sv, name, 0);
    EVENTUALLY(SOON, stats_of(t->cl).held_now == 0);
}

/* It has let go of all, and pauses before it waits for what it has lost. */
TEST(async_several, a_wait_that_begins_anew_ends_with_its_client)
{
    scene s = scene_start(0, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "b", &t, "a");
    request r = request_new(m.all);
    EXPECT_STATUS(rlock_lock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&r, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_INT(levels(t.sv, "a"), 1);
    lose_to_another(&t, "a");
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_OK);
    EVENTUALLY(SOON, levels(s.sv, "b") == 0);
    rlock_client_free(s.cl);
    s.cl = NULL;
    EXPECT_INT(r.told, 1);
    EXPECT_STATUS(r.status, RLOCK_ECLOSED);
    request_free(&r);
    multi_scene_end_across(&m, &s, &t);
}
