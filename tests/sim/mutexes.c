/*
 * Mutexes and conditions, which are judged as well: unlock by another one than
 * who has it, destruction while somebody has it or waits, a wait for what one
 * has, use after destruction. The last shows because what is destroyed is
 * overwritten, as is memory that is freed (memory.c): a number that is no
 * thread's.
 *
 * What the library has is a pthread_mutex_t; what lies in it is ours. Zeroes
 * are one that nobody has, as in PTHREAD_MUTEX_INITIALIZER, and the kind is
 * where glibc has it. Before the world begins there is one thread.
 */
#include <errno.h>
#include <string.h>

#include "world.h"

typedef struct mutex {
    int owner; /* its id + 1; 0: nobody */
    int levels, waiters, unused, kind;
} mutex;

_Static_assert(sizeof(mutex) <= sizeof(pthread_mutex_t), "it has to fit");

#define GONE 0xee

static mutex *in(pthread_mutex_t *m)
{
    mutex *x = (mutex *)m;
    if (x->owner < 0 || x->owner > THREADS_MAX || x->waiters < 0)
        finding("uses a mutex that is none, or none any more");
    return x;
}

int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attr)
{
    int kind = PTHREAD_MUTEX_NORMAL;
    if (attr)
        pthread_mutexattr_gettype(attr, &kind);
    memset(m, 0, sizeof *m);
    ((mutex *)m)->kind = kind;
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *m)
{
    mutex *x = in(m);
    if (w.is_on && x->owner)
        finding("destroys a mutex that %s has", threads[x->owner - 1]->name);
    if (w.is_on && x->waiters)
        finding("destroys a mutex that is waited for");
    memset(m, GONE, sizeof *m);
    return 0;
}

static void take(mutex *x)
{
    while (x->owner) {
        x->waiters++;
        block(x, "mutex", NEVER);
        x->waiters--;
    }
    x->owner = running->id + 1;
    running->mutexes++;
}

static void give(mutex *x)
{
    x->owner = 0;
    running->mutexes--;
    if (x->waiters)
        wake_waiters(x, false);
}

int pthread_mutex_lock(pthread_mutex_t *m)
{
    step();
    mutex *x = in(m);
    if (x->owner != running->id + 1)
        take(x);
    else if (x->kind == PTHREAD_MUTEX_RECURSIVE)
        x->levels++;
    else
        finding("waits for a mutex that it has");
    return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *m)
{
    step();
    mutex *x = in(m);
    if (x->owner == running->id + 1 && x->kind == PTHREAD_MUTEX_RECURSIVE)
        x->levels++;
    else if (x->owner)
        return EBUSY;
    else
        take(x);
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *m)
{
    mutex *x = in(m);
    if (w.is_on && x->owner != running->id + 1)
        finding("unlocks a mutex that it does not have");
    if (x->levels > 0) {
        x->levels--;
        return 0;
    }
    give(x);
    step();
    return 0;
}

/* --- conditions ----------------------------------------------------------- */

static void check_condition(const pthread_cond_t *c)
{
    const unsigned char *at = (const unsigned char *)c;
    if (at[0] == GONE || at[0] == 0xdd)
        finding("uses a condition that is none any more");
}

int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *attr)
{
    (void)attr;
    memset(c, 0, sizeof *c);
    return 0;
}

int pthread_cond_destroy(pthread_cond_t *c)
{
    check_condition(c);
    for (int i = 0; w.is_on && i < threads_n; i++)
        if (threads[i]->state == BLOCKED && threads[i]->waits_for == c)
            finding("destroys a condition that %s waits for", threads[i]->name);
    memset(c, GONE, sizeof *c);
    return 0;
}

int pthread_cond_signal(pthread_cond_t *c)
{
    step();
    check_condition(c);
    wake_waiters(c, false);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *c)
{
    step();
    check_condition(c);
    wake_waiters(c, true);
    return 0;
}

/* It may return early, which POSIX allows and a program rarely meets. */
static int wait_for(pthread_cond_t *c, pthread_mutex_t *m, int64_t until)
{
    mutex *x = in(m);
    check_condition(c);
    if (x->owner != running->id + 1)
        finding("waits with a mutex that it does not have");
    give(x);
    bool is_early = !w.is_quiet && chance_ppm(&w.dice, cfg.spurious_ppm);
    if (is_early) {
        int64_t early = w.now + chance_skewed(&w.dice, 100 * MS);
        is_early = early < until;
        until = is_early ? early : until;
    }
    bool woken = block(c, "condition", until);
    take(x);
    return woken || is_early ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m)
{
    step();
    return wait_for(c, m, NEVER);
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                           const struct timespec *at)
{
    step();
    int64_t left = at->tv_sec * S + at->tv_nsec - process_now(running->p);
    return wait_for(c, m, w.now + true_span(left > 0 ? left : 0));
}
