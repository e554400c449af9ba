/*
 * What one warm acquire of a free lock goes through. It is linked with a
 * library whose functions tell when they begin and end (inline ones of the
 * headers do not), and prints, for the calling thread alone,
 *
 *     M                 for a mutex taken
 *     C                 for a reading of the clock
 *     E address caller  for a call, with the function that it came from,
 *
 * addresses relative to the program's; crossings.sh turns them into files.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <rlock/rlock.h>

#include "bench.h"

#define HIDDEN __attribute__((no_instrument_function))
#define DEPTH  256
#define EVENTS 65536

static _Thread_local bool watching;
static _Thread_local size_t depth;
static _Thread_local const void *stack[DEPTH];
static struct {
    char what;
    const void *callee, *caller; /* of a call */
} event[EVENTS];
static size_t n_events;

extern const char __executable_start[];

void __cyg_profile_func_enter(void *fn, void *site) HIDDEN;
void __cyg_profile_func_exit(void *fn, void *site) HIDDEN;
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m) HIDDEN;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now) HIDDEN;

void __cyg_profile_func_enter(void *fn, void *site)
{
    (void)site;
    if (!watching || depth >= DEPTH || n_events >= EVENTS)
        return;
    event[n_events].what = 'E';
    event[n_events].callee = fn;
    event[n_events++].caller = depth ? stack[depth - 1] : fn;
    stack[depth++] = fn;
}

void __cyg_profile_func_exit(void *fn, void *site)
{
    (void)fn;
    (void)site;
    if (watching && depth > 0)
        depth--;
}

static void HIDDEN note(char what)
{
    if (watching && n_events < EVENTS)
        event[n_events++].what = what;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
    note('C');
    return __real_clock_gettime(clock, now);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    note('M');
    return __real_pthread_mutex_lock(m);
}

static unsigned long offset(const void *p)
{
    return (unsigned long)((const char *)p - __executable_start);
}

int main(int argc, char **argv)
{
    rlock_client *cl = bench_client(bench_uri(argc, argv));
    rlock *lk = bench_lock(cl, "bench:lock");
    for (int i = 0; i < 100; i++) {
        bench_ok(rlock_lock(lk));
        bench_ok(rlock_unlock(lk));
    }
    watching = true;
    bench_ok(rlock_lock(lk));
    watching = false;
    for (size_t i = 0; i < n_events; i++) {
        if (event[i].what == 'E')
            printf("E %lx %lx\n", offset(event[i].callee),
                   offset(event[i].caller));
        else
            printf("%c\n", event[i].what);
    }
    bench_ok(rlock_unlock(lk));
    rlock_free(lk);
    rlock_client_free(cl);
    return 0;
}
