/* Which bucket a time is in, and what is recorded. */
#include "base/histogram.h"

#include "base/clock.h"
#include "base/random.h"

#include "test.h"

/* As anybody would look for it. */
static size_t by_a_loop(int64_t us)
{
    size_t i = 0;
    while (i < RL_BUCKETS && us > rl_bounds_us[i])
        i++;
    return i;
}

TEST(histogram, bounds_are_1_2_5_from_50_us_to_300_s)
{
    EXPECT_INT(rl_bounds_us[0], 50);
    EXPECT_INT(rl_bounds_us[RL_BUCKETS - 1], 300000000);
    for (size_t i = 3; i < RL_BUCKETS - 1; i++)
        EXPECT_INT(rl_bounds_us[i], 10 * rl_bounds_us[i - 3]);
}

TEST(histogram, a_bound_is_in_its_bucket_and_what_is_above_in_the_next)
{
    for (size_t i = 0; i < RL_BUCKETS; i++) {
        EXPECT_INT(rl_bucket(rl_bounds_us[i]), i);
        EXPECT_INT(rl_bucket(rl_bounds_us[i] + 1), i + 1);
    }
}

TEST(histogram, what_took_no_time_is_in_the_first)
{
    EXPECT_INT(rl_bucket(0), 0);
    EXPECT_INT(rl_bucket(-1), 0);
    EXPECT_INT(rl_bucket(INT64_MIN), 0);
}

TEST(histogram, what_took_for_ever_is_behind_the_last)
{
    EXPECT_INT(rl_bucket(RL_NEVER), RL_BUCKETS);
    EXPECT_INT(rl_bucket(INT64_C(1) << 29), RL_BUCKETS);
}

TEST(histogram, the_bucket_is_what_a_loop_would_find)
{
    for (int64_t bit = 1; bit < INT64_C(1) << 31; bit *= 2)
        for (int64_t us = bit - 1; us <= bit + 1; us++)
            EXPECT_INT(rl_bucket(us), by_a_loop(us));
    for (int i = 0; i < 100000; i++) {
        int64_t us = rl_random_below(INT64_C(1) << (i % 31));
        EXPECT_INT(rl_bucket(us), by_a_loop(us));
    }
}

TEST(histogram, what_is_recorded_is_counted_and_summed)
{
    rl_histogram h = {.sum_us = 0}, copy;
    rl_histogram_record(&h, 50);
    rl_histogram_record(&h, 51);
    rl_histogram_record(&h, -7);
    rl_histogram_record(&h, 400000000);
    rl_histogram_copy(&copy, &h);
    EXPECT_INT(copy.n[0], 2);
    EXPECT_INT(copy.n[1], 1);
    EXPECT_INT(copy.n[RL_BUCKETS], 1);
    EXPECT_INT(copy.sum_us, 400000101);
}

enum { THREADS = 8, TIMES = 20000 };

static intptr_t record_many(void *h)
{
    for (int i = 0; i < TIMES; i++)
        rl_histogram_record(h, i % 500 + 1);
    return 0;
}

/* Whoever reads meanwhile sees no more than there was. */
TEST(histogram, nothing_is_lost_among_threads)
{
    rl_histogram h = {.sum_us = 0}, copy;
    test_thread *t[THREADS];
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(record_many, &h);
    for (uint64_t n = 0, last = 0; n < THREADS * TIMES; last = n) {
        rl_histogram_copy(&copy, &h);
        n = 0;
        for (size_t i = 0; i <= RL_BUCKETS; i++)
            n += copy.n[i];
        EXPECT(n >= last && n <= THREADS * TIMES);
    }
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    rl_histogram_copy(&copy, &h);
    EXPECT_INT(copy.sum_us, THREADS * (TIMES / 500) * (500 * 501 / 2));
    EXPECT_INT(copy.n[0], THREADS * TIMES / 10);
}
