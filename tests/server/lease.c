/*
 * Leases: how long they are, who renews them, what extend makes of them, and
 * max_hold_ms.
 */
#include "other_client.h"

/* --- leases --------------------------------------------------------------- */

TEST(lease, watchdog_lease_is_30_s)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 15000, 30000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 15000, 30000 - 302);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, an_explicit_lease_is_the_ttl)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 60000, 90000 - 902);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, a_nested_lease_never_shortens)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 60000, 90000);
    unlock_times(s.lk, 2, RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, a_nested_lease_lengthens_and_stays_after_its_unlock)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 60000, 90000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, the_watchdog_renews)
{
    scene s = scene_start(1200, 0);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, a_nested_watchdog_lease_turns_renewal_on)
{
    scene s = scene_start(1200, 0);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1200), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK); /* on until the hold ends */
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, a_nested_explicit_lease_leaves_renewal_on)
{
    scene s = scene_start(1200, 0);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, an_explicit_lease_is_never_renewed)
{
    scene s = scene_start(150, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 400), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    unlock_times(s.lk, 1, RLOCK_LOST);
    scene_stop(&s);
}

TEST(lease, a_lease_does_not_leak_into_the_next_hold)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 15000, 30000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, renewal_does_not_leak_into_the_next_hold)
{
    scene s = scene_start(150, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 400), RLOCK_OK);
    uint64_t before = stats_of(s.cl).renewals;
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).renewals, before);
    unlock_times(s.lk, 1, RLOCK_LOST);
    scene_stop(&s);
}

TEST(lease, renewal_gives_a_persisted_key_its_ttl_back)
{
    scene s = scene_start(900, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "PERSIST job"), 1);
    EVENTUALLY(SOON, key_ttl(s.sv, SCENE_LOCK) > 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, a_lease_that_ran_out_is_lost_by_its_deadline)
{
    scene s = scene_start(0, 0);
    rlock_event ev;
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 300), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    /* 300 ms less one hundredth and 2 ms. */
    EXPECT_BETWEEN(events_time(s.ev, RLOCK_EVENT_LOST) - began, 294, 3000);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT(events_last(s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STATUS(ev.status, RLOCK_LOST);
    EXPECT_CONTAINS(ev.message, "lease ran out");
    EVENTUALLY(SOON, !key_exists(s.sv, SCENE_LOCK));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 1);
    scene_stop(&s);
}

TEST(lease, a_lease_that_ran_out_lets_a_waiter_in)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(v.lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began, 300 - CLOCK_AGE_MS,
                   1900); /* before the poll */
    EXPECT(!rlock_is_held(v.lk));
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

/* After the margin nothing is left of 2 ms, however near the server is. */
TEST(lease, a_lease_too_short_to_use_is_refused)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_LEASE_MIN_MS - 1), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "lease_ms is out of range");
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_LEASE_MIN_MS - 1), RLOCK_EINVAL);
    EXPECT(rlock_is_held(s.lk));
    EXPECT(server_int(s.sv, "PTTL " SCENE_LOCK) > 1000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, a_grant_that_comes_after_its_lease_is_undone)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 30), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_hold_back(s.sv, 100);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 30), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "had run out");
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EVENTUALLY(SOON, !key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

/* One that can be had: not on every machine each time, but now and then. */
TEST(lease, the_shortest_lease_can_be_had)
{
    scene s = scene_start(0, 0);
    EVENTUALLY(SOON, rlock_acquire(s.lk, 0, RLOCK_LEASE_MIN_MS) == RLOCK_OK);
    EVENTUALLY(SOON, rlock_unlock(s.lk) != RLOCK_BUSY);
    scene_stop(&s);
}

/* --- extend --------------------------------------------------------------- */

TEST(lease, extend_lengthens)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 90000), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 60000, 90000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 60000, 90000 - 902);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, extend_shortens)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 20000), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 5000, 20000);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 5000, 20000 - 202);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, extend_keeps_level_and_token)
{
    scene s = scene_start(0, 0);
    lock_times(s.lk, 2);
    uint64_t token = rlock_token(s.lk);
    EXPECT_STATUS(rlock_extend(s.lk, 20000), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT(rlock_token(s.lk) == token);
    unlock_times(s.lk, 2, RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, extend_by_a_lease_stops_renewal)
{
    scene s = scene_start(900, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 1200), RLOCK_OK);
    uint64_t before = stats_of(s.cl).renewals;
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).renewals, before);
    unlock_times(s.lk, 1, RLOCK_LOST);
    scene_stop(&s);
}

