/* redis-cluster://: masters that die, hang, and come back. All of them are
 * real.
 */
#include "cluster_scene.h"

TEST(cluster_failover, fault_140_a_hold_survives_the_death_of_its_master)
{
    cluster_scene l;
    cluster_scene_start(&l, 9000);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, cluster_int(l.c, 0, "WAIT 1 100") == 1);
    cluster_kill(l.c, 0);
    cluster_await_owner(l.c, name, 3);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    EXPECT_CONTAINS(events_message(l.ev, RLOCK_EVENT_FAILOVER), "slots 0-5460");
    watch_renewals(l.cl, 1);
    EXPECT(rlock_is_held(lk));
    EXPECT_INT(stats_of(l.cl).failovers, 1);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(cluster_scene_levels(&l, name), 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_failover, fault_140_an_acquire_waits_for_the_replica_to_take_over)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 2, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EVENTUALLY(SOON, cluster_is_well(l.c)); /* the release, too */
    cluster_kill(l.c, 2);
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(levels(cluster_server(l.c, 5), name), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_failover,
     fault_141_a_master_that_hangs_costs_its_failover_and_no_timeout)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 1, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EVENTUALLY(SOON, cluster_is_well(l.c)); /* the release, too */
    cluster_pause(l.c, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    int64_t took_ms = test_since_ms(began_ms);
    EXPECT_INT(levels(cluster_server(l.c, 4), name), 1);
    EXPECT(took_ms < 4500 + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    cluster_resume(l.c, 1);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

static bool is_down(cluster_scene *l, int node, const char *name)
{
    const redisReply *r = cluster_cmd(l->c, node, "GET %s", name);
    return r->type == REDIS_REPLY_ERROR && strstr(r->str, "CLUSTERDOWN");
}

/* Those of others are refused, too, until all slots are served again. */
TEST(cluster_failover, fault_149_locks_of_other_masters_go_on_after_a_pause)
{
    cluster_scene l;
    cluster_scene_start(&l, 9000);
    const char *name = cluster_name_on(l.c, 1, "job");
    rlock *lk = cluster_scene_lock(&l, name), *kept;
    kept = cluster_scene_lock(&l, cluster_name_on(l.c, 2, "kept"));
    EXPECT_STATUS(rlock_lock(kept), RLOCK_OK);
    cluster_kill(l.c, 0);
    EVENTUALLY(SOON, is_down(&l, 1, name));
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    watch_renewals(l.cl, 1);
    EXPECT(rlock_is_held(kept));
    EXPECT_STATUS(rlock_unlock(kept), RLOCK_OK);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(lk);
    rlock_free(kept);
    cluster_scene_stop(&l);
}

/*
 * What waits in the sockets of a master that was stopped is executed when it
 * goes on, before it hears that it was replaced.
 */
TEST(cluster_failover, fault_150_what_a_replaced_master_grants_is_not_reported)
{
    cluster_scene l, other;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EVENTUALLY(SOON, cluster_is_well(l.c)); /* the release, too */
    cluster_pause(l.c, 0);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    cluster_await_owner(l.c, name, 3);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    cluster_resume(l.c, 0);
    cluster_await_owner(l.c, name, 3);
    EXPECT_INT(levels(cluster_server(l.c, 3), name), 1);
    cluster_scene_join(&l, &other);
    rlock *theirs = cluster_scene_lock(&other, name);
    EXPECT_STATUS(rlock_trylock(theirs), RLOCK_BUSY);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(theirs), RLOCK_OK);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(theirs);
    cluster_scene_leave(&other);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_failover, an_old_master_is_used_again_when_it_is_in_office_again)
{
    cluster_scene l;
    cluster_scene_start(&l, BRISK_MS);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    cluster_fail_over(l.c, 3);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    watch_renewals(l.cl, 1);
    cluster_fail_over(l.c, 0);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 2, SOON);
    watch_renewals(l.cl, 2);
    EXPECT_INT(levels(cluster_server(l.c, 0), name), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

/* Its owner calls nothing until then. */
TEST(cluster_failover, fault_140_a_hold_that_the_new_master_lacks_is_lost)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    cluster_pause(l.c, 3);
    cluster_cmd(l.c, 0, "CLIENT KILL TYPE replica");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    cluster_kill(l.c, 0);
    cluster_resume(l.c, 3);
    cluster_await_owner(l.c, name, 3);
    int64_t since_ms = test_now_ms();
    events_wait(l.ev, RLOCK_EVENT_LOST, 1, SOON);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON); /* or just before */
    EXPECT(events_time(l.ev, RLOCK_EVENT_LOST) - since_ms < 1500 + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_failover, fault_151_many_clients_ask_for_a_new_map_rarely)
{
    enum { CLIENTS = 20 };
    cluster_scene l, other[CLIENTS];
    rlock *lk[CLIENTS];
    cluster_scene_start(&l, 9000);
    const char *name = cluster_name_on(l.c, 0, "job");
    for (int i = 0; i < CLIENTS; i++) {
        char own[32];
        snprintf(own, sizeof own, "{%s}%d", name, i);
        cluster_scene_join(&l, &other[i]);
        lk[i] = cluster_scene_lock(&other[i], own);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    cluster_kill(l.c, 0);
    for (int i = 0; i < CLIENTS; i++) {
        events_wait(other[i].ev, RLOCK_EVENT_FAILOVER, 1, SOON);
        EXPECT_BETWEEN(stats_of(other[i].cl).refreshes, 2, 40);
        rlock_unlock(lk[i]);
        rlock_free(lk[i]);
        cluster_scene_leave(&other[i]);
    }
    cluster_scene_stop(&l);
}

TEST(cluster_failover, a_forked_child_frees_the_client_it_inherited)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    rlock *lk = cluster_scene_lock(&l, "job");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    scene s = {.cl = l.cl, .lk = lk};
    scene_free_in_child(&s);
    EXPECT(rlock_is_held(lk));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}
