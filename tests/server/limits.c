/* Leases and waits of any size, and as many levels as can be counted. */
#include "client.h"

TEST(limits, fault_101_leases_out_of_range_are_refused_unsent)
{
    static const int64_t leases[] = {-1, INT64_MIN, RLOCK_LEASE_MAX_MS + 1,
                                     INT64_MAX};
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    long long before = commands(s.sv);
    for (size_t i = 0; i < sizeof leases / sizeof *leases; i++) {
        EXPECT_STATUS(rlock_acquire(s.lk, 0, leases[i]), RLOCK_EINVAL);
        EXPECT_STATUS(rlock_extend(s.lk, leases[i]), RLOCK_EINVAL);
    }
    EXPECT_INT(commands(s.sv) - before, 1);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_CONTAINS(message(), "lease");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(limits, fault_103_negative_waits_are_refused_unsent)
{
    scene s = scene_start(0, 0);
    long long before = commands(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, -2, 1000), RLOCK_EINVAL);
    EXPECT_CONTAINS(message(), "wait");
    EXPECT_STATUS(rlock_acquire(s.lk, INT64_MIN, 1000), RLOCK_EINVAL);
    EXPECT_INT(commands(s.sv) - before, 1);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_acquire(s.lk, RLOCK_FOREVER, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK); /* the control */
    scene_stop(&s);
}

static void expect_lease_works(int64_t lease_ms)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, lease_ms), RLOCK_OK);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), lease_ms / 2, lease_ms);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL job"), lease_ms / 2, lease_ms);
    EXPECT_STATUS(rlock_extend(s.lk, lease_ms), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, lease_ms), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS job"), 0);
    scene_stop(&s);
}

TEST(limits, fault_101_the_longest_lease_works)
{
    expect_lease_works(60000); /* the control */
    expect_lease_works(RLOCK_LEASE_MAX_MS);
}

/* A wait that lasts until the lock is released. */
static void expect_waits(int64_t wait_ms)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    waiter *w = waiter_start(s.lk, wait_ms, RLOCK_LEASE_MAX_MS);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

TEST(limits, fault_103_the_longest_wait_waits)
{
    expect_waits(SOON); /* the control */
    expect_waits(INT64_MAX);
}

TEST(limits, fault_103_the_longest_wait_is_not_waited_for_a_free_lock)
{
    scene s = scene_start(0, 0);
    /* The first is the control. */
    static const int64_t waits_ms[] = {SOON, INT64_MAX, INT64_MAX - 1};
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(rlock_acquire(s.lk, waits_ms[i], 60000), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    scene_stop(&s);
}

TEST(limits, fault_103_a_wait_of_zero_is_one_try)
{
    scene s = scene_start(0, 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock *lk = test_lock(other, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_load_scripts(s.sv);
    long long before = server_calls(s.sv, "evalsha");
    EXPECT_STATUS(rlock_acquire(lk, 0, 1000), RLOCK_BUSY);
    EXPECT_INT(server_calls(s.sv, "evalsha") - before, 1);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_queue:{job}"), 0);
    before = server_calls(s.sv, "evalsha");
    EXPECT_STATUS(rlock_acquire(lk, 100, 1000), RLOCK_TIMEOUT);
    EXPECT(server_calls(s.sv, "evalsha") - before > 1); /* the control */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(limits, many_levels_are_counted)
{
    scene s = scene_start(0, 0);
    for (int level = 1; level <= 500; level++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        EXPECT_INT(rlock_hold_count(s.lk), level);
    }
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(s.lk, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.count, 500);
    for (int level = 500; level >= 1; level--)
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS job"), 0);
    scene_stop(&s);
}
