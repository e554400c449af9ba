#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/os.h"

/* Room for a user's callback, where musl would give no more than 128 KiB. */
#define LEAST_STACK (512 * 1024)

/*
 * The lease clock runs while the machine sleeps, and cannot be waited on: a
 * long wait is cut into pieces, and the clock is looked at after each.
 */
#define LONGEST_WAIT_US (60 * 1000000LL)
#define LEASE_WAIT_US   (1000000LL)

#ifdef RLOCK_CHECK_RANKS

static _Thread_local unsigned entered; /* a bit for each rank */

static void out_of_order(rl_rank rank)
{
    fprintf(stderr,
            "rlock: a mutex of rank %d is taken while those of %#x are\n",
            (int)rank, entered);
    abort();
}

void rl_rank_enter(rl_rank rank)
{
    if (entered >> rank)
        out_of_order(rank);
    entered |= 1u << rank;
}

void rl_rank_leave(rl_rank rank)
{
    entered &= ~(1u << rank);
}

#endif

bool rl_mutex_was_free(rl_mutex *m)
{
    if (pthread_mutex_trylock(&m->os) != 0)
        return false;
    pthread_mutex_unlock(&m->os);
    return true;
}

bool rl_mutex_retire(rl_mutex *m)
{
    bool was_free = rl_mutex_was_free(m);
    if (was_free)
        rl_mutex_fini(m);
    return was_free;
}

void rl_cond_init(rl_cond *c)
{
    rl_os_cond_init(&c->os);
}

void rl_cond_fini(rl_cond *c)
{
    pthread_cond_destroy(&c->os);
}

void rl_cond_wake(rl_cond *c)
{
    pthread_cond_signal(&c->os);
}

void rl_cond_wake_all(rl_cond *c)
{
    pthread_cond_broadcast(&c->os);
}

static void wait_until(rl_cond *c, rl_mutex *m, int64_t deadline_us,
                       int64_t longest_us)
{
    if (deadline_us == RL_NEVER) {
        pthread_cond_wait(&c->os, &m->os);
        return;
    }
    int64_t left = rl_min(deadline_us - rl_now_us(), longest_us);
    if (left > 0)
        rl_os_cond_wait(&c->os, &m->os, left);
}

void rl_cond_wait_until(rl_cond *c, rl_mutex *m, int64_t deadline_us)
{
    wait_until(c, m, deadline_us, LONGEST_WAIT_US);
}

void rl_cond_wait_lease(rl_cond *c, rl_mutex *m, int64_t deadline_us)
{
    wait_until(c, m, deadline_us, LEASE_WAIT_US);
}

/*
 * The stack is what the program's own threads get: glibc takes static TLS out
 * of it, and does not say how much that is. Only touched pages cost memory.
 */
static void choose_stack(pthread_attr_t *attr)
{
    size_t size;
    if (pthread_attr_getstacksize(attr, &size) == 0 && size < LEAST_STACK)
        pthread_attr_setstacksize(attr, LEAST_STACK);
}

/* Signals are for the host program's own threads. */
static bool start(pthread_t *os, int detach_state, void *(*run)(void *),
                  void *arg)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    choose_stack(&attr);
    pthread_attr_setdetachstate(&attr, detach_state);

    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(os, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    errno = failed;
    return failed == 0;
}

/* A thread names itself: not every system lets another do it. */
static void *begin(void *arg)
{
    const rl_thread *t = arg;
    rl_os_name_thread(t->name);
    return t->run(t->arg);
}

bool rl_thread_start(rl_thread *t, const char *name, void *(*run)(void *),
                     void *arg)
{
    t->name = name;
    t->run = run;
    t->arg = arg;
    t->started = start(&t->os, PTHREAD_CREATE_JOINABLE, begin, t);
    return t->started;
}

void rl_thread_join(rl_thread *t)
{
    if (!t->started)
        return;
    pthread_join(t->os, NULL);
    t->started = false;
}

void rl_thread_name(const char *name)
{
    rl_os_name_thread(name);
}

bool rl_thread_start_detached(void *(*run)(void *), void *arg)
{
    pthread_t os;
    return start(&os, PTHREAD_CREATE_DETACHED, run, arg);
}
