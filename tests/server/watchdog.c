/*
 * The watchdog: what it renews and when, what it leaves alone, and what it
 * survives.
 */
#include <stdatomic.h>

#include "scene.h"

enum { MANY = SANITIZED ? 2000 : 5000, MANY_LEASE_MS = 3000 };

/* --- when it renews ------------------------------------------------------ */

TEST(watchdog, renews_every_third_of_the_lease)
{
    enum { THIRD_MS = 200, ROUNDS = 6 };
    scene s = scene_held(3 * THIRD_MS, 0);
    int64_t began_us = test_now_us();
    expect_renewals(&s, 1);
    began_us = test_now_us();
    expect_renewals(&s, ROUNDS);
    /* The first was seen late, by a millisecond or more on a busy machine. */
    EXPECT_BETWEEN((test_now_us() - began_us) / 1000,
                   ROUNDS * THIRD_MS - THIRD_MS, SOON);
    int64_t calls = server_calls(s.sv, "evalsha");
    EXPECT_BETWEEN(calls - (int64_t)stats_of(s.cl).renewals, -1, 2);
    scene_stop(&s);
}

TEST(watchdog, keeps_the_ttl_above_two_thirds_of_the_lease)
{
    scene s = scene_held(1500, 0);
    long long least = 1500;
    while (stats_of(s.cl).renewals < 5) {
        long long ttl = server_int(s.sv, "PTTL job");
        EXPECT(ttl <= 1500);
        least = ttl < least ? ttl : least;
        test_pause_ms(2);
    }
    EXPECT_BETWEEN(least, 1000 - 400, 1000 + 100);
    scene_stop(&s);
}

TEST(watchdog, moves_the_local_deadline_with_the_ttl)
{
    scene s = scene_held(900, 0);
    while (stats_of(s.cl).renewals < 4) {
        uint64_t renewals = stats_of(s.cl).renewals;
        long long ttl = server_int(s.sv, "PTTL job");
        int64_t valid = rlock_valid_ms(s.lk);
        EXPECT_BETWEEN(valid, 1, 900 - 11);
        /* Earlier than the server, unless one was renewed in between. */
        EXPECT(valid <= ttl || stats_of(s.cl).renewals > renewals);
        test_pause_ms(2);
    }
    EXPECT(rlock_is_held(s.lk));
    scene_stop(&s);
}

TEST(watchdog, sets_a_ttl_again_that_was_taken_away_by_hand)
{
    scene s = scene_held(BRISK_MS, 0);
    EXPECT_INT(server_int(s.sv, "PERSIST job"), 1);
    EVENTUALLY(SOON, server_int(s.sv, "PTTL job") > 0);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL job"), 1, BRISK_MS);
    EXPECT(rlock_is_held(s.lk));
    scene_stop(&s);
}

