/*
 * The connections of a pool that threads share (net/mux.h): who has one
 * short exchange with the server takes a port at one of them, mostly at once,
 * where rl_pool_borrow() would wait until a connection is free.
 *
 * A mux has a borrowed connection, which it keeps when nobody has a port any
 * more: most threads come back soon. Somebody else who wants one gets it.
 */
#ifndef RL_ROUTE_MUX_SET_H
#define RL_ROUTE_MUX_SET_H

#include "net/mux.h"
#include "route/pool.h"

typedef struct rl_mux_set {
    rl_pool *pool;     /* fixed, set by who has made it */
    rl_mutex mutex;    /* guards all below */
    atomic_uint crowd; /* who has a port; not guarded */
    rl_cond opened;    /* an opening has come to its end */
    rl_list open;  /* of rl_mux: which give out ports; nobody may have one */
    size_t n;      /* how many */
    rl_list spare; /* of rl_mux: without a connection */
    bool opening;
    pthread_t opener;  /* who does */
    unsigned openings; /* that have ended */
    rl_fault fault;    /* of the last one; status RLOCK_OK: none */
    int64_t until_us;  /* how much time it had */
} rl_mux_set;

void rl_mux_set_init(rl_mux_set *p);

/* Connections that nobody has a port at are given back: of a set (void *), for
   its pool. Any thread. */
void rl_mux_set_give_back(void *set);

/* And what else is kept for who comes later. */
void rl_mux_set_trim(rl_mux_set *p);

/* Nobody has a port. forked: in a child that inherited it. */
void rl_mux_set_fini(rl_mux_set *p, bool forked);

/*
 * A port, with a connection that is open. NULL: there is none, and *f says why.
 * Blocks until the deadline; now_us: of before.
 */
rl_port *rl_mux_set_join(rl_mux_set *p, int64_t deadline_us, int64_t now_us,
                         rl_fault *f);

void rl_mux_set_leave(rl_mux_set *p, rl_port *s);

#endif
