/* The counters of rlock_stats, as every thread may change them. */
#ifndef RL_HOLD_STATS_H
#define RL_HOLD_STATS_H

#include <stdatomic.h>

#include <rlock/client.h>

typedef atomic_uint_fast64_t rl_counter;

typedef struct rl_stats {
    rl_counter acquires, acquires_contended, acquires_failed, releases;
    rl_counter renewals, renew_failures, lost;
    rl_counter wakeups, wakeups_futile, passes, reconnects, script_loads;
    rl_counter failovers, refreshes, redirects, nodes, replica_shortfalls;
    rl_counter held_now, waiting_now, wait_us_total, hold_us_total;
} rl_stats;

static inline void rl_add(rl_counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
}

static inline void rl_sub(rl_counter *c, uint64_t n)
{
    atomic_fetch_sub_explicit(c, n, memory_order_relaxed);
}

void rl_stats_copy(rlock_stats *to, rl_stats *from);

#endif
