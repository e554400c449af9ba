/*
 * Faults of network, waiting and process, by their numbers in the catalogue:
 * what is done to the library, and what it then does.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <unistd.h>

#include "rival.h"

/* --- C. network and I/O -------------------------------------------------- */

typedef struct dialer {
    char path[128];
    atomic_int dialed;
    atomic_bool hangs;
} dialer;

static redisContext *dial(void *arg)
{
    dialer *d = arg;
    atomic_fetch_add(&d->dialed, 1);
    while (atomic_load(&d->hangs))
        test_pause_ms(1);
    return redisConnectUnix(d->path);
}

static scene scene_dialed(dialer *d, int64_t lease_ms, int64_t timeout_ms)
{
    scene s = scene_server(NULL);
    snprintf(d->path, sizeof d->path, "%s", server_path(s.sv));
    s.opts.connect = dial;
    s.opts.connect_arg = d;
    scene_client(&s, lease_ms, timeout_ms);
    return s;
}

TEST(faults, fault_046_a_refused_connection_is_tried_again_with_pauses)
{
    dialer d = {0};
    scene s = scene_dialed(&d, 0, 200);
    expect_undisturbed(&s); /* the control */
    server_kill(s.sv);
    int before = atomic_load(&d.dialed);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 800, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 800, 1500);
    EXPECT_BETWEEN(atomic_load(&d.dialed) - before, 2, 40);
    scene_stop(&s);
}

/* The reply to an acquire is disturbed; it counts once all the same. */
static void disturb_acquire(proxy_action action, int64_t timeout_ms)
{
    scene s = scene_proxied(0, timeout_ms);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, action, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    proxy_rule(s.px, proxy_sha("acquire"), 1, action, NULL);
    if (timeout_ms == 0) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    } else {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EIO);
        EXPECT_INT(rlock_hold_count(s.lk), 1);
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(faults, fault_049_a_connection_reset_in_a_reply_counts_no_level_twice)
{
    disturb_acquire(PROXY_CUT_IN_REPLY, 0);
}

TEST(faults, fault_050_a_reply_that_stalls_half_way_is_given_up_in_time)
{
    scene s = scene_proxied(0, 200);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER,
               "*2\r\n:1\r\n$16\r\n17000");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 190, 800);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* The reply's 30 bytes take 0.6 s. */
TEST(faults, fault_051_a_reply_that_drips_has_one_deadline)
{
    scene s = scene_proxied(0, 20000);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
    s = scene_proxied(0, 200);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_DRIP_REPLY, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 190, 550);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    scene_stop(&s);
}

TEST(faults, fault_052_a_late_reply_answers_no_other_question)
{
    scene s = scene_proxied(0, 150);
    bool locked = true;
    rlock *other = test_lock(s.cl, "other");
    take_by_hand(s.sv, "other", 60000);
    EXPECT_STATUS(rlock_is_locked(other, &locked), RLOCK_OK);
    EXPECT(locked); /* the control */
    proxy_rule(s.px, proxy_sha("inspect"), 1, PROXY_HOLD_REPLY, NULL);
    EXPECT_STATUS(rlock_is_locked(other, &locked), RLOCK_EIO);
    proxy_let_go(s.px); /* "locked" */
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_is_locked(other, &locked), RLOCK_OK);
    EXPECT(locked);
    rlock_free(other);
    scene_stop(&s);
}

TEST(faults, fault_053_an_acquire_whose_reply_is_lost_counts_once)
{
    disturb_acquire(PROXY_CUT_BEFORE, 0); /* never executed */
    disturb_acquire(PROXY_CUT_AFTER, 0);
    disturb_acquire(PROXY_SWALLOW_REPLY, 200);
}

