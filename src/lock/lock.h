/*
 * What is behind an rlock *: a kind of lock is a table of functions over the
 * same handle. The public functions check arguments, enter the client, and
 * call the kind.
 */
#ifndef RL_LOCK_LOCK_H
#define RL_LOCK_LOCK_H

#include <rlock/lock.h>

#include "engine/handle.h"

/* What the calling thread may believe, by the clock. */
typedef struct rl_view {
    int count; /* 0: not held, and the rest is 0 too */
    int64_t valid_ms;
    uint64_t token;
} rl_view;

/* Called inside the client, with arguments that are in range. */
typedef struct rl_lock_kind {
    rlock_status (*acquire)(rlock *lk, int64_t wait_ms, int64_t lease_ms);
    rlock_status (*unlock)(rlock *lk);
    rlock_status (*extend)(rlock *lk, int64_t lease_ms);
    rlock_status (*force_unlock)(rlock *lk);
    void (*cancel)(rlock *lk);
    rl_view (*view)(rlock *lk);
    /* RLOCK_NOT_HELD: nobody does; *out and the thread's error are left */
    rlock_status (*inspect)(rlock *lk, rlock_holder *out);
} rl_lock_kind;

struct rlock {
    const rl_lock_kind *kind;
    rlock_client *client; /* counted */
    size_t len;
    char name[]; /* and a NUL */
};

extern const rl_lock_kind rl_reentrant;

/* Sets the thread's error, naming lock and server, and returns its status. */
rlock_status rl_lock_fail(const rlock *lk, const rl_fault *f);
rlock_status rl_lock_error(const rlock *lk, rlock_status status,
                           const char *what);

#endif
