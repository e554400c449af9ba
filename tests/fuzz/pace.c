#include "pace.h"

#include <poll.h>
#include <pthread.h>
#include <time.h>

#define SECOND_NS 1000000000LL

int __real_clock_gettime(clockid_t id, struct timespec *ts);
int __real_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);

int __wrap_clock_gettime(clockid_t id, struct timespec *ts);
int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until);
int __wrap_poll(struct pollfd *p, nfds_t n, int timeout_ms);

static int64_t factor = 1;

void pace_set(int64_t to)
{
    factor = to;
}

static int64_t to_ns(const struct timespec *ts)
{
    return ts->tv_sec * SECOND_NS + ts->tv_nsec;
}

static struct timespec from_ns(int64_t ns)
{
    return (struct timespec){.tv_sec = ns / SECOND_NS,
                             .tv_nsec = ns % SECOND_NS};
}

/* A clock that counts from the start of the machine can be sped up as it is. */
int __wrap_clock_gettime(clockid_t id, struct timespec *ts)
{
    int result = __real_clock_gettime(id, ts);
    if (id != CLOCK_REALTIME)
        *ts = from_ns(to_ns(ts) * factor);
    return result;
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m,
                                  const struct timespec *until)
{
    struct timespec real = from_ns(to_ns(until) / factor);
    return __real_pthread_cond_timedwait(c, m, &real);
}

int __wrap_poll(struct pollfd *p, nfds_t n, int timeout_ms)
{
    struct timespec real = from_ns(timeout_ms * 1000000LL / factor);
    return ppoll(p, n, timeout_ms < 0 ? NULL : &real, NULL);
}

void pace_pause_us(int64_t us)
{
    struct timespec real = from_ns(us * 1000 / factor);
    nanosleep(&real, NULL);
}
