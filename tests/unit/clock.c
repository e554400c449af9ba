/* Deadlines: the margin of a lease, and that no duration overflows. */
#include <limits.h>

#include "base/clock.h"
#include "test.h"

TEST(clock, runs_forward)
{
    int64_t before = rl_now_us();
    test_pause_ms(5);
    EXPECT_BETWEEN(rl_now_us() - before, 5000, 60000000);
}

#define AFTER(name, value, wanted)                                             \
    TEST_CASE(clock, after_##name, EXPECT(value == wanted))

AFTER(so_many_us, rl_after_us(100, 23), 123)
AFTER(so_many_ms, rl_after_ms(100, 23), 23100)
AFTER(no_time_is_now, rl_after_ms(100, 0), 100)
AFTER(a_time_that_is_over_is_in_the_past, rl_after_us(100, -23), 77)
AFTER(a_day, rl_after_ms(0, 86400000), INT64_C(86400000000))
AFTER(the_longest_time_that_ends, rl_after_us(1, RL_NEVER - 2), RL_NEVER - 1)
AFTER(the_shortest_endless_time, rl_after_us(1, RL_NEVER - 1), RL_NEVER)
AFTER(any_negative_ms_is_never, rl_after_ms(100, -7), RL_NEVER)
AFTER(the_end_of_time_is_never, rl_after_us(RL_NEVER, 0), RL_NEVER)

TEST_CASE(clock, the_earlier_of_two, EXPECT_INT(rl_min(-3, 4), -3))
TEST_CASE(clock, the_later_of_two, EXPECT_INT(rl_max(-3, 4), 4))
TEST_CASE(clock, never_is_later_than_all, EXPECT(rl_max(RL_NEVER, 1) > 1))
TEST_CASE(clock, never_is_no_reason_to_wait_longer,
          EXPECT_INT(rl_min(RL_NEVER, 1), 1))

TEST(clock, never_runs_back)
{
    int64_t last = rl_now_us();
    for (int i = 0; i < 10000; i++) {
        int64_t now = rl_now_us();
        EXPECT(now >= last);
        last = now;
    }
}

TEST(clock, after_saturates)
{
    const int64_t now = 1000000;
    EXPECT(rl_after_us(now, RL_NEVER) == RL_NEVER);
    EXPECT(rl_after_us(now, RL_NEVER - now) == RL_NEVER);
    EXPECT(rl_after_us(now, RL_NEVER - now - 1) == RL_NEVER - 1);
    EXPECT(rl_after_ms(now, INT64_MAX) == RL_NEVER);
    EXPECT(rl_after_ms(now, INT64_MAX / 1000) == RL_NEVER);
    EXPECT(rl_after_us(RL_NEVER, 1) == RL_NEVER);
    EXPECT(rl_after_ms(RL_NEVER, 1) == RL_NEVER);
}

TEST(clock, forever_is_never_over)
{
    EXPECT(rl_after_ms(5, RLOCK_FOREVER) == RL_NEVER);
}

TEST(clock, a_lease_ends_a_hundredth_and_2_ms_early)
{
    EXPECT_INT(rl_lease_deadline(0, 30000), 30000000 - 300000 - 2000);
    EXPECT_INT(rl_lease_deadline(777, 100), 777 + 100000 - 1000 - 2000);
    EXPECT_INT(rl_lease_deadline(777, 1000), 777 + 1000000 - 10000 - 2000);
}

TEST(clock, a_lease_of_the_margins_length_is_over_at_once)
{
    EXPECT(rl_lease_deadline(5000, 1) <= 5000);
    EXPECT(rl_lease_deadline(5000, 2) <= 5000);
    EXPECT(rl_lease_deadline(5000, 3) > 5000);
}

/* The margin is for clocks that drift: it never makes a lease longer. */
TEST(clock, a_longer_lease_ends_later_and_never_late)
{
    int64_t last = rl_lease_deadline(0, 1);
    for (int64_t ms = 2; ms < 100000; ms += 7) {
        int64_t end = rl_lease_deadline(0, ms);
        EXPECT(end > last && end < ms * 1000);
        last = end;
    }
}

TEST(clock, the_longest_lease_does_not_overflow)
{
    int64_t year_us = INT64_C(365) * 24 * 3600 * 1000000;
    int64_t end = rl_lease_deadline(100 * year_us, RLOCK_LEASE_MAX_MS);
    EXPECT(end > RLOCK_LEASE_MAX_MS / 100 * 99 * 1000);
}

TEST(clock, poll_time_is_rounded_up_and_never_negative)
{
    EXPECT_INT(rl_poll_ms(rl_now_us() - 1), 0);
    EXPECT_INT(rl_poll_ms(0), 0);
    EXPECT_INT(rl_poll_ms(RL_NEVER), INT_MAX);
    EXPECT_BETWEEN(rl_poll_ms(rl_now_us() + 1000000), 1, 1001);
    int64_t deadline = rl_now_us() + 500;
    int ms = rl_poll_ms(deadline);
    EXPECT(ms == 1 || rl_now_us() >= deadline);
}
