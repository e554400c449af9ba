/*
 * redis-cluster://: locks on whichever master has their slot, waiters that are
 * rung there, failovers, slots that move, and addresses that are no cluster.
 * All of it is real.
 */
#include "cluster.h"
#include "scene.h"

typedef struct land {
    cluster *c;
    rlock_options opts;
    events *ev;
    rlock_client *cl;
} land;

static void settle(land *l, int64_t lease_ms)
{
    l->c = cluster_start();
    l->opts = (rlock_options)RLOCK_OPTIONS_INIT;
    l->opts.uri = cluster_uri(l->c);
    l->opts.watchdog_lease_ms = lease_ms;
    l->ev = events_new();
    events_hook(l->ev, &l->opts);
    EXPECT_STATUS(rlock_client_new(&l->opts, &l->cl), RLOCK_OK);
}

static void leave(land *l)
{
    rlock_client_free(l->cl);
    events_free(l->ev);
    cluster_stop(l->c);
}

static rlock *lock_named(land *l, const char *name)
{
    rlock *lk;
    EXPECT_STATUS(rlock_new(l->cl, name, &lk), RLOCK_OK);
    return lk;
}

static long long held(land *l, const char *name)
{
    return levels(cluster_server(l->c, cluster_owner(l->c, name)), name);
}

/* --- where locks are ------------------------------------------------------ */

TEST(cluster, locks_are_taken_renewed_and_freed_on_the_master_of_their_slot)
{
    land l;
    settle(&l, BRISK_MS);
    for (int i = 0; i < 3; i++) {
        const char *name = cluster_name_on(l.c, i, "job");
        rlock *lk = lock_named(&l, name);
        lock_times(lk, 2);
        EXPECT_INT(levels(cluster_server(l.c, i), name), 2);
        watch_renewals(l.cl, 2);
        EXPECT_STATUS(rlock_extend(lk, 60000), RLOCK_OK);
        unlock_times(lk, 2, RLOCK_OK);
        EXPECT_INT(levels(cluster_server(l.c, i), name), 0);
        rlock_free(lk);
    }
    EXPECT_INT(stats_of(l.cl).nodes, 3);
    EXPECT_INT(stats_of(l.cl).redirects, 0);
    EXPECT_INT(stats_of(l.cl).failovers, 0);
    EXPECT_INT(stats_of(l.cl).reconnects, 0);
    leave(&l);
}

TEST(cluster, one_node_that_the_program_names_is_enough)
{
    land l;
    char uri[80];
    settle(&l, 0);
    snprintf(uri, sizeof uri, "redis-cluster://127.0.0.1:1,127.0.0.1:%d",
             cluster_port(l.c, 4));
    rlock_client_free(l.cl);
    l.opts.uri = uri;
    EXPECT_STATUS(rlock_client_new(&l.opts, &l.cl), RLOCK_OK);
    rlock *lk = lock_named(&l, cluster_name_on(l.c, 2, "job"));
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, fault_136_names_whose_keys_lie_in_several_slots_are_refused)
{
    static const char *const names[] = {"{}x", "x{}y", "a{b", "b}", "a}b", "}"};
    land l;
    rlock *lk;
    settle(&l, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        EXPECT_STATUS(rlock_new(l.cl, names[i], &lk), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "several slots");
    }
    lk = lock_named(&l, "a{b}c");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    leave(&l);
}

/* --- waiting -------------------------------------------------------------- */

TEST(cluster, a_waiter_is_rung_by_a_sharded_channel)
{
    land l, other;
    int64_t at_ms;
    settle(&l, 0);
    other = l;
    other.ev = events_new();
    events_hook(other.ev, &other.opts);
    EXPECT_STATUS(rlock_client_new(&other.opts, &other.cl), RLOCK_OK);
    const char *name = cluster_name_on(l.c, 1, "job");
    server *sv = cluster_server(l.c, 1);
    rlock *mine = lock_named(&l, name), *theirs = lock_named(&other, name);
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, queued(sv, name) == 1);
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms - freed_ms < WELL_BEFORE_POLL_MS);
    EXPECT(stats_of(other.cl).wakeups >= 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(mine);
    rlock_free(theirs);
    rlock_client_free(other.cl);
    events_free(other.ev);
    leave(&l);
}

