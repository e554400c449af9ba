/* pthread_create() and what belongs to it: a thread of the world for each. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "world.h"

/* --- thread-specific values ----------------------------------------------- */

/* OpenSSL's are among them, made before the world begins. */
static struct {
    bool is_used;
    void (*end)(void *value);
} specifics[KEYS_MAX];

int pthread_key_create(pthread_key_t *out, void (*end)(void *value))
{
    for (unsigned i = 0; i < KEYS_MAX; i++) {
        if (specifics[i].is_used)
            continue;
        specifics[i].is_used = true;
        specifics[i].end = end;
        *out = i;
        return 0;
    }
    return EAGAIN;
}

int pthread_key_delete(pthread_key_t i)
{
    specifics[i].is_used = false;
    return 0;
}

void *pthread_getspecific(pthread_key_t i)
{
    return i < KEYS_MAX ? running->specific[i] : NULL;
}

int pthread_setspecific(pthread_key_t i, const void *value)
{
    if (i >= KEYS_MAX)
        return EINVAL;
    running->specific[i] = (void *)value;
    return 0;
}

/* Four rounds, as POSIX has it. */
static void end_specifics(thread *t)
{
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < KEYS_MAX; i++) {
            void *value = t->specific[i];
            if (!value || !specifics[i].is_used || !specifics[i].end)
                continue;
            t->specific[i] = NULL;
            specifics[i].end(value);
        }
}

/* --- threads -------------------------------------------------------------- */

/* Where a new one begins; its stack has nothing to return to. */
void thread_begins(void)
{
    thread *t = running;
    t->result = t->run(t->arg);
    end_specifics(t);
    if (t->mutexes > 0)
        finding("the thread ends with %d mutexes", t->mutexes);
    t->state = DONE;
    trace("ends");
    wake_waiters(t, true);
    schedule();
    abort();
}

int pthread_create(pthread_t *out, const pthread_attr_t *attr,
                   void *(*run)(void *arg), void *arg)
{
    if (!w.is_on)
        return REAL(pthread_create)(out, attr, run, arg);
    step();
    if (memory_refuses(0))
        return EAGAIN;
    if (threads_n == THREADS_MAX)
        finding("the world has too many threads");
    thread *t = need_memory(sizeof *t);
    t->id = threads_n;
    t->p = running->p;
    t->run = run;
    t->arg = arg;
    t->rank = (int)chance_below(&w.dice, 8);
    t->place = cfg.mode == 2 ? chance_below(&w.dice, INT32_MAX) : 0;
    snprintf(t->name, sizeof t->name, "thread-%d", t->id);
    switch_make(t);
    threads[threads_n++] = t;
    *out = t->real;
    ready(t, w.now + latency(t));
    return 0;
}

pthread_t program_thread(void *(*run)(void *arg), void *arg)
{
    pthread_t t;
    bool was_spared = running->is_spared;
    running->is_spared = true;
    pthread_create(&t, NULL, run, arg);
    running->is_spared = was_spared;
    return t;
}

static thread *thread_of(pthread_t real)
{
    for (int i = 0; i < threads_n; i++)
        if (pthread_equal(threads[i]->real, real))
            return threads[i];
    return NULL;
}

int pthread_join(pthread_t real, void **result)
{
    if (!w.is_on)
        return REAL(pthread_join)(real, result);
    step();
    thread *t = thread_of(real);
    if (!t)
        finding("joins a thread that is none");
    while (t->state != DONE)
        block(t, "pthread_join", NEVER);
    if (result)
        *result = t->result;
    return 0;
}

int pthread_setname_np(pthread_t real, const char *name)
{
    thread *t = thread_of(real);
    if (!t)
        return ESRCH;
    snprintf(t->name, sizeof t->name, "%.15s-%d", name, t->p ? t->p->index : 0);
    t->is_library = true;
    return 0;
}

int pthread_once(pthread_once_t *o, void (*init)(void))
{
    enum { DONE_ONCE = 2 };
    if (*o == DONE_ONCE)
        return 0;
    if (*o == 1) { /* another one is at it */
        while (*o != DONE_ONCE)
            block(o, "pthread_once", NEVER);
        return 0;
    }
    *o = 1;
    init();
    *o = DONE_ONCE;
    if (w.is_on)
        wake_waiters(o, true);
    return 0;
}
