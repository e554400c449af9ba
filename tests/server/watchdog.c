/*
 * The watchdog: what it renews and when, what it survives, and that a hold
 * which it could not renew is lost in time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "proxy.h"

enum { LONG_MS = 20000 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { MANY = 2000, MANY_LEASE_MS = 3000 };
#else
enum { MANY = 5000, MANY_LEASE_MS = 1500 };
#endif

/* A server, a proxy if asked for, and a client of it that holds one lock. */
typedef struct rig {
    server *sv;
    proxy *px;
    events *ev;
    rlock_client *cl;
    rlock *lk;
} rig;

static rig rig_start(const char *args, bool with_proxy, int64_t lease_ms)
{
    rig r = {.sv = server_start(args), .ev = events_new()};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    server_load_scripts(r.sv);
    if (with_proxy) {
        r.px = proxy_start(r.sv);
        opts.uri = proxy_uri(r.px);
    }
    opts.watchdog_lease_ms = lease_ms;
    events_hook(r.ev, &opts);
    r.cl = server_client(r.sv, &opts);
    r.lk = test_lock(r.cl, "main");
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    return r;
}

static void rig_stop(rig *r)
{
    rlock_free(r->lk);
    rlock_client_free(r->cl);
    if (r->px)
        proxy_stop(r->px);
    server_stop(r->sv);
    events_free(r->ev);
}

static rlock_stats stats_of(rlock_client *cl)
{
    rlock_stats s;
    EXPECT_STATUS(rlock_client_stats(cl, &s), RLOCK_OK);
    return s;
}

/* Time told by renewals: returns when there have been n more. */
static void watch_renewals(rlock_client *cl, unsigned n)
{
    uint64_t until = stats_of(cl).renewals + n;
    EVENTUALLY(LONG_MS, stats_of(cl).renewals >= until);
}

/* --- when it renews ------------------------------------------------------ */

TEST(watchdog, renews_every_third_of_the_lease)
{
    enum { THIRD_MS = 200, ROUNDS = 6 };
    rig r = rig_start(NULL, false, 3 * THIRD_MS);
    int64_t began_us = test_now_us();
    watch_renewals(r.cl, 1);
    began_us = test_now_us();
    watch_renewals(r.cl, ROUNDS);
    /* The first was seen late, by a millisecond or more on a busy machine. */
    EXPECT_BETWEEN((test_now_us() - began_us) / 1000,
                   ROUNDS * THIRD_MS - THIRD_MS, LONG_MS);
    int64_t calls = server_calls(r.sv, "evalsha");
    EXPECT_BETWEEN(calls - (int64_t)stats_of(r.cl).renewals, -1, 2);
    rig_stop(&r);
}

TEST(watchdog, keeps_the_ttl_above_two_thirds_of_the_lease)
{
    rig r = rig_start(NULL, false, 1500);
    long long least = 1500;
    while (stats_of(r.cl).renewals < 5) {
        long long ttl = server_int(r.sv, "PTTL main");
        EXPECT(ttl <= 1500);
        least = ttl < least ? ttl : least;
        test_pause_ms(2);
    }
    EXPECT_BETWEEN(least, 1000 - 400, 1000 + 100);
    rig_stop(&r);
}

TEST(watchdog, moves_the_local_deadline_with_the_ttl)
{
    rig r = rig_start(NULL, false, 900);
    while (stats_of(r.cl).renewals < 4) {
        uint64_t renewals = stats_of(r.cl).renewals;
        long long ttl = server_int(r.sv, "PTTL main");
        int64_t valid = rlock_valid_ms(r.lk);
        EXPECT_BETWEEN(valid, 1, 900 - 11);
        /* Earlier than the server, unless one was renewed in between. */
        EXPECT(valid <= ttl || stats_of(r.cl).renewals > renewals);
        test_pause_ms(2);
    }
    EXPECT(rlock_is_held(r.lk));
    rig_stop(&r);
}

TEST(watchdog, sets_a_ttl_again_that_was_taken_away_by_hand)
{
    rig r = rig_start(NULL, false, 600);
    EXPECT_INT(server_int(r.sv, "PERSIST main"), 1);
    EVENTUALLY(LONG_MS, server_int(r.sv, "PTTL main") > 0);
    EXPECT_BETWEEN(server_int(r.sv, "PTTL main"), 1, 600);
    EXPECT(rlock_is_held(r.lk));
    rig_stop(&r);
}

