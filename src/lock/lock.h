/*
 * What is behind an rlock *: a kind of lock is a table of functions over the
 * same handle. The public functions check arguments, enter the client, and
 * call the kind.
 */
#ifndef RL_LOCK_LOCK_H
#define RL_LOCK_LOCK_H

#include <rlock/multi.h>

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
    void (*free)(rlock *lk); /* NULL: nothing but the handle */
} rl_lock_kind;

/* Kinds that know more embed it as their first member. */
struct rlock {
    const rl_lock_kind *kind;
    rlock_client *client; /* counted; of several, the home */
    rl_target target;     /* its name is the handle's, and ends in a NUL */
};

extern const rl_lock_kind rl_reentrant;

/*
 * A handle of size bytes, at least an rlock's, the rest zero. NULL: out of
 * memory, and the thread's error says so.
 */
void *rl_lock_new(size_t size, const rl_lock_kind *kind, rlock_client *cl,
                  const void *name, size_t len, rlock_layout layout);

/* Is it a name for a lock? Otherwise the thread's error says why. */
rlock_status rl_lock_check_name(const void *name, size_t len);

/* Sets the thread's error, naming lock and server, and returns its status. */
rlock_status rl_lock_fail(const rlock *lk, const rl_fault *f);
rlock_status rl_lock_error(const rlock *lk, rlock_status status,
                           const char *what);

/* Delivers one of the events that belong to a call. */
void rl_lock_emit(const rlock *lk, rlock_event_type type, uint64_t token,
                  int count, int64_t elapsed_us);

static inline rl_engine *rl_engine_of(const rlock *lk)
{
    return &lk->client->engine;
}

#endif
