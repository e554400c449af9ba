/* Faults of waiting: rings that are lost, late, or for nobody. */
#include "other_client.h"

/* The control: a release rings, and the waiter has the lock at once. */
static void ring_undisturbed(void)
{
    scene s = scene_proxied(0, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    waiter_expect_rung(w, freed_ms);
    waiter_end(w);
    other_client_leave(&b);
    scene_stop(&s);
}

/* The doorbell is down for good, and the release rings nobody. */
TEST(waiting, fault_069_a_lost_ring_is_made_up_for_by_the_fallback_poll)
{
    ring_undisturbed();
    scene s = scene_proxied(0, 0);
    other_client b = other_client_join(&s, NULL);
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
    other_client_leave(&b);
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
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    proxy_rule(s.px, "SUBSCRIBE", 1, PROXY_HOLD_REPLY, NULL);
    int64_t began_ms = test_now_ms();
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, proxy_fired(s.px));
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0); /* it could not be rung */
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    proxy_let_go(s.px);
    waiter_expect_rung(w, began_ms);
    waiter_end(w);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(waiting, fault_071_a_new_subscription_has_its_waiters_look)
{
    ring_undisturbed();
    scene s = scene_proxied(0, 0);
    other_client b = other_client_join(&s, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    proxy_refuse(s.px, true);
    server_cmd(s.sv, "CLIENT KILL TYPE pubsub");
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    proxy_refuse(s.px, false);
    waiter_expect_rung(w, began_ms);
    waiter_end(w);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(waiting, fault_072_a_bell_that_overflows_has_its_waiters_look)
{
    ring_undisturbed();
    scene s = scene_server("--client-output-buffer-limit pubsub 20kb 0 0");
    scene_client(&s, 0, 0);
    other_client b = other_client_join(&s, NULL);
    char bell[64];
    static char big[60000];
    memset(big, 'x', sizeof big - 1);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    snprintf(bell, sizeof bell, "%s",
             server_cmd(s.sv, "PUBSUB CHANNELS *")->element[0]->str);
    server_cmd(s.sv, "PUBLISH %s %s", bell, big);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    waiter_expect_rung(w, began_ms);
    waiter_end(w);
    other_client_leave(&b);
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

/* --- a message of a channel that was just left ---------------------------- */

#define CHANNEL "redisson_lock__channel:{" SCENE_LOCK "}"

/* Redisson's unlock says "0" there, which is a lock's name, too. */
#define LATE_MESSAGE "*3\r\n$7\r\nmessage\r\n$28\r\n" CHANNEL "\r\n$1\r\n0\r\n"
#define LEFT         "*3\r\n$11\r\nunsubscribe\r\n$28\r\n" CHANNEL "\r\n:1\r\n"

static scene listening_to_redisson(void)
{
    scene s = scene_server(NULL);
    s.px = proxy_start(s.sv);
    s.opts.redisson_channel = true;
    scene_client(&s, 0, 0);
    return s;
}

/* The doorbell stays there, and hears the channel as long as somebody waits. */
static void wait_in_vain(scene *s)
{
    waiter *w = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s->sv, 1, s->cl, 1);
    EVENTUALLY(SOON,
               server_cmd(s->sv, "PUBSUB CHANNELS " CHANNEL)->elements == 1);
    rlock_cancel(s->lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
}

/* A ring for a name that nobody here waits for is passed on by a call. */
static void ring_for(server *sv, const char *name)
{
    char bell[64];
    redisReply *r = server_cmd(sv, "PUBSUB CHANNELS rlock_bell:*");
    EXPECT_INT(r->elements, 1);
    snprintf(bell, sizeof bell, "%s", r->element[0]->str);
    server_cmd(sv, "PUBLISH %s %s", bell, name);
}

TEST(waiting, a_message_of_a_channel_that_was_just_left_is_no_ring)
{
    scene s = listening_to_redisson();
    take_by_hand(s.sv, SCENE_LOCK, 0);
    proxy_rule(s.px, "UNSUBSCRIBE", 1, PROXY_ANSWER, LATE_MESSAGE LEFT);
    wait_in_vain(&s);
    EVENTUALLY(SOON, proxy_fired(s.px));
    ring_for(s.sv, "other"); /* which is heard behind the message */
    EVENTUALLY(SOON, proxy_count(s.px, "{other}") == 1);
    EXPECT_INT(proxy_count(s.px, "{0}"), 0);
    scene_stop(&s);
}