TEST(cluster, threads_that_wait_for_one_lock_all_get_it)
{
    enum { THREADS = 8 };
    land l;
    test_thread *t[THREADS];
    settle(&l, 0);
    rlock *lk = lock_named(&l, "job");
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(lock_once, lk);
    for (int i = 0; i < THREADS; i++)
        EXPECT_STATUS((rlock_status)test_join(t[i]), RLOCK_OK);
    EXPECT_INT(held(&l, "job"), 0);
    rlock_free(lk);
    leave(&l);
}

/* --- failover ------------------------------------------------------------- */

TEST(cluster, fault_134_a_hold_survives_the_death_of_its_master)
{
    land l;
    settle(&l, 6000);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = lock_named(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, cluster_int(l.c, 0, "WAIT 1 100") == 1);
    cluster_kill(l.c, 0);
    cluster_await_owner(l.c, name, 3);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    EXPECT_CONTAINS(events_message(l.ev, RLOCK_EVENT_FAILOVER),
                    "slots 0-5460");
    watch_renewals(l.cl, 1);
    EXPECT(rlock_is_held(lk));
    EXPECT_INT(stats_of(l.cl).failovers, 1);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(held(&l, name), 0);
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, fault_134_an_acquire_waits_for_the_replica_to_take_over)
{
    land l;
    settle(&l, 0);
    const char *name = cluster_name_on(l.c, 2, "job");
    rlock *lk = lock_named(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    cluster_kill(l.c, 2);
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_INT(levels(cluster_server(l.c, 5), name), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, fault_135_a_master_that_hangs_costs_its_failover_and_no_timeout)
{
    land l;
    settle(&l, 0);
    const char *name = cluster_name_on(l.c, 1, "job");
    rlock *lk = lock_named(&l, name);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    cluster_pause(l.c, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    int64_t took_ms = test_since_ms(began_ms);
    EXPECT_INT(levels(cluster_server(l.c, 4), name), 1);
    EXPECT(took_ms < 2900 + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    cluster_resume(l.c, 1);
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, messages_name_the_server_that_has_the_slot)
{
    land l;
    char place[40];
    settle(&l, 0);
    const char *name = cluster_name_on(l.c, 2, "job");
    rlock *lk = lock_named(&l, name);
    cluster_cmd(l.c, 2, "SET %s 1", name);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EWRONGTYPE);
    snprintf(place, sizeof place, "redis://127.0.0.1:%d", cluster_port(l.c, 2));
    EXPECT_CONTAINS(rlock_last_error()->message, place);
    EXPECT_CONTAINS(rlock_last_error()->message, name);
    rlock_free(lk);
    leave(&l);
}

/* --- slots that move ------------------------------------------------------ */

TEST(cluster, fault_137_a_lock_whose_slot_has_moved_is_found_there)
{
    land l;
    settle(&l, BRISK_MS);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = lock_named(&l, name);
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
    EXPECT_INT(stats_of(l.cl).lost, 0);
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, fault_137_a_hold_is_renewed_while_its_slot_moves)
{
    land l;
    settle(&l, BRISK_MS);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    rlock *lk = lock_named(&l, name);
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
    EXPECT_INT(held(&l, name), 0);
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, fault_138_an_unlock_while_the_slot_moves_drops_the_lock)
{
    land l;
    settle(&l, 0);
    rlock_client_free(l.cl);
    l.opts.command_timeout_ms = 1000;
    EXPECT_STATUS(rlock_client_new(&l.opts, &l.cl), RLOCK_OK);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    rlock *lk = lock_named(&l, name);
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
        EXPECT_INT(held(&l, name), 0);
        cluster_move_slot(l.c, slot, 0);
    }
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, fault_138_an_acquire_goes_on_after_the_slot_has_moved)
{
    land l;
    settle(&l, 0);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    rlock *lk = lock_named(&l, name);
    cluster_slot_begin(l.c, slot, 1);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(l.cl).redirects > 0);
    EXPECT(!waiter_returned(w));
    cluster_slot_end(l.c, slot, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(lk);
    leave(&l);
}

TEST(cluster, fault_139_a_waiter_follows_the_slot_that_it_waits_in)
{
    land l, other;
    int64_t at_ms;
    settle(&l, 0);
    other = l;
    other.ev = events_new();
    events_hook(other.ev, &other.opts);
    EXPECT_STATUS(rlock_client_new(&other.opts, &other.cl), RLOCK_OK);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *mine = lock_named(&l, name), *theirs = lock_named(&other, name);
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, queued(cluster_server(l.c, 0), name) == 1);
    cluster_move_slot(l.c, cluster_slot(name), 2);
    EVENTUALLY(WELL_BEFORE_POLL_MS,
               queued(cluster_server(l.c, 2), name) == 1 &&
                   cluster_int(l.c, 2, "EVAL %s 0",
                               "return #redis.call('PUBSUB','SHARDCHANNELS')") ==
                       1);
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms - freed_ms < WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(mine);
    rlock_free(theirs);
    rlock_client_free(other.cl);
    events_free(other.ev);
    leave(&l);
}

/* --- what is no cluster, or another kind of one --------------------------- */

TEST(cluster, a_node_of_one_is_not_taken_for_a_server_by_itself)
{
    land l;
    rlock_client *cl;
    settle(&l, 0);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        l.opts.uri = cluster_node_uri(l.c, i);
        EXPECT_STATUS(rlock_client_new(&l.opts, &cl), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "use redis-cluster://");
    }
    leave(&l);
}

