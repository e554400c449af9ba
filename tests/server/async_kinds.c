/*
 * Every kind of lock, in every place, on an event loop: several locks, a
 * majority, other layouts, replicas, a cluster.
 */
#include "cluster.h"
#include "loop.h"
#include "multi_scene.h"
#include "nodes.h"
#include "replica_scene.h"

/* Takes it twice, waits for it with another request, and gives it back. */
static void expect_works(rlock_client *cl, rlock *lk)
{
    request a = request_new(lk), b = request_new(lk);
    EXPECT_STATUS(loop_acquire(cl, &a, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_acquire(cl, &a, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_extend(cl, &a, 60000), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&b, RLOCK_FOREVER, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(cl, &a), RLOCK_OK);
    EXPECT(request_holds(&a));
    EXPECT_INT(b.told, 0);
    EXPECT_STATUS(loop_unlock(cl, &a), RLOCK_OK);
    EXPECT(!request_holds(&a));
    LOOP_UNTIL(cl, b.told);
    EXPECT_STATUS(b.status, RLOCK_OK);
    EXPECT(request_holds(&b));
    EXPECT_STATUS(loop_acquire(cl, &a, 100, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_STATUS(loop_unlock(cl, &b), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(cl, &b), RLOCK_NOT_HELD);
    request_free(&a);
    request_free(&b);
}

static void expect_lock(rlock_layout layout, bool fair)
{
    scene s = scene_start(0, 0);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    opts.layout = layout;
    opts.fair = fair;
    EXPECT_STATUS(rlock_new_ex(s.cl, "other", 5, &opts, &lk), RLOCK_OK);
    expect_works(s.cl, lk);
    rlock_free(lk);
    EVENTUALLY(SOON, !key_exists(s.sv, "rlock_wants:{other}"));
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

static void expect_layout(rlock_layout layout)
{
    expect_lock(layout, false);
}

TEST_CASE(async_kinds, a_hash, expect_layout(RLOCK_LAYOUT_HASH))
TEST_CASE(async_kinds, a_string, expect_layout(RLOCK_LAYOUT_STRING))
TEST_CASE(async_kinds, a_timestamp, expect_layout(RLOCK_LAYOUT_TIMESTAMP))
TEST_CASE(async_kinds, a_fair_lock, expect_lock(RLOCK_LAYOUT_HASH, true))

/* --- several -------------------------------------------------------------- */

TEST(async_kinds, several_locks_of_one_server)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    rlock *multi;
    EXPECT_STATUS(rlock_multi_new(m.lk, 3, &multi), RLOCK_OK);
    expect_works(s.cl, multi);
    rlock_free(multi);
    multi_scene_end(&m, &s);
}

TEST(async_kinds, several_locks_of_which_one_is_waited_for)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    rlock *multi;
    EXPECT_STATUS(rlock_multi_new(m.lk, 3, &multi), RLOCK_OK);
    request r = request_new(multi);
    EXPECT_STATUS(rlock_lock(m.lk[1]), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_INT(levels(s.sv, "a"), 1);
    EXPECT_INT(levels(s.sv, "c"), 0);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_OK);
    EXPECT_INT(levels(s.sv, "a") + levels(s.sv, "b") + levels(s.sv, "c"), 3);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    request_free(&r);
    rlock_free(multi);
    multi_scene_end(&m, &s);
}

/* The second is waited for on the thread of the first one's client, and by a
 * connection to the second one's server. */
TEST(async_kinds, several_of_whose_clients_one_is_freed_before_the_other)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock *multi;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.lk, t.lk}, 2, &multi),
                  RLOCK_OK);
    request r = request_new(multi);
    EXPECT_STATUS(rlock_lock(t.lk), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(t.cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(t.lk), RLOCK_OK);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    rlock_client_free(t.cl);
    t.cl = NULL;
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, SLACK_MS);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_ECLOSED);
    request other = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &other, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &other), RLOCK_OK);
    request_free(&other);
    request_free(&r);
    rlock_free(multi);
    scene_stop(&t);
    scene_stop(&s);
}

