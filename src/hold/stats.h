/*
 * What a client counts, as every thread may change it: counters, which who
 * tells them goes through as an array; and, if the program wants that, how long
 * things have taken.
 */
#ifndef RL_HOLD_STATS_H
#define RL_HOLD_STATS_H

#include <stdatomic.h>
#include <stddef.h>

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

/* What the program is warned of. */
typedef enum rl_warning {
    RL_WARNED_HELD,   /* held for too long */
    RL_WARNED_WAIT,   /* waits for too long */
    RL_WARNED_RENEWAL /* a renewal is late */
} rl_warning;

#define RL_WARNINGS (RL_WARNED_RENEWAL + 1)

/* What may be timed. */
typedef enum rl_time {
    RL_TIME_WAIT,   /* an acquire that succeeded, from its call on */
    RL_TIME_HOLD,   /* from the grant to the end, however it ends */
    RL_TIME_CALL,   /* of a server, to its answer */
    RL_TIME_RENEWAL /* from when it was due until it was confirmed */
} rl_time;

#define RL_TIMES (RL_TIME_RENEWAL + 1)

struct rl_histogram;

typedef struct rl_stats {
    rl_counter acquires[RL_RESULTS], acquires_contended, releases;
    rl_counter renewals, renew_failures, lost[RL_LOSSES];
    rl_counter wakeups, wakeups_futile, passes, reconnects, script_loads;
    rl_counter failovers, refreshes, redirects, nodes, replica_shortfalls;
    rl_counter warned[RL_WARNINGS];
    rl_counter held_now, waiting_now, wait_us_total, hold_us_total;
    struct rl_histogram *times; /* fixed; RL_TIMES of them; NULL: none */
} rl_stats;

#define RL_COUNTERS (offsetof(rl_stats, times) / sizeof(rl_counter))

/* Before anything is counted: how long things take is, too. False: out of
   memory. */
bool rl_stats_time(rl_stats *s);
void rl_stats_fini(rl_stats *s);

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

void rl_stats_record(rl_stats *s, rl_time what, int64_t us);

/* It has taken so long; without effect, unless that is timed. */
static inline void rl_stats_took(rl_stats *s, rl_time what, int64_t us)
{
    if (s->times)
        rl_stats_record(s, what, us);
}

static inline rl_result rl_result_of(rlock_status status)
{
    switch (status) {
    case RLOCK_OK:
        return RL_RESULT_OK;
    case RLOCK_BUSY:
        return RL_RESULT_BUSY;
    case RLOCK_TIMEOUT:
        return RL_RESULT_TIMEOUT;
    case RLOCK_CANCELED:
        return RL_RESULT_CANCELED;
    case RLOCK_EDEADLK:
        return RL_RESULT_DEADLOCK;
    case RLOCK_LOST:
        return RL_RESULT_LOST;
    default:
        return RL_RESULT_ERROR;
    }
}

/* A call to acquire ends so. */
static inline void rl_stats_acquired(rl_stats *s, rlock_status status)
{
    rl_add(&s->acquires[rl_result_of(status)], 1);
}

/* Something was held for so long. */
static inline void rl_stats_held(rl_stats *s, int64_t us)
{
    rl_add(&s->hold_us_total, (uint64_t)us);
    rl_stats_took(s, RL_TIME_HOLD, us);
}

void rl_stats_copy(rlock_stats *to, const rl_stats *from);

#endif
