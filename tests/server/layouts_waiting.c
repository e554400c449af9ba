/* Waiting for locks that are a string or a timestamp. */
#include "layouts.h"

/* A waiter gets it at once, whoever gives it. */
static void expect_handed_over(rlock_layout from, rlock_layout to)
{
    scene s = scene_of_held(from, 0);
    other_client b = other_client_of(&s, to);
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

BOTH(layouts_waiting, a_release_wakes_a_waiter_at_once)
{
    expect_handed_over(layout, layout);
}

BOTH(layouts_waiting, a_force_unlock_wakes_a_waiter_at_once)
{
    scene s = scene_of(layout, 0);
    other_client a = other_client_of(&s, layout),
                 b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_acquire(a.lk, 0, 60000), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    EXPECT_INT(stats_of(b.cl).wakeups, 1);
    waiter_end(b.w);
    other_client_leave(&a);
    other_client_leave(&b);
    scene_stop(&s);
}

BOTH(layouts_waiting, a_thread_of_the_same_client_is_woken_at_once)
{
    scene s = scene_of(layout, 0);
    other_client b = {.cl = s.cl, .lk = s.lk};
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_woken(&b);
    waiter_end(b.w);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts_waiting, an_inner_unlock_wakes_nobody)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    long long before = server_calls(s.sv, "publish");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(server_calls(s.sv, "publish"), before);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(b.w), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

BOTH(layouts_waiting, waiting_clients_get_it_in_the_order_they_came)
{
    scene s = scene_of(layout, 0);
    other_client p[4];
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    for (int i = 0; i < 4; i++) {
        p[i] = other_client_of(&s, layout);
        other_client_wait(&s, &p[i], i + 1, RLOCK_FOREVER);
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < 4; i++) {
        EXPECT_STATUS(waiter_status(p[i].w, NULL), RLOCK_OK);
        for (int k = i + 1; k < 4; k++)
            EXPECT(!waiter_returned(p[k].w));
        waiter_end(p[i].w);
    }
    for (int i = 0; i < 4; i++)
        other_client_leave(&p[i]);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts_waiting, a_waiter_that_gives_up_leaves_the_queue)
{
    scene s = scene_of(layout, 0);
    others_take(s.sv, layout, 60000);
    waiter *w = waiter_start(s.lk, 200, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_TIMEOUT);
    EXPECT_INT(server_int(s.sv, "DBSIZE"), 1);
    scene_stop(&s);
}

BOTH(layouts_waiting, a_lease_of_ours_that_runs_out_lets_a_waiter_in)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(b.lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 300 - CLOCK_AGE_MS,
                   longest(layout, 1900));
    EXPECT(!rlock_is_held(b.lk));
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_LOST);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST_CASE(layouts_waiting, a_timestamp_is_handed_over_to_a_string,
          expect_handed_over(RLOCK_LAYOUT_TIMESTAMP, RLOCK_LAYOUT_STRING))
