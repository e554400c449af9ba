/*
 * The watch over the masters of a cluster: what a client that holds a lock, and
 * calls nothing, notices of their end, their silence and their restart. Nobody
 * asks it anything until it has told.
 */
#include "cluster_scene.h"

/* After the servers' own failover. */
enum { OF_CLUSTER_MS = 1500 };

static bool serves(cluster *c, int i, const char *name)
{
    return cluster_cmd(c, i, "SET {%s}:other 1 PX 1000", name)->type ==
           REDIS_REPLY_STATUS;
}

/* Its slot's master has it, and no replica. */
static rlock *hold_unreplicated(cluster_scene *l, const char *name,
                                int64_t lease_ms)
{
    rlock *lk = cluster_scene_lock(l, name);
    cluster_pause(l->c, 3);
    cluster_cmd(l->c, 0, "CLIENT KILL TYPE replica");
    EXPECT_STATUS(rlock_acquire(lk, 0, lease_ms), RLOCK_OK);
    EXPECT(rlock_is_held(lk));
    return lk;
}

static void expect_noticed(cluster_scene *l, rlock *lk, int64_t since_ms)
{
    events_wait(l->ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_time(l->ev, RLOCK_EVENT_LOST) - since_ms <
           OF_CLUSTER_MS + SLACK_MS);
    EXPECT(!rlock_is_held(lk));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    rlock_free(lk);
}

static void fail_over(void (*end)(cluster *c, int i), int64_t lease_ms)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = hold_unreplicated(&l, name, lease_ms);
    end(l.c, 0);
    cluster_resume(l.c, 3);
    EVENTUALLY(SOON, serves(l.c, 3, name));
    expect_noticed(&l, lk, test_now_ms());
    EXPECT_INT(stats_of(l.cl).failovers, 1);
    cluster_scene_stop(&l);
}

TEST_CASE(cluster_watch, a_dead_master_is_noticed_by_who_is_idle,
          fail_over(cluster_kill, RLOCK_WATCHDOG))
TEST_CASE(cluster_watch, a_silent_master_is_noticed_by_who_is_idle,
          fail_over(cluster_pause, RLOCK_WATCHDOG))
TEST_CASE(cluster_watch, a_lease_of_its_own_is_asked_about_at_the_new_master,
          fail_over(cluster_kill, 30000))

/* The old one lives on as a replica, with all connections. */
TEST(cluster_watch, a_master_that_was_replaced_by_agreement_is_noticed)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    uint64_t before = stats_of(l.cl).renewals;
    cluster_fail_over(l.c, 3);
    int64_t since_ms = test_now_ms();
    EVENTUALLY(SOON, stats_of(l.cl).renewals > before);
    EXPECT(test_since_ms(since_ms) < OF_CLUSTER_MS + SLACK_MS);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    EXPECT_INT(cluster_scene_levels(&l, name), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

/* Nobody has missed it, so it has its slots still. */
TEST(cluster_watch, a_master_that_comes_back_empty_is_noticed)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = hold_unreplicated(&l, name, RLOCK_WATCHDOG);
    cluster_kill(l.c, 0);
    cluster_restart(l.c, 0);
    cluster_resume(l.c, 3);
    EVENTUALLY(SOON, serves(l.c, 0, name));
    expect_noticed(&l, lk, test_now_ms());
    EXPECT_INT(stats_of(l.cl).failovers, 0);
    cluster_scene_stop(&l);
}

/* What has been replicated is held on, by whoever has its lease. */
static void keep(int64_t lease_ms)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_acquire(lk, 0, lease_ms), RLOCK_OK);
    EVENTUALLY(SOON, cluster_int(l.c, 0, "WAIT 1 100") == 1);
    cluster_kill(l.c, 0);
    cluster_await_owner(l.c, name, 3);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    test_pause_ms(1000);
    EXPECT(rlock_is_held(lk));
    EXPECT_INT(cluster_scene_levels(&l, name), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST_CASE(cluster_watch, what_the_replica_has_is_held_on, keep(RLOCK_WATCHDOG))
TEST_CASE(cluster_watch, what_the_replica_has_by_a_lease_of_its_own_is_held_on,
          keep(30000))

TEST(cluster_watch, only_masters_at_which_something_is_held_are_asked)
{
    cluster_scene l;
    cluster_scene_start(&l, 60000);
    rlock *lk = cluster_scene_lock(&l, cluster_name_on(l.c, 0, "job"));
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    test_pause_ms(1500);
    long long signs[2];
    for (int i = 0; i < 2; i++)
        signs[i] = server_calls(cluster_server(l.c, i + 1), "pexpire");
    long long held = server_calls(cluster_server(l.c, 0), "pexpire");
    test_pause_ms(3000);
    held = server_calls(cluster_server(l.c, 0), "pexpire") - held;
    EXPECT_BETWEEN(held, 2, 4);
    for (int i = 0; i < 2; i++)
        EXPECT_INT(server_calls(cluster_server(l.c, i + 1), "pexpire"),
                   signs[i]);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}
