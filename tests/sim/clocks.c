/*
 * Who we are, what time it is, and what is drawn: by process. A process is a
 * group of threads with a pid, a host name and a clock that drifts, so two
 * clients of two processes meet in one image.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "world.h"

/* The world's true time at the epoch of CLOCK_REALTIME. */
#define EPOCH (1600000000 * S)

int64_t process_now(const process *p)
{
    int64_t past = w.now - BEGIN;
    return p ? p->base + past + past / 1000000 * p->drift_ppm : w.now;
}

int64_t true_span(int64_t local)
{
    const process *p = running->p;
    return p ? local - local / 1000000 * p->drift_ppm : local;
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
    if (!w.is_on)
        return (int)raw_call(SYS_clock_gettime, id, (long)ts, 0, 0, 0, 0);
    step();
    int64_t now = process_now(running->p);
    if (id == CLOCK_REALTIME)
        now += EPOCH;
    ts->tv_sec = now / S;
    ts->tv_nsec = now % S;
    return 0;
}

int nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!w.is_on)
        return (int)raw_call(SYS_nanosleep, (long)t, (long)left, 0, 0, 0, 0);
    step();
    sleep_for(t->tv_sec * S + t->tv_nsec);
    return 0;
}

pid_t getpid(void)
{
    return running->p ? running->p->pid
                      : (pid_t)raw_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

int gethostname(char *name, size_t len)
{
    snprintf(name, len, "%s", running->p ? running->p->host : "nowhere");
    return 0;
}

long syscall(long n, ...)
{
    long a[6];
    va_list args;
    va_start(args, n);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (w.is_on && n == SYS_gettid)
        return getpid() + 1000 * running->id;
    if (w.is_on)
        finding("the system call %ld, which the world does not know", n);
    long result = raw_call(n, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result >= 0)
        return result;
    errno = (int)-result;
    return -1;
}

ssize_t getrandom(void *at, size_t n, unsigned flags)
{
    if (!w.is_on)
        return raw_call(SYS_getrandom, (long)at, (long)n, flags, 0, 0, 0);
    step();
    for (size_t i = 0; i < n; i++)
        ((unsigned char *)at)[i] = (unsigned char)chance_next(&w.dice);
    return (ssize_t)n;
}