TEST(faults, fault_054_a_release_whose_reply_is_lost_is_a_release)
{
    scene s = scene_proxied(0, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT(rlock_is_held(s.lk));
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).lost, 0);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(faults, fault_055_a_renewal_whose_reply_is_lost_prolongs_nothing)
{
    scene s = scene_proxied(3000, 0);
    expect_undisturbed(&s); /* the control */
    uint64_t before = stats_of(s.cl).renewals;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_SWALLOW_REPLY, NULL);
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, 10000);
    if (stats_of(s.cl).renewals == before) {
        int64_t valid_ms = rlock_valid_ms(s.lk);
        if (stats_of(s.cl).renewals == before)
            EXPECT_BETWEEN(valid_ms, 0, began_ms + 3100 - test_now_ms());
    }
    expect_renewals(&s, 1); /* tried again */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

/* Another owner has it by then. */
TEST(faults, fault_056_an_abandoned_acquire_that_runs_later_takes_nothing)
{
    scene s = scene_proxied(0, 200);
    rival b = rival_join(&s, NULL);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_acquire(b.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(5000, server_cmd(s.sv, "KEYS rlock_undone:*")->elements == 1);
    proxy_let_go(s.px);
    EXPECT_INT(server_int(s.sv, "HLEN %s", SCENE_LOCK), 1);
    EXPECT(rlock_is_held(b.lk));
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    rival_leave(&b);
    scene_stop(&s);
}

/* Asked twice, granted, unlocked; then the first request arrives. */
TEST(faults, fault_056_an_acquire_that_was_overtaken_takes_nothing)
{
    scene s = scene_proxied(0, 200);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    proxy_let_go(s.px);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(faults, fault_057_an_abandoned_release_that_runs_later_frees_nothing)
{
    scene s = scene_proxied(0, 200);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    proxy_let_go(s.px);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Its owner has it no more, and then it has, for longer. */
TEST(faults, fault_057_an_abandoned_renewal_that_runs_later_changes_no_lease)
{
    scene s = scene_proxied(3000, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REQUEST, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REQUEST, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    scene_stop(&s);
}

static atomic_int signals;

static void count_signal(int sig)
{
    (void)sig;
    atomic_fetch_add(&signals, 1);
}

/* Without SA_RESTART, so that every system call is disturbed. */
static void on_signal(int sig)
{
    struct sigaction sa = {.sa_handler = count_signal};
    EXPECT_INT(sigaction(sig, &sa, NULL), 0);
}

TEST(faults, fault_061_writing_to_a_closed_connection_raises_no_signal)
{
    scene s = scene_proxied(1500, 0);
    struct sigaction now;
    on_signal(SIGPIPE);
    expect_undisturbed(&s); /* the control */
    for (int i = 0; i < 10; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        proxy_cut_all(s.px);
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        proxy_cut_all(s.px);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    EXPECT_INT(atomic_load(&signals), 0);
    EXPECT_INT(sigaction(SIGPIPE, NULL, &now), 0);
    EXPECT(now.sa_handler == count_signal);
    scene_stop(&s);
}

static void answer_nonsense(const char *nonsense)
{
    scene s = scene_proxied(1500, 300);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, nonsense);
    int64_t began_ms = test_now_ms();
    rlock_status status = rlock_trylock(s.lk);
    EXPECT(status == RLOCK_OK || status == RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 900);
    if (status == RLOCK_OK) {
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_ANSWER, nonsense);
    EVENTUALLY(5000, proxy_fired(s.px));
    expect_renewals(&s, 1);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_ANSWER, nonsense);
    status = rlock_unlock(s.lk);
    EXPECT(status == RLOCK_OK || status == RLOCK_EIO);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    scene_stop(&s);
}

TEST(faults, fault_062_sizes_that_cannot_be_are_refused)
{
    answer_nonsense("*2147483647\r\n");
    answer_nonsense("$9223372036854775807\r\n");
    answer_nonsense("$500000000\r\nx");
    answer_nonsense("*-7\r\n");
}

TEST(faults, fault_062_replies_of_a_wrong_type_are_refused)
{
    answer_nonsense("+OK\r\n");
    answer_nonsense("$-1\r\n");
    answer_nonsense("$3\r\nabc\r\n");
    answer_nonsense("*2\r\n:1\r\n$1\r\nx\r\n");
}

TEST(faults, fault_062_replies_of_a_wrong_shape_are_refused)
{
    answer_nonsense("*0\r\n");
    answer_nonsense("*1\r\n:1\r\n");
    answer_nonsense("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
                    "*1\r\n:1\r\n");
    answer_nonsense("HTTP/1.1 400 Bad Request\r\n\r\n");
}

TEST(faults, fault_062_a_reply_above_the_budget_is_refused)
{
    enum { SIZE = 200000 };
    char *big = malloc(SIZE + 64);
    EXPECT(big);
    int n = sprintf(big, "*2\r\n:1\r\n$%d\r\n", SIZE);
    memset(big + n, '1', SIZE);
    strcpy(big + n + SIZE, "\r\n");
    answer_nonsense(big);
    free(big);
}

static void storm(bool on)
{
    struct itimerval every = {{0, on ? 2000 : 0}, {0, on ? 2000 : 0}};
    on_signal(SIGALRM);
    EXPECT_INT(setitimer(ITIMER_REAL, &every, NULL), 0);
}

TEST(faults, fault_063_signals_do_not_restart_the_clock)
{
    scene s = scene_start(0, 300);
    expect_undisturbed(&s); /* the control */
    server_pause(s.sv);
    storm(true);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    int64_t took_ms = test_now_ms() - began_ms;
    storm(false);
    EXPECT_BETWEEN(took_ms, 290, 900);
    EXPECT(atomic_load(&signals) > 10);
    server_resume(s.sv);
    scene_stop(&s);
}

TEST(faults, fault_063_signals_disturb_no_lock)
{
    scene s = scene_start(1500, 0);
    expect_undisturbed(&s); /* the control */
    storm(true);
    for (int i = 0; i < 200; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 200, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 200, 900);
    storm(false);
    scene_stop(&s);
}

TEST(faults, fault_067_what_nobody_asked_for_answers_no_question)
{
    scene s = scene_proxied(0, 0);
    bool locked = true;
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("inspect"), 1, PROXY_ANSWER,
               "*0\r\n*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n");
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- D. waiting and wake-up ---------------------------------------------- */

/* The control: a release rings, and the waiter has the lock at once. */
static void ring_undisturbed(void)
{
    scene s = scene_proxied(0, 0);
    rival b = rival_join(&s, NULL);
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, WELL_BEFORE_POLL_MS);
    waiter_end(w);
    rival_leave(&b);
    scene_stop(&s);
}

/* The doorbell is down for good, and the release rings nobody. */
TEST(faults, fault_069_a_lost_ring_is_made_up_for_by_the_fallback_poll)
{
    ring_undisturbed();
    scene s = scene_proxied(0, 0);
    rival b = rival_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    proxy_refuse(s.px, true);
    server_cmd(s.sv, "CLIENT KILL TYPE pubsub");
    int64_t freed_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, 4000);
    waiter_end(w);
    rival_leave(&b);
    scene_stop(&s);
}

TEST(faults, fault_070_a_release_before_the_subscription_stands_is_noticed)
{
    ring_undisturbed();
    scene s = scene_proxied(0, 0);
    rival b = rival_join(&s, NULL);
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    proxy_rule(s.px, "SUBSCRIBE", 1, PROXY_HOLD_REPLY, NULL);
    int64_t began_ms = test_now_ms();
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, proxy_fired(s.px));
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0); /* it could not be rung */
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    proxy_let_go(s.px);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - began_ms, 0, WELL_BEFORE_POLL_MS);
    waiter_end(w);
    rival_leave(&b);
    scene_stop(&s);
}

