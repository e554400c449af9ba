/*
 * Waiting for a lock: the doorbell wakes exactly who is next, soon, without
 * polling; and nobody waits for ever when a ring is lost.
 */
#include "other_client.h"

/* --- waking -------------------------------------------------------------- */

TEST(waiting, a_release_wakes_a_waiter_of_another_client)
{
    scene s = scene_start(0, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    EXPECT_INT(stats_of(b.cl).wakeups, 1);
    EXPECT_INT(stats_of(b.cl).wakeups_futile, 0);
    waiter_end(b.w);
    other_client_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting, a_hand_over_costs_one_release_and_one_acquire)
{
    scene s = scene_start(0, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    long long before = script_calls(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    EXPECT_BETWEEN(script_calls(s.sv) - before, 2, 3);
    waiter_end(b.w);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(waiting, a_force_unlock_wakes_a_waiter)
{
    scene s = scene_start(0, 0);
    other_client b = other_client_join(&s, NULL);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    waiter_end(b.w);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(waiting, a_thread_of_the_same_client_is_woken)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    other_client b = {.cl = s.cl, .lk = s.lk};
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    waiter_end(b.w);
    scene_stop(&s);
}

/* All that the client sends, pings of the doorbell as well. */
TEST(waiting, an_idle_waiter_sends_at_most_one_command_a_second)
{
    scene s = scene_proxied(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t began_ms = test_now_ms();
    int before = proxy_count(s.px, "");
    EVENTUALLY(20000, proxy_count(s.px, proxy_sha("acquire")) >= 4);
    EXPECT(test_now_ms() - began_ms >= WELL_BEFORE_POLL_MS);
    EXPECT_BETWEEN(proxy_count(s.px, "") - before, 1,
                   1 + (test_now_ms() - began_ms) / 1000);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

TEST(waiting, many_waits_need_one_subscription)
{
    scene s = scene_proxied(0, 0);
    other_client a = other_client_join(&s, NULL);
    int subscribed = 0;
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
        waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
        waiters_settle(s.sv, 1, s.cl, 1);
        if (i == 0)
            subscribed = proxy_count(s.px, "SUBSCRIBE");
        EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    }
    EXPECT_INT(proxy_count(s.px, "SUBSCRIBE"), subscribed);
    EXPECT_INT(server_cmd(s.sv, "PUBSUB CHANNELS *")->elements, 1);
    other_client_leave(&a);
    scene_stop(&s);
}

TEST(waiting, no_subscription_is_left_when_the_client_is_freed)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    scene_free_client(&s);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 0);
    scene_stop(&s);
}

TEST(waiting, an_uncontended_client_opens_no_doorbell)
{
    scene s = scene_start(0, 0);
    for (int i = 0; i < 10; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    EXPECT_INT(server_cmd(s.sv, "PUBSUB CHANNELS *")->elements, 0);
    scene_stop(&s);
}

/* --- the queue ----------------------------------------------------------- */

TEST(waiting, one_waiter_of_a_process_is_queued)
{
    scene s = scene_start(0, 0);
    waiter *w[10];
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < 10; i++)
        w[i] = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 10);
    rlock_cancel(s.lk);
    for (int i = 0; i < 10; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_CANCELED);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting, every_waiting_client_is_queued)
{
    scene s = scene_start(0, 0);
    other_client p[5];
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < 5; i++) {
        p[i] = other_client_join(&s, NULL);
        other_client_wait(&s, &p[i], i + 1, RLOCK_FOREVER);
    }
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < 5; i++) { /* in this order, or it hangs */
        EXPECT_STATUS(waiter_status(p[i].w, NULL), RLOCK_OK);
        waiter_end(p[i].w);
    }
    for (int i = 0; i < 5; i++)
        other_client_leave(&p[i]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Each unlocks only when it is told to, so a wrong order shows. */
TEST(waiting, threads_of_a_process_get_it_in_the_order_they_came)
{
    scene s = scene_start(0, 0);
    waiter *w[8];
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    for (int i = 0; i < 8; i++) {
        w[i] = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
        waiters_settle(s.sv, 1, s.cl, i + 1);
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < 8; i++) {
        EXPECT_STATUS(waiter_status(w[i], &at_ms), RLOCK_OK);
        for (int k = i + 1; k < 8; k++)
            EXPECT(!waiter_returned(w[k]));
        waiter_end(w[i]);
    }
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting, a_waiter_that_gives_up_leaves_the_queue)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, 200, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_TIMEOUT);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_queue:{%s}", SCENE_LOCK), 0);
    EXPECT_INT(stats_of(s.cl).waiting_now, 0);
    scene_stop(&s);
}

