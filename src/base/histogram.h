/*
 * How often something has taken how long. The buckets are the same everywhere,
 * 1, 2, 5 from 50 us to 300 s, so that those of many processes can be added up.
 * Any thread records; nothing here waits.
 */
#ifndef RL_BASE_HISTOGRAM_H
#define RL_BASE_HISTOGRAM_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RL_BUCKETS 22

typedef struct rl_histogram {
    /* n[i]: not above bound i, and above the one before; then the rest. */
    atomic_uint_fast64_t n[RL_BUCKETS + 1];
    atomic_uint_fast64_t sum_us;
} rl_histogram;

extern const int64_t rl_bounds_us[RL_BUCKETS];

/* In which bucket it is; RL_BUCKETS: it is above all bounds. */
size_t rl_bucket(int64_t us);

/* Below 0 is 0. */
void rl_histogram_record(rl_histogram *h, int64_t us);

/* Those that are in it when it is read. */
void rl_histogram_copy(rl_histogram *to, const rl_histogram *from);

#endif
