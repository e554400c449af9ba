/*
 * A bucket is found without a loop: between two powers of two there is one bound
 * at most, so the length of the number leaves two buckets, and one comparison
 * says which.
 */
#include "base/histogram.h"

#define MS INT64_C(1000)
#define S  (1000 * MS)

const int64_t rl_bounds_us[RL_BUCKETS] = {
    50,      100,     200,      500,      1 * MS,   2 * MS, 5 * MS, 10 * MS,
    20 * MS, 50 * MS, 100 * MS, 200 * MS, 500 * MS, 1 * S,  2 * S,  5 * S,
    10 * S,  20 * S,  50 * S,   100 * S,  200 * S,  300 * S};

#define LONGEST 29 /* bits of the last bound */

/* Of numbers of so many bits, the first bucket that there can be. */
static const uint8_t first[LONGEST + 1] = {
    0, 0, 0,  0,  0,  0,  0,  1,  2,  3,  4,  5,  6,  6,  7,
    8, 9, 10, 11, 12, 13, 14, 15, 15, 16, 17, 18, 19, 20, 21};

size_t rl_bucket(int64_t us)
{
    if (us <= 0)
        return 0;
    int bits = 64 - __builtin_clzll((unsigned long long)us);
    if (bits > LONGEST)
        return RL_BUCKETS;
    size_t i = first[bits];
    return i + (us > rl_bounds_us[i]);
}

static void add(atomic_uint_fast64_t *to, uint64_t n)
{
    atomic_fetch_add_explicit(to, n, memory_order_relaxed);
}

void rl_histogram_record(rl_histogram *h, int64_t us)
{
    add(&h->n[rl_bucket(us)], 1);
    add(&h->sum_us, (uint64_t)(us > 0 ? us : 0));
}

void rl_histogram_copy(rl_histogram *to, const rl_histogram *from)
{
    for (size_t i = 0; i <= RL_BUCKETS; i++)
        to->n[i] = atomic_load_explicit(&from->n[i], memory_order_relaxed);
    to->sum_us = atomic_load_explicit(&from->sum_us, memory_order_relaxed);
}