TEST(faults, fault_071_a_new_subscription_has_its_waiters_look)
{
    ring_undisturbed();
    scene s = scene_proxied(0, 0);
    rival b = rival_join(&s, NULL);
    int64_t began_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    proxy_refuse(s.px, true);
    server_cmd(s.sv, "CLIENT KILL TYPE pubsub");
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    proxy_refuse(s.px, false);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - began_ms, 0, WELL_BEFORE_POLL_MS);
    waiter_end(w);
    rival_leave(&b);
    scene_stop(&s);
}

TEST(faults, fault_072_a_bell_that_overflows_has_its_waiters_look)
{
    ring_undisturbed();
    scene s = scene_server("--client-output-buffer-limit pubsub 20kb 0 0");
    scene_client(&s, 0, 0);
    rival b = rival_join(&s, NULL);
    char bell[64];
    static char big[60000];
    memset(big, 'x', sizeof big - 1);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms(), at_ms;
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    snprintf(bell, sizeof bell, "%s",
             server_cmd(s.sv, "PUBSUB CHANNELS *")->element[0]->str);
    server_cmd(s.sv, "PUBLISH %s %s", bell, big);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - began_ms, 0, WELL_BEFORE_POLL_MS);
    waiter_end(w);
    rival_leave(&b);
    scene_stop(&s);
}

