/*
 * The end of a thread is noticed by the destructor of a pthread key, which
 * every thread sets with its first hold. The key, the list of listeners and
 * the number of forks are the only state of the library that belongs to the
 * whole process. After fork() the list is emptied in the child: its clients are
 * the parent's.
 */
#include "drive/owner.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/os.h"

static atomic_uint_fast64_t last_serial;
static atomic_uint forks;
static _Thread_local rl_owner self;
static _Thread_local int endings; /* how often thread_ends() has run */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t end_key;
static bool has_key;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static rl_list listeners; /* guarded by mutex */

rl_owner *rl_owner_self(void)
{
    if (self.serial == 0)
        self.serial = atomic_fetch_add(&last_serial, 1) + 1;
    if (self.tid == 0)
        self.tid = rl_os_thread_id();
    return &self;
}

/*
 * The destructors of the program's own keys may still unlock, so we come again
 * in the next round, as long as there is one. One round is left out, since the
 * key may have been set in the first.
 */
static bool comes_again(void)
{
    return ++endings < PTHREAD_DESTRUCTOR_ITERATIONS - 1 &&
           pthread_setspecific(end_key, &self) == 0;
}

static void thread_ends(void *value)
{
    (void)value;
    if (self.holds == 0 || comes_again())
        return;
    pthread_mutex_lock(&mutex);
    for (rl_link *k = rl_list_first(&listeners); k;
         k = rl_list_next(&listeners, k)) {
        rl_owner_listener *l = RL_CONTAINER(k, rl_owner_listener, link);
        l->ended(l->arg, self.serial);
    }
    pthread_mutex_unlock(&mutex);
    self.holds = 0;
}

static void child_starts(void)
{
    atomic_fetch_add(&forks, 1);
    pthread_mutex_init(&mutex, NULL);
    rl_list_init(&listeners);
    self.holds = 0;
    self.tid = 0;
}

static void set_up(void)
{
    rl_list_init(&listeners);
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
           pthread_setspecific(end_key, &self) == 0;
}

bool rl_owner_listen(rl_owner_listener *l)
{
    pthread_once(&once, set_up);
    if (!has_key)
        return false;
    pthread_mutex_lock(&mutex);
    rl_list_add_first(&listeners, &l->link);
    pthread_mutex_unlock(&mutex);
    return true;
}

void rl_owner_unlisten(rl_owner_listener *l)
{
    pthread_mutex_lock(&mutex);
    rl_list_remove(&l->link);
    pthread_mutex_unlock(&mutex);
}
