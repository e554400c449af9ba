/*
 * Locks that are a string or a timestamp, when answers are lost, commands come
 * late, or the server is out of memory.
 */
#include "layouts.h"

/* The next call of this verb meets with a fault. */
static void disturb(scene *s, rlock_layout layout, const char *verb,
                    proxy_action action)
{
    proxy_rule(s->px, script_of(layout, verb), 1, action, NULL);
}

static int asked(scene *s, rlock_layout layout, const char *verb)
{
    return proxy_count(s->px, script_of(layout, verb));
}

static int tombstones(server *sv)
{
    return (int)server_cmd(sv, "KEYS rlock_undone:*")->elements;
}

/* --- acquire ------------------------------------------------------------- */

BOTH(layouts, an_acquire_whose_reply_is_lost_is_asked_again_and_counted_once)
{
    scene s = scene_of_proxied(layout, 0, 0);
    disturb(&s, layout, "acquire", PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(asked(&s, layout, "acquire"), 2);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_INT(strtoull(server_str(s.sv, "GET rlock_token:{" SCENE_LOCK "}"),
                        NULL, 10),
               rlock_token(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

/* The key of a dead one of ours is there, and its time has passed. */
TEST(layouts, timestamp_a_take_over_whose_reply_is_lost_is_asked_again)
{
    scene s = scene_of_proxied(RLOCK_LAYOUT_TIMESTAMP, 0, 0);
    server_cmd(s.sv, "SET " SCENE_LOCK " 1300000000.0123456789012345");
    disturb(&s, RLOCK_LAYOUT_TIMESTAMP, "acquire", PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_INT(asked(&s, RLOCK_LAYOUT_TIMESTAMP, "acquire"), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, an_acquire_that_is_never_answered_is_undone)
{
    scene s = scene_of_proxied(layout, 0, 300);
    disturb(&s, layout, "acquire", PROXY_SWALLOW_REPLY);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT(!rlock_is_held(s.lk));
    EVENTUALLY(SOON, !held_on_server(s.sv));
    EXPECT_INT(tombstones(s.sv), 1);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, an_acquire_that_was_given_up_may_arrive_later)
{
    scene s = scene_of_proxied(layout, 0, 300);
    disturb(&s, layout, "acquire", PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EVENTUALLY(SOON, tombstones(s.sv) == 1);
    proxy_let_go(s.px);
    EXPECT(!held_on_server(s.sv));
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(layouts, timestamp_a_take_over_that_was_given_up_may_arrive_later)
{
    scene s = scene_of_proxied(RLOCK_LAYOUT_TIMESTAMP, 0, 300);
    server_cmd(s.sv, "SET " SCENE_LOCK " 1300000000");
    disturb(&s, RLOCK_LAYOUT_TIMESTAMP, "acquire", PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EVENTUALLY(SOON, tombstones(s.sv) == 1);
    proxy_let_go(s.px);
    expect_value(s.sv, "1300000000");
    scene_stop(&s);
}

BOTH(layouts, a_late_acquire_does_not_touch_the_next_holder)
{
    scene s = scene_of_proxied(layout, 0, 300);
    other_client b = other_client_of(&s, layout);
    disturb(&s, layout, "acquire", PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EVENTUALLY(SOON, tombstones(s.sv) == 1);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    text value = value_of(s.sv);
    proxy_let_go(s.px);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    other_client_leave(&b);
    scene_stop(&s);
}

/* The unlock comes before the first try, which is still on its way. */
BOTH(layouts, a_first_try_that_arrives_after_the_unlock_takes_nothing)
{
    scene s = scene_of_proxied(layout, 0, 600);
    disturb(&s, layout, "acquire", PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(tombstones(s.sv), 1);
    proxy_let_go(s.px);
    EXPECT(!held_on_server(s.sv));
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, a_nested_acquire_whose_reply_is_lost_is_one_level)
{
    scene s = scene_of_proxied(layout, 0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    disturb(&s, layout, "acquire", PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, a_wait_survives_lost_replies)
{
    scene s = scene_of_proxied(layout, 0, 0);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    disturb(&s, layout, "acquire", PROXY_CUT_AFTER);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, proxy_fired(s.px));
    waiters_settle(s.sv, 1, s.cl, 1);
    disturb(&s, layout, "acquire", PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_all_undone(s.sv);
    other_client_leave(&b);
    scene_stop(&s);
}

/* --- release ------------------------------------------------------------- */

BOTH(layouts, a_release_whose_reply_is_lost_was_a_release)
{
    scene s = scene_of_proxied(layout, 0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    disturb(&s, layout, "release", PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(stats_of(s.cl).lost, 0);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, an_inner_release_whose_reply_is_lost_undoes_one_level)
{
    scene s = scene_of_proxied(layout, 0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    disturb(&s, layout, "release", PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, a_release_that_is_never_answered_is_made_in_the_background)
{
    scene s = scene_of_proxied(layout, 0, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    disturb(&s, layout, "release", PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT(!rlock_is_held(s.lk));
    EVENTUALLY(SOON, !held_on_server(s.sv));
    proxy_let_go(s.px);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, a_late_release_does_not_touch_the_next_hold)
{
    scene s = scene_of_proxied(layout, 0, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    disturb(&s, layout, "release", PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EVENTUALLY(SOON, !held_on_server(s.sv));
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    text value = value_of(s.sv);
    proxy_let_go(s.px);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

/* --- renewal, extend ----------------------------------------------------- */

BOTH(layouts, a_renewal_whose_reply_is_lost_does_no_harm)
{
    scene s = scene_of_proxied(layout, 1500, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    disturb(&s, layout, "renew", PROXY_CUT_AFTER);
    EVENTUALLY(SOON, proxy_fired(s.px));
    expect_renewals(&s, 2);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts, a_late_renewal_does_not_touch_the_next_holder)
{
    scene s = scene_of_proxied(layout, 900, 300);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    disturb(&s, layout, "renew", PROXY_HOLD_REQUEST);
    EVENTUALLY(SOON, proxy_fired(s.px));
    rlock_unlock(s.lk);
    EXPECT_STATUS(rlock_acquire(b.lk, SOON, 60000), RLOCK_OK);
    text value = value_of(s.sv);
    proxy_let_go(s.px);
    expect_value(s.sv, value.is);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

BOTH(layouts, an_extend_whose_reply_is_lost_is_asked_again)
{
    scene s = scene_of_proxied(layout, 0, 0);
    int64_t ms;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    disturb(&s, layout, "extend", PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(rlock_ttl(s.lk, &ms), RLOCK_OK);
    EXPECT_BETWEEN(ms, 40000, 61100);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

/* The old program's take-over came in between. */
BOTH(layouts, an_extend_that_is_asked_again_does_not_touch_who_took_it)
{
    scene s = scene_of_proxied(layout, 0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    disturb(&s, layout, "extend", PROXY_CUT_BEFORE);
    server_cmd(s.sv, "SET " SCENE_LOCK " 9999999999 PX 30000");
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_LOST);
    expect_value(s.sv, "9999999999");
    EXPECT_BETWEEN(server_int(s.sv, "PTTL " SCENE_LOCK), 1, 30000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* --- out of memory ------------------------------------------------------- */

BOTH(layouts, a_server_out_of_memory_still_renews_and_releases)
{
    scene s = scene_of(layout, 600);
    rlock *other = lock_of(s.cl, layout, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    text first = value_of(s.sv);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "OOM");
    expect_renewals(&s, 3);
    if (layout == RLOCK_LAYOUT_TIMESTAMP)
        EVENTUALLY(SOON, strcmp(value_of(s.sv).is, first.is) != 0);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    server_cmd(s.sv, "CONFIG SET maxmemory 0");
    EXPECT_STATUS(rlock_trylock(other), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_free(other);
    scene_stop(&s);
}

BOTH(layouts, a_server_out_of_memory_still_nests_and_extends)
{
    scene s = scene_of(layout, 0);
    int64_t ms;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_ttl(s.lk, &ms), RLOCK_OK);
    EXPECT_BETWEEN(ms, 40000, 61100);
    EXPECT_STATUS(rlock_extend(s.lk, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_ttl(s.lk, &ms), RLOCK_OK);
    EXPECT_BETWEEN(ms, 70000, 91100);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    scene_stop(&s);
}

BOTH(layouts, a_server_out_of_memory_still_frees_by_force)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(layouts, timestamp_a_server_out_of_memory_leaves_an_old_key_alone)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    server_cmd(s.sv, "SET " SCENE_LOCK " 1300000000");
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    expect_value(s.sv, "1300000000");
    server_cmd(s.sv, "CONFIG SET maxmemory 0");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* It finds room in no queue, and looks. */
BOTH(layouts, a_wait_survives_a_server_out_of_memory)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(b.lk), RLOCK_OK);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    server_cmd(s.sv, "CONFIG SET maxmemory 0");
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s.sv);
    other_client_leave(&b);
    scene_stop(&s);
}

/* Memory for the tombstone comes only after the release. */
BOTH(layouts, a_release_out_of_memory_still_stops_a_late_acquire)
{
    scene s = scene_of_proxied(layout, 0, 600);
    disturb(&s, layout, "acquire", PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_INT(tombstones(s.sv), 0);
    server_cmd(s.sv, "CONFIG SET maxmemory 0");
    EVENTUALLY(SOON, tombstones(s.sv) == 1);
    proxy_let_go(s.px);
    EXPECT(!held_on_server(s.sv));
    scene_stop(&s);
}

/* --- the server's data --------------------------------------------------- */

BOTH(layouts, a_server_that_comes_back_empty_loses_the_hold)
{
    scene s = scene_of_held(layout, 3000);
    uint64_t token = rlock_token(s.lk);
    server_kill(s.sv);
    server_restart(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(stats_of(s.cl).lost, 1);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) > token);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(layouts, a_server_that_stays_away_loses_the_hold)
{
    scene s = scene_of_held(layout, 500);
    server_kill(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(stats_of(s.cl).lost, 1);
    scene_stop(&s);
}