/* The front gives up, and the next thread of its client takes its place. */
TEST(waiting, the_next_thread_takes_the_place_of_a_front_that_gave_up)
{
    scene s = scene_start(0, 0);
    other_client a = other_client_join(&s, NULL);
    rlock *other = test_lock(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    waiter *front = waiter_start(other, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    other_client b = {.cl = s.cl, .lk = s.lk, .asleep_ms = test_now_ms()};
    b.w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 2);
    rlock_cancel(other);
    EXPECT_STATUS(waiter_end(front), RLOCK_CANCELED);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    expect_woken(&b);
    waiter_end(b.w);
    rlock_free(other);
    other_client_leave(&a);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

static long long calls_for_hand_overs(int clients)
{
    scene s = scene_start(0, 0);
    other_client *p = calloc((size_t)clients, sizeof *p);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    for (int i = 0; i < clients; i++) {
        p[i] = other_client_join(&s, NULL);
        other_client_wait(&s, &p[i], i + 1, RLOCK_FOREVER);
    }
    long long before = script_calls(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < clients; i++)
        EXPECT_STATUS(waiter_end(p[i].w), RLOCK_OK);
    long long calls = script_calls(s.sv) - before;
    for (int i = 0; i < clients; i++)
        other_client_leave(&p[i]);
    free(p);
    scene_stop(&s);
    return calls;
}

/* Two scripts each; the rest is for fallback polls on a slow machine. */
TEST(waiting, the_work_of_a_hand_over_does_not_grow_with_the_waiters)
{
    EXPECT_BETWEEN(calls_for_hand_overs(2), 5, 8);
    EXPECT_BETWEEN(calls_for_hand_overs(16), 33, 33 + 16);
}

/* --- giving up ----------------------------------------------------------- */

/* B is rung but cannot hear it before its wait is over; C is next. */
TEST(waiting, a_ring_for_a_waiter_that_timed_out_is_passed_on)
{
    scene s = scene_proxied(0, 0);
    other_client a = other_client_join(&s, NULL),
                 c = other_client_join(&s, NULL);
    other_client b = {.cl = s.cl, .lk = s.lk};
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, 300);
    other_client_wait(&s, &c, 2, RLOCK_FOREVER);
    proxy_freeze(s.px, true);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 1);
    EVENTUALLY(5000, stats_of(b.cl).waiting_now == 0);
    proxy_freeze(s.px, false);
    EXPECT_STATUS(waiter_end(b.w), RLOCK_TIMEOUT);
    expect_woken(&c);
    EXPECT_INT(stats_of(c.cl).wakeups, 1);
    waiter_end(c.w);
    other_client_leave(&a);
    other_client_leave(&c);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* The same, with a cancel. */
TEST(waiting, a_ring_for_a_waiter_that_was_canceled_is_passed_on)
{
    scene s = scene_proxied(0, 0);
    other_client a = other_client_join(&s, NULL),
                 c = other_client_join(&s, NULL);
    other_client b = {.cl = s.cl, .lk = s.lk};
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    other_client_wait(&s, &c, 2, RLOCK_FOREVER);
    proxy_freeze(s.px, true);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    rlock_cancel(b.lk);
    EVENTUALLY(5000, stats_of(b.cl).waiting_now == 0);
    proxy_freeze(s.px, false);
    EXPECT_STATUS(waiter_end(b.w), RLOCK_CANCELED);
    expect_woken(&c);
    waiter_end(c.w);
    other_client_leave(&a);
    other_client_leave(&c);
    scene_stop(&s);
}

/*
 * B gives up at the very moment of the release, now a little earlier, now a
 * little later. Whatever happens to B, C gets it soon. The cancel stays on
 * until B is back: it may come before B's wait has begun.
 */
static void race(bool by_cancel)
{
    scene s = scene_start(0, 0);
    other_client b = other_client_join(&s, NULL),
                 c = other_client_join(&s, NULL);
    for (int i = 0; i < 40; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        int64_t until_us = test_now_us() + 30000 + i * 50;
        b.w =
            waiter_start(b.lk, by_cancel ? RLOCK_FOREVER : 30, RLOCK_WATCHDOG);
        c.asleep_ms = test_now_ms();
        c.w = waiter_start(c.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(5000, stats_of(c.cl).waiting_now == 1);
        while (test_now_us() < until_us)
            ;
        if (by_cancel && i % 2)
            EXPECT_STATUS(rlock_client_cancel(b.cl, true), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
        if (by_cancel && i % 2 == 0)
            EXPECT_STATUS(rlock_client_cancel(b.cl, true), RLOCK_OK);
        rlock_status status = waiter_end(b.w);
        EXPECT_STATUS(rlock_client_cancel(b.cl, false), RLOCK_OK);
        EXPECT(status == RLOCK_OK ||
               status == (by_cancel ? RLOCK_CANCELED : RLOCK_TIMEOUT));
        expect_woken(&c);
        waiter_end(c.w);
    }
    other_client_leave(&b);
    other_client_leave(&c);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting, a_timeout_at_the_moment_of_a_release_loses_no_ring)
{
    race(false);
}

TEST(waiting, a_cancel_at_the_moment_of_a_release_loses_no_ring)
{
    race(true);
}

TEST(waiting, a_cancel_ends_all_waits_of_its_handle_and_no_others)
{
    scene s = scene_start(0, 0);
    other_client a = other_client_join(&s, NULL);
    rlock *other = test_lock(s.cl, SCENE_LOCK);
    waiter *mine[3];
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    for (int i = 0; i < 3; i++)
        mine[i] = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiter *w = waiter_start(other, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 4);
    rlock_cancel(s.lk);
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(waiter_end(mine[i]), RLOCK_CANCELED);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(other);
    other_client_leave(&a);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting, a_cancel_concerns_no_later_wait)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    rlock_cancel(s.lk);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    scene_stop(&s);
}

TEST(waiting, freeing_the_client_ends_all_waits)
{
    scene s = scene_start(0, 0);
    other_client b = other_client_join(&s, NULL);
    waiter *w[3];
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < 3; i++)
        w[i] = waiter_start(b.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, b.cl, 3);
    rlock_client_free(b.cl);
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_ECLOSED);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_queue:{%s}", SCENE_LOCK), 0);
    rlock_free(b.lk);
    scene_stop(&s);
}

