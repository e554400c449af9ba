/*
 * Clusters: rows 33 to 36 of the catalogue, for a client that knows nothing of
 * them, and for one of a cluster of one server.
 */

#include "cluster.h"
#include "loop.h"
#include "scene.h"

/* --- 33 to 36: a cluster ------------------------------------------------- */

/* One that knows the rest of the cluster answers the acquire, once. */
static scene answered(const char *answer)
{
    scene s = scene_proxied(1500, 0);
    expect_undisturbed(&s);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, answer);
    return s;
}

/* A definite no, which is told at once. */
static void expect_refused(const char *answer, const char *word)
{
    scene s = answered(answer);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, word);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 2); /* in all */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_ANSWER, answer);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, 5000);
    expect_renewals(&s, 1);
    EXPECT(rlock_is_held(s.lk));
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_ESERVER);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    expect_nothing_left(s.sv); /* nothing was in doubt */
    scene_stop(&s);
}

/* A definite no, after which it is tried again. */
static void expect_retried(const char *answer)
{
    scene s = answered(answer);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_ANSWER, answer);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, 5000);
    expect_renewals(&s, 1);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_ANSWER, answer);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv); /* nothing was in doubt */
    scene_stop(&s);
}

TEST(cluster, fault_033_moved_is_a_definite_no)
{
    expect_refused("-MOVED 3999 127.0.0.1:6381\r\n", "MOVED 3999");
}

TEST(cluster, fault_034_ask_is_a_definite_no)
{
    expect_refused("-ASK 3999 127.0.0.1:6381\r\n", "ASK 3999");
}

TEST(cluster, fault_034_tryagain_is_tried_again)
{
    expect_retried("-TRYAGAIN Multiple keys request during rehashing\r\n");
}

/* By the one command for it that is not of Redis 7. */
static void serve_all_slots(server *sv)
{
    enum { SLOTS = 16384 };
    static char command[SLOTS * sizeof "16383" + 32];
    size_t n = (size_t)snprintf(command, sizeof command, "CLUSTER ADDSLOTS");
    for (int i = 0; i < SLOTS; i++)
        n += (size_t)snprintf(command + n, sizeof command - n, " %d", i);
    EXPECT_STR(server_str(sv, command), "OK");
}

/* A cluster of one node that serves all slots. */
static scene scene_cluster(void)
{
    scene s = {.sv = server_start_tcp("--cluster-enabled yes "
                                      "--cluster-node-timeout 500"),
               .opts = RLOCK_OPTIONS_INIT};
    serve_all_slots(s.sv);
    EVENTUALLY(20000, strstr(server_str(s.sv, "CLUSTER INFO"), "state:ok"));
    server_load_scripts(s.sv);
    char uri[64];
    snprintf(uri, sizeof uri, "redis-cluster://127.0.0.1:%d",
             server_port(s.sv));
    s.opts.uri = uri;
    s.opts.watchdog_lease_ms = 3000;
    s.opts.command_timeout_ms = 1000;
    s = scene_with(s.sv, &s.opts);
    expect_undisturbed(&s);
    return s;
}

TEST(cluster, fault_034_all_keys_of_a_lock_are_in_one_slot)
{
    scene s = scene_cluster();
    rlock *lk[] = {test_lock(s.cl, "x"), test_lock(s.cl, "{x}y"),
                   test_lock(s.cl, "x{y}z")};
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
        waiter *w = waiter_start(lk[i], 20000, RLOCK_WATCHDOG);
        if (has_sharded_channels(s.sv)) /* or it polls, and is not queued */
            EVENTUALLY(SOON,
                       server_cmd(s.sv, "KEYS rlock_queue:*")->elements == 1);
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
        rlock_free(lk[i]);
    }
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(cluster, fault_035_a_cluster_that_is_down_is_waited_for)
{
    scene s = scene_cluster();
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    long long slot = server_int(s.sv, "CLUSTER KEYSLOT other");
    EXPECT_STR(server_str(s.sv, "CLUSTER DELSLOTS %lld", slot), "OK");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "CLUSTERDOWN");
    waiter *w = waiter_start(other, 20000, RLOCK_WATCHDOG);
    EVENTUALLY(5000, stats_of(s.cl).waiting_now == 1);
    EXPECT_STR(server_str(s.sv, "CLUSTER ADDSLOTS %lld", slot), "OK");
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv); /* nothing was in doubt */
    rlock_free(other);
    scene_stop(&s);
}

/* Of a processor: the calling thread's, or that of all. */
TEST(cluster, while_a_cluster_is_down_a_call_sleeps_between_its_tries)
{
    scene s = scene_cluster();
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    long long slot = server_int(s.sv, "CLUSTER KEYSLOT other");
    EXPECT_STR(server_str(s.sv, "CLUSTER DELSLOTS %lld", slot), "OK");
    int64_t began_us = test_clock_us(CLOCK_THREAD_CPUTIME_ID),
            began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(other), RLOCK_ESERVER);
    EXPECT(test_since_ms(began_ms) >= 900);
    EXPECT_BETWEEN(test_clock_us(CLOCK_THREAD_CPUTIME_ID) - began_us, 0, 50000);
    rlock_free(other);
    scene_stop(&s);
}

/* What twenty connections cost, and no more; TSan looks at all of it. */
#ifdef __SANITIZE_THREAD__
enum { LITTLE_US = 600000 };
#else
enum { LITTLE_US = 250000 };
#endif

/* Until its next try it has a place on the connection that has ended. */
TEST(cluster, so_does_a_started_call_whose_connection_ends_meanwhile)
{
    scene s = scene_cluster();
    request r = request_new(s.lk);
    EXPECT_STATUS(loop_acquire(s.cl, &r, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    long long slot = server_int(s.sv, "CLUSTER KEYSLOT " SCENE_LOCK);
    EXPECT_STR(server_str(s.sv, "CLUSTER DELSLOTS %lld", slot), "OK");
    EXPECT_STATUS(request_acquire(&r, 20000, 60000), RLOCK_OK);
    int64_t began_us = test_clock_us(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 20; i++) {
        server_cmd(s.sv, "CLIENT KILL TYPE normal SKIPME yes");
        test_pause_ms(50);
    }
    int64_t us = test_clock_us(CLOCK_PROCESS_CPUTIME_ID) - began_us;
    EXPECT_BETWEEN(us, 0, LITTLE_US);
    EXPECT_STR(server_str(s.sv, "CLUSTER ADDSLOTS %lld", slot), "OK");
    LOOP_UNTIL(s.cl, r.told == 3);
    EXPECT_STATUS(r.status, RLOCK_OK);
    request_free(&r);
    scene_stop(&s);
}

TEST(cluster, fault_036_a_name_whose_keys_are_in_several_slots_is_refused)
{
    static const char *const names[] = {"x}y", "a{b", "{}x"};
    scene s = scene_cluster();
    for (int i = 0; i < 3; i++) {
        rlock *lk;
        EXPECT_STATUS(rlock_new(s.cl, names[i], &lk), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "slot");
    }
    scene_stop(&s);
}

/* In one call they would be refused. */
TEST(cluster, fault_123_locks_of_several_slots_are_renewed_all_the_same)
{
    enum { LOCKS = 20 };
    scene s = scene_cluster();
    rlock *lk[LOCKS];
    char name[16];
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "l%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    expect_renewals(&s, 3 * LOCKS);
    for (int i = 0; i < LOCKS; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}
