/*
 * The doorbell: one thread with one subscriber connection, started with the
 * first wait. It subscribes once, to this client's own channel, and stays
 * subscribed; a release that finds this client first in a lock's queue
 * publishes the lock's name there. It is a thread of its own because a ring
 * must not wait for anything else that a client does.
 *
 * A ring may be lost (while the connection is replaced, say), so nothing
 * relies on it: waiters look by themselves from time to time, and whenever the
 * doorbell has connected again all of them are woken to look.
 */
#ifndef RL_RUN_DOORBELL_H
#define RL_RUN_DOORBELL_H

#include <stdatomic.h>

#include "base/os.h"
#include "base/thread.h"
#include "route/source.h"
#include "run/bells.h"
#include "run/channels.h"

struct rl_node;

typedef struct rl_doorbell {
    atomic_bool started, stopping;
    atomic_bool hurry; /* what it pauses for may be over */
    rl_mutex starting; /* guards thread and signal while they are made and
                          unmade, and whoever raises that */
    rl_thread thread;
    rl_signal signal; /* ends the thread's poll */
    rl_channels channels;
    rl_bells bells; /* of a cluster's client, instead of the one */
    /* The thread's, about its connection: */
    bool subscribed, poked;
    bool refused, for_good; /* the subscription */
} rl_doorbell;

bool rl_doorbell_init(rl_doorbell *d); /* false: no memory */
void rl_doorbell_fini(rl_doorbell *d, bool forked);

/*
 * Starts it if it does not run. When that fails, waiters poll. The waiters
 * that queue themselves do so only after it has come up, which wakes them.
 */
void rl_doorbell_start(struct rl_node *node);
void rl_doorbell_stop(struct rl_node *node);
/* The same; it may be started again. */
void rl_doorbell_dismiss(struct rl_node *node);

/* Starts it, for somebody who waits for this name. */
void rl_doorbell_listen(struct rl_node *node, const rl_target *what);

/* Wakes its thread, if there is one. */
void rl_doorbell_wake(struct rl_node *node);

/* There is another server: a pause ends. */
void rl_doorbell_hurry(struct rl_node *node);

/*
 * Somebody has begun to wait for a name, or has ceased to: the thread looks
 * which of Redisson's channels are to be listened on, if any.
 */
void rl_doorbell_poke(struct rl_node *node);

#endif