/* The lock is of both clients; dispatching the other one tells nothing. */
static void expect_told_by(rlock_client *first, rlock_client *other, rlock *lk)
{
    request r = request_new(lk);
    EXPECT_STATUS(loop_acquire(first, &r, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(request_unlock(&r), RLOCK_OK);
    int64_t until_ms = test_now_ms() + 100;
    while (test_now_ms() < until_ms)
        EXPECT_STATUS(rlock_client_dispatch(other), RLOCK_OK);
    EXPECT_INT(r.told, 1);
    LOOP_UNTIL(first, r.told == 2);
    EXPECT_STATUS(r.status, RLOCK_OK);
    request_free(&r);
}

TEST(async_kinds, the_client_of_the_first_member_tells)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock *one, *two;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.lk, t.lk}, 2, &one), RLOCK_OK);
    EXPECT_STATUS(rlock_multi_new((rlock *[]){t.lk, s.lk}, 2, &two), RLOCK_OK);
    expect_told_by(s.cl, t.cl, one);
    expect_told_by(t.cl, s.cl, two);
    rlock_free(one);
    rlock_free(two);
    scene_stop(&t);
    scene_stop(&s);
}

TEST(async_kinds, the_first_client_of_a_majority_tells)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_told_by(p.cl[0], p.cl[1], p.lk);
    party_end(&p, &ns);
}

TEST(async_kinds, a_wait_for_several_is_canceled_and_keeps_nothing)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    rlock *multi;
    EXPECT_STATUS(rlock_multi_new(m.lk, 3, &multi), RLOCK_OK);
    request r = request_new(multi);
    EXPECT_STATUS(rlock_lock(m.lk[2]), RLOCK_OK);
    EXPECT_STATUS(request_acquire(&r, RLOCK_FOREVER, 60000), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    rlock_cancel(multi);
    LOOP_UNTIL(s.cl, r.told);
    EXPECT_STATUS(r.status, RLOCK_CANCELED);
    EXPECT_INT(levels(s.sv, "a") + levels(s.sv, "b"), 0);
    EXPECT_STATUS(rlock_unlock(m.lk[2]), RLOCK_OK);
    request_free(&r);
    rlock_free(multi);
    multi_scene_end(&m, &s);
}

TEST(async_kinds, a_majority)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_works(p.cl[0], p.lk);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    party_end(&p, &ns);
}

TEST(async_kinds, a_majority_without_one_of_its_nodes)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 500);
    server_pause(ns.sv[2]);
    expect_works(p.cl[0], p.lk);
    server_resume(ns.sv[2]);
    party_end(&p, &ns);
}

TEST(async_kinds, a_majority_among_several)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock *one = test_lock(p.cl[0], "other"), *multi;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){p.lk, one}, 2, &multi), RLOCK_OK);
    expect_works(p.cl[0], multi);
    rlock_free(multi);
    rlock_free(one);
    party_end(&p, &ns);
}

/* --- other places --------------------------------------------------------- */

TEST(async_kinds, what_replicas_have_to_confirm)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    expect_works(f.s.cl, f.s.lk);
    replica_scene_stop(&f);
}

TEST(async_kinds, in_a_cluster)
{
    cluster *c = cluster_start();
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = cluster_uri(c);
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    rlock *lk[3], *multi;
    for (int i = 0; i < 3; i++) {
        lk[i] = test_lock(cl, cluster_name_on(c, i, "job"));
        expect_works(cl, lk[i]);
    }
    EXPECT_STATUS(rlock_multi_new(lk, 3, &multi), RLOCK_OK);
    expect_works(cl, multi);
    rlock_free(multi);
    for (int i = 0; i < 3; i++)
        rlock_free(lk[i]);
    rlock_client_free(cl);
    cluster_stop(c);
}
