/*
 * Faults of the connection and of what comes over it: answers that are late,
 * cut, lost or nonsense, and commands that are executed when nobody waits for
 * them.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>

#include "dialer.h"
#include "other_client.h"

TEST(replies, fault_046_a_refused_connection_is_tried_again_with_pauses)
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

TEST(replies, fault_049_a_connection_reset_in_a_reply_counts_no_level_twice)
{
    disturb_acquire(PROXY_CUT_IN_REPLY, 0);
}

TEST(replies, fault_050_a_reply_that_stalls_half_way_is_given_up_in_time)
{
    scene s = scene_proxied(0, 200);
    expect_undisturbed(&s); /* the control */
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, "$16\r\n17000");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 190, 800);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* The reply's 30 bytes take 0.6 s. */
TEST(replies, fault_051_a_reply_that_drips_has_one_deadline)
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

TEST(replies, fault_052_a_late_reply_answers_no_other_question)
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

TEST(replies, fault_053_an_acquire_whose_reply_is_lost_counts_once)
{
    disturb_acquire(PROXY_CUT_BEFORE, 0); /* never executed */
    disturb_acquire(PROXY_CUT_AFTER, 0);
    disturb_acquire(PROXY_SWALLOW_REPLY, 200);
}

TEST(replies, fault_054_a_release_whose_reply_is_lost_is_a_release)
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

TEST(replies, fault_055_a_renewal_whose_reply_is_lost_prolongs_nothing)
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
TEST(replies, fault_056_an_abandoned_acquire_that_runs_later_takes_nothing)
{
    scene s = scene_proxied(0, 200);
    other_client b = other_client_join(&s, NULL);
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
    other_client_leave(&b);
    scene_stop(&s);
}

/* Asked twice, granted, unlocked; then the first request arrives. */
TEST(replies, fault_056_an_acquire_that_was_overtaken_takes_nothing)
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

TEST(replies, fault_057_an_abandoned_release_that_runs_later_frees_nothing)
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
TEST(replies, fault_057_an_abandoned_renewal_that_runs_later_changes_no_lease)
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

TEST(replies, fault_061_writing_to_a_closed_connection_raises_no_signal)
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

TEST(replies, fault_062_sizes_that_cannot_be_are_refused)
{
    answer_nonsense("*2147483647\r\n");
    answer_nonsense("$9223372036854775807\r\n");
    answer_nonsense("$500000000\r\nx");
    answer_nonsense("*-7\r\n");
}

TEST(replies, fault_062_replies_of_a_wrong_type_are_refused)
{
    answer_nonsense("+OK\r\n");
    answer_nonsense("$-1\r\n");
    answer_nonsense("$3\r\nabc\r\n");
    answer_nonsense("*3\r\n:1\r\n$1\r\nx\r\n:1\r\n");
}

TEST(replies, fault_062_replies_of_a_wrong_shape_are_refused)
{
    answer_nonsense("*0\r\n");
    answer_nonsense("*1\r\n:1\r\n");
    answer_nonsense("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"
                    "*1\r\n:1\r\n");
    answer_nonsense("HTTP/1.1 400 Bad Request\r\n\r\n");
}

TEST(replies, fault_062_a_reply_above_the_budget_is_refused)
{
    enum { SIZE = 200000 };
    char *big = malloc(SIZE + 64);
    EXPECT(big);
    int n = sprintf(big, "$%d\r\n", SIZE);
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

TEST(replies, fault_063_signals_do_not_restart_the_clock)
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

TEST(replies, fault_063_signals_disturb_no_lock)
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

TEST(replies, fault_067_what_nobody_asked_for_answers_no_question)
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
