/*
 * Many threads of one client that do not get in each other's way, each with a
 * name of its own, and few connections: how long the unluckiest call takes.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#define POOL   16
#define RUN_NS INT64_C(4000000000)
#define STACK  (256 * 1024)

typedef struct crowd {
    rlock_client *cl;
    pthread_barrier_t begin;
    _Atomic int64_t end_ns;
    atomic_llong slowest_ns, calls, failures;
} crowd;

typedef struct member {
    crowd *c;
    rlock *lk;
    pthread_t thread;
} member;

static rlock_status timed(crowd *c, rlock_status (*verb)(rlock *), rlock *lk)
{
    int64_t began = bench_now_ns();
    rlock_status s = verb(lk);
    long long took = bench_now_ns() - began, slowest = 0;
    while (took > (slowest = atomic_load(&c->slowest_ns)) &&
           !atomic_compare_exchange_weak(&c->slowest_ns, &slowest, took))
        ;
    atomic_fetch_add(&c->calls, 1);
    if (s != RLOCK_OK)
        atomic_fetch_add(&c->failures, 1);
    return s;
}

static void *run(void *arg)
{
    member *m = arg;
    crowd *c = m->c;
    pthread_barrier_wait(&c->begin);
    pthread_barrier_wait(&c->begin); /* the end is set */
    while (bench_now_ns() < atomic_load(&c->end_ns)) {
        if (timed(c, rlock_lock, m->lk) == RLOCK_OK)
            timed(c, rlock_unlock, m->lk);
    }
    return NULL;
}

static void start(crowd *c, member m[], int n)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_barrier_init(&c->begin, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof name, "bench:%d", i);
        m[i] = (member){.c = c, .lk = bench_lock(c->cl, name)};
        bench_check(pthread_create(&m[i].thread, &attr, run, &m[i]) == 0,
                    "no thread");
    }
    pthread_attr_destroy(&attr);
}

static void measure(const char *uri, int n)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    crowd c = {0};
    member *m = bench_alloc((size_t)n, sizeof *m);
    char what[128];
    o.uri = uri;
    o.pool_size = POOL;
    bench_ok(rlock_client_new(&o, &c.cl));
    start(&c, m, n);
    pthread_barrier_wait(&c.begin);
    atomic_store(&c.end_ns, bench_now_ns() + RUN_NS);
    pthread_barrier_wait(&c.begin);
    for (int i = 0; i < n; i++) {
        pthread_join(m[i].thread, NULL);
        rlock_free(m[i].lk);
    }
    rlock_client_free(c.cl);
    pthread_barrier_destroy(&c.begin);
    free(m);
    snprintf(what, sizeof what,
             "slowest call of %d threads on as many names, %d connections", n,
             POOL);
    bench_row(what, 150, (double)c.slowest_ns / 1e6, " ms",
              "%lld calls, %.0f a second; %lld failed%s", (long long)c.calls,
              (double)c.calls * 1e9 / (double)RUN_NS, (long long)c.failures,
              c.failures ? " (missed: 0)" : "");
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    measure(uri, 64);
    measure(uri, 500);
    measure(uri, 2000);
    return 0;
}