TEST(watchdog, prolongs_a_ttl_that_was_shortened_by_hand)
{
    scene s = scene_held(900, 0);
    expect_renewals(&s, 1);
    EXPECT_INT(server_int(s.sv, "PEXPIRE job 700"), 1);
    expect_renewals(&s, 2);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL job"), 1, 900);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

/* --- what it leaves alone ------------------------------------------------ */

TEST(watchdog, sends_nothing_for_a_lock_after_its_unlock)
{
    scene s = scene_held_proxied(BRISK_MS, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    expect_renewals(&s, 4);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    int sent = proxy_count(s.px, "other");
    EXPECT(sent >= 3);
    expect_renewals(&s, 6);
    EXPECT_INT(proxy_count(s.px, "other"), sent);
    rlock_free(other);
    scene_stop(&s);
}

TEST(watchdog, renews_no_explicit_lease)
{
    scene s = scene_held_proxied(BRISK_MS, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_acquire(other, 0, 60000), RLOCK_OK);
    expect_renewals(&s, 6);
    EXPECT_INT(proxy_count(s.px, "other"), 1);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL other"), 1, 60000 - 500);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

TEST(watchdog, stops_renewing_after_an_extend)
{
    scene s = scene_held_proxied(BRISK_MS, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(other, 60000), RLOCK_OK);
    int sent = proxy_count(s.px, "other");
    expect_renewals(&s, 6);
    EXPECT_INT(proxy_count(s.px, "other"), sent);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

/* Another client's renewals are the clock. */
TEST(watchdog, an_idle_client_sends_nothing)
{
    scene s = scene_held_proxied(BRISK_MS, 0);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    rlock_client *clock = server_client(s.sv, &opts);
    rlock *tick = test_lock(clock, "tick");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(tick), RLOCK_OK);
    int sent = proxy_count(s.px, "");
    watch_renewals(clock, 8);
    EXPECT_INT(proxy_count(s.px, ""), sent);
    rlock_free(tick);
    rlock_client_free(clock);
    scene_stop(&s);
}

/* --- many holds ---------------------------------------------------------- */

static void make_names(rlock_client *cl, rlock **locks, int n)
{
    char name[32];
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof name, "many:%d", i);
        locks[i] = test_lock(cl, name);
        EXPECT_STATUS(rlock_lock(locks[i]), RLOCK_OK);
    }
}

static long long count_keys(server *sv, int n)
{
    return server_int(sv, "EVAL %s 0 %d",
                      "local n = 0 "
                      "for i = 0, ARGV[1] - 1 do "
                      "n = n + redis.call('exists', 'many:' .. i) end "
                      "return n",
                      n);
}

static void expect_all_held(server *sv, rlock **locks, int n)
{
    EXPECT_INT(count_keys(sv, n), n);
    for (int i = 0; i < n; i++)
        EXPECT(rlock_is_held(locks[i]));
}

static void free_locks(rlock **locks, int n)
{
    for (int i = 0; i < n; i++)
        rlock_free(locks[i]);
    free(locks);
}

TEST(watchdog, keeps_thousands_of_locks)
{
    scene s = scene_held(MANY_LEASE_MS, 0);
    rlock **locks = calloc(MANY, sizeof *locks);
    EXPECT(locks);
    make_names(s.cl, locks, MANY);
    int64_t until = test_now_ms() + 2 * MANY_LEASE_MS;
    while (test_now_ms() < until) {
        EXPECT_INT(count_keys(s.sv, MANY), MANY);
        test_pause_ms(100);
    }
    expect_all_held(s.sv, locks, MANY);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    free_locks(locks, MANY);
    scene_stop(&s);
}

/* After a stop of the server everything is due at the same time. */
TEST(watchdog, renews_in_one_write_what_is_due_together)
{
    enum { N = 1000 };
    scene s = scene_held_proxied(6000, 0);
    rlock **locks = calloc(N, sizeof *locks);
    EXPECT(locks);
    make_names(s.cl, locks, N);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    /* All have failed once, so their next try is at one time. */
    EVENTUALLY(SOON, stats_of(s.cl).renew_failures >= N + 1);
    long long reads = server_info(s.sv, "total_reads_processed");
    uint64_t renewals = stats_of(s.cl).renewals;
    proxy_refuse(s.px, false);
    EVENTUALLY(SOON, stats_of(s.cl).renewals >= renewals + N);
    renewals = stats_of(s.cl).renewals - renewals;
    reads = server_info(s.sv, "total_reads_processed") - reads;
    EXPECT_BETWEEN(reads, 1, (long long)renewals / 4);
    expect_all_held(s.sv, locks, N);
    free_locks(locks, N);
    scene_stop(&s);
}

/* That for one lock, and that for many. */
TEST(watchdog, sends_each_script_whole_once_after_a_flush)
{
    enum { N = 400 };
    scene s = scene_held(3000, 0);
    rlock **locks = calloc(N, sizeof *locks);
    EXPECT(locks);
    make_names(s.cl, locks, N);
    expect_renewals(&s, N / 2);
    uint64_t loads = stats_of(s.cl).script_loads;
    EXPECT_STR(server_str(s.sv, "SCRIPT FLUSH"), "OK");
    expect_renewals(&s, 3 * N);
    expect_all_held(s.sv, locks, N);
    EXPECT_BETWEEN(stats_of(s.cl).script_loads - loads, 1, 2);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    free_locks(locks, N);
    scene_stop(&s);
}

/* --- outages that a hold survives ---------------------------------------- */

TEST(watchdog, a_hold_survives_a_restart_that_keeps_the_data)
{
    scene s = scene_server(SERVER_DURABLE);
    scene_client(&s, 6000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    expect_renewals(&s, 1);
    server_restart(s.sv);
    expect_renewals(&s, 2);
    EXPECT(rlock_is_held(s.lk));
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL job"), 1, 6000);
    EXPECT(events_count(s.ev, RLOCK_EVENT_RECONNECTED) >= 1);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(watchdog, a_hold_survives_a_short_outage)
{
    scene s = scene_held_proxied(3000, 0);
    uint64_t token = rlock_token(s.lk);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EXPECT(rlock_is_held(s.lk));
    proxy_refuse(s.px, false);
    int renewed = events_count(s.ev, RLOCK_EVENT_RENEWED);
    events_wait(s.ev, RLOCK_EVENT_RENEWED, renewed + 1, SOON);
    EXPECT(rlock_is_held(s.lk));
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    events_wait(s.ev, RLOCK_EVENT_RECONNECTED, 1, SOON);
    scene_stop(&s);
}

TEST(watchdog, a_failed_renewal_tells_the_lock_and_the_cause)
{
    scene s = scene_held_proxied(1500, 0);
    rlock_event ev;
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EXPECT(events_last(s.ev, RLOCK_EVENT_RENEW_FAILED, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.status, RLOCK_EIO);
    EXPECT_INT(ev.count, 1);
    EXPECT(ev.token == rlock_token(s.lk) || !rlock_is_held(s.lk));
    EXPECT_CONTAINS(ev.message, proxy_path(s.px));
    EXPECT(stats_of(s.cl).renew_failures >= 1);
    scene_stop(&s);
}

/* A lost answer is no loss of the hold: renewing twice does no harm. */
TEST(watchdog, a_renewal_whose_answer_is_lost_is_repeated)
{
    scene s = scene_held_proxied(3000, 0);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_CUT_AFTER, NULL);
    EVENTUALLY(SOON, proxy_fired(s.px));
    expect_renewals(&s, 1);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT(stats_of(s.cl).renew_failures >= 1);
    scene_stop(&s);
}

static redisContext *counting_connect(void *arg)
{
    struct {
        const char *path;
        atomic_int calls;
    } *c = arg;
    atomic_fetch_add(&c->calls, 1);
    return redisConnectUnixWithTimeout(c->path, (struct timeval){1, 0});
}

/* One try on the old connection, then each on a new one. */
TEST(watchdog, tries_three_times_before_a_lease_is_lost)
{
    server *sv = server_start(NULL);
    proxy *px = proxy_start(sv);
    events *ev = events_new();
    struct {
        const char *path;
        atomic_int calls;
    } c = {.path = proxy_path(px)};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = counting_connect;
    opts.connect_arg = &c;
    opts.watchdog_lease_ms = 3000;
    events_hook(ev, &opts);
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    int before = atomic_load(&c.calls);
    proxy_freeze(px, true);
    events_wait(ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(atomic_load(&c.calls) - before, 2, 20);
    proxy_freeze(px, false);
    rlock_free(lk);
    rlock_client_free(cl);
    proxy_stop(px);
    server_stop(sv);
    events_free(ev);
}
