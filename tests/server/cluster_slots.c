/* redis-cluster://: slots that move from one master to another, with locks in
   them. All of it is real. */
#include "cluster_scene.h"

TEST(cluster_slots, fault_143_a_lock_whose_slot_has_moved_is_found_there)
{
    cluster_scene l;
    cluster_scene_start(&l, BRISK_MS);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    cluster_move_slot(l.c, cluster_slot(name), 1);
    watch_renewals(l.cl, 2);
    EXPECT_INT(levels(cluster_server(l.c, 1), name), 1);
    EXPECT(stats_of(l.cl).redirects >= 1);
    EXPECT_INT(stats_of(l.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(stats_of(l.cl).failovers, 0);
    EXPECT_INT(events_count(l.ev, RLOCK_EVENT_FAILOVER), 0);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_slots, fault_143_a_hold_is_renewed_while_its_slot_moves)
{
    cluster_scene l;
    cluster_scene_start(&l, BRISK_MS);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    rlock *lk = cluster_scene_lock(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    cluster_slot_begin(l.c, slot, 2);
    watch_renewals(l.cl, 2);
    cluster_slot_move_key(l.c, name, 2);
    watch_renewals(l.cl, 2); /* by ASK */
    EXPECT(stats_of(l.cl).redirects >= 2);
    cluster_slot_move_keys(l.c, slot, 2);
    cluster_slot_end(l.c, slot, 2);
    watch_renewals(l.cl, 2);
    EXPECT_INT(stats_of(l.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(cluster_scene_levels(&l, name), 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_slots, fault_144_an_unlock_while_the_slot_moves_drops_the_lock)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    rlock_client_free(l.cl);
    l.opts.command_timeout_ms = 1000;
    EXPECT_STATUS(rlock_client_new(&l.opts, &l.cl), RLOCK_OK);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    rlock *lk = cluster_scene_lock(&l, name);
    for (int moved = 0; moved < 2; moved++) {
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        cluster_slot_begin(l.c, slot, 1);
        if (moved)
            cluster_slot_move_key(l.c, name, 1);
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        EXPECT(test_since_ms(began_ms) < 1000 + SLACK_MS);
        cluster_slot_move_keys(l.c, slot, 1);
        cluster_slot_end(l.c, slot, 1);
        EXPECT_INT(cluster_scene_levels(&l, name), 0);
        cluster_move_slot(l.c, slot, 0);
    }
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_slots, fault_144_an_acquire_goes_on_after_the_slot_has_moved)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    rlock *lk = cluster_scene_lock(&l, name);
    cluster_slot_begin(l.c, slot, 1);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(l.cl).redirects > 0);
    EXPECT(!waiter_returned(w));
    cluster_slot_end(l.c, slot, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster_slots, fault_145_a_waiter_follows_the_slot_that_it_waits_in)
{
    cluster_scene l, other;
    int64_t at_ms;
    need_sharded_channels();
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &other);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *mine = cluster_scene_lock(&l, name),
          *theirs = cluster_scene_lock(&other, name);
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, queued(cluster_server(l.c, 0), name) == 1);
    cluster_move_slot(l.c, cluster_slot(name), 2);
    EVENTUALLY(
        WELL_BEFORE_POLL_MS,
        queued(cluster_server(l.c, 2), name) == 1 &&
            cluster_int(l.c, 2, "EVAL %s 0",
                        "return #redis.call('PUBSUB','SHARDCHANNELS')") == 1);
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms - freed_ms < WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(mine);
    rlock_free(theirs);
    cluster_scene_leave(&other);
    cluster_scene_stop(&l);
}

TEST(cluster_slots, what_fails_is_told_with_the_server_that_it_failed_at)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    for (int i = 0; i < 3; i++) {
        char port[16];
        const char *name = cluster_name_on(l.c, i, "job");
        rlock *lk = cluster_scene_lock(&l, name);
        cluster_cmd(l.c, i, "SET %s data", name);
        EXPECT_STATUS(rlock_trylock(lk), RLOCK_EWRONGTYPE);
        snprintf(port, sizeof port, ":%d: ", cluster_port(l.c, i));
        EXPECT_CONTAINS(rlock_last_error()->message, port);
        rlock_free(lk);
    }
    cluster_scene_stop(&l);
}
