/*
 * What other lock libraries got wrong about waiting, each as a test that fails
 * on that defect. More of it is in server/waiting.c.
 */
#include "scene.h"

TEST(waiting_rung, a_waiter_that_gives_up_does_not_swallow_the_ring)
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
 * 200 waiters: from one process to another it takes one release, one acquire,
 * and one call by which the next thread of that process takes the place in the
 * queue; within a process, for a few in a row, one call.
 */
TEST(waiting_rung, fault_073_a_release_does_not_wake_a_herd)
{
    EXPECT_BETWEEN(calls_for_a_crowd(1, 1), 3, 5); /* the control */
    EXPECT_BETWEEN(calls_for_a_crowd(20, 10), 200, 1 + 4 * 200);
}

TEST(waiting_rung, the_first_try_does_not_sleep)
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

TEST(waiting_rung, nobody_sleeps_past_the_deadline_nor_polls_until_then)
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
