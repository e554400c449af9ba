/*
 * The connections of a source that threads share (net/mux.h): who has one
 * short exchange with the server sits down at one of them, mostly at once,
 * where rl_source_borrow() would wait until a connection is free.
 *
 * A share has a borrowed connection only while somebody sits there, so that
 * those who need one for themselves get it from the same pool.
 */
#ifndef RL_ROUTE_MUX_SET_H
#define RL_ROUTE_MUX_SET_H

#include "net/mux.h"
#include "route/source.h"

typedef struct rl_shares {
    rl_source *source; /* fixed, set by who has made both */
    rl_mutex mutex;    /* guards all below */
    atomic_uint crowd; /* who sits anywhere; not guarded */
    rl_cond opened;    /* an opening has come to its end */
    rl_list open;      /* of rl_share: at which one may sit down */
    size_t n;          /* how many */
    rl_list spare;     /* of rl_share: without a connection */
    bool opening;
    pthread_t opener;  /* who does */
    unsigned openings; /* that have ended */
    rl_fault fault;    /* of the last one; status RLOCK_OK: none */
    int64_t until_us;  /* how much time it had */
} rl_shares;

void rl_shares_init(rl_shares *p);

/* What is kept for who comes later is given back. */
void rl_shares_trim(rl_shares *p);

/* Nobody sits anywhere. forked: in a child that inherited it. */
void rl_shares_fini(rl_shares *p, bool forked);

/*
 * A seat, with a connection that is open. NULL: there is none, and *f says why.
 * Blocks until the deadline.
 */
rl_seat *rl_shares_sit(rl_shares *p, int64_t deadline_us, rl_fault *f);

void rl_shares_leave(rl_shares *p, rl_seat *s);

#endif