TEST(watchdog, prolongs_a_ttl_that_was_shortened_by_hand)
{
    rig r = rig_start(NULL, false, 900);
    watch_renewals(r.cl, 1);
    EXPECT_INT(server_int(r.sv, "PEXPIRE main 700"), 1);
    watch_renewals(r.cl, 2);
    EXPECT_BETWEEN(server_int(r.sv, "PTTL main"), 1, 900);
    EXPECT(rlock_is_held(r.lk));
    EXPECT_INT(stats_of(r.cl).lost, 0);
    rig_stop(&r);
}

/* --- what it leaves alone ------------------------------------------------ */

TEST(watchdog, sends_nothing_for_a_lock_after_its_unlock)
{
    rig r = rig_start(NULL, true, 300);
    rlock *other = test_lock(r.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    watch_renewals(r.cl, 4);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    int sent = proxy_count(r.px, "other");
    EXPECT(sent >= 3);
    watch_renewals(r.cl, 6);
    EXPECT_INT(proxy_count(r.px, "other"), sent);
    rlock_free(other);
    rig_stop(&r);
}

TEST(watchdog, renews_no_explicit_lease)
{
    rig r = rig_start(NULL, true, 300);
    rlock *other = test_lock(r.cl, "other");
    EXPECT_STATUS(rlock_acquire(other, 0, 60000), RLOCK_OK);
    watch_renewals(r.cl, 6);
    EXPECT_INT(proxy_count(r.px, "other"), 1);
    EXPECT_BETWEEN(server_int(r.sv, "PTTL other"), 1, 60000 - 500);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    rig_stop(&r);
}

TEST(watchdog, stops_renewing_after_an_extend)
{
    rig r = rig_start(NULL, true, 300);
    rlock *other = test_lock(r.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(other, 60000), RLOCK_OK);
    int sent = proxy_count(r.px, "other");
    watch_renewals(r.cl, 6);
    EXPECT_INT(proxy_count(r.px, "other"), sent);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    rig_stop(&r);
}

/* Another client's renewals are the clock. */
TEST(watchdog, an_idle_client_sends_nothing)
{
    rig r = rig_start(NULL, true, 300);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 300;
    rlock_client *clock = server_client(r.sv, &opts);
    rlock *tick = test_lock(clock, "tick");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(tick), RLOCK_OK);
    int sent = proxy_count(r.px, "");
    watch_renewals(clock, 8);
    EXPECT_INT(proxy_count(r.px, ""), sent);
    rlock_free(tick);
    rlock_client_free(clock);
    rig_stop(&r);
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
    rig r = rig_start(NULL, false, MANY_LEASE_MS);
    rlock **locks = calloc(MANY, sizeof *locks);
    EXPECT(locks);
    make_names(r.cl, locks, MANY);
    int64_t until = test_now_ms() + 2 * MANY_LEASE_MS;
    while (test_now_ms() < until) {
        EXPECT_INT(count_keys(r.sv, MANY), MANY);
        test_pause_ms(100);
    }
    expect_all_held(r.sv, locks, MANY);
    EXPECT_INT(stats_of(r.cl).lost, 0);
    free_locks(locks, MANY);
    rig_stop(&r);
}

/* After a stop of the server everything is due at the same time. */
TEST(watchdog, renews_in_one_write_what_is_due_together)
{
    enum { N = 1000 };
    rig r = rig_start(NULL, true, 6000);
    rlock **locks = calloc(N, sizeof *locks);
    EXPECT(locks);
    make_names(r.cl, locks, N);
    proxy_refuse(r.px, true);
    proxy_cut_all(r.px);
    /* All have failed once, so their next try is at one time. */
    EVENTUALLY(LONG_MS, stats_of(r.cl).renew_failures >= N + 1);
    long long reads = server_info(r.sv, "total_reads_processed");
    uint64_t renewals = stats_of(r.cl).renewals;
    proxy_refuse(r.px, false);
    EVENTUALLY(LONG_MS, stats_of(r.cl).renewals >= renewals + N);
    renewals = stats_of(r.cl).renewals - renewals;
    reads = server_info(r.sv, "total_reads_processed") - reads;
    EXPECT_BETWEEN(reads, 1, (long long)renewals / 4);
    expect_all_held(r.sv, locks, N);
    free_locks(locks, N);
    rig_stop(&r);
}

