/* What is counted, and that rlock_client_stats() tells each by its name. */
#include "hold/stats.h"

#include "test.h"

/* A number for each, no two alike. */
#define EACH(f)                                                                \
    f(acquires_contended, 2) f(releases, 4) f(renewals, 5)                     \
        f(renew_failures, 6) f(wakeups, 8) f(wakeups_futile, 9) f(passes, 10)  \
            f(reconnects, 11) f(script_loads, 12) f(held_now, 13)              \
                f(waiting_now, 14) f(wait_us_total, 15) f(hold_us_total, 16)   \
                    f(failovers, 17) f(refreshes, 18) f(redirects, 19)         \
                        f(nodes, 20) f(replica_shortfalls, 21)

TEST(stats, each_figure_is_told_by_its_name)
{
    rl_stats counted = {0};
    rlock_stats told;
    memset(&told, 0xff, sizeof told);
#define COUNT(name, n)                                                         \
    rl_add(&counted.name, 100 + (n));                                          \
    rl_add(&counted.name, (uint64_t)-100);
    EACH(COUNT)
    rl_stats_copy(&told, &counted);
#define EXPECT_TOLD(name, n) EXPECT_INT(told.name, n);
    EACH(EXPECT_TOLD)
    /* nor is one of them told as something else */
    EXPECT(told.acquires == 0 && told.acquires_failed == 0 && told.lost == 0);
}

/* Who adds a figure has to add it here, too. */
#define ONE_MORE(name, n) +1
_Static_assert(RL_COUNTERS ==
                   RL_RESULTS + RL_LOSSES + RL_WARNINGS + EACH(ONE_MORE),
               "a figure is missing in EACH");

static rlock_stats told_after(rlock_status first, rlock_status second)
{
    rl_stats counted = {0};
    rlock_stats told;
    rl_stats_acquired(&counted, "jobs", 4, first);
    rl_stats_acquired(&counted, "jobs", 4, second);
    rl_stats_copy(&told, &counted);
    return told;
}

TEST(stats, acquires_are_told_apart_from_those_that_failed)
{
    rlock_stats told = told_after(RLOCK_OK, RLOCK_TIMEOUT);
    EXPECT_INT(told.acquires, 1);
    EXPECT_INT(told.acquires_failed, 1);
}

TEST(stats, all_ways_to_fail_are_one_figure)
{
    EXPECT_INT(told_after(RLOCK_BUSY, RLOCK_EIO).acquires_failed, 2);
    EXPECT_INT(told_after(RLOCK_LOST, RLOCK_EDEADLK).acquires_failed, 2);
}

/* What an acquire that answers so is counted as. */
#define COUNTS_AS(name, status, result)                                        \
    TEST(stats, name)                                                          \
    {                                                                          \
        rl_stats counted = {0};                                                \
        rl_stats_acquired(&counted, "jobs", 4, status);                        \
        EXPECT_INT(rl_count_of(&counted.acquires[result]), 1);                 \
    }

COUNTS_AS(a_grant_is_ok, RLOCK_OK, RL_RESULT_OK)
COUNTS_AS(a_try_that_was_refused_is_busy, RLOCK_BUSY, RL_RESULT_BUSY)
COUNTS_AS(a_wait_that_ran_out_is_a_timeout, RLOCK_TIMEOUT, RL_RESULT_TIMEOUT)
COUNTS_AS(a_wait_that_was_ended_is_canceled, RLOCK_CANCELED, RL_RESULT_CANCELED)
COUNTS_AS(a_circle_is_a_deadlock, RLOCK_EDEADLK, RL_RESULT_DEADLOCK)
COUNTS_AS(a_level_of_what_is_lost_is_lost, RLOCK_LOST, RL_RESULT_LOST)
COUNTS_AS(a_server_that_is_away_is_an_error, RLOCK_EIO, RL_RESULT_ERROR)
COUNTS_AS(a_bad_argument_is_an_error, RLOCK_EINVAL, RL_RESULT_ERROR)

TEST(stats, losses_of_all_causes_are_one_figure)
{
    rl_stats counted = {0};
    rlock_stats told;
    rl_add(&counted.lost[RL_LOSS_EXPIRED], 2);
    rl_add(&counted.lost[RL_LOSS_CLOSED], 3);
    rl_stats_copy(&told, &counted);
    EXPECT_INT(told.lost, 5);
}
