/*
 * redis-cluster://: locks on whichever master has their slot, waiters that are
 * rung there, and addresses that are no cluster. All of it is real.
 */
#include "cluster_scene.h"

/* --- where locks are ------------------------------------------------------ */

TEST(cluster, locks_are_taken_renewed_and_freed_on_the_master_of_their_slot)
{
    cluster_scene l;
    cluster_scene_start(&l, BRISK_MS);
    for (int i = 0; i < 3; i++) {
        const char *name = cluster_name_on(l.c, i, "job");
        rlock *lk = cluster_scene_lock(&l, name);
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
    cluster_scene_stop(&l);
}

/* While so many are renewed; the first master has the slot of all of them. */
static long long calls_for_renewals(cluster_scene *l, int renewals)
{
    long long before = script_calls(cluster_server(l->c, 0));
    watch_renewals(l->cl, renewals);
    return script_calls(cluster_server(l->c, 0)) - before;
}

TEST(cluster, locks_of_one_slot_come_to_be_renewed_by_one_call)
{
    enum { LOCKS = 20 };
    cluster_scene l;
    rlock *lk[LOCKS];
    cluster_scene_start(&l, BRISK_MS);
    const char *name = cluster_name_on(l.c, 0, "job");
    for (int i = 0; i < LOCKS; i++) {
        char own[32];
        snprintf(own, sizeof own, "{%s}%d", name, i);
        lk[i] = cluster_scene_lock(&l, own);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
        test_pause_ms(BRISK_MS / 3 / LOCKS); /* over a whole period */
    }
    int64_t end_ms = test_now_ms() + SOON;
    while (calls_for_renewals(&l, LOCKS) > 2)
        EXPECT(test_now_ms() < end_ms);
    for (int i = 0; i < LOCKS; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    cluster_scene_stop(&l);
}

TEST(cluster, one_node_that_the_program_names_is_enough)
{
    cluster_scene l;
    char uri[80];
    cluster_scene_start(&l, 0);
    snprintf(uri, sizeof uri, "redis-cluster://127.0.0.1:1,127.0.0.1:%d",
             cluster_port(l.c, 4));
    rlock_client_free(l.cl);
    l.opts.uri = uri;
    EXPECT_STATUS(rlock_client_new(&l.opts, &l.cl), RLOCK_OK);
    rlock *lk = cluster_scene_lock(&l, cluster_name_on(l.c, 2, "job"));
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster, fault_142_names_whose_keys_lie_in_several_slots_are_refused)
{
    static const char *const names[] = {"{}x", "x{}y", "a{b", "b}", "a}b", "}"};
    cluster_scene l;
    rlock *lk;
    cluster_scene_start(&l, 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        EXPECT_STATUS(rlock_new(l.cl, names[i], &lk), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "several slots");
    }
    lk = cluster_scene_lock(&l, "a{b}c");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

TEST(cluster, messages_name_the_server_that_has_the_slot)
{
    cluster_scene l;
    char place[40];
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 2, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    cluster_cmd(l.c, 2, "SET %s 1", name);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EWRONGTYPE);
    snprintf(place, sizeof place, "redis://127.0.0.1:%d", cluster_port(l.c, 2));
    EXPECT_CONTAINS(rlock_last_error()->message, place);
    EXPECT_CONTAINS(rlock_last_error()->message, name);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

/* --- waiting -------------------------------------------------------------- */

TEST(cluster, a_waiter_is_rung_by_a_sharded_channel)
{
    cluster_scene l, other;
    int64_t at_ms;
    need_sharded_channels();
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &other);
    const char *name = cluster_name_on(l.c, 1, "job");
    server *sv = cluster_server(l.c, 1);
    rlock *mine = cluster_scene_lock(&l, name),
          *theirs = cluster_scene_lock(&other, name);
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
    cluster_scene_leave(&other);
    cluster_scene_stop(&l);
}

TEST(cluster, threads_that_wait_for_one_lock_all_get_it)
{
    enum { THREADS = 8 };
    cluster_scene l;
    test_thread *t[THREADS];
    cluster_scene_start(&l, 0);
    rlock *lk = cluster_scene_lock(&l, "job");
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(lock_once, lk);
    for (int i = 0; i < THREADS; i++)
        EXPECT_STATUS((rlock_status)test_join(t[i]), RLOCK_OK);
    EXPECT_INT(cluster_scene_levels(&l, "job"), 0);
    rlock_free(lk);
    cluster_scene_stop(&l);
}

/* --- what is no cluster, or another kind of one --------------------------- */

TEST(cluster, a_node_of_one_is_not_taken_for_a_server_by_itself)
{
    cluster_scene l;
    rlock_client *cl;
    cluster_scene_start(&l, 0);
    for (int i = 0; i < CLUSTER_NODES; i++) {
        l.opts.uri = cluster_node_uri(l.c, i);
        EXPECT_STATUS(rlock_client_new(&l.opts, &cl), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "use redis-cluster://");
    }
    cluster_scene_stop(&l);
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
    cluster_scene l;
    rlock *lk;
    cluster_scene_start(&l, 0);
    rlock_client *clients[] = {l.cl, l.cl, l.cl};
    EXPECT_STATUS(rlock_red_new(clients, 3, "job", &lk), RLOCK_ENOTSUP);
    EXPECT_CONTAINS(rlock_last_error()->message, "cluster");
    cluster_scene_stop(&l);
}

TEST(cluster, a_lazy_client_meets_the_cluster_with_its_first_lock)
{
    cluster_scene l;
    cluster_scene_start(&l, BRISK_MS);
    cluster_scene_leave(&l);
    for (int i = 0; i < 3; i++) {
        l.opts.lazy = true;
        l.opts.uri = cluster_uri(l.c);
        cluster_scene other;
        cluster_scene_join(&l, &other);
        rlock *lk = cluster_scene_lock(&other, cluster_name_on(l.c, i, "job"));
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        watch_renewals(other.cl, 1);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        rlock_free(lk);
        cluster_scene_leave(&other);
    }
    cluster_stop(l.c);
}

TEST(cluster, a_lazy_client_without_a_cluster_says_so_in_time)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    rlock *lk;
    o.uri = "redis-cluster://127.0.0.1:1,127.0.0.1:2";
    o.lazy = true;
    o.command_timeout_ms = 1000;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, "job", &lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    EXPECT(test_since_ms(began_ms) < 1000 + SLACK_MS);
    EXPECT_CONTAINS(rlock_last_error()->message, "refused");
    rlock_free(lk);
    rlock_client_free(cl);
}

/* --- several at once ------------------------------------------------------ */

TEST(cluster, fault_146_a_lock_of_several_is_taken_over_all_masters_or_not)
{
    cluster_scene l;
    rlock *member[3], *m;
    cluster_scene_start(&l, 0);
    for (int i = 0; i < 3; i++)
        member[i] = cluster_scene_lock(&l, cluster_name_on(l.c, i, "part"));
    EXPECT_STATUS(rlock_multi_new(member, 3, &m), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(m), RLOCK_OK);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(cluster_scene_levels(&l, cluster_name_on(l.c, i, "part")),
                   1);
    EXPECT_STATUS(rlock_unlock(m), RLOCK_OK);
    take_by_hand(cluster_server(l.c, 1), cluster_name_on(l.c, 1, "part"),
                 60000);
    EXPECT_STATUS(rlock_trylock(m), RLOCK_BUSY);
    EXPECT_INT(cluster_scene_levels(&l, cluster_name_on(l.c, 0, "part")), 0);
    EXPECT_INT(cluster_scene_levels(&l, cluster_name_on(l.c, 2, "part")), 0);
    rlock_free(m);
    for (int i = 0; i < 3; i++)
        rlock_free(member[i]);
    cluster_scene_stop(&l);
}