TEST(watchdog, sends_a_script_whole_once_after_a_flush)
{
    enum { N = 400 };
    rig r = rig_start(NULL, false, 3000);
    rlock **locks = calloc(N, sizeof *locks);
    EXPECT(locks);
    make_names(r.cl, locks, N);
    watch_renewals(r.cl, N / 2);
    uint64_t loads = stats_of(r.cl).script_loads;
    EXPECT_STR(server_str(r.sv, "SCRIPT FLUSH"), "OK");
    watch_renewals(r.cl, 3 * N);
    expect_all_held(r.sv, locks, N);
    EXPECT_INT(stats_of(r.cl).script_loads - loads, 1);
    EXPECT_INT(stats_of(r.cl).renew_failures, 0);
    free_locks(locks, N);
    rig_stop(&r);
}

/* --- outages that a hold survives ---------------------------------------- */

TEST(watchdog, a_hold_survives_a_restart_that_keeps_the_data)
{
    rig r = rig_start("--appendonly yes --appendfsync always", false, 6000);
    uint64_t token = rlock_token(r.lk);
    watch_renewals(r.cl, 1);
    server_restart(r.sv);
    watch_renewals(r.cl, 2);
    EXPECT(rlock_is_held(r.lk));
    EXPECT(rlock_token(r.lk) == token);
    EXPECT_BETWEEN(server_int(r.sv, "PTTL main"), 1, 6000);
    EXPECT(events_count(r.ev, RLOCK_EVENT_RECONNECTED) >= 1);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    rig_stop(&r);
}

TEST(watchdog, a_hold_survives_a_short_outage)
{
    rig r = rig_start(NULL, true, 3000);
    uint64_t token = rlock_token(r.lk);
    proxy_refuse(r.px, true);
    proxy_cut_all(r.px);
    events_wait(r.ev, RLOCK_EVENT_RENEW_FAILED, 1, LONG_MS);
    EXPECT(rlock_is_held(r.lk));
    proxy_refuse(r.px, false);
    int renewed = events_count(r.ev, RLOCK_EVENT_RENEWED);
    events_wait(r.ev, RLOCK_EVENT_RENEWED, renewed + 1, LONG_MS);
    EXPECT(rlock_is_held(r.lk));
    EXPECT(rlock_token(r.lk) == token);
    EXPECT_INT(rlock_hold_count(r.lk), 1);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_LOST), 0);
    events_wait(r.ev, RLOCK_EVENT_RECONNECTED, 1, LONG_MS);
    rig_stop(&r);
}

TEST(watchdog, a_failed_renewal_tells_the_lock_and_the_cause)
{
    rig r = rig_start(NULL, true, 1500);
    rlock_event ev;
    proxy_refuse(r.px, true);
    proxy_cut_all(r.px);
    events_wait(r.ev, RLOCK_EVENT_RENEW_FAILED, 1, LONG_MS);
    EXPECT(events_last(r.ev, RLOCK_EVENT_RENEW_FAILED, &ev));
    EXPECT_STR(ev.name, "main");
    EXPECT_INT(ev.status, RLOCK_EIO);
    EXPECT_INT(ev.count, 1);
    EXPECT(ev.token == rlock_token(r.lk) || !rlock_is_held(r.lk));
    EXPECT_CONTAINS(ev.message, proxy_path(r.px));
    EXPECT(stats_of(r.cl).renew_failures >= 1);
    rig_stop(&r);
}

