/* The leases of locks that are a string or a timestamp, and their renewal. */
#include "layouts.h"

BOTH(layouts_lease, the_watchdog_lease_is_30_s)
{
    scene s = scene_of_held(layout, 0);
    EXPECT_BETWEEN(ttl_of(s.lk), 15000, longest(layout, 30000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 15000, 30000 - 302);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Twice as long as its lease, rounded up. */
BOTH(layouts_lease, the_watchdog_renews)
{
    scene s = scene_of(layout, 900);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    int64_t began_ms = test_now_ms();
    EVENTUALLY(SOON, test_now_ms() - began_ms > 2100);
    EXPECT(rlock_is_held(s.lk));
    EXPECT(rlock_token(s.lk) == token);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    other_client_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(layouts_lease, string_renewal_keeps_the_value)
{
    scene s = scene_of_held(RLOCK_LAYOUT_STRING, 900);
    text value = value_of(s.sv);
    EXPECT_INT(server_int(s.sv, "PERSIST " SCENE_LOCK), 1);
    expect_renewals(&s, 2);
    expect_value(s.sv, value.is);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, 900);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(layouts_lease, timestamp_renewal_moves_the_value_on)
{
    scene s = scene_of_held(RLOCK_LAYOUT_TIMESTAMP, 900);
    text first = value_of(s.sv);
    EVENTUALLY(SOON, seconds_of(value_of(s.sv).is) >= seconds_of(first.is) + 2);
    text later = value_of(s.sv);
    EXPECT_STR(strchr(later.is, '.'), strchr(first.is, '.'));
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 59000, 62000);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    scene_stop(&s);
}

BOTH(layouts_lease, renewal_never_shortens)
{
    scene s = scene_of(layout, 600);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK); /* turns it on */
    expect_renewals(&s, 2);
    EXPECT_BETWEEN(ttl_of(s.lk), 30000, longest(layout, 60000));
    EXPECT(rlock_valid_ms(s.lk) > 30000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(layouts_lease, a_nested_lease_never_shortens)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    text value = value_of(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK);
    expect_value(s.sv, value.is);
    EXPECT_BETWEEN(ttl_of(s.lk), 60000, longest(layout, 90000));
    EXPECT(rlock_valid_ms(s.lk) > 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(layouts_lease, a_nested_lease_lengthens_and_stays_after_its_unlock)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 60000, longest(layout, 90000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 60000, 90000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(layouts_lease, extend_shortens_and_lengthens)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 90000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, 20000), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 10000, longest(layout, 20000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 10000, 20000);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 40000, longest(layout, 60000));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 40000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

BOTH(layouts_lease, extend_by_a_lease_stops_renewal)
{
    scene s = scene_of_held(layout, 300);
    EXPECT_STATUS(rlock_extend(s.lk, 400), RLOCK_OK);
    uint64_t before = stats_of(s.cl).renewals;
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).renewals, before);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

BOTH(layouts_lease, extend_to_the_watchdog_starts_renewal)
{
    scene s = scene_of(layout, 900);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(ttl_of(s.lk), 0, longest(layout, 900));
    expect_renewals(&s, 4);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

BOTH(layouts_lease, an_explicit_lease_is_never_renewed)
{
    scene s = scene_of(layout, 150);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 400), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    unlock_lost(&s);
    EVENTUALLY(SOON, !is_locked(s.lk));
    scene_stop(&s);
}

BOTH(layouts_lease, a_grant_that_comes_after_its_lease_is_undone)
{
    scene s = scene_of(layout, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1000), RLOCK_OK); /* it is connected */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    server_hold_back(s.sv, 100);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 30), RLOCK_EIO);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EVENTUALLY(SOON, !held_on_server(s.sv));
    expect_all_undone(s.sv);
    scene_stop(&s);
}

BOTH(layouts_lease, the_longest_lease_works)
{
    scene s = scene_of(layout, 0);
    other_client b = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_LEASE_MAX_MS), RLOCK_OK);
    EXPECT(rlock_valid_ms(s.lk) > RLOCK_LEASE_MAX_MS / 2);
    EXPECT(ttl_of(s.lk) > RLOCK_LEASE_MAX_MS / 2);
    EXPECT_STATUS(rlock_acquire(b.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_LEASE_MAX_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_LEASE_MAX_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(key_ttl(s.sv, SCENE_LOCK) > RLOCK_LEASE_MAX_MS / 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    other_client_leave(&b);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}
