/* The source of connections to one server. */
#ifndef RL_ROUTE_POOL_H
#define RL_ROUTE_POOL_H

#include "base/thread.h"
#include "net/dial.h"
#include "route/source.h"

/*
 * Opens nothing yet. The pool takes over *dialer (its URI), also when it
 * fails. limit: most connections borrowed at a time. NULL: out of memory.
 */
rl_source *rl_pool_new(rl_dialer *dialer, unsigned limit);

/* --- for pool.c, which lends connections, and pool_open.c, which makes and
   closes them -------------------------------------------------------------- */

typedef struct rl_pool {
    rl_source source;
    rl_dialer dialer;
    unsigned limit;
    rl_mutex mutex;  /* guards all below */
    rl_list idle;    /* of rl_conn, the one used last first */
    rl_list open;    /* of rl_conn: idle, borrowed and opened */
    rl_list waiters; /* of rl_claim, who came first first */
    unsigned places; /* of the limit that are taken */
    unsigned broken; /* closed in trouble and not replaced yet */
    int64_t last_trouble_us;
    uint64_t nth; /* connections to a master before are of no use */
    struct rl_pool *next_left_behind; /* in a forked child */
} rl_pool;

static inline rl_pool *rl_pool_of(rl_source *s)
{
    return RL_CONTAINER(s, rl_pool, source);
}

/* Its dialer tells it of every connection. */
void rl_pool_watch(rl_pool *p);

/* See rl_source_ops. */
rlock_status rl_pool_open(rl_source *s, int64_t deadline_us, rl_conn **out,
                          rl_fault *f);
void rl_pool_close(rl_source *s, rl_conn *c);
void rl_pool_forsake(rl_source *s, uint64_t nth);
void rl_pool_free(rl_source *s, bool forked);

#endif
