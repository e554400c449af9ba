#include "base/thread.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "base/clock.h"

#define STACK_SIZE (512 * 1024)

/*
 * A lease clock that runs while the machine sleeps cannot be waited on, so a
 * long wait is cut into pieces and the clock is looked at again.
 */
#define LONGEST_WAIT_US (60 * 1000000LL)

void rl_mutex_init(rl_mutex *m)
{
    pthread_mutex_init(&m->os, NULL);
}

void rl_mutex_fini(rl_mutex *m)
{
    pthread_mutex_destroy(&m->os);
}

void rl_mutex_lock(rl_mutex *m) RL_UNCHECKED
{
    pthread_mutex_lock(&m->os);
}

void rl_mutex_unlock(rl_mutex *m) RL_UNCHECKED
{
    pthread_mutex_unlock(&m->os);
}

bool rl_mutex_was_free(rl_mutex *m)
{
    if (pthread_mutex_trylock(&m->os) != 0)
        return false;
    pthread_mutex_unlock(&m->os);
    return true;
}

void rl_cond_init(rl_cond *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->os, &attr);
    pthread_condattr_destroy(&attr);
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

void rl_cond_wait_until(rl_cond *c, rl_mutex *m, int64_t deadline_us)
{
    if (deadline_us == RL_NEVER) {
        pthread_cond_wait(&c->os, &m->os);
        return;
    }
    int64_t left = rl_min(deadline_us - rl_now_us(), LONGEST_WAIT_US);
    if (left <= 0)
        return;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + left % 1000000 * 1000;
    until.tv_sec += (time_t)(left / 1000000 + ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&c->os, &m->os, &until);
}

/* Signals are for the host program's own threads. */
static bool start(pthread_t *os, int detach_state, void *(*run)(void *),
                  void *arg)
{
    pthread_attr_t attr;
    if (pthread_attr_init(&attr) != 0)
        return false;
    pthread_attr_setstacksize(&attr, STACK_SIZE);
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

bool rl_thread_start(rl_thread *t, const char *name, void *(*run)(void *),
                     void *arg)
{
    t->started = start(&t->os, PTHREAD_CREATE_JOINABLE, run, arg);
    if (t->started)
        pthread_setname_np(t->os, name);
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
    pthread_setname_np(pthread_self(), name);
}

bool rl_thread_start_detached(void *(*run)(void *), void *arg)
{
    pthread_t os;
    return start(&os, PTHREAD_CREATE_DETACHED, run, arg);
}
