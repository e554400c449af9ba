/* How quick a server is, and how long it is waited for. */
#include "op/rtt.h"

#include "test.h"

#define MOST_US INT64_C(200000)

TEST(rtt, a_server_that_was_not_measured_gets_all_the_time)
{
    rl_rtt p = {0};
    EXPECT_INT(rl_rtt_limit_us(&p, MOST_US), MOST_US);
}

/* The first round trip, with half of it as its deviation, four times. */
TEST(rtt, the_first_measurement_counts_whole)
{
    rl_rtt p = {0};
    rl_rtt_note(&p, 10000);
    EXPECT_INT(rl_rtt_limit_us(&p, MOST_US), 4 * (10000 + 4 * 5000));
}

TEST(rtt, a_steady_server_is_waited_for_four_round_trips)
{
    rl_rtt p = {0};
    for (int i = 0; i < 100; i++)
        rl_rtt_note(&p, 10000);
    EXPECT_BETWEEN(rl_rtt_limit_us(&p, MOST_US), 40000, 40100);
}

TEST(rtt, a_server_that_is_now_and_then_slow_gets_more_time)
{
    rl_rtt steady = {0}, moody = {0};
    for (int i = 0; i < 100; i++) {
        rl_rtt_note(&steady, 5000);
        rl_rtt_note(&moody, i % 2 ? 1000 : 9000);
    }
    EXPECT(rl_rtt_limit_us(&moody, MOST_US) >
           2 * rl_rtt_limit_us(&steady, MOST_US));
}

TEST(rtt, nobody_gets_less_than_5_ms)
{
    rl_rtt p = {0};
    EXPECT_INT(rl_rtt_limit_us(&p, 100), 5000);
    for (int i = 0; i < 100; i++)
        rl_rtt_note(&p, 50);
    EXPECT_INT(rl_rtt_limit_us(&p, MOST_US), 5000);
}

TEST(rtt, nobody_gets_more_than_the_given_time)
{
    rl_rtt p = {0};
    rl_rtt_note(&p, 1000000);
    EXPECT_INT(rl_rtt_limit_us(&p, MOST_US), MOST_US);
}

/* The clock may not have moved at all between asking and answering. */
TEST(rtt, a_round_trip_of_no_time_counts_as_measured)
{
    rl_rtt p = {0};
    rl_rtt_note(&p, 0);
    EXPECT_INT(rl_rtt_limit_us(&p, MOST_US), 5000);
}

TEST(rtt, no_answer_is_odd_after_four_round_trips_or_the_given_time)
{
    rl_rtt p = {0};
    EXPECT_INT(rl_rtt_odd_us(&p, MOST_US), MOST_US);
    rl_rtt_note(&p, 1000);
    EXPECT_INT(rl_rtt_odd_us(&p, MOST_US), MOST_US);
    for (int i = 0; i < 100; i++)
        rl_rtt_note(&p, 300000);
    EXPECT_BETWEEN(rl_rtt_odd_us(&p, MOST_US), 1190000, 1200000);
}
