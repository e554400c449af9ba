#include "held.h"

#include <pthread.h>

static _Thread_local int held;

int held_here(void)
{
    return held;
}

/* A wait on a condition gives it up and takes it again: that comes to nothing.
 */
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    int err = __real_pthread_mutex_lock(m);
    held += err == 0;
    return err;
}

int __real_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m);
int __wrap_pthread_mutex_trylock(pthread_mutex_t *m)
{
    int err = __real_pthread_mutex_trylock(m);
    held += err == 0;
    return err;
}

int __real_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *m)
{
    held--;
    return __real_pthread_mutex_unlock(m);
}