TEST(faults, fault_074_a_release_that_may_not_publish_succeeds)
{
    scene s = scene_start(0, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default resetchannels"), "OK");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(faults, fault_075_garbage_on_the_bell_is_at_most_a_broken_connection)
{
    ring_undisturbed();
    scene s = scene_start(0, 0);
    char bell[64];
    static char big[100000];
    memset(big, 'x', sizeof big - 1);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    snprintf(bell, sizeof bell, "%s",
             server_cmd(s.sv, "PUBSUB CHANNELS *")->element[0]->str);
    server_cmd(s.sv, "PUBLISH %s %s", bell, "%s%n\r\n");
    server_cmd(s.sv, "PUBLISH %s %s", bell, SCENE_LOCK);
    server_cmd(s.sv, "PUBLISH %s %s", bell, big);
    events_wait(s.ev, RLOCK_EVENT_RECONNECTED, 1, 5000);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

TEST(faults, fault_076_a_lock_without_expiry_is_not_waited_for_blindly)
{
    ring_undisturbed();
    scene s = scene_start(0, 0);
    int64_t at_ms;
    take_by_hand(s.sv, SCENE_LOCK, 0);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t freed_ms = test_now_ms();
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, 4000);
    waiter_end(w);
    scene_stop(&s);
}

TEST(faults, fault_077_many_short_waits_leave_no_subscription)
{
    scene s = scene_start(0, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_INT(server_cmd(s.sv, "PUBSUB CHANNELS *")->elements, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < 100; i++)
        EXPECT_STATUS(rlock_acquire(s.lk, 2, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    scene_free_client(&s);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 0);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- E. the client process ----------------------------------------------- */

static void hold_in_child(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    (void)arg;
    opts.uri = child_take_uri(c);
    opts.watchdog_lease_ms = 1500;
    rlock_client *cl = server_client(NULL, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    child_tell(c, 'l');
    child_expect(c, 'g'); /* meanwhile it may be stopped, or killed */
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_token(lk), 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    child_tell(c, 'y');
    rlock_free(lk);
    rlock_client_free(cl);
}

/* The control: while the process lives its lock is renewed, and kept. */
static void expect_kept_by_child(scene *s)
{
    EXPECT_STATUS(rlock_acquire(s->lk, 2000, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
}

TEST(faults, fault_078_the_lock_of_a_killed_process_is_free_with_its_lease)
{
    child *c = child_start(hold_in_child, NULL);
    scene s = scene_server(NULL);
    child_give_uri(c, s.sv);
    child_expect(c, 'l');
    scene_client(&s, 0, 0);
    expect_kept_by_child(&s);
    child_kill(c);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 1500 + 600);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(faults, fault_079_a_process_stopped_for_longer_than_its_lease_has_lost)
{
    child *c = child_start(hold_in_child, NULL);
    scene s = scene_server(NULL);
    child_give_uri(c, s.sv);
    child_expect(c, 'l');
    scene_client(&s, 0, 0);
    expect_kept_by_child(&s);
    child_stop(c);
    uint64_t first = strtoull(
        server_str(s.sv, "GET rlock_token:{%s}", SCENE_LOCK), NULL, 10);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(first > 0 && rlock_token(s.lk) > first);
    long long ttl_ms = server_int(s.sv, "PTTL %s", SCENE_LOCK);
    child_continue(c);
    child_tell(c, 'g');
    child_expect(c, 'y');
    child_end(c);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1); /* its late unlock hurt nobody */
    EXPECT(server_int(s.sv, "PTTL %s", SCENE_LOCK) <= ttl_ms);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* The watchdog hangs in the program's connect callback. */
TEST(faults, fault_081_a_watchdog_that_hangs_delays_no_loss)
{
    dialer d = {0};
    scene s = scene_dialed(&d, 1500, 200);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    atomic_store(&d.hangs, true);
    int before = atomic_load(&d.dialed);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    EVENTUALLY(5000, atomic_load(&d.dialed) > before);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT(!rlock_is_held(s.lk));
    atomic_store(&d.hangs, false);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(faults, fault_083_an_unlock_during_a_renewal_is_an_unlock)
{
    scene s = scene_proxied(1500, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REPLY, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_let_go(s.px);
    expect_renewals(&s, 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Descriptors that a new program would inherit. */
static int inheritable(void)
{
    int n = 0;
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return n;
}

TEST(faults, fault_085_no_descriptor_is_inherited_by_a_new_program)
{
    scene s = scene_server(NULL);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    int before = inheritable(), plain = open("/dev/null", O_RDONLY);
    EXPECT_INT(inheritable(), before + 1); /* the control */
    close(plain);
    scene_client(&s, 0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 100, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    EXPECT_INT(inheritable(), before);
    scene_stop(&s);
}

static intptr_t lock_and_end(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    return 0;
}

static intptr_t lock_unlock_and_end(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(arg), RLOCK_OK);
    return 0;
}

TEST(faults, fault_086_a_thread_that_ends_abandons_its_hold)
{
    scene s = scene_start(1500, 0);
    test_join(test_spawn(lock_unlock_and_end, s.lk)); /* the control */
    expect_nothing_left(s.sv);
    test_join(test_spawn(lock_and_end, s.lk));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
}

static void *lock_until_canceled(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT(rlock_is_held(arg));
    pthread_testcancel();
    return NULL;
}

/* It takes effect when the call is over; nothing is left half-done. */
TEST(faults, fault_090_a_thread_is_not_canceled_inside_a_call)
{
    scene s = scene_start(1500, 0);
    pthread_t thread;
    void *result;
    expect_undisturbed(&s); /* the control */
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_INT(pthread_create(&thread, NULL, lock_until_canceled, s.lk), 0);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_INT(pthread_cancel(thread), 0);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(pthread_join(thread, &result), 0);
    EXPECT(result == PTHREAD_CANCELED);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

typedef struct gate {
    atomic_bool entered, open;
    atomic_int left;
} gate;

static void hang(const rlock_event *ev, void *arg)
{
    gate *g = arg;
    if (ev->type != RLOCK_EVENT_LOST)
        return;
    atomic_store(&g->entered, true);
    while (!atomic_load(&g->open))
        test_pause_ms(1);
    atomic_fetch_add(&g->left, 1);
}

TEST(faults, fault_096_a_callback_that_hangs_delays_neither_renewal_nor_loss)
{
    gate g = {.open = true};
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 1500;
    opts.on_event = hang;
    opts.event_arg = &g;
    rlock_client *cl = server_client(s.sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK), *kept = test_lock(cl, "kept");
    rlock *late = test_lock(cl, "late");
    EXPECT_STATUS(rlock_acquire(lk, 0, 100), RLOCK_OK); /* the control */
    EVENTUALLY(5000, atomic_load(&g.left) == 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    atomic_store(&g.open, false);
    atomic_store(&g.entered, false);
    /* The server may have the lost lock for some milliseconds yet. */
    EXPECT_STATUS(rlock_acquire(lk, 5000, 100), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(kept), RLOCK_OK);
    EVENTUALLY(5000, atomic_load(&g.entered));
    uint64_t before = stats_of(cl).renewals;
    EXPECT_STATUS(rlock_acquire(late, 0, 200), RLOCK_OK);
    EVENTUALLY(10000, stats_of(cl).renewals >= before + 4);
    EXPECT(rlock_is_held(kept));
    EXPECT(!rlock_is_held(late));
    EXPECT_STATUS(rlock_unlock(late), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(kept), RLOCK_OK);
    atomic_store(&g.open, true);
    rlock_client_free(cl);
    rlock_free(lk);
    rlock_free(kept);
    rlock_free(late);
    scene_stop(&s);
}

TEST(faults, fault_098_thousands_of_locks_are_renewed)
{
    enum { N = 3000 };
    scene s = scene_start(4500, 0);
    expect_undisturbed(&s); /* the control */
    rlock **lk = calloc(N, sizeof *lk);
    char name[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "lock%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    expect_renewals(&s, 2 * N);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_INT(stats_of(s.cl).held_now, N);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    free(lk);
    scene_stop(&s);
}

/* --- F. inputs and configuration ----------------------------------------- */

/* The answer comes when the lease is over. */
TEST(faults, fault_102_a_grant_that_comes_after_its_lease_is_none)
{
    scene s = scene_proxied(0, 20000);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    waiter *w = waiter_start(s.lk, 0, 100);
    EVENTUALLY(5000, proxy_fired(s.px));
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    proxy_let_go(s.px);
    EXPECT_STATUS(waiter_end(w), RLOCK_EIO);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    scene_stop(&s);
}

TEST(faults, fault_104_a_nested_acquire_never_shortens_the_lease)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK); /* the control */
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 200), RLOCK_OK);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(faults, fault_106_a_wrong_password_is_refused_at_once_and_never_shown)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    char uri[300];
    server_cmd(sv, "ACL SETUSER bob on >right ~* &* +@all");
    snprintf(uri, sizeof uri, "unix://bob:right@%s", server_path(sv));
    opts.uri = uri;
    rlock_client_free(server_client(sv, &opts)); /* the control */
    long long before = server_calls(sv, "auth");
    snprintf(uri, sizeof uri, "unix://bob:s3cret@%s", server_path(sv));
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_ESERVER);
    EXPECT(!strstr(rlock_last_error()->message, "s3cret"));
    EXPECT_CONTAINS(rlock_last_error()->message, "WRONGPASS");
    EXPECT_INT(server_calls(sv, "auth") - before, 1);
    server_stop(sv);
}

TEST(faults, fault_106_a_key_that_is_not_allowed_is_asked_for_once)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "ACL SETUSER default resetkeys ~rlock_* ~mine*");
    rlock *mine = test_lock(s.cl, "mine");
    EXPECT_STATUS(rlock_trylock(mine), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    uint64_t failed = stats_of(s.cl).acquires_failed;
    long long before = server_calls(s.sv, "evalsha");
    EXPECT_STATUS(rlock_acquire(s.lk, 2000, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_BETWEEN(server_calls(s.sv, "evalsha") - before, 0, 1);
    EXPECT_INT(stats_of(s.cl).acquires_failed, failed + 1);
    rlock_free(mine);
    scene_stop(&s);
}
