/* Faults of waiting: rings that are lost, late, or for nobody. */
#include "rival.h"

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
TEST(waiting, fault_069_a_lost_ring_is_made_up_for_by_the_fallback_poll)
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

/* Who is refused for good looks only each minute whether it still is. */
TEST(waiting, a_server_that_refuses_a_subscription_for_a_moment_is_asked_again)
{
    scene s = scene_proxied(0, 0);
    proxy_rule(s.px, "SUBSCRIBE", 1, PROXY_ANSWER,
               "-BUSY Redis is busy running a script.\r\n");
    take_by_hand(s.sv, SCENE_LOCK, 0);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, proxy_fired(s.px));
    waiters_settle(s.sv, 1, s.cl, 1); /* it is queued once it hears */
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

TEST(waiting, fault_070_a_release_before_the_subscription_stands_is_noticed)
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

TEST(waiting, fault_071_a_new_subscription_has_its_waiters_look)
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

TEST(waiting, fault_072_a_bell_that_overflows_has_its_waiters_look)
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

TEST(waiting, fault_074_a_release_that_may_not_publish_succeeds)
{
    scene s = scene_start(0, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default resetchannels"), "OK");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting, fault_075_garbage_on_the_bell_is_at_most_a_broken_connection)
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

TEST(waiting, fault_076_a_lock_without_expiry_is_not_waited_for_blindly)
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

TEST(waiting, fault_077_many_short_waits_leave_no_subscription)
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
