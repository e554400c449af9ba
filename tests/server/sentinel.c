/*
 * redis-sentinel://: a master that Sentinels name, its failovers, and Sentinels
 * that are dead, late, or of another opinion. All of them are real.
 */
#include "rlock_config.h"
#include "scene.h"
#include "sentinels.h"

typedef struct fleet {
    server *master, *replica;
    sentinels *s;
    rlock_options opts;
} fleet;

static fleet fleet_start(int n)
{
    fleet f = {.master = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT};
    f.replica = replica_start(f.master);
    f.s = sentinels_start(f.master, n);
    f.opts.uri = sentinels_uri(f.s);
    return f;
}

static void fleet_stop(fleet *f)
{
    sentinels_stop(f->s);
    server_stop(f->replica);
    server_stop(f->master);
}

/* All that the master has been told so far. */
static void await_replica(fleet *f)
{
    EVENTUALLY(SOON, replica_follows(f->master));
}

static void expect_refused(const char *uri, const char *why)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = uri;
    o.connect_timeout_ms = 500;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
    EXPECT(test_since_ms(began_ms) < 500 + SLACK_MS);
}

/* --- the master that they name -------------------------------------------- */

TEST(sentinel, a_lock_is_taken_at_the_master_that_they_name)
{
    fleet f = fleet_start(1);
    f.opts.watchdog_lease_ms = BRISK_MS;
    scene one = scene_with(f.master, &f.opts);
    lock_times(one.lk, 2);
    EXPECT_INT(levels(f.master, SCENE_LOCK), 2);
    watch_renewals(one.cl, 2);
    unlock_times(one.lk, 2, RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).failovers, 0);
    scene_leave(&one);
    fleet_stop(&f);
}

