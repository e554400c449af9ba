/*
 * Somebody touches the data on the server: all of it, a lock, its lease, its
 * count; or the server's clock, by which leases end. Each test sees first that
 * all is well without the fault.
 */
#include "other_client.h"

/* A fallback poll comes no later than that after the last look. */
#define POLL_MS 4000

/* --- 11 to 15: somebody touches the data --------------------------------- */

TEST(data, fault_011_after_a_flush_the_hold_is_lost_and_tokens_still_grow)
{
    scene s = scene_undisturbed(NULL, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    server_cmd(s.sv, "FLUSHALL");
    expect_hold_lost(&s);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) > token);
    scene_stop(&s);
}

TEST(data, fault_012_a_lock_that_was_taken_away_is_not_the_old_holders)
{
    scene s = scene_undisturbed(NULL, 3000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    expect_hold_lost(&s);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 30000, 60000);
    scene_stop(&s);
}

TEST(data, fault_012_a_lock_that_was_forced_is_not_the_old_holders)
{
    scene s = scene_undisturbed(NULL, 3000, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    expect_hold_lost(&s);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(data, fault_013_a_lock_without_expiry_gets_one_again)
{
    scene s = scene_undisturbed(NULL, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "PERSIST %s", SCENE_LOCK), 1);
    EVENTUALLY(5000, server_int(s.sv, "PTTL %s", SCENE_LOCK) > 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(data, fault_013_a_lease_that_was_shortened_is_set_right)
{
    scene s = scene_undisturbed(NULL, 3000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int renewed = events_count(s.ev, RLOCK_EVENT_RENEWED);
    events_wait(s.ev, RLOCK_EVENT_RENEWED, renewed + 1, 5000);
    EXPECT_INT(server_int(s.sv, "PEXPIRE %s 1800", SCENE_LOCK), 1);
    EVENTUALLY(5000, server_int(s.sv, "PTTL %s", SCENE_LOCK) > 1800);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(data, fault_013_a_lock_that_was_renamed_is_lost)
{
    scene s = scene_undisturbed(NULL, 1000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "RENAME %s elsewhere", SCENE_LOCK);
    expect_hold_lost(&s);
    scene_stop(&s);
}

/* Freed by hand, so that it rings nobody. */
static void wait_for_delete(bool persist)
{
    scene s = scene_start(0, 0);
    int64_t at_ms;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    if (persist)
        EXPECT_INT(server_int(s.sv, "PERSIST %s", SCENE_LOCK), 1);
    int64_t freed_ms = test_now_ms();
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, POLL_MS);
    waiter_end(w);
    scene_stop(&s);
}

TEST(data, fault_013_waiters_look_again_also_when_the_expiry_was_taken_away)
{
    wait_for_delete(false); /* the control */
    wait_for_delete(true);
}

TEST(data, fault_014_a_key_of_another_type_is_reported_and_left_alone)
{
    scene s = scene_undisturbed(NULL, 0, 0);
    server_cmd(s.sv, "SET %s x", SCENE_LOCK);
    long long before = script_calls(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_EWRONGTYPE);
    EXPECT_INT(script_calls(s.sv) - before, 1);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_EWRONGTYPE);
    EXPECT_STR(server_str(s.sv, "GET %s", SCENE_LOCK), "x");
    scene_stop(&s);
}

/* As Redis up to 6 says it. */
TEST(data, fault_014_a_key_of_another_type_is_known_by_its_word_anywhere)
{
    scene s = scene_undisturbed_proxied(0, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER,
               "-ERR Error running script (call to f_0): @user_script:1: "
               "WRONGTYPE Operation against a key\r\n");
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_EWRONGTYPE);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 2); /* in all */
    scene_stop(&s);
}

static void expect_strangers(scene *s, const char *count)
{
    rlock_holder holder;
    server_cmd(s->sv, "HSET %s somebody %s", SCENE_LOCK, count);
    EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s->lk, 30, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_holder_info(s->lk, &holder, sizeof holder), RLOCK_OK);
    EXPECT_STR(holder.raw, "somebody");
    EXPECT_STR(server_str(s->sv, "HGET %s somebody", SCENE_LOCK), count);
}