/* A lost answer is no loss of the hold: renewing twice does no harm. */
TEST(watchdog, a_renewal_whose_answer_is_lost_is_repeated)
{
    rig r = rig_start(NULL, true, 3000);
    proxy_rule(r.px, proxy_sha("renew"), 1, PROXY_CUT_AFTER, NULL);
    EVENTUALLY(LONG_MS, proxy_fired(r.px));
    watch_renewals(r.cl, 1);
    EXPECT(rlock_is_held(r.lk));
    EXPECT_INT(stats_of(r.cl).lost, 0);
    EXPECT(stats_of(r.cl).renew_failures >= 1);
    rig_stop(&r);
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
    rlock *lk = test_lock(cl, "main");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    int before = atomic_load(&c.calls);
    proxy_freeze(px, true);
    events_wait(ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    EXPECT_BETWEEN(atomic_load(&c.calls) - before, 2, 20);
    proxy_freeze(px, false);
    rlock_free(lk);
    rlock_client_free(cl);
    proxy_stop(px);
    server_stop(sv);
    events_free(ev);
}

/* --- losses -------------------------------------------------------------- */

/* Renewed for the last time before gone_ms: what may be believed until when? */
static void expect_lost_in_time(rig *r, int64_t gone_ms, int64_t lease_ms)
{
    for (;;) {
        int64_t now = test_now_ms();
        int64_t valid = rlock_valid_ms(r->lk);
        if (now + valid > gone_ms + lease_ms)
            FAIL("valid until %lld ms after the last renewal",
                 (long long)(now + valid - gone_ms));
        if (valid == 0 && !rlock_is_held(r->lk))
            break;
        test_pause_ms(1);
    }
    EXPECT_INT(rlock_hold_count(r->lk), 0);
    EXPECT(rlock_token(r->lk) == 0);
    events_wait(r->ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    /* The end of the lease, and what a busy machine needs to tell. */
    EXPECT_BETWEEN(events_time(r->ev, RLOCK_EVENT_LOST) - gone_ms, lease_ms / 2,
                   lease_ms + 300);
}

TEST(watchdog, a_hold_is_lost_at_its_deadline_when_the_server_stays_away)
{
    rig r = rig_start(NULL, false, 1200);
    watch_renewals(r.cl, 2);
    server_kill(r.sv);
    expect_lost_in_time(&r, test_now_ms(), 1200);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_NOT_HELD);
    rig_stop(&r);
}

TEST(watchdog, a_hold_is_lost_at_its_deadline_when_the_server_is_silent)
{
    rig r = rig_start(NULL, false, 1200);
    watch_renewals(r.cl, 2);
    server_pause(r.sv);
    expect_lost_in_time(&r, test_now_ms(), 1200);
    server_resume(r.sv);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}

TEST(watchdog, a_loss_tells_its_cause_once)
{
    rig r = rig_start(NULL, false, 600);
    rlock *again = test_lock(r.cl, "again");
    rlock_event ev;
    server_kill(r.sv);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    EXPECT(events_last(r.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STR(ev.name, "main");
    EXPECT_INT(ev.status, RLOCK_LOST);
    EXPECT_STR(ev.message, "its lease ran out");
    EXPECT(ev.token != 0);
    EXPECT_BETWEEN(ev.elapsed_ms, 300, LONG_MS);
    server_restart(r.sv);
    EXPECT_STATUS(rlock_lock(again), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    watch_renewals(r.cl, 3);
    EXPECT_INT(events_count(r.ev, RLOCK_EVENT_LOST), 1);
    EXPECT_INT(stats_of(r.cl).lost, 1);
    rlock_free(again);
    rig_stop(&r);
}

/* What the server still had must not bring it back. */
TEST(watchdog, a_lost_hold_is_not_revived_when_the_server_answers_again)
{
    rig r = rig_start(NULL, true, 600);
    proxy_rule(r.px, proxy_sha("renew"), 1, PROXY_HOLD_REQUEST, NULL);
    EVENTUALLY(LONG_MS, proxy_fired(r.px));
    proxy_refuse(r.px, true);
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    proxy_refuse(r.px, false);
    proxy_let_go(r.px);
    EXPECT(!rlock_is_held(r.lk));
    EVENTUALLY(LONG_MS, server_int(r.sv, "EXISTS main") == 0);
    EXPECT(!rlock_is_held(r.lk));
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}

TEST(watchdog, a_deleted_lock_is_lost_and_not_made_again)
{
    rig r = rig_start(NULL, false, 900);
    EXPECT_INT(server_int(r.sv, "DEL main"), 1);
    int64_t began = test_now_ms();
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    EXPECT_BETWEEN(events_time(r.ev, RLOCK_EVENT_LOST) - began, 0, 300 + 400);
    EXPECT_CONTAINS(events_message(r.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT_INT(server_int(r.sv, "EXISTS main"), 0);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    rig_stop(&r);
}

TEST(watchdog, a_hold_of_another_owner_is_not_renewed)
{
    rig r = rig_start(NULL, false, 600);
    server_cmd(r.sv, "DEL main");
    server_cmd(r.sv, "HSET main stranger 1");
    server_cmd(r.sv, "PEXPIRE main 60000");
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    EXPECT_STR(server_str(r.sv, "HGET main stranger"), "1");
    EXPECT_BETWEEN(server_int(r.sv, "PTTL main"), 1000, 60000);
    rig_stop(&r);
}

TEST(watchdog, one_bad_lock_does_not_disturb_the_others)
{
    rig r = rig_start(NULL, false, 600);
    rlock *other = test_lock(r.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    server_cmd(r.sv, "SET main x");
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    EXPECT_STR(events_message(r.ev, RLOCK_EVENT_LOST),
               "the key is no lock any more");
    watch_renewals(r.cl, 5);
    EXPECT(rlock_is_held(other));
    EXPECT_INT(stats_of(r.cl).lost, 1);
    EXPECT_INT(stats_of(r.cl).renew_failures, 0);
    EXPECT_STR(server_str(r.sv, "GET main"), "x");
    rlock_free(other);
    rig_stop(&r);
}

TEST(watchdog, an_explicit_lease_is_lost_at_its_deadline)
{
    rig r = rig_start(NULL, false, 60000);
    rlock *other = test_lock(r.cl, "other");
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(other, 0, 500), RLOCK_OK);
    int64_t granted = test_now_ms();
    EVENTUALLY(LONG_MS, !rlock_is_held(other));
    events_wait(r.ev, RLOCK_EVENT_LOST, 1, LONG_MS);
    int64_t lost = events_time(r.ev, RLOCK_EVENT_LOST);
    EXPECT(lost - began >= 500 - 8);
    EXPECT(lost - granted <= 500 + 300);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_LOST);
    EXPECT(rlock_is_held(r.lk));
    rlock_free(other);
    rig_stop(&r);
}

/* --- the callback -------------------------------------------------------- */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    atomic_int entered;
} gate;

static void stand_at_gate(const rlock_event *ev, void *arg)
{
    gate *g = arg;
    if (ev->type != RLOCK_EVENT_RENEWED)
        return;
    atomic_fetch_add(&g->entered, 1);
    pthread_mutex_lock(&g->mutex);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void open_gate(gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

TEST(watchdog, a_slow_callback_delays_no_renewal)
{
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER};
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 900;
    opts.on_event = stand_at_gate;
    opts.event_arg = &g;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, "main");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(LONG_MS, atomic_load(&g.entered) == 1);
    watch_renewals(cl, 6);
    EXPECT(rlock_is_held(lk));
    EXPECT_INT(atomic_load(&g.entered), 1);
    open_gate(&g);
    EVENTUALLY(LONG_MS, atomic_load(&g.entered) > 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}

/* The callback's statuses, of calls that it makes on the notifier's thread. */
typedef struct caller {
    _Atomic(rlock_client *) cl;
    atomic_int done;
    rlock_status status[7];
} caller;

static void call_back(const rlock_event *ev, void *arg)
{
    caller *c = arg;
    rlock_client *cl = atomic_load(&c->cl);
    rlock *lk = NULL, *held = NULL;
    rlock_stats stats;
    rlock_holder holder;
    if (ev->type != RLOCK_EVENT_RENEWED || !cl || atomic_load(&c->done))
        return;
    c->status[0] = rlock_new(cl, "of the callback", &lk);
    c->status[1] = rlock_new_n(cl, ev->name, ev->name_len, &held);
    c->status[2] = rlock_lock(lk);
    c->status[3] = rlock_client_ping(cl);
    c->status[4] = rlock_client_stats(cl, &stats);
    c->status[5] = rlock_holder_info(held, &holder);
    c->status[6] = rlock_unlock(lk);
    rlock_free(held);
    rlock_free(lk);
    atomic_store(&c->done, 1);
}

TEST(watchdog, the_callback_may_call_the_library)
{
    caller c = {.done = 0};
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 600;
    opts.on_event = call_back;
    opts.event_arg = &c;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, "main");
    atomic_store(&c.cl, cl);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(LONG_MS, atomic_load(&c.done));
    for (int i = 0; i < 7; i++)
        EXPECT_INT(c.status[i], RLOCK_OK);
    EXPECT_INT(server_int(sv, "EXISTS %s", "of the callback"), 0);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}
