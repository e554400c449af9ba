/*
 * What a client counts, as every thread may change it: counters, which who
 * tells them goes through as an array; and, if the program wants that, how long
 * things have taken, and what there was of some names: what reads figures keeps
 * each name for ever.
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

#define RL_TIMES       (RL_TIME_RENEWAL + 1)
#define RL_NAMED_TIMES (RL_TIME_HOLD + 1) /* these may be told by name, too */

struct rl_histogram;
struct rl_named;

typedef struct rl_stats {
    /* May be told by name, too: */
    rl_counter acquires[RL_RESULTS], acquires_contended, releases;
    rl_counter lost[RL_LOSSES], held_now, waiting_now;
    rl_counter wait_us_total, hold_us_total;
    /* Of the client as a whole: */
    rl_counter renewals, renew_failures;
    rl_counter wakeups, wakeups_futile, passes, reconnects, script_loads;
    rl_counter failovers, refreshes, redirects, nodes, replica_shortfalls;
    rl_counter warned[RL_WARNINGS];
    struct rl_histogram *times; /* fixed; RL_TIMES of them; NULL: none */
    struct rl_named *named;     /* fixed; NULL: nothing is told by name */
} rl_stats;

#define RL_COUNTERS       (offsetof(rl_stats, times) / sizeof(rl_counter))
#define RL_NAMED_COUNTERS (offsetof(rl_stats, renewals) / sizeof(rl_counter))
#define RL_NAMES_MAX      1000

/* Before anything is counted: how long things take is, too; or what there is
   of so many names, RL_NAMES_MAX at most. False: out of memory. */
bool rl_stats_time(rl_stats *s);
bool rl_stats_name(rl_stats *s, size_t names);

/* forked: in a child, whose mutexes are left alone. */
void rl_stats_fini(rl_stats *s, bool forked);

static inline void rl_add(rl_counter *c, uint64_t n)
{
    atomic_fetch_add_explicit(c, n, memory_order_relaxed);
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

/* --- of a lock, which has a name (name_stats.c) --------------------------- */

void rl_stats_add_named(rl_stats *s, const rl_counter *what, const char *name,
                        size_t len, int64_t n);
void rl_stats_record_named(rl_stats *s, rl_time what, const char *name,
                           size_t len, int64_t us);

/* There is so much more, or less, of this, a counter of s that may be told by
   name. */
static inline void rl_stats_add(rl_stats *s, rl_counter *what, const char *name,
                                size_t len, int64_t n)
{
    rl_add(what, (uint64_t)n);
    if (s->named)
        rl_stats_add_named(s, what, name, len, n);
}

/* A call to acquire ends so. */
static inline void rl_stats_acquired(rl_stats *s, const char *name, size_t len,
                                     rlock_status status)
{
    rl_stats_add(s, &s->acquires[rl_result_of(status)], name, len, 1);
}

/* It was granted so long after its call. */
static inline void rl_stats_granted(rl_stats *s, const char *name, size_t len,
                                    int64_t us)
{
    rl_stats_took(s, RL_TIME_WAIT, us);
    if (s->named && s->times)
        rl_stats_record_named(s, RL_TIME_WAIT, name, len, us);
}

/* It was held for so long. */
static inline void rl_stats_held(rl_stats *s, const char *name, size_t len,
                                 int64_t us)
{
    rl_stats_add(s, &s->hold_us_total, name, len, us);
    rl_stats_took(s, RL_TIME_HOLD, us);
    if (s->named && s->times)
        rl_stats_record_named(s, RL_TIME_HOLD, name, len, us);
}

void rl_stats_copy(rlock_stats *to, const rl_stats *from);

#endif
