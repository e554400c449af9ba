/*
 * Mutexes, condition variables and threads, with the annotations that let
 * clang's -Wthread-safety check who may call what.
 */
#ifndef RL_BASE_THREAD_H
#define RL_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/rank.h"

#if defined(__clang__)
#define RL_TSA(x) __attribute__((x))
#else
#define RL_TSA(x)
#endif
#define RL_CAPABILITY  RL_TSA(capability("mutex"))
#define RL_ACQUIRES(m) RL_TSA(acquire_capability(m))
#define RL_RELEASES(m) RL_TSA(release_capability(m))
#define RL_REQUIRES(m) RL_TSA(requires_capability(m))
#define RL_EXCLUDES(m) RL_TSA(locks_excluded(m))
#define RL_UNCHECKED   RL_TSA(no_thread_safety_analysis)

typedef struct RL_CAPABILITY rl_mutex {
    pthread_mutex_t os;
#ifdef RLOCK_CHECK_RANKS
    rl_rank rank;
#endif
} rl_mutex;

#ifdef RLOCK_CHECK_RANKS
#define RL_MUTEX(rank)                                                         \
    {                                                                          \
        PTHREAD_MUTEX_INITIALIZER, rank                                        \
    }
void rl_rank_enter(rl_rank rank);
void rl_rank_leave(rl_rank rank);
#else
#define RL_MUTEX(rank)                                                         \
    {                                                                          \
        PTHREAD_MUTEX_INITIALIZER                                              \
    }
#define rl_rank_enter(rank) ((void)0)
#define rl_rank_leave(rank) ((void)0)
#endif

static inline void rl_mutex_init(rl_mutex *m, rl_rank rank)
{
    pthread_mutex_init(&m->os, NULL);
#ifdef RLOCK_CHECK_RANKS
    m->rank = rank;
#else
    (void)rank;
#endif
}

static inline void rl_mutex_fini(rl_mutex *m)
{
    pthread_mutex_destroy(&m->os);
}

static inline void rl_mutex_lock(rl_mutex *m) RL_ACQUIRES(m) RL_UNCHECKED
{
    rl_rank_enter(m->rank);
    pthread_mutex_lock(&m->os);
}

/* False: somebody has it, perhaps the calling thread. */
static inline bool rl_mutex_try_lock(rl_mutex *m)
    RL_TSA(try_acquire_capability(true, m)) RL_UNCHECKED
{
    if (pthread_mutex_trylock(&m->os) != 0)
        return false;
    rl_rank_enter(m->rank);
    return true;
}

static inline void rl_mutex_unlock(rl_mutex *m) RL_RELEASES(m) RL_UNCHECKED
{
    rl_rank_leave(m->rank);
    pthread_mutex_unlock(&m->os);
}

/*
 * In a forked child only: was the mutex free when fork() was called, so that
 * what it guards is whole? (The threads that could hold it are not there.)
 */
bool rl_mutex_was_free(rl_mutex *m);

/*
 * The end of one that nobody can use any more, also in a forked child. False:
 * a thread that is not there was in it, and what it guards may not be whole.
 */
bool rl_mutex_retire(rl_mutex *m);

/* Waits are timed on CLOCK_MONOTONIC. */
typedef struct rl_cond {
    pthread_cond_t os;
} rl_cond;

void rl_cond_init(rl_cond *c);
void rl_cond_fini(rl_cond *c);
void rl_cond_wake(rl_cond *c);     /* one waiter */
void rl_cond_wake_all(rl_cond *c); /* all of them */

/*
 * Waits until woken or until the lease clock has reached the deadline
 * (RL_NEVER: no limit). May return early; the caller looks at its condition.
 */
void rl_cond_wait_until(rl_cond *c, rl_mutex *m, int64_t deadline_us)
    RL_REQUIRES(m);

/*
 * The same, for a deadline that must not be missed because the machine slept:
 * it returns within a second after the machine has woken. That costs a look at
 * the clock each second, so it is for threads that watch over leases.
 */
void rl_cond_wait_lease(rl_cond *c, rl_mutex *m, int64_t deadline_us)
    RL_REQUIRES(m);

/*
 * A thread of the library's own: all signals blocked, named, with a stack as
 * the program's own threads have, and room for a user's callback.
 */
typedef struct rl_thread {
    pthread_t os;
    bool started;
    const char *name;
    void *(*run)(void *);
    void *arg;
} rl_thread;

/* The struct and the name stay where they are until the thread is joined. */
bool rl_thread_start(rl_thread *t, const char *name, void *(*run)(void *),
                     void *arg);
void rl_thread_join(rl_thread *t);
/* Names the calling thread, for one that nobody joins. */
void rl_thread_name(const char *name);

/* One that nobody joins; it must not touch anything that can go away. */
bool rl_thread_start_detached(void *(*run)(void *), void *arg);

#endif
