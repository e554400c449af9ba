/*
 * What a critical section costs when 8 processes with 2 threads each want one
 * Red lock on 5 servers, against a lock on one server, wanted the same way. A
 * section lasts 1 ms; both kinds take turns.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rlock/multi.h>

#include "servers.h"

#define NODES      5
#define PROCESSES  8
#define THREADS    2
#define WORKERS    (PROCESSES * THREADS)
#define SECTION_US 1000
#define RUN_NS     INT64_C(4000000000)
#define TURNS      3

static bench_server servers[NODES];

typedef struct shared {
    atomic_int ready;
    _Atomic int64_t end_ns; /* 0: not begun */
    atomic_int inside;
    long long sections[WORKERS];
} shared;

typedef struct worker {
    shared *sh;
    rlock *lk;
    long long *sections;
} worker;

typedef struct figure {
    double us, calls; /* for each section */
    long long fewest, most;
} figure;

static void *work(void *arg)
{
    worker *w = arg;
    int64_t end;
    atomic_fetch_add(&w->sh->ready, 1);
    while ((end = atomic_load(&w->sh->end_ns)) == 0)
        bench_pause_us(1000);
    while (bench_now_ns() < end) {
        bench_ok(rlock_lock(w->lk));
        bench_check(atomic_fetch_add(&w->sh->inside, 1) == 0,
                    "two owners at a time");
        bench_pause_us(SECTION_US);
        atomic_fetch_sub(&w->sh->inside, 1);
        bench_ok(rlock_unlock(w->lk));
        ++*w->sections;
    }
    return NULL;
}

static rlock *make(rlock_client *cl[NODES], size_t n)
{
    rlock *lk;
    for (size_t i = 0; i < n; i++)
        cl[i] = bench_client(servers[i].uri);
    if (n == 1)
        return bench_lock(cl[0], "bench:single");
    bench_ok(rlock_red_new(cl, n, "bench:red", &lk));
    return lk;
}

static void compete(shared *sh, int me, size_t n)
{
    rlock_client *cl[NODES];
    pthread_t thread[THREADS];
    worker w[THREADS];
    rlock *lk = make(cl, n);
    for (int i = 0; i < THREADS; i++) {
        w[i] = (worker){sh, lk, &sh->sections[me * THREADS + i]};
        bench_check(pthread_create(&thread[i], NULL, work, &w[i]) == 0,
                    "no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    rlock_free(lk);
    for (size_t i = 0; i < n; i++)
        rlock_client_free(cl[i]);
}

static long long calls(void)
{
    long long sum = 0;
    for (int i = 0; i < NODES; i++)
        sum += bench_script_calls(servers[i].uri);
    return sum;
}

static figure run(size_t n)
{
    shared *sh = bench_share(sizeof *sh);
    for (int i = 0; i < PROCESSES; i++) {
        if (bench_fork()) {
            compete(sh, i, n);
            _exit(0);
        }
    }
    while (atomic_load(&sh->ready) < WORKERS)
        bench_pause_us(1000);
    long long before = calls(), sum = 0;
    atomic_store(&sh->end_ns, bench_now_ns() + RUN_NS);
    for (int i = 0; i < PROCESSES; i++)
        bench_join();
    figure f = {.fewest = sh->sections[0]};
    for (int i = 0; i < WORKERS; i++) {
        long long mine = sh->sections[i];
        sum += mine;
        f.fewest = mine < f.fewest ? mine : f.fewest;
        f.most = mine > f.most ? mine : f.most;
    }
    f.us = (double)RUN_NS / 1000 / (double)sum;
    f.calls = (double)(calls() - before) / (double)sum;
    return f;
}

static void note(const char *what, const figure f[TURNS])
{
    const figure *worst = &f[0];
    for (int i = 1; i < TURNS; i++)
        if (f[i].fewest * worst->most < worst->fewest * f[i].most)
            worst = &f[i];
    bench_note(what,
               "%.1f script calls a section; fewest and most sections of a "
               "thread %lld and %lld%s",
               worst->calls, worst->fewest, worst->most,
               worst->fewest == 0 ? " (missed: it starves)" : "");
}

int main(int argc, char **argv)
{
    figure single[TURNS], red[TURNS];
    double single_us[TURNS], red_us[TURNS];
    bench_start_servers(servers, NODES, bench_uri(argc, argv));
    for (int i = 0; i < TURNS; i++) {
        single[i] = run(1);
        red[i] = run(NODES);
        single_us[i] = single[i].us;
        red_us[i] = red[i].us;
    }
    double one = bench_median(single_us, TURNS);
    double five = bench_median(red_us, TURNS);
    bench_row("Red on 5 servers, 8 processes of 2 threads contending, a "
              "section of 1 ms, as a multiple of a single lock's",
              1.6, five / one, "", "%.2f ms against %.2f ms", five / 1000,
              one / 1000);
    note("- Red, the least fair turn", red);
    note("- single, the least fair turn", single);
    return 0;
}
