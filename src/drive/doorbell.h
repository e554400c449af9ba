/*
 * The doorbell: one thread with one subscriber connection, started with the
 * first wait. It subscribes once, to this client's own channel, and stays
 * subscribed; a release that finds this client first in a lock's queue
 * publishes the lock's name there.
 *
 * A ring may be lost (while the connection is replaced, say), so nothing
 * relies on it: waiters look by themselves from time to time, and whenever the
 * doorbell has connected again all of them are woken to look.
 */
#ifndef RL_DRIVE_DOORBELL_H
#define RL_DRIVE_DOORBELL_H

#include <stdatomic.h>

#include "base/thread.h"
#include "drive/ears.h"
#include "route/source.h"
#include "wire/keys.h"

struct rl_engine;

typedef struct rl_doorbell {
    char channel[RL_BELL_LEN + 1]; /* fixed */
    atomic_bool up;                /* subscribed, as far as is known */
    atomic_bool started, stopping;
    rl_mutex starting; /* guards thread and wake_fd while they are made */
    rl_thread thread;
    int wake_fd; /* an eventfd that ends the thread's poll; -1: none */
    rl_ears ears;
} rl_doorbell;

bool rl_doorbell_init(rl_doorbell *d); /* false: no randomness or memory */
void rl_doorbell_fini(rl_doorbell *d, bool forked);

/*
 * Starts it if it does not run. When that fails, waiters poll. The waiters
 * that queue themselves do so only after it has come up, which wakes them.
 */
void rl_doorbell_start(struct rl_engine *e);
void rl_doorbell_stop(struct rl_engine *e);

/*
 * Somebody has begun to wait for a name, or has ceased to: the thread looks
 * which of Redisson's channels are to be listened on, if any.
 */
void rl_doorbell_poke(struct rl_engine *e);

/* The channel to queue under, or "" while nobody would hear a ring. */
static inline const char *rl_doorbell_bell(rl_doorbell *d)
{
    return atomic_load(&d->up) ? d->channel : "";
}

#endif