TEST(data, fault_015_a_count_that_is_no_number_is_a_strangers)
{
    scene s = scene_undisturbed(NULL, 0, 0);
    expect_strangers(&s, "abc");
    expect_strangers(&s, "99999999999999999999");
    scene_stop(&s);
}

/* The levels are told to the server, which does not count. */
TEST(data, fault_015_a_count_of_ours_that_was_spoiled_is_set_right)
{
    scene s = scene_undisturbed(NULL, 0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    char holder[600];
    snprintf(holder, sizeof holder, "%s",
             server_cmd(s.sv, "HKEYS %s", SCENE_LOCK)->element[0]->str);
    server_cmd(s.sv, "HSET %s %s abc", SCENE_LOCK, holder);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    server_cmd(s.sv, "HSET %s %s 99999999999999999999", SCENE_LOCK, holder);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* --- 23 to 25: time ------------------------------------------------------ */

/* Now a little before the expiry, now a little after it. */
TEST(data, fault_023_an_unlock_as_the_lease_ends_hurts_no_other_holder)
{
    scene s = scene_undisturbed(NULL, 0, 0);
    other_client b = other_client_join(&s, NULL);
    for (int i = 0; i < 40; i++) {
        EXPECT_STATUS(rlock_acquire(s.lk, 5000, 40), RLOCK_OK);
        int64_t until_us = test_now_us() + 30000 + i * 400;
        waiter *w = waiter_start(b.lk, 20000, RLOCK_WATCHDOG);
        while (test_now_us() < until_us)
            ;
        rlock_status status = rlock_unlock(s.lk);
        EXPECT(status == RLOCK_OK || status == RLOCK_LOST);
        EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
        EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    }
    other_client_leave(&b);
    expect_all_undone(s.sv); /* a grant may come too late for such a lease */
    scene_stop(&s);
}

/* The renewal comes when another owner has the lock already. */
TEST(data, fault_023_a_renewal_after_the_lease_prolongs_no_other_hold)
{
    scene s = scene_undisturbed_proxied(1000, 0);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REQUEST, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    proxy_refuse(s.px, true); /* no second attempt */
    EXPECT_STATUS(rlock_acquire(b.lk, 20000, 20000), RLOCK_OK);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(server_int(s.sv, "PEXPIRE %s 500", SCENE_LOCK), 1);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 1, 500);
    expect_hold_lost(&s);
    other_client_leave(&b);
    scene_stop(&s);
}

#define HOUR_S 3600

static scene scene_clocked(int64_t lease_ms)
{
    scene s = {.sv = server_start_clocked(NULL), .opts = RLOCK_OPTIONS_INIT};
    server_load_scripts(s.sv);
    scene_client(&s, lease_ms, 0);
    expect_undisturbed(&s);
    return s;
}

TEST(data, fault_024_a_server_clock_put_forward_loses_the_hold)
{
    scene s = scene_clocked(3000);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t first = rlock_token(s.lk);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    server_set_clock(s.sv, HOUR_S);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    uint64_t second = rlock_token(b.lk);
    EXPECT(second > first);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    expect_hold_lost(&s);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    server_set_clock(s.sv, 0); /* tokens do not fall with it */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_token(s.lk) > second);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(data, fault_025_a_server_clock_put_back_disturbs_no_holder)
{
    scene s = scene_clocked(1500);
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t first = rlock_token(s.lk);
    server_set_clock(s.sv, -HOUR_S);
    EXPECT(server_int(s.sv, "PTTL %s", SCENE_LOCK) > HOUR_S * 1000);
    expect_renewals(&s, 3);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT(rlock_token(b.lk) > first);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", SCENE_LOCK), 1, 30000);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    scene_stop(&s);
}

/* Its TTL is an hour too long; whoever frees it rings nobody. */
static void wait_for_orphan(long long ahead_s)
{
    scene s = scene_clocked(0);
    int64_t at_ms;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    server_set_clock(s.sv, ahead_s);
    EXPECT(server_int(s.sv, "PTTL %s", SCENE_LOCK) > -ahead_s * 1000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t freed_ms = test_now_ms();
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, POLL_MS);
    waiter_end(w);
    scene_stop(&s);
}

TEST(data, fault_025_waiters_do_not_sleep_as_long_as_a_clock_put_back_says)
{
    wait_for_orphan(0); /* the control */
    wait_for_orphan(-HOUR_S);
}
