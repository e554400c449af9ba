/*
 * A semaphore's handle is one of a lock (lock.h), as far as name, client and
 * messages go. Permits are a lock by an owner of their own, which nobody acts as: so
 * a second acquire has others, any thread may release, and all that is done for holds
 * is done for them. What is kept of them is small; the lock is made for each verb.
 */
#ifndef RL_LOCK_PERMIT_H
#define RL_LOCK_PERMIT_H

#include <rlock/semaphore.h>

#include "lock/lock.h"

struct rlock_semaphore {
    rlock handle;
    rl_semaphore as;
};

struct rlock_permit {
    rlock_semaphore *of; /* counted */
    rl_semaphore as;     /* weight 0: what was asked for is out of range */
};

/* NULL: out of memory. */
rlock_permit *rl_permit_new(rlock_semaphore *s, int n);
void rl_permit_free(rlock_permit *p);

/* For one verb; the permits stay until it is over. */
void rl_permit_as_lock(rlock *lk, rlock_permit *p);

rl_job_args rl_permit_acquire_args(rlock_semaphore *s, int64_t wait_ms,
                                   int64_t lease_ms);

#endif
