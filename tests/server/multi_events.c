/* What is told of a Multi lock, to whom, and how often. */
#include <stdatomic.h>

#include "multi_scene.h"

static void expect_lost_event(events *ev, const char *name)
{
    rlock_event e;
    events_wait(ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT(events_last(ev, RLOCK_EVENT_LOST, &e));
    if (name)
        EXPECT_STR(e.name, name);
    EXPECT_INT(e.status, RLOCK_LOST);
}

TEST(multi_events, the_loss_of_one_member_is_the_loss_of_the_whole)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    expect_lost_event(s.ev, "b");
    expect_unheld(m.all);
    EXPECT(rlock_is_held(m.lk[0]));
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_LOST);
    expect_blame_of(2, "b");
    EXPECT_STATUS(rlock_extend(m.all, 1000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_INT(rlock_hold_count(m.lk[0]), 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end_with_losses(&m, &s, 1);
}

TEST(multi_events, the_loss_of_all_members_at_once_is_one_event)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(10000, stats_of(s.cl).lost == 5);
    expect_lost_event(s.ev, NULL);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_end_with_losses(&m, &s, 1);
}

TEST(multi_events,
     losses_on_two_servers_are_one_event_at_the_first_members_client)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = {0};
    multi_scene_add(&m, t.sv, t.cl,
                    "b"); /* the first of the list, not of the order */
    multi_scene_add(&m, s.sv, s.cl, "a");
    multi_scene_join(&m);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL a");
    expect_lost_event(t.ev, "a");
    server_cmd(t.sv, "DEL b");
    EVENTUALLY(10000, stats_of(t.cl).lost == 1 && stats_of(s.cl).lost == 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_free(&m);
    scene_free_client(&s);
    scene_free_client(&t);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 1);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
    scene_stop(&t);
}

TEST(multi_events,
     without_a_listener_at_the_first_the_lost_members_client_is_told)
{
    scene s = scene_start(BRISK_MS, 0);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    rlock_client *quiet = server_client(s.sv, &opts);
    multi_scene m = {0};
    multi_scene_add(&m, s.sv, quiet, "a");
    multi_scene_add(&m, s.sv, s.cl, "bc");
    multi_scene_join(&m);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    expect_lost_event(s.ev, "b");
    server_cmd(s.sv, "DEL a");
    server_cmd(s.sv, "DEL c");
    EVENTUALLY(10000, stats_of(quiet).lost == 1 && stats_of(s.cl).lost == 2);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_free(&m);
    scene_free_client(&s);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 1);
    rlock_client_free(quiet);
    scene_stop(&s);
}

/* The lost member's own client has no on_event. */
TEST(multi_events, the_first_members_client_is_told_of_a_loss_at_a_quiet_one)
{
    scene s = scene_start(BRISK_MS, 0);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    rlock_client *quiet = server_client(s.sv, &opts);
    multi_scene m = {0};
    multi_scene_add(&m, s.sv, s.cl, "b");
    multi_scene_add(&m, s.sv, quiet, "a");
    multi_scene_join(&m);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL a");
    expect_lost_event(s.ev, "a");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_free(&m);
    rlock_client_free(quiet);
    scene_stop(&s);
}

TEST(multi_events, a_loss_that_unlock_finds_is_one_event)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    expect_lost_event(s.ev, NULL);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    multi_scene_end_with_losses(&m, &s, 1);
}

/* One event for each time that it was taken and lost. */
TEST(multi_events, every_hold_that_is_lost_is_one_event)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        server_cmd(s.sv, "FLUSHALL");
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    }
    events_wait(s.ev, RLOCK_EVENT_LOST, 5, 10000);
    multi_scene_end_with_losses(&m, &s, 5);
}

static intptr_t take_and_end(void *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    return RLOCK_OK;
}

TEST(multi_events, a_thread_that_ends_abandons_the_whole_once)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "bc", &t, "a");
    test_join(test_spawn(take_and_end, m.all));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 10000);
    EVENTUALLY(10000, levels(s.sv, "b") == 0 && levels(s.sv, "c") == 0 &&
                          levels(t.sv, "a") == 0);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_free(&m);
    scene_free_client(&s);
    scene_free_client(&t);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_ABANDONED), 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
    scene_stop(&t);
}

typedef struct caller {
    rlock *other;
    atomic_int called, failed;
} caller;

static void call_library(const rlock_event *ev, void *arg)
{
    caller *c = arg;
    bool locked;
    if (!c->other ||
        (ev->type != RLOCK_EVENT_ACQUIRED && ev->type != RLOCK_EVENT_RELEASED))
        return;
    atomic_fetch_add(&c->called, 1);
    atomic_fetch_add(&c->failed, rlock_is_locked(c->other, &locked) != 0);
}

/* Even with one connection for all. */
TEST(multi_events, a_callback_may_call_the_library)
{
    caller c = {0};
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.pool_size = 1;
    opts.command_timeout_ms = 1000;
    opts.on_event = call_library;
    opts.event_arg = &c;
    rlock_client *cl = server_client(s.sv, &opts);
    multi_scene m = multi_scene_of_client(s.sv, cl, "abc");
    c.other = m.lk[0];
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT_INT(atomic_load(&c.called), 6);
    EXPECT_INT(atomic_load(&c.failed), 0);
    expect_nothing_left(s.sv);
    multi_scene_free(&m);
    rlock_client_free(cl);
    scene_stop(&s);
}

static void be_slow(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == RLOCK_EVENT_ACQUIRED || ev->type == RLOCK_EVENT_RELEASED)
        test_pause_ms(250);
}

/* The answers have come long ago. */
TEST(multi_events, a_slow_callback_makes_no_call_fail)
{
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.command_timeout_ms = 200;
    opts.on_event = be_slow;
    rlock_client *cl = server_client(s.sv, &opts);
    multi_scene m = multi_scene_of_client(s.sv, cl, "abc");
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_free(&m);
    rlock_client_free(cl);
    scene_stop(&s);
}