TEST(cluster, a_server_by_itself_is_not_taken_for_one)
{
    server *sv = server_start_tcp(NULL);
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    char uri[80];
    snprintf(uri, sizeof uri, "redis-cluster://127.0.0.1:%d", server_port(sv));
    o.uri = uri;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "use redis://");
    EXPECT(test_since_ms(began_ms) < SLACK_MS);
    server_stop(sv);
}

TEST(cluster, a_cluster_has_no_part_in_a_red_lock)
{
    land l;
    rlock *lk;
    settle(&l, 0);
    rlock_client *clients[] = {l.cl, l.cl, l.cl};
    EXPECT_STATUS(rlock_red_new(clients, 3, "job", &lk), RLOCK_ENOTSUP);
    EXPECT_CONTAINS(rlock_last_error()->message, "cluster");
    leave(&l);
}

/* --- several at once ------------------------------------------------------ */

TEST(cluster, fault_140_a_lock_of_several_is_taken_over_all_masters_or_not)
{
    land l;
    rlock *member[3], *m;
    settle(&l, 0);
    for (int i = 0; i < 3; i++)
        member[i] = lock_named(&l, cluster_name_on(l.c, i, "part"));
    EXPECT_STATUS(rlock_multi_new(member, 3, &m), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(m), RLOCK_OK);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(held(&l, cluster_name_on(l.c, i, "part")), 1);
    EXPECT_STATUS(rlock_unlock(m), RLOCK_OK);
    take_by_hand(cluster_server(l.c, 1), cluster_name_on(l.c, 1, "part"),
                 60000);
    EXPECT_STATUS(rlock_trylock(m), RLOCK_BUSY);
    EXPECT_INT(held(&l, cluster_name_on(l.c, 0, "part")), 0);
    EXPECT_INT(held(&l, cluster_name_on(l.c, 2, "part")), 0);
    rlock_free(m);
    for (int i = 0; i < 3; i++)
        rlock_free(member[i]);
    leave(&l);
}
