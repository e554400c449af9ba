/*
 * What figures cost: pairs with histograms against pairs without, one at a time
 * and by 64 threads, each with a lock of its own; one record; and the text of
 * one client. The two sides take turns.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"

#include "bench.h"

#define CYCLES  3000
#define BLOCK   20
#define THREADS 64
#define ROUNDS  10
#define TURNS   8
#define RUN_NS  INT64_C(100000000)
#define RECORDS 20000000
#define TEXTS   2000

enum { OFF, ON, SIDES };

typedef struct side side;

typedef struct member {
    side *s;
    pthread_t thread;
    rlock *lk;
    long long pairs;
} member;

struct side {
    rlock_client *cl;
    rlock *lk;
    pthread_barrier_t begin;
    _Atomic int64_t end_ns;
    member of[THREADS];
};

static side side_of(const char *uri, bool metrics)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    side s = {.cl = NULL};
    opts.uri = uri;
    opts.metrics = metrics;
    bench_ok(rlock_client_new(&opts, &s.cl));
    s.lk = bench_lock(s.cl, metrics ? "bench:on" : "bench:off");
    for (int i = 0; i < THREADS; i++) {
        char name[32];
        snprintf(name, sizeof name, "bench:%d:%d", metrics, i);
        s.of[i].lk = bench_lock(s.cl, name);
    }
    return s;
}

static void free_side(side *s)
{
    for (int i = 0; i < THREADS; i++)
        rlock_free(s->of[i].lk);
    rlock_free(s->lk);
    rlock_client_free(s->cl);
}

static void pair(rlock *lk)
{
    bench_ok(rlock_lock(lk));
    bench_ok(rlock_unlock(lk));
}

/* --- one at a time -------------------------------------------------------- */

/* Microseconds for a pair. */
static double block(side *s)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++)
        pair(s->lk);
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

static void compare_pairs(side of[SIDES])
{
    static double us[SIDES][CYCLES];
    bench_begin();
    for (int i = 0; i < CYCLES; i++)
        for (int k = 0; k < SIDES; k++) {
            int side = (i + k) % SIDES;
            us[side][i] = block(&of[side]);
        }
    double off = bench_median(us[OFF], CYCLES);
    double on = bench_median(us[ON], CYCLES);
    bench_row(
        "an uncontended pair with `metrics`, as a multiple of one without",
        1.01, on / off, "", "%.2f µs against %.2f µs", on, off);
}

/* --- many threads --------------------------------------------------------- */

static void *run(void *arg)
{
    member *m = arg;
    pthread_barrier_wait(&m->s->begin);
    pthread_barrier_wait(&m->s->begin); /* the end is set */
    while (bench_now_ns() < atomic_load(&m->s->end_ns)) {
        pair(m->lk);
        m->pairs++;
    }
    return NULL;
}

/* Microseconds for a pair of all threads together. */
static double turn(side *s)
{
    long long pairs = 0;
    pthread_barrier_init(&s->begin, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++) {
        member *m = &s->of[i];
        m->s = s;
        m->pairs = 0;
        bench_check(pthread_create(&m->thread, NULL, run, m) == 0, "no thread");
    }
    pthread_barrier_wait(&s->begin);
    int64_t began = bench_now_ns();
    atomic_store(&s->end_ns, began + RUN_NS);
    pthread_barrier_wait(&s->begin);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(s->of[i].thread, NULL);
        pairs += s->of[i].pairs;
    }
    pthread_barrier_destroy(&s->begin);
    return (double)(bench_now_ns() - began) / 1000 / (double)pairs;
}

/*
 * Two clients that are made alike differ by more than what is looked for, as
 * their threads and connections fall into step in other ways. So clients are
 * made anew again and again, and a turn is compared with the one beside it only.
 */
static void crowd_round(const char *uri, int round, double ratios[TURNS])
{
    static side of[SIDES];
    for (int k = 0; k < SIDES; k++) {
        int side = (round + k) % SIDES;
        of[side] = side_of(uri, side == ON);
        turn(&of[side]);
    }
    for (int i = 0; i < TURNS; i++) {
        double us[SIDES];
        for (int k = 0; k < SIDES; k++) {
            int side = (i + k) % SIDES;
            us[side] = turn(&of[side]);
        }
        ratios[i] = us[ON] / us[OFF];
    }
    for (int k = 0; k < SIDES; k++)
        free_side(&of[k]);
}

static void compare_crowds(const char *uri)
{
    double ratios[ROUNDS * TURNS];
    bench_begin();
    for (int i = 0; i < ROUNDS; i++)
        crowd_round(uri, i, &ratios[i * TURNS]);
    double ratio = bench_median(ratios, ROUNDS * TURNS);
    bench_row("- pairs of 64 threads", 1.02, ratio, "",
              "%d pairs of clients; half of the turns between %.2f and %.2f",
              ROUNDS, ratios[ROUNDS * TURNS / 4],
              ratios[ROUNDS * TURNS * 3 / 4]);
}

/* --- a record, and a text ------------------------------------------------- */

static void measure_record(void)
{
    static rl_histogram h;
    bench_begin();
    int64_t began = bench_now_ns();
    for (int64_t i = 0; i < RECORDS; i++)
        rl_histogram_record(&h, i * 7919 % 1000000);
    double ns = (double)(bench_now_ns() - began) / RECORDS;
    bench_row("one record in a histogram", 25, ns, " ns", "times to 1 s");
}

static bool count(const char *bytes, size_t len, void *n)
{
    (void)bytes;
    *(size_t *)n += len;
    return true;
}

static void count_heads(const rlock_metric *m, void *arg)
{
    static char last[64];
    *(int *)arg += strcmp(m->name, last) != 0;
    snprintf(last, sizeof last, "%s", m->name);
}

static void measure_text(rlock_client *cl)
{
    size_t bytes = 0;
    int families = 0;
    bench_ok(rlock_metrics_each(cl, count_heads, &families));
    bench_begin();
    int64_t began = bench_now_ns();
    for (int i = 0; i < TEXTS; i++)
        bench_ok(rlock_metrics_write(&cl, 1, RLOCK_METRICS_OPENMETRICS, count,
                                     &bytes));
    double us = (double)(bench_now_ns() - began) / 1000 / TEXTS;
    bench_row("the figures of a client as text", 100, us, " µs",
              "%d families, 4 of them histograms: %.1f KB", families,
              (double)bytes / TEXTS / 1000);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    side of[SIDES] = {side_of(uri, false), side_of(uri, true)};
    if (!bench_place(uri, true))
        bench_note("- of the next rows", "client and server are wherever the "
                                         "kernel put them");
    for (int k = 0; k < SIDES; k++)
        block(&of[k]); /* connects, loads scripts */
    compare_pairs(of);
    compare_crowds(uri);
    measure_record();
    measure_text(of[ON].cl);
    for (int k = 0; k < SIDES; k++)
        free_side(&of[k]);
    return 0;
}
