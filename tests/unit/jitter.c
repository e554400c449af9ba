/* Jitter: numbers that may repeat, within their bounds. */
#include "base/random.h"
#include "test.h"

enum { DRAWS = 20000 };

TEST(jitter, below_1_is_0)
{
    for (int i = 0; i < 100; i++)
        EXPECT_INT(rl_random_below(1), 0);
}

TEST(jitter, every_number_below_the_limit_is_drawn)
{
    enum { LIMIT = 10 };
    int seen[LIMIT] = {0};
    for (int i = 0; i < DRAWS; i++) {
        int64_t n = rl_random_below(LIMIT);
        EXPECT_BETWEEN(n, 0, LIMIT - 1);
        seen[n]++;
    }
    for (int i = 0; i < LIMIT; i++)
        EXPECT_BETWEEN(seen[i], DRAWS / LIMIT / 2, DRAWS / LIMIT * 2);
}

static intptr_t first_draws(void *arg)
{
    for (int i = 0; i < 4; i++)
        ((int64_t *)arg)[i] = rl_random_below(1 << 30);
    return 0;
}

/* Threads that drew the same would all try again at the same time. */
TEST(jitter, threads_draw_numbers_of_their_own)
{
    int64_t a[4], b[4];
    test_thread *one = test_spawn(first_draws, a);
    test_thread *other = test_spawn(first_draws, b);
    test_join(one);
    test_join(other);
    EXPECT(memcmp(a, b, sizeof a) != 0);
}

static void expect_jitter(int64_t value, int64_t least, int64_t most)
{
    int64_t lowest = INT64_MAX, highest = INT64_MIN;
    for (int i = 0; i < DRAWS; i++) {
        int64_t n = rl_jitter(value);
        lowest = n < lowest ? n : lowest;
        highest = n > highest ? n : highest;
    }
    EXPECT_BETWEEN(lowest, least, least + (most - least) / 20);
    EXPECT_BETWEEN(highest, most - (most - least) / 20, most);
}

TEST_CASE(jitter, is_a_quarter_either_way, expect_jitter(2000, 1500, 2500))
TEST_CASE(jitter, of_a_small_value_reaches_both_ends, expect_jitter(4, 3, 5))
TEST_CASE(jitter, of_a_long_time_does_not_overflow,
          expect_jitter(1000000000, 750000000, 1250000000))
TEST_CASE(jitter, what_has_no_quarter_has_no_jitter, expect_jitter(3, 3, 3))
TEST_CASE(jitter, nothing_has_no_jitter, expect_jitter(0, 0, 0))
TEST_CASE(jitter, a_time_that_is_over_has_no_jitter, expect_jitter(-8, -8, -8))
