/*
 * What a client counts, as every thread may change it. There is nothing in it
 * but counters, so who tells them can go through them as an array.
 */
#ifndef RL_HOLD_STATS_H
#define RL_HOLD_STATS_H

#include <stdatomic.h>

#include <rlock/client.h>

typedef atomic_uint_fast64_t rl_counter;

/* What became of an acquire. */
typedef enum rl_result {
    RL_RESULT_OK,
    RL_RESULT_BUSY,
    RL_RESULT_TIMEOUT,
    RL_RESULT_CANCELED,
    RL_RESULT_DEADLOCK,
    RL_RESULT_LOST,  /* one level more of what was lost */
    RL_RESULT_ERROR, /* anything else */
    RL_RESULTS
} rl_result;

/* Why a hold was lost. */
typedef enum rl_loss {
    RL_LOSS_NONE,
    RL_LOSS_EXPIRED,  /* its local deadline passed */
    RL_LOSS_GONE,     /* the server no longer knows it */
    RL_LOSS_FOREIGN,  /* the key is no lock any more */
    RL_LOSS_TOO_LONG, /* max_hold_ms */
    RL_LOSS_GROUP,    /* too few of its group are left */
    RL_LOSS_CLOSED    /* its client was closed */
} rl_loss;

#define RL_LOSSES (RL_LOSS_CLOSED + 1)

typedef struct rl_stats {
    rl_counter acquires[RL_RESULTS], acquires_contended, releases;
    rl_counter renewals, renew_failures, lost[RL_LOSSES];
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

static inline uint64_t rl_count_of(const rl_counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

/* A call to acquire ends so. */
void rl_stats_acquired(rl_stats *s, rlock_status status);

void rl_stats_copy(rlock_stats *to, const rl_stats *from);

#endif
