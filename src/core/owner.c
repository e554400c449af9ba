/*
 * The end of a thread is noticed by the destructor of a pthread key, which
 * every thread sets with its first hold. The key, the list of listeners and
 * the number of forks are the only state of the library that belongs to the
 * whole process. After fork() the list is emptied in the child: its clients are
 * the parent's.
 */
#include "core/owner.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/random.h"

static atomic_uint_fast64_t last_serial;
static atomic_uint forks;
static _Thread_local uint64_t self;
static _Thread_local int holds;
static _Thread_local long tid; /* 0: not asked for yet */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t end_key;
static bool has_key;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, rl_owner_listener) listeners; /* guarded by mutex */

uint64_t rl_owner_self(void)
{
    if (self == 0)
        self = atomic_fetch_add(&last_serial, 1) + 1;
    return self;
}

bool rl_holder_id(char out[RL_HOLDER_MAX], const char *process)
{
    if (tid == 0)
        tid = syscall(SYS_gettid);
    int n = snprintf(out, RL_HOLDER_MAX, "%s:%ld:", process, tid);
    return rl_uuid_new(out + n);
}

static void thread_ends(void *value)
{
    (void)value;
    if (holds == 0)
        return;
    rl_owner_listener *l;
    pthread_mutex_lock(&mutex);
    LIST_FOREACH (l, &listeners, link) {
        l->ended(l->arg, self);
    }
    pthread_mutex_unlock(&mutex);
    holds = 0;
}

static void child_starts(void)
{
    atomic_fetch_add(&forks, 1);
    pthread_mutex_init(&mutex, NULL);
    LIST_INIT(&listeners);
    holds = 0;
    tid = 0;
}

static void set_up(void)
{
    has_key = pthread_key_create(&end_key, thread_ends) == 0;
    pthread_atfork(NULL, NULL, child_starts);
}

unsigned rl_owner_forks(void)
{
    return atomic_load(&forks);
}

bool rl_owner_watch(void)
{
    return pthread_getspecific(end_key) ||
           pthread_setspecific(end_key, &holds) == 0;
}

void rl_owner_count(int change)
{
    holds += change;
}

bool rl_owner_listen(rl_owner_listener *l)
{
    pthread_once(&once, set_up);
    if (!has_key)
        return false;
    pthread_mutex_lock(&mutex);
    LIST_INSERT_HEAD(&listeners, l, link);
    pthread_mutex_unlock(&mutex);
    return true;
}

void rl_owner_unlisten(rl_owner_listener *l)
{
    pthread_mutex_lock(&mutex);
    LIST_REMOVE(l, link);
    pthread_mutex_unlock(&mutex);
}
