/* Multi locks that have members in common, wanted by many in any order. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "multi_scene.h"

enum { LOCKS = 5 };

/* Who is inside of which lock; shared between processes where there are some.
 */
typedef struct hall {
    atomic_int inside[LOCKS];
    atomic_int clashes;
} hall;

static void walk_through(hall *h, const multi_scene *m)
{
    for (size_t i = 0; i < m->n; i++)
        atomic_fetch_add(&h->clashes,
                         atomic_fetch_add(&h->inside[m->name[i][0] - 'a'], 1));
    for (size_t i = 0; i < m->n; i++)
        atomic_fetch_sub(&h->inside[m->name[i][0] - 'a'], 1);
}

static void take_once(hall *h, const multi_scene *m)
{
    EXPECT_STATUS(rlock_acquire(m->all, 25000, RLOCK_WATCHDOG), RLOCK_OK);
    walk_through(h, m);
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_OK);
}

typedef struct walker {
    hall *h;
    multi_scene m;
    int rounds;
} walker;

static intptr_t walk(void *arg)
{
    walker *w = arg;
    for (int i = 0; i < w->rounds; i++)
        take_once(w->h, &w->m);
    return 0;
}

static void walk_against_each_other(multi_scene one, multi_scene other)
{
    hall h = {0};
    int rounds = SANITIZED ? 80 : 300;
    walker a = {&h, one, rounds}, b = {&h, other, rounds};
    test_thread *t = test_spawn(walk, &a);
    walk(&b);
    test_join(t);
    EXPECT_INT(atomic_load(&h.clashes), 0);
    expect_levels(&one, 0);
    expect_levels(&other, 0);
    multi_scene_free(&one);
    multi_scene_free(&other);
}

TEST(multi_orders, opposite_orders_of_two_threads_do_not_block_each_other)
{
    scene s = scene_start(0, 0);
    walk_against_each_other(multi_scene_of(&s, "abc"),
                            multi_scene_of(&s, "cba"));
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(multi_orders, opposite_orders_of_two_clients_do_not_block_each_other)
{
    scene s = scene_start(0, 0);
    rlock_client *cl = server_client(s.sv, NULL);
    walk_against_each_other(multi_scene_of(&s, "abc"),
                            multi_scene_of_client(s.sv, cl, "cba"));
    rlock_client_free(cl);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(multi_orders, opposite_orders_on_two_servers_do_not_block_each_other)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock_client *cl[] = {server_client(s.sv, NULL), server_client(t.sv, NULL)};
    multi_scene back = {0};
    multi_scene_add(&back, t.sv, cl[1], "b");
    multi_scene_add(&back, s.sv, cl[0], "a");
    multi_scene_join(&back);
    walk_against_each_other(multi_scene_across(&s, "a", &t, "b"), back);
    rlock_client_free(cl[0]);
    rlock_client_free(cl[1]);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    scene_stop(&s);
    scene_stop(&t);
}

/* The order is told by the servers then. */
TEST(multi_orders,
     opposite_orders_of_one_name_on_two_servers_do_not_block_either)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock_client *cl[] = {server_client(s.sv, NULL), server_client(t.sv, NULL)};
    multi_scene there = {0}, back = {0};
    multi_scene_add(&there, s.sv, s.cl, "a");
    multi_scene_add(&there, t.sv, t.cl, "a");
    multi_scene_add(&back, t.sv, cl[1], "a");
    multi_scene_add(&back, s.sv, cl[0], "a");
    there.name[1][0] = back.name[0][0] = 'b'; /* for the hall */
    multi_scene_join(&there);
    multi_scene_join(&back);
    walk_against_each_other(there, back);
    rlock_client_free(cl[0]);
    rlock_client_free(cl[1]);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    scene_stop(&s);
    scene_stop(&t);
}

/* At least one of the five, in any order. */
static multi_scene any_set(server *sv, rlock_client *cl, unsigned *seed)
{
    char names[] = "abcde";
    for (int i = LOCKS - 1; i > 0; i--) {
        int k = rand_r(seed) % (i + 1);
        char c = names[i];
        names[i] = names[k];
        names[k] = c;
    }
    names[1 + rand_r(seed) % LOCKS] = '\0';
    return multi_scene_of_client(sv, cl, names);
}

static void take_any(hall *h, server *sv, rlock_client *cl, unsigned seed)
{
    for (int i = 0; i < (SANITIZED ? 25 : 80); i++) {
        multi_scene m = any_set(sv, cl, &seed);
        take_once(h, &m);
        multi_scene_free(&m);
    }
}

typedef struct wanderer {
    hall *h;
    server *sv;
    rlock_client *cl;
    unsigned seed;
} wanderer;

static intptr_t wander(void *arg)
{
    wanderer *w = arg;
    take_any(w->h, w->sv, w->cl, w->seed);
    return 0;
}

TEST(multi_orders, any_sets_of_many_threads_do_not_block_each_other)
{
    scene s = scene_start(0, 0);
    rlock_client *cl = server_client(s.sv, NULL);
    hall h = {0};
    wanderer w[6];
    test_thread *t[6];
    for (unsigned i = 0; i < 6; i++) {
        w[i] = (wanderer){&h, s.sv, i % 2 ? cl : s.cl, i + 1};
        t[i] = test_spawn(wander, &w[i]);
    }
    for (int i = 0; i < 6; i++)
        test_join(t[i]);
    EXPECT_INT(atomic_load(&h.clashes), 0);
    rlock_client_free(cl);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

static void wander_in_child(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    rlock_client *cl = server_client(NULL, &opts);
    take_any(arg, NULL, cl, (unsigned)getpid());
    rlock_client_free(cl);
}

TEST(multi_orders, any_sets_of_many_processes_do_not_block_each_other)
{
    hall *h = mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    child *c[4];
    EXPECT(h != MAP_FAILED);
    for (int i = 0; i < 4; i++)
        c[i] = child_start(wander_in_child, h);
    scene s = scene_server(NULL);
    for (int i = 0; i < 4; i++)
        child_give_uri(c[i], s.sv);
    for (int i = 0; i < 4; i++)
        child_end(c[i]);
    EXPECT_INT(atomic_load(&h->clashes), 0);
    expect_nothing_left(s.sv);
    munmap(h, sizeof *h);
    server_stop(s.sv);
}

TEST(multi_orders, a_handle_may_be_shared_by_threads)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    hall h = {0};
    walker w = {&h, m, SANITIZED ? 20 : 60};
    test_thread *t[4];
    for (int i = 0; i < 4; i++)
        t[i] = test_spawn(walk, &w);
    for (int i = 0; i < 4; i++)
        test_join(t[i]);
    EXPECT_INT(atomic_load(&h.clashes), 0);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}
