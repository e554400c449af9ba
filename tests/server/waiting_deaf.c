/*
 * Waiting, when those who wait die, or cannot be heard; and what is told of it.
 */
#include "other_client.h"

/* --- the dead and the deaf ----------------------------------------------- */

static void wait_in_child(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    (void)arg;
    opts.uri = child_take_uri(c);
    rlock *lk = test_lock(server_client(NULL, &opts), SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
}

/* Lets it be the first in the queue. */
static scene scene_with_child(child *c)
{
    scene s = scene_server(NULL);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    child_give_uri(c, s.sv);
    EVENTUALLY(20000, queued(s.sv, SCENE_LOCK) == 1);
    return s;
}

TEST(waiting_deaf, a_waiter_that_was_killed_swallows_no_ring)
{
    child *dead = child_start(wait_in_child, NULL);
    scene s = scene_with_child(dead);
    scene_client(&s, 0, 0);
    other_client c = {.cl = s.cl, .lk = s.lk};
    other_client_wait(&s, &c, 2, RLOCK_FOREVER);
    child_kill(dead);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 2);
    other_client a = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_force_unlock(a.lk), RLOCK_OK);
    expect_woken(&c);
    waiter_end(c.w);
    other_client_leave(&a);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* It still gets the ring, and does nothing with it. */
TEST(waiting_deaf, behind_a_stopped_waiter_the_fallback_poll_finds_it_free)
{
    child *deaf = child_start(wait_in_child, NULL);
    scene s = scene_with_child(deaf);
    child_stop(deaf);
    scene_client(&s, 0, 0);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 2, s.cl, 1);
    other_client a = other_client_join(&s, NULL);
    int64_t freed_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(rlock_force_unlock(a.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, 4000);
    waiter_end(w);
    child_kill(deaf);
    other_client_leave(&a);
    scene_stop(&s);
}

/* Nobody hears that ring; who listens again looks again. */
TEST(waiting_deaf,
     a_release_while_the_doorbell_was_down_is_noticed_when_it_is_up)
{
    scene s = scene_proxied(0, 0);
    other_client a = other_client_join(&s, NULL);
    other_client b = {.cl = s.cl, .lk = s.lk};
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    proxy_refuse(s.px, true);
    EXPECT_INT(server_int(s.sv, "CLIENT KILL TYPE pubsub"), 1);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).wakeups, 0);
    proxy_refuse(s.px, false);
    expect_woken(&b);
    waiter_end(b.w);
    other_client_leave(&a);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting_deaf, the_doorbell_rings_again_after_its_connection_was_killed)
{
    scene s = scene_start(0, 0);
    other_client a = other_client_join(&s, NULL);
    other_client b = {.cl = s.cl, .lk = s.lk};
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_INT(server_int(s.sv, "CLIENT KILL TYPE pubsub"), 1);
    events_wait(s.ev, RLOCK_EVENT_RECONNECTED, 1, 5000);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    expect_woken(&b);
    waiter_end(b.w);
    other_client_leave(&a);
    scene_stop(&s);
}

static other_client join_as(scene *s, const char *user, events *ev)
{
    char uri[300];
    rlock_options opts = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "unix://%s:pw@%s", user, server_path(s->sv));
    opts.uri = uri;
    events_hook(ev, &opts);
    return other_client_join(s, &opts);
}

static void allow(scene *s, const char *user, const char *channels)
{
    EXPECT_STR(
        server_str(s->sv, "ACL SETUSER %s on >pw ~* +@all %s", user, channels),
        "OK");
}

/*
 * Who may not listen polls, and hands over as everybody does. Nobody rings it:
 * its first look after the release is one of its own, and comes before the
 * holder's lease would have run out.
 */
TEST(waiting_deaf, works_without_the_right_to_the_channels)
{
    scene s = scene_start(0, 0);
    allow(&s, "deaf", "resetchannels");
    events *ev = events_new();
    other_client b = join_as(&s, "deaf", ev);
    events_wait(ev, RLOCK_EVENT_WARNING, 1, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    b.w = waiter_start(b.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, stats_of(b.cl).waiting_now == 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    long long before = script_calls(s.sv);
    EXPECT_STATUS(waiter_status(b.w, NULL), RLOCK_OK);
    EXPECT_BETWEEN(script_calls(s.sv) - before, 0, 1);
    EXPECT_INT(stats_of(b.cl).wakeups, 0);
    EXPECT_STATUS(waiter_end(b.w), RLOCK_OK);
    other_client_leave(&b);
    events_free(ev);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(waiting_deaf, a_release_that_may_not_publish_succeeds_and_waiters_poll)
{
    scene s = scene_start(0, 0);
    int64_t freed_ms, at_ms;
    allow(&s, "mute", "resetchannels");
    events *ev = events_new();
    other_client a = join_as(&s, "mute", ev);
    EXPECT_STATUS(rlock_lock(a.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, 4000);
    waiter_end(w);
    other_client_leave(&a);
    events_free(ev);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* A message says nothing but "look": any text at any time does no harm. */
TEST(waiting_deaf, forged_rings_are_harmless)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    char bell[64];
    redisReply *r = server_cmd(s.sv, "PUBSUB CHANNELS rlock_bell:*");
    snprintf(bell, sizeof bell, "%s", r->element[0]->str);
    static char huge[600];
    memset(huge, 'x', sizeof huge - 1);
    const char *text[] = {"", "nobody wants this", "\r\n*9\r\n", huge};
    for (size_t i = 0; i < sizeof text / sizeof *text; i++)
        EXPECT_INT(server_int(s.sv, "PUBLISH %s %s", bell, text[i]), 1);
    for (int i = 0; i < 20; i++)
        server_cmd(s.sv, "PUBLISH %s %s", bell, SCENE_LOCK);
    EVENTUALLY(5000, stats_of(s.cl).wakeups_futile > 0);
    EXPECT(!waiter_returned(w));
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    server_cmd(s.sv, "PUBLISH %s %s", bell, SCENE_LOCK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

/* --- what is told of it -------------------------------------------------- */

TEST(waiting_deaf, contended_is_told_once_a_call)
{
    scene s = scene_start(0, 0);
    char bell[64];
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    snprintf(bell, sizeof bell, "%s",
             server_cmd(s.sv, "PUBSUB CHANNELS *")->element[0]->str);
    for (int i = 1; i <= 3; i++) {
        server_cmd(s.sv, "PUBLISH %s %s", bell, SCENE_LOCK);
        EVENTUALLY(5000, stats_of(s.cl).wakeups_futile >= (uint64_t)i);
    }
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 1);
    scene_stop(&s);
}

TEST(waiting_deaf, is_counted_in_the_statistics)
{
    scene s = scene_start(0, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(b.lk, 20, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    other_client_wait(&s, &b, 1, RLOCK_FOREVER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(b.w), RLOCK_OK);
    rlock_stats st = stats_of(b.cl);
    EXPECT_INT(st.acquires, 1);
    EXPECT_INT(st.acquires_failed, 1);
    EXPECT_INT(st.acquires_contended, 2);
    EXPECT_INT(st.wakeups, 1);
    EXPECT_INT(st.waiting_now, 0);
    EXPECT(st.wait_us_total >= 20000);
    EXPECT_INT(stats_of(s.cl).acquires_contended, 0);
    other_client_leave(&b);
    scene_stop(&s);
}