TEST(lease, extend_by_the_watchdog_turns_renewal_on)
{
    scene s = scene_start(1200, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_OK);
    int64_t began = test_now_ms();
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, 1200);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 1200);
    EVENTUALLY(SOON, test_now_ms() - began > 1300);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, extend_without_a_hold_asks_nobody)
{
    scene s = scene_start(0, 0);
    long long before = commands(s.sv);
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_NOT_HELD);
    EXPECT_INT(commands(s.sv) - before, 1);
    scene_stop(&s);
}

TEST(lease, extend_of_a_missing_key_is_lost)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_LOST);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    unlock_times(s.lk, 1, RLOCK_LOST);
    scene_stop(&s);
}

TEST(lease, extend_of_a_stolen_key_leaves_the_thief_alone)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL job");
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 90000), RLOCK_LOST);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 15000, 30000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(v.lk), RLOCK_OK);
    other_client_leave(&v);
    scene_stop(&s);
}

/* --- max_hold_ms ---------------------------------------------------------- */

static scene scene_limited(int64_t lease_ms, int64_t max_hold_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = lease_ms;
    opts.max_hold_ms = max_hold_ms;
    return scene_with(server_start(NULL), &opts);
}

TEST(lease, a_hold_ends_at_max_hold_ms)
{
    scene s = scene_limited(BRISK_MS, 2500);
    rlock_event ev;
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(s.ev, RLOCK_EVENT_LOST) - began, 2499, 6000);
    EXPECT(events_last(s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_CONTAINS(ev.message, "max_hold_ms");
    EXPECT_BETWEEN(ev.elapsed_ms, 2499, 6000);
    EXPECT(!rlock_is_held(s.lk));
    EVENTUALLY(SOON, !key_exists(s.sv, SCENE_LOCK)); /* renewed no more */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_CONTAINS(rlock_last_error()->message, "max_hold_ms");
    scene_stop(&s);
}

TEST(lease, max_hold_ms_cuts_the_first_lease)
{
    scene s = scene_limited(60000, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 0, 300);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EVENTUALLY(SOON,
               !key_exists(s.sv, SCENE_LOCK)); /* long before its lease ends */
    scene_stop(&s);
}

TEST(lease, max_hold_ms_counts_from_the_outermost_acquire)
{
    scene s = scene_limited(60000, 20000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int64_t began = test_now_ms();
    EVENTUALLY(SOON, test_now_ms() - began > 100);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 20000 - 100);
    unlock_times(s.lk, 2, RLOCK_OK);
    scene_stop(&s);
}

TEST(lease, max_hold_ms_does_not_touch_explicit_leases)
{
    scene s = scene_limited(300, 200);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 700), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(s.ev, RLOCK_EVENT_LOST) - began, 690, 4000);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "lease ran out");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(lease, a_nested_watchdog_lease_does_not_cut_an_explicit_one_short)
{
    scene s = scene_limited(300, 200);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 2500), RLOCK_OK);
    int64_t began = test_now_ms();
    EVENTUALLY(SOON, test_now_ms() - began > 210);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(s.ev, RLOCK_EVENT_LOST) - began, 2400, 6000);
    unlock_times(s.lk, 2, RLOCK_LOST);
    scene_stop(&s);
}
