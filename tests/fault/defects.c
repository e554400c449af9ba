/*
 * What other lock libraries got wrong, each as a test that fails on that
 * defect. The names say what is right.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "scene.h"

/* --- counting ------------------------------------------------------------ */

/* A timed-out acquire that is sent again. */
TEST(defects, an_acquire_that_is_sent_again_counts_once)
{
    scene s = scene_proxied(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

TEST(defects, one_unlock_after_a_timed_out_acquire_frees_the_lock)
{
    scene s = scene_proxied(0, 300);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

/* The caller was told that it failed: then the lock is not taken. */
TEST(defects, a_grant_that_the_caller_never_saw_is_undone)
{
    scene s = scene_proxied(0, 300);
    rlock_client *b = server_client(s.sv, NULL);
    rlock *lk = test_lock(b, SCENE_LOCK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_acquire(lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(b);
    scene_stop(&s);
}

/* --- losses -------------------------------------------------------------- */

TEST(defects, a_loss_is_reported_and_answered_by_every_call)
{
    scene s = scene_start(300, 0);
    rlock_event ev;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT(events_last(s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT(ev.token == token);
    EXPECT_INT(ev.status, RLOCK_LOST);
    EXPECT(*ev.message);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(rlock_hold_count(s.lk), 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(defects, an_extend_of_a_stolen_or_missing_lock_fails)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 5000);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_LOST);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, 5000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1); /* the other's */
    scene_stop(&s);
}

/* It knows by itself, and asks nobody for long. */
TEST(defects, releasing_an_expired_lock_returns_at_once)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 100), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 500);
    server_resume(s.sv);
    scene_stop(&s);
}

/* Cleared early, the lock could never be freed again. */
TEST(defects, a_release_that_failed_is_not_forgotten)
{
    scene s = scene_proxied(0, 200);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    waiter *w = waiter_start(s.lk, 10000, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    proxy_let_go(s.px); /* the old release hurts nobody */
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

/* --- renewal ------------------------------------------------------------- */

static void lock_and_unlock(scene *s, int times)
{
    for (int i = 0; i < times; i++) {
        EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    }
}

/* One timer, however many acquires there were: 4 periods, 4 renewals. */
TEST(defects, the_renewal_timer_does_not_multiply)
{
    scene s = scene_start(900, 0);
    lock_and_unlock(&s, 400);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(20000, stats_of(s.cl).renewals >= before + 4);
    int64_t periods = (test_now_ms() - began_ms) / 300;
    EXPECT(periods >= 3);
    EXPECT_BETWEEN(stats_of(s.cl).renewals - before, 4, periods + 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(defects, nothing_is_renewed_after_the_last_unlock)
{
    scene s = scene_proxied(300, 0);
    rlock *other = test_lock(s.cl, "other");
    lock_and_unlock(&s, 100);
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    EVENTUALLY(10000, proxy_count(s.px, proxy_sha("renew")) >= 5);
    rlock_stats st = stats_of(s.cl);
    EXPECT_BETWEEN(proxy_count(s.px, proxy_sha("renew")) - (int)st.renewals, 0,
                   1);
    EXPECT_INT(st.renew_failures, 0);
    EXPECT_INT(st.held_now, 1);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    rlock_free(other);
    scene_stop(&s);
}

/* Ten locks; one of them turns into something that cannot be renewed. */
static void expect_others_renewed(const char *spoil, rlock_event_type told)
{
    scene s = scene_start(600, 0);
    rlock *lk[10];
    char name[8];
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "l%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, spoil);
    events_wait(s.ev, told, 1, 10000);
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= before + 30);
    for (int i = 0; i < 10; i++) {
        EXPECT(rlock_is_held(lk[i]));
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    EXPECT(!rlock_is_held(s.lk));
    scene_stop(&s);
}

TEST(defects, a_key_of_another_type_stops_no_other_renewal)
{
    expect_others_renewed("SET " SCENE_LOCK " x", RLOCK_EVENT_LOST);
}

TEST(defects, a_lock_that_is_gone_stops_no_other_renewal)
{
    expect_others_renewed("DEL " SCENE_LOCK, RLOCK_EVENT_LOST);
}

TEST(defects, a_lock_that_may_not_be_touched_stops_no_other_renewal)
{
    expect_others_renewed("ACL SETUSER default resetkeys ~l* ~rlock_*",
                          RLOCK_EVENT_RENEW_FAILED);
}

/* A server that hangs concerns only its own client. */
TEST(defects, a_dead_server_stops_no_renewal_of_another_client)
{
    scene s = scene_start(400, 0), dead = scene_start(400, 0);
    EXPECT_STATUS(rlock_lock(dead.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_pause(dead.sv);
    events_wait(dead.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_resume(dead.sv);
    scene_stop(&dead);
    scene_stop(&s);
}

static void expect_renewed(scene *s)
{
    uint64_t before = stats_of(s->cl).renewals;
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    EVENTUALLY(10000, stats_of(s->cl).renewals >= before + 4);
    EXPECT(rlock_is_held(s->lk));
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
}

TEST(defects, a_lock_that_was_lost_once_is_renewed_the_next_time)
{
    scene s = scene_start(300, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_renewed(&s);
    scene_stop(&s);
}

TEST(defects, renewal_goes_on_after_a_reconnect)
{
    scene s = scene_start(600, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_RENEWED, 1, 5000);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= before + 4);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Lost at level 3 and never unlocked: the next owner is a new thread. */
static intptr_t leave_it_lost(void *arg)
{
    scene *s = arg;
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    server_cmd(s->sv, "DEL %s", SCENE_LOCK);
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, 10000);
    return 0;
}

TEST(defects, a_stale_record_delays_no_renewal_of_the_next_owner)
{
    scene s = scene_start(600, 0);
    test_join(test_spawn(leave_it_lost, &s));
    for (int i = 0; i < 3; i++) {
        int64_t ttl_ms = INT64_MAX;
        uint64_t before = stats_of(s.cl).renewals;
        EXPECT_STATUS(rlock_acquire(s.lk, 1000, RLOCK_WATCHDOG), RLOCK_OK);
        while (stats_of(s.cl).renewals < before + 2) {
            if (key_ttl(s.sv, SCENE_LOCK) < ttl_ms)
                ttl_ms = key_ttl(s.sv, SCENE_LOCK);
            test_pause_ms(2);
        }
        EXPECT(ttl_ms > 0);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    scene_stop(&s);
}

/* --- leases -------------------------------------------------------------- */

TEST(defects, a_nested_lease_leaves_the_renewal_of_the_outer_hold_on)
{
    scene s = scene_start(400, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 150), RLOCK_OK);
    EXPECT(key_ttl(s.sv, SCENE_LOCK) > 150);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    uint64_t before = stats_of(s.cl).renewals;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= before + 5);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

TEST(defects, a_nested_watchdog_turns_renewal_on_until_the_hold_ends)
{
    scene s = scene_start(400, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    EVENTUALLY(10000, test_now_ms() - began_ms > 1200 &&
                          key_ttl(s.sv, SCENE_LOCK) > 0);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(defects, a_lease_does_not_leak_into_the_next_acquire)
{
    scene s = scene_start(400, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, 400);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_renewed(&s);
    uint64_t before = stats_of(s.cl).renewals;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 300), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_INT(stats_of(s.cl).renewals, before);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* --- waiting (more of it in server/waiting.c) ------------------------------
 */

TEST(defects, a_waiter_that_gives_up_does_not_swallow_the_ring)
{
    scene s = scene_proxied(0, 0);
    rlock_client *b = server_client(s.sv, NULL);
    rlock *next = test_lock(b, SCENE_LOCK);
    int64_t at_ms;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t began_ms = test_now_ms();
    waiter *v = waiter_start(next, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 2, b, 1);
    proxy_freeze(s.px, true); /* the ring does not get through */
    rlock *other = test_lock(b, SCENE_LOCK);
    EXPECT_STATUS(rlock_force_unlock(other), RLOCK_OK);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 1);
    rlock_cancel(s.lk);
    EVENTUALLY(5000, stats_of(s.cl).waiting_now == 0);
    proxy_freeze(s.px, false);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EXPECT_STATUS(waiter_status(v, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - began_ms, 0, 1300); /* no fallback poll */
    waiter_end(v);
    rlock_free(other);
    rlock_free(next);
    rlock_client_free(b);
    scene_stop(&s);
}

typedef struct crowd {
    rlock_client *cl;
    rlock *lk;
    test_thread **t;
} crowd;

static intptr_t take_a_turn(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(arg), RLOCK_OK);
    return 0;
}

static crowd crowd_join(scene *s, int n_before, int threads)
{
    crowd c = {.cl = server_client(s->sv, NULL)};
    c.lk = test_lock(c.cl, SCENE_LOCK);
    c.t = calloc((size_t)threads, sizeof *c.t);
    EXPECT(c.t);
    for (int i = 0; i < threads; i++)
        c.t[i] = test_spawn(take_a_turn, c.lk);
    waiters_settle(s->sv, n_before + 1, c.cl, threads);
    return c;
}

static void crowd_leave(crowd *c, int threads)
{
    for (int i = 0; i < threads; i++)
        test_join(c->t[i]);
    rlock_free(c->lk);
    rlock_client_free(c->cl);
    free(c->t);
}

/* The calls that it takes until everybody has had the lock. */
static long long calls_for_a_crowd(int clients, int threads)
{
    scene s = scene_start(0, 0);
    crowd *c = calloc((size_t)clients, sizeof *c);
    EXPECT(c);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    for (int i = 0; i < clients; i++)
        c[i] = crowd_join(&s, i, threads);
    long long before = script_calls(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < clients; i++)
        crowd_leave(&c[i], threads);
    long long calls = script_calls(s.sv) - before;
    free(c);
    scene_stop(&s);
    return calls;
}

/*
 * 200 waiters: a hand-over is one release, one acquire, and one call by which
 * the next thread of that process takes the place in the queue.
 */
TEST(defects, fault_073_a_release_does_not_wake_a_herd)
{
    EXPECT_BETWEEN(calls_for_a_crowd(1, 1), 3, 5); /* the control */
    EXPECT_BETWEEN(calls_for_a_crowd(20, 10), 1 + 2 * 200, 1 + 4 * 200);
}

TEST(defects, the_first_try_does_not_sleep)
{
    scene s = scene_start(0, 0);
    int64_t best_us = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        int64_t began_us = test_now_us();
        EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
        int64_t took_us = test_now_us() - began_us;
        best_us = took_us < best_us ? took_us : best_us;
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    EXPECT_BETWEEN(best_us, 0, 10000);
    scene_stop(&s);
}

TEST(defects, nobody_sleeps_past_the_deadline_nor_polls_until_then)
{
    scene s = scene_start(0, 0);
    int64_t best_ms = INT64_MAX;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < 4; i++) {
        int64_t began_ms = test_now_ms();
        long long before = script_calls(s.sv);
        EXPECT_STATUS(rlock_acquire(s.lk, 300, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
        int64_t took_ms = test_now_ms() - began_ms;
        best_ms = took_ms < best_ms ? took_ms : best_ms;
        /* a try, one with the bell, the leave, and one for a bell come up */
        EXPECT_BETWEEN(script_calls(s.sv) - before, 1, 4);
    }
    EXPECT_BETWEEN(best_ms, 300, 330);
    scene_stop(&s);
}

/* --- fencing tokens ------------------------------------------------------ */

TEST(defects, tokens_grow_also_after_the_lock_was_deleted)
{
    scene s = scene_start(0, 0);
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT(rlock_token(s.lk) > last);
        last = rlock_token(s.lk);
        if (i % 2)
            server_cmd(s.sv, "DEL %s", SCENE_LOCK);
        else
            server_cmd(s.sv, "FLUSHALL");
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    }
    scene_stop(&s);
}

TEST(defects, a_reentry_keeps_the_token)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    EXPECT(token > 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_token(s.lk), 0);
    scene_stop(&s);
}

TEST(defects, tokens_do_not_live_for_ever)
{
    scene s = scene_start(0, 0);
    lock_and_unlock(&s, 3);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_token:{%s}", SCENE_LOCK), 1);
    expect_nothing_left(s.sv); /* that is, nothing without a TTL */
    scene_stop(&s);
}

/* --- answers ------------------------------------------------------------- */

TEST(defects, held_by_another_and_server_down_are_different_answers)
{
    scene s = scene_start(0, 200);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s.lk, 20, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    server_cmd(s.sv, "SET %s x", SCENE_LOCK);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EWRONGTYPE);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    server_cmd(s.sv, "REPLICAOF 127.0.0.1 1");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "READONLY");
    server_kill(s.sv);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    scene_stop(&s);
}

/* A wait that the server's end cuts short is no timeout of the lock. */
TEST(defects, a_wait_for_a_dead_server_is_not_reported_as_held_by_another)
{
    scene s = scene_start(0, 200);
    server_kill(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, 200, RLOCK_WATCHDOG), RLOCK_EIO);
    scene_stop(&s);
}

/* --- who owns ------------------------------------------------------------ */

static void try_inherited(child *c, void *arg)
{
    rlock *lk = arg;
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(lk, 1000), RLOCK_EFORKED);
    child_tell(c, 'y');
}

TEST(defects, a_fork_inherits_no_hold)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    child *c = child_start(try_inherited, s.lk);
    child_expect(c, 'y');
    child_end(c);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

static intptr_t lock_and_exit(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    return gettid();
}

static intptr_t try_to_inherit(void *arg)
{
    rlock *lk = arg;
    EXPECT(!rlock_is_held(lk));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    return gettid();
}

/* Often the new thread has the stack, and so the pthread_t, of the old. */
TEST(defects, a_new_thread_inherits_nothing_of_an_ended_one)
{
    scene s = scene_start(1000, 0);
    test_join(test_spawn(lock_and_exit, s.lk));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    test_join(test_spawn(try_to_inherit, s.lk));
    EVENTUALLY(10000, levels(s.sv, SCENE_LOCK) == 0);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    scene_stop(&s);
}

/* Same host name, same pid, same thread: still two holders. */
TEST(defects, fault_088_two_clients_with_the_same_host_and_pid_are_two_owners)
{
    scene s = scene_server(NULL);
    s.opts.host_id = "same";
    scene_client(&s, 0, 0);
    rlock_client *b = server_client(s.sv, &s.opts);
    rlock *lk = test_lock(b, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control: its own */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(b);
    scene_stop(&s);
}

/* --- manners ------------------------------------------------------------- */

typedef struct reentrant_caller {
    rlock *lk;
    atomic_int held;
} reentrant_caller;

static void look_inside(const rlock_event *ev, void *arg)
{
    reentrant_caller *r = arg;
    if (r->lk && ev->type == RLOCK_EVENT_ACQUIRED && ev->count == 1) {
        EXPECT_STATUS(rlock_lock(r->lk), RLOCK_OK);
        atomic_store(&r->held, rlock_hold_count(r->lk));
        EXPECT_STATUS(rlock_unlock(r->lk), RLOCK_OK);
    }
}

/* With a mutex held in the callback this would hang. */
TEST(defects, a_callback_may_lock_the_same_lock)
{
    scene s = scene_server(NULL);
    reentrant_caller r = {0};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.on_event = look_inside;
    opts.event_arg = &r;
    rlock_client *cl = server_client(s.sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    r.lk = lk;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_INT(atomic_load(&r.held), 2);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    scene_stop(&s);
}

/* Everything goes wrong, and nothing is said of it on stdout or stderr. */
static void fail_in_silence(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    char text[100];
    int out[2];
    (void)arg;
    EXPECT_INT(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_INT(dup2(out[1], 1), 1);
    EXPECT_INT(dup2(out[1], 2), 2);
    opts.uri = "nonsense";
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EINVAL);
    opts.uri = "unix:///nowhere";
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EIO);
    opts.uri = child_take_uri(c);
    opts.command_timeout_ms = 100;
    opts.watchdog_lease_ms = 400;
    cl = server_client(NULL, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_acquire(lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    child_tell(c, 'k'); /* the server is killed */
    EVENTUALLY(10000, !rlock_is_held(lk));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    rlock_free(lk);
    rlock_client_free(cl);
    EXPECT(read(out[0], text, sizeof text) < 0);
    child_tell(c, 'y');
}

TEST(defects, nothing_is_printed_and_nothing_exits)
{
    child *c = child_start(fail_in_silence, NULL);
    scene s = scene_server(NULL);
    child_give_uri(c, s.sv);
    child_expect(c, 'k');
    server_kill(s.sv);
    child_expect(c, 'y');
    child_end(c);
    scene_stop(&s);
}