/* --- time ---------------------------------------------------------------- */

/* Milliseconds that an acquire of a busy lock takes; at best, of five. */
static int64_t shortest_wait(rlock *lk, int64_t wait_ms)
{
    int64_t best_ms = INT64_MAX;
    for (int i = 0; i < 5; i++) {
        int64_t began_us = test_now_us();
        EXPECT_STATUS(rlock_acquire(lk, wait_ms, RLOCK_WATCHDOG),
                      RLOCK_TIMEOUT);
        int64_t took_us = test_now_us() - began_us;
        EXPECT(took_us >= wait_ms * 1000);
        if (took_us / 1000 < best_ms)
            best_ms = took_us / 1000;
    }
    return best_ms;
}

TEST(waiting, a_wait_ends_when_it_was_told_to)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_BETWEEN(shortest_wait(s.lk, 1), 1, 30);
    EXPECT_BETWEEN(shortest_wait(s.lk, 40), 40, 70);
    EXPECT_BETWEEN(shortest_wait(s.lk, 150), 150, 180);
    scene_stop(&s);
}

TEST(waiting, a_thread_in_second_place_keeps_its_own_time)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    rlock *other = test_lock(s.cl, SCENE_LOCK);
    EXPECT_BETWEEN(shortest_wait(other, 60), 60, 90);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    rlock_free(other);
    scene_stop(&s);
}

TEST(waiting, wait_0_is_one_try)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    long long before = script_calls(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_WATCHDOG), RLOCK_BUSY);
    EXPECT_INT(script_calls(s.sv) - before, 1);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 0);
    scene_stop(&s);
}

/* It must neither come before the TTL is over, nor with the fallback poll. */
TEST(waiting, the_lock_of_a_dead_holder_is_taken_when_its_lease_ends)
{
    scene s = scene_start(0, 0);
    int64_t began_ms = test_now_ms(), at_ms;
    take_by_hand(s.sv, SCENE_LOCK, 500);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - began_ms, 500, WELL_BEFORE_POLL_MS);
    waiter_end(w);
    scene_stop(&s);
}

TEST(waiting, a_lock_without_expiry_that_is_deleted_by_hand_is_noticed)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 0);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t deleted_ms = test_now_ms(), at_ms;
    EXPECT_INT(server_int(s.sv, "DEL %s", SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - deleted_ms, 0, 4000);
    waiter_end(w);
    scene_stop(&s);
}
