/*
 * min_replicas: what a client finds when it is made, and locks that are made of
 * several.
 */
#include "client.h"
#include "multi_scene.h"
#include "nodes.h"
#include "replica_scene.h"

/* --- options, and the check ----------------------------------------------- */

static void expect_bad(const char *what, unsigned min_replicas, int64_t wait_ms)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.min_replicas = min_replicas;
    o.replica_wait_ms = wait_ms;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, what);
}

TEST_CASE(replicas, more_than_sixteen_are_refused,
          expect_bad("min_replicas (at most 16)", 17, 0))
TEST_CASE(replicas, a_wait_below_zero_is_refused,
          expect_bad("replica_wait_ms", 1, -1))
TEST_CASE(replicas, a_wait_without_bounds_is_refused,
          expect_bad("replica_wait_ms", 1, RLOCK_LEASE_MAX_MS + 1))

TEST(replicas, a_lock_s_number_is_checked)
{
    rlock *lk;
    scene s = scene_start(0, 0);
    for (int n = -2; n <= 17; n += 19) {
        rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
        o.min_replicas = n;
        EXPECT_STATUS(rlock_new_ex(s.cl, "x", 1, &o, &lk), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "min_replicas");
    }
    scene_stop(&s);
}

TEST(replicas, a_client_warns_of_too_few)
{
    replica_scene f = replica_scene_start(1, 2, 0);
    EXPECT_INT(events_count(f.s.ev, RLOCK_EVENT_WARNING), 1);
    EXPECT_CONTAINS(events_message(f.s.ev, RLOCK_EVENT_WARNING),
                    "1 of the 2 replicas of min_replicas");
    replica_scene_stop(&f);
}

TEST(replicas, a_client_that_finds_enough_warns_of_nothing)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    EXPECT_INT(events_count(f.s.ev, RLOCK_EVENT_WARNING), 0);
    replica_scene_stop(&f);
}

static redisContext *dial(void *path)
{
    return redisConnectUnix(path);
}

TEST(replicas, a_connect_callback_may_be_used_as_well)
{
    replica_scene f = replica_scene_servers(1);
    f.s.opts.connect = dial;
    f.s.opts.connect_arg = (void *)server_path(f.s.sv);
    f.s.opts.min_replicas = 1;
    f.s.opts.replica_wait_ms = REPLICA_SCENE_WAIT_MS;
    scene_client(&f.s, 0, 0);
    EXPECT_STATUS(rlock_lock(f.s.lk), RLOCK_OK);
    EXPECT_INT(levels(f.replica[0], SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(f.s.lk), RLOCK_OK);
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_trylock(f.s.lk), RLOCK_EQUORUM);
    replica_scene_stop(&f);
}

/* --- Multi ---------------------------------------------------------------- */

TEST(replicas, members_on_one_server_wait_once)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    multi_scene m = multi_scene_of(&f.s, "abcde");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    long long before = server_calls(f.s.sv, "wait");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_INT(server_calls(f.s.sv, "wait"), before + 1);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_INT(levels(f.replica[0], m.name[i]), 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT_INT(server_calls(f.s.sv, "wait"), before + 1);
    multi_scene_free(&m);
    replica_scene_stop(&f);
}

TEST(replicas, members_that_no_replica_has_are_undone)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    multi_scene m = multi_scene_of(&f.s, "abc");
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "0 of 1 replicas");
    for (size_t i = 0; i < m.n; i++)
        EVENTUALLY(SOON, levels(f.s.sv, m.name[i]) == 0);
    expect_unheld(m.all);
    server_resume(f.replica[0]);
    EVENTUALLY(SOON, rlock_trylock(m.all) == RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_free(&m);
    replica_scene_stop(&f);
}

TEST(replicas, members_are_waited_for_until_the_replica_is_back)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    multi_scene m = multi_scene_of(&f.s, "abc");
    server_pause(f.replica[0]);
    waiter *w = waiter_start(m.all, SOON, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(f.s.cl).replica_shortfalls >= 4);
    EXPECT(!waiter_returned(w));
    server_resume(f.replica[0]);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_INT(levels(f.replica[0], m.name[i]), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    multi_scene_free(&m);
    replica_scene_stop(&f);
}

/* What a member wants stays its own. */
TEST(replicas, members_that_want_none_wait_for_none)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *all;
    o.min_replicas = -1;
    replica_scene_use(&f, &o);
    EXPECT_STATUS(rlock_multi_new(&f.s.lk, 1, &all), RLOCK_OK);
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_trylock(all), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(all, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    rlock_free(all);
    replica_scene_stop(&f);
}

TEST(replicas, a_member_that_is_busy_is_told_as_busy)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    multi_scene m = multi_scene_of(&f.s, "abc");
    take_by_hand(f.s.sv, "b", 60000);
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_BUSY);
    EXPECT_INT(stats_of(f.s.cl).replica_shortfalls, 0);
    multi_scene_free(&m);
    replica_scene_stop(&f);
}

/* --- Red ------------------------------------------------------------------ */

/* Three nodes; the client of the first wants a replica of it. */
typedef struct grove {
    replica_scene f;
    scene other[2];
    rlock *lk;
} grove;

static grove grove_start(int64_t lease_ms)
{
    grove g = {.f = replica_scene_start(1, 1, lease_ms)};
    rlock_client *cl[3] = {g.f.s.cl};
    for (int i = 0; i < 2; i++) {
        g.other[i] = scene_start(lease_ms, 0);
        cl[i + 1] = g.other[i].cl;
    }
    EXPECT_STATUS(rlock_red_new(cl, 3, SCENE_LOCK, &g.lk), RLOCK_OK);
    return g;
}

static void grove_stop(grove *g)
{
    rlock_free(g->lk);
    for (int i = 0; i < 2; i++)
        scene_stop(&g->other[i]);
    replica_scene_stop(&g->f);
}

TEST(replicas, a_vote_that_no_replica_has_is_none)
{
    grove g = grove_start(3000);
    EXPECT_STATUS(rlock_lock(g.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(g.lk), RLOCK_OK);
    server_pause(g.f.replica[0]);
    EXPECT_STATUS(rlock_lock(g.lk), RLOCK_OK); /* two of three */
    EXPECT_STATUS(rlock_unlock(g.lk), RLOCK_OK);
    server_kill(g.other[1].sv);
    EXPECT_STATUS(rlock_trylock(g.lk), RLOCK_EQUORUM);
    EVENTUALLY(SOON, levels(g.f.s.sv, SCENE_LOCK) == 0);
    EVENTUALLY(SOON, levels(g.other[0].sv, SCENE_LOCK) == 0);
    grove_stop(&g);
}

/* The keeper asks for its vote again. */
TEST(replicas, a_vote_comes_later_when_the_replica_is_back)
{
    grove g = grove_start(3000);
    server_pause(g.f.replica[0]);
    EXPECT_STATUS(rlock_lock(g.lk), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(g.f.s.cl).replica_shortfalls >= 1);
    EXPECT_INT(stats_of(g.f.s.cl).held_now, 0);
    server_resume(g.f.replica[0]);
    EVENTUALLY(SOON, stats_of(g.f.s.cl).held_now == 1);
    EXPECT_INT(levels(g.f.replica[0], SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(g.lk), RLOCK_OK);
    grove_stop(&g);
}
