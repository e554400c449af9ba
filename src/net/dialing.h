/*
 * A connection that is being made on a thread of its own, for one that has to
 * go on meanwhile, as the loop: a name server, a black hole, or a server that
 * hangs, keeps it from nothing. It can be left at any time, and then ends soon.
 */
#ifndef RL_NET_DIALING_H
#define RL_NET_DIALING_H

#include "base/os.h"
#include "net/dial.h"

typedef struct rl_dialing {
    rl_dialer dialer; /* the owner's, unless it is under way */
    rl_thread thread; /* started: it has begun, and not been ended */
    int64_t until_us;
    const rl_signal *signal; /* raised when it is over; the owner's */
    atomic_bool over;
    int64_t began_us, took_us; /* this and the next two: when it is over */
    rl_conn *conn;
    rl_fault fault;
    rl_mutex mutex; /* guards what follows */
    int fd;         /* what it is waiting on; -1: nothing */
    bool off; /* it was left; changed by the owner only, who just reads it */
} rl_dialing;

/* What the dialer is to do, is for the owner to set. */
void rl_dialing_init(rl_dialing *d);
/* It is not under way; or, forked, in a child: closes the descriptor. */
void rl_dialing_fini(rl_dialing *d, bool forked);

/* False: there is no thread for it. */
bool rl_dialing_begin(rl_dialing *d, int64_t until_us, const rl_signal *signal);

static inline bool rl_dialing_is_under_way(const rl_dialing *d)
{
    return d->thread.started;
}

/* Is there something to be ended, for who still wants it? */
static inline bool rl_dialing_is_over(const rl_dialing *d)
{
    return d->thread.started && !d->off && atomic_load(&d->over);
}

/* Ends it, when it is over. NULL: it has failed, as d->fault says. */
rl_conn *rl_dialing_end(rl_dialing *d);

/* What comes of it is not wanted. It stays under way until it is reaped. No
   effect if it is not. Does not block. */
void rl_dialing_leave(rl_dialing *d);

/* Ends what has been left, if it is over. True: it was. */
bool rl_dialing_reap(rl_dialing *d);

/* The same, whether it is over or not: blocks until it is. */
void rl_dialing_call_off(rl_dialing *d);

#endif
