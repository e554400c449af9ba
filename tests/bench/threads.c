/*
 * Many threads, each with a lock of its own, through one client: how much
 * longer a pair takes than by raw hiredis, where each thread has a connection
 * of its own; what it costs both processes; and whether all threads get on
 * alike. Both take turns.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench.h"

#define MOST   512
#define STACK  (256 * 1024)
#define RUN_NS INT64_C(700000000)
#define TURNS  3

typedef struct crowd crowd;

typedef struct member {
    crowd *c;
    pthread_t thread;
    rlock *lk;
    redisContext *raw;
    char name[32], raw_name[32];
    long long pairs;
} member;

struct crowd {
    int n;
    rlock_client *cl;
    redisContext *server; /* asked what it has used */
    char sha1[41];        /* of compare-and-delete */
    void (*pair)(member *m);
    pthread_barrier_t begin;
    _Atomic int64_t end_ns;
    member *m;
};

/* What a kind has come to, over all turns. */
typedef struct sum {
    long long pairs;
    double seconds, us; /* of processors, client's and server's */
    double unlike;      /* the fewest pairs of a thread to the most */
} sum;

static void lock_pair(member *m)
{
    bench_ok(rlock_lock(m->lk));
    bench_ok(rlock_unlock(m->lk));
}

static void raw_pair(member *m)
{
    bench_raw_pair(m->raw, m->c->sha1, m->raw_name);
}

static void *run(void *arg)
{
    member *m = arg;
    crowd *c = m->c;
    pthread_barrier_wait(&c->begin);
    pthread_barrier_wait(&c->begin); /* the end is set */
    while (bench_now_ns() < atomic_load(&c->end_ns)) {
        c->pair(m);
        m->pairs++;
    }
    return NULL;
}

static double used_us(const crowd *c)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) +
           bench_server_us(c->server);
}

static void start(crowd *c)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    pthread_barrier_init(&c->begin, NULL, (unsigned)c->n + 1);
    for (int i = 0; i < c->n; i++) {
        c->m[i].pairs = 0;
        bench_check(pthread_create(&c->m[i].thread, &attr, run, &c->m[i]) == 0,
                    "no thread");
    }
    pthread_attr_destroy(&attr);
}

static void turn(crowd *c, void (*pair)(member *), sum *s)
{
    long long least = INT64_MAX, most = 1;
    c->pair = pair;
    start(c);
    pthread_barrier_wait(&c->begin);
    double before = used_us(c);
    int64_t began = bench_now_ns();
    atomic_store(&c->end_ns, began + RUN_NS);
    pthread_barrier_wait(&c->begin);
    for (int i = 0; i < c->n; i++) {
        pthread_join(c->m[i].thread, NULL);
        s->pairs += c->m[i].pairs;
        least = c->m[i].pairs < least ? c->m[i].pairs : least;
        most = c->m[i].pairs > most ? c->m[i].pairs : most;
    }
    s->seconds += (double)(bench_now_ns() - began) / 1e9;
    s->us += used_us(c) - before;
    s->unlike += (double)least / (double)most / TURNS;
    pthread_barrier_destroy(&c->begin);
}

static void measure(crowd *c, const char *uri, int n, double limit)
{
    sum raw = {0}, ours = {0};
    char what[160];
    c->n = n;
    for (int i = 0; i < n; i++) {
        member *m = &c->m[i];
        m->c = c;
        snprintf(m->name, sizeof m->name, "bench:%d", i);
        snprintf(m->raw_name, sizeof m->raw_name, "raw:%d", i);
        m->lk = bench_lock(c->cl, m->name);
        m->raw = bench_connect(uri);
        lock_pair(m);
        raw_pair(m);
    }
    for (int i = 0; i < TURNS; i++) {
        turn(c, raw_pair, &raw);
        turn(c, lock_pair, &ours);
    }
    for (int i = 0; i < n; i++) {
        rlock_free(c->m[i].lk);
        redisFree(c->m[i].raw);
    }
    double us = ours.seconds * 1e6 / (double)ours.pairs;
    double raw_us = raw.seconds * 1e6 / (double)raw.pairs;
    snprintf(what, sizeof what,
             "%d threads, as many locks: time for a pair, as a multiple of raw "
             "hiredis with a connection each",
             n);
    bench_row(what, limit, us / raw_us, "",
              "%.0f a second against %.0f; processors, client and server, "
              "%.0f µs a pair against %.0f; slowest thread to fastest %.2f "
              "against %.2f",
              1e6 / us, 1e6 / raw_us, ours.us / (double)ours.pairs,
              raw.us / (double)raw.pairs, ours.unlike, raw.unlike);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    crowd c = {.cl = bench_client(uri),
               .server = bench_connect(uri),
               .m = bench_alloc(MOST, sizeof(member))};
    bench_load_raw(c.server, c.sha1);
    measure(&c, uri, 4, 1.11);
    measure(&c, uri, 16, 0.91);
    measure(&c, uri, 64, 1);
    measure(&c, uri, MOST, 0.83);
    redisFree(c.server);
    rlock_client_free(c.cl);
    free(c.m);
    return 0;
}