/* For a while they still name the one that is dead. */
TEST(sentinel, a_client_that_is_made_during_a_failover_waits_for_its_end)
{
    fleet f = fleet_start(3);
    rlock_client *cl = NULL;
    await_replica(&f);
    server_kill(f.master);
    f.opts.connect_timeout_ms = ELECTED_SOON;
    EXPECT_STATUS(rlock_client_new(&f.opts, &cl), RLOCK_OK);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_INT(levels(f.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    fleet_stop(&f);
}

TEST(sentinel, one_that_is_made_when_no_master_is_left_says_so_in_time)
{
    fleet f = fleet_start(1);
    server_kill(f.replica);
    server_kill(f.master);
    expect_refused(sentinels_uri(f.s), "Connection refused");
    fleet_stop(&f);
}

TEST(sentinel, fault_128_one_of_them_suffices_and_names_the_others)
{
    fleet f = fleet_start(3);
    char uri[160];
    snprintf(uri, sizeof uri, "redis-sentinel://127.0.0.1:1,127.0.0.1:%d/%s",
             sentinels_port(f.s, 2), SENTINELS_MASTER);
    f.opts.uri = uri;
    scene one = scene_with(f.master, &f.opts);
    sentinels_await_client(f.s, 3);
    /* From now on only those that the program did not name are there. */
    sentinels_kill(f.s, 2);
    server_kill(f.master);
    EXPECT_STATUS(rlock_acquire(one.lk, ELECTED_SOON, RLOCK_WATCHDOG),
                  RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).failovers, 1);
    EXPECT_INT(levels(f.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}

TEST(sentinel, fault_128_one_that_hangs_is_not_waited_for)
{
    fleet f = fleet_start(3);
    scene one = scene_with(f.master, &f.opts);
    sentinels_await_client(f.s, 3);
    sentinels_pause(f.s, 0);
    server_kill(f.master);
    EXPECT_STATUS(rlock_acquire(one.lk, ELECTED_SOON, RLOCK_WATCHDOG),
                  RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}

TEST(sentinel, fault_128_those_that_know_no_such_master_are_named)
{
    fleet f = fleet_start(1);
    char uri[160];
    snprintf(uri, sizeof uri, "redis-sentinel://127.0.0.1:%d/other",
             sentinels_port(f.s, 0));
    expect_refused(uri, "No such master");
    snprintf(uri, sizeof uri, "redis-sentinel://127.0.0.1:%d/other",
             server_port(f.master));
    expect_refused(uri, "unknown command");
    expect_refused("redis-sentinel://127.0.0.1:1/main", "refused");
    fleet_stop(&f);
}

TEST(sentinel, fault_128_those_that_want_a_password_get_it)
{
    fleet f = {.master = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT};
    f.replica = replica_start(f.master);
    f.s = sentinels_start_guarded(f.master, 1, "let-me-in");
    expect_refused(sentinels_uri(f.s), "NOAUTH");
    f.opts.uri = sentinels_uri(f.s);
    f.opts.sentinel_password = "let-me-in";
    scene one = scene_with(f.master, &f.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}

/* As src/doc/rights.md has them. */
TEST(sentinel, a_user_with_the_documented_rights_suffices_there)
{
    fleet f = fleet_start(1);
    sentinels_say(f.s, 0,
                  "ACL SETUSER app on >let-me-in resetchannels -@all +ping "
                  "+auth +subscribe +sentinel|master +sentinel|sentinels "
                  "&+switch-master");
    sentinels_say(f.s, 0, "ACL SETUSER default resetpass");
    EXPECT_STR(server_str(f.master,
                          "ACL SETUSER job on >hush ~* &* +@all -@admin "
                          "-@dangerous +role"),
               "OK");
    char uri[160];
    snprintf(uri, sizeof uri, "redis-sentinel://job:hush@127.0.0.1:%d/%s",
             sentinels_port(f.s, 0), SENTINELS_MASTER);
    f.opts.uri = uri;
    f.opts.sentinel_user = "app";
    f.opts.sentinel_password = "let-me-in";
    scene one = scene_with(f.master, &f.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}

TEST(sentinel, what_is_asked_of_sentinels_needs_some)
{
    rlock_client *cl;
    for (int i = 0; i < 2; i++) {
        rlock_options o = RLOCK_OPTIONS_INIT;
        o.uri = "redis://127.0.0.1:1";
        o.sentinel_user = i == 0 ? "app" : NULL;
        o.sentinel_password = i == 1 ? "let-me-in" : NULL;
        EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EINVAL);
        EXPECT_CONTAINS(rlock_last_error()->message, "sentinel_");
        EXPECT(!strstr(rlock_last_error()->message, "let-me-in"));
    }
}

TEST(sentinel, with_tls_all_of_them_are_verified_and_a_failover_is_followed)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
    authority *a = authority_new(), *other = authority_new();
    fleet f = {.master = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT};
    int port = secure_listen(f.master, a, "server", "no"), replicas_port;
    f.replica = replica_start_secure(f.master, port, a, &replicas_port);
    f.s = sentinels_start_secure(port, a);
    f.opts.uri = sentinels_uri(f.s);
    f.opts.tls_ca_file = authority_file(other, "ca");
    rlock_client *cl;
    EXPECT_STATUS(rlock_client_new(&f.opts, &cl), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "certificate is refused");
    f.opts.tls_ca_file = authority_file(a, "ca");
    scene one = scene_with(f.master, &f.opts);
    server_kill(f.master);
    EXPECT_STATUS(rlock_acquire(one.lk, ELECTED_SOON, RLOCK_WATCHDOG),
                  RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).failovers, 1);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
    authority_free(a);
    authority_free(other);
}

/* --- failover ------------------------------------------------------------- */

TEST(sentinel, fault_129_a_killed_master_loses_no_hold_that_was_replicated)
{
    enum { HOLDS = 50 };
    fleet f = fleet_start(3);
    rlock *lk[HOLDS];
    scene one = scene_with(f.master, &f.opts);
    for (int i = 0; i < HOLDS; i++) {
        char name[32];
        snprintf(name, sizeof name, "held:%d", i);
        lk[i] = test_lock(one.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    await_replica(&f);
    uint64_t renewed = stats_of(one.cl).renewals;
    server_kill(f.master);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    int64_t since_ms = test_now_ms();
    EVENTUALLY(SOON, stats_of(one.cl).renewals >= renewed + HOLDS);
    EXPECT(test_since_ms(since_ms) < 1000 + 2 * SLACK_MS);
    for (int i = 0; i < HOLDS; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(one.cl).lost, 0);
    scene_leave(&one);
    fleet_stop(&f);
}

TEST(sentinel, fault_129_a_failover_is_an_event_that_names_both)
{
    fleet f = fleet_start(3);
    char wanted[64];
    scene one = scene_with(f.master, &f.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    await_replica(&f);
    server_kill(f.master);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    snprintf(wanted, sizeof wanted, "127.0.0.1:%d instead of 127.0.0.1:%d",
             server_port(f.replica), server_port(f.master));
    EXPECT_STR(events_message(one.ev, RLOCK_EVENT_FAILOVER), wanted);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}

TEST(sentinel, fault_129_an_acquire_waits_until_there_is_a_master)
{
    fleet f = fleet_start(3);
    int64_t named_ms, at_ms;
    scene one = scene_with(f.master, &f.opts);
    server_kill(f.master);
    waiter *w = waiter_start(one.lk, ELECTED_SOON, RLOCK_WATCHDOG);
    sentinels_await(f.s, f.replica, 2);
    named_ms = test_now_ms();
    EXPECT_INT(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms - named_ms < 300 + SLACK_MS);
    EXPECT_INT(levels(f.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}

/* By hand, and back: who leads a failover is late to name the new one. */
TEST(sentinel, fault_129_a_master_that_comes_back_into_office_is_followed)
{
    fleet f = fleet_start(3);
    scene one = scene_with(f.master, &f.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT(sentinels_fail_over(f.s, f.replica, ELECTED_SOON));
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    EXPECT_STATUS(rlock_acquire(one.lk, ELECTED_SOON, RLOCK_WATCHDOG),
                  RLOCK_OK);
    EXPECT_INT(levels(f.replica, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    sentinels_await(f.s, f.replica, 3);
    EXPECT(sentinels_fail_over(f.s, f.master, ELECTED_SOON));
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 2, ELECTED_SOON);
    sentinels_await(f.s, f.master, 3);
    EXPECT_STATUS(rlock_acquire(one.lk, ELECTED_SOON, RLOCK_WATCHDOG),
                  RLOCK_OK);
    EXPECT_INT(levels(f.master, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).failovers, 2);
    scene_leave(&one);
    fleet_stop(&f);
}

/* Its grant never reached the replica. */
TEST(sentinel, fault_130_a_grant_that_was_not_replicated_is_lost_soon)
{
    fleet f = fleet_start(3);
    scene one = scene_with(f.master, &f.opts), two;
    server_pause(f.replica);
    server_cmd(f.master, "CLIENT KILL TYPE replica");
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    uint64_t token = rlock_token(one.lk);
    server_kill(f.master);
    server_resume(f.replica);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    int64_t since_ms = test_now_ms();
    events_wait(one.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(test_since_ms(since_ms) < 1000 + SLACK_MS);
    /* A new client may meet the one that still names the dead one. */
    sentinels_await(f.s, f.replica, 3);
    two = scene_with(f.replica, &f.opts);
    EXPECT_STATUS(rlock_lock(two.lk), RLOCK_OK);
    EXPECT(rlock_token(two.lk) > token);
    EXPECT_STATUS(rlock_unlock(two.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_LOST);
    scene_leave(&two);
    scene_leave(&one);
    fleet_stop(&f);
}

/* It grants what it had in its sockets, and nobody believes it. */
TEST(sentinel,
     fault_131_a_master_that_was_stopped_over_its_failover_grants_nothing)
{
    fleet f = fleet_start(3);
    scene one = scene_with(f.master, &f.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    await_replica(&f);
    server_pause(f.master);
    waiter *w = waiter_start(one.lk, ELECTED_SOON, RLOCK_WATCHDOG);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    server_resume(f.master);
    EXPECT_INT(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(levels(f.replica, SCENE_LOCK), 1);
    EXPECT_INT(stats_of(one.cl).failovers, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}

/* By hand, with all connections kept. */
TEST(sentinel, fault_132_a_waiter_waits_on_at_the_new_master)
{
    fleet f = fleet_start(3);
    scene one = scene_with(f.master, &f.opts), two;
    two = scene_with(f.master, &f.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    waiter *w = waiter_start(two.lk, ELECTED_SOON, RLOCK_WATCHDOG);
    waiters_settle(f.master, 1, two.cl, 1);
    await_replica(&f);
    EXPECT(sentinels_fail_over(f.s, f.replica, ELECTED_SOON));
    events_wait(two.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    EVENTUALLY(SOON, queued(f.replica, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_INT(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_leave(&two);
    scene_leave(&one);
    fleet_stop(&f);
}

static intptr_t acquire_in_vain(void *lk)
{
    EXPECT_STATUS(rlock_acquire(lk, 2000, RLOCK_WATCHDOG), RLOCK_EIO);
    return 0;
}

/* No replica is there to be promoted, and all threads complain. */
TEST(sentinel, fault_133_many_threads_without_a_master_ask_for_it_rarely)
{
    enum { THREADS = 30 };
    fleet f = fleet_start(1);
    scene one = scene_with(f.master, &f.opts);
    test_thread *t[THREADS];
    rlock *lk[THREADS];
    server_kill(f.replica);
    server_kill(f.master);
    uint64_t before = stats_of(one.cl).refreshes;
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "job:%d", i);
        lk[i] = test_lock(one.cl, name);
        t[i] = test_spawn(acquire_in_vain, lk[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        test_join(t[i]);
        rlock_free(lk[i]);
    }
    EXPECT_BETWEEN(stats_of(one.cl).refreshes - before, 1, 20);
    scene_leave(&one);
    fleet_stop(&f);
}

/* --- processes ------------------------------------------------------------ */

TEST(sentinel, fault_084_a_child_that_frees_the_client_leaves_sentinels_alone)
{
    fleet f = fleet_start(1);
    scene one = scene_with(f.master, &f.opts);
    sentinels_await_client(f.s, 1);
    scene_free_in_child(&one);
    server_kill(f.master);
    EXPECT_STATUS(rlock_acquire(one.lk, ELECTED_SOON, RLOCK_WATCHDOG),
                  RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).failovers, 1);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    scene_leave(&one);
    fleet_stop(&f);
}
