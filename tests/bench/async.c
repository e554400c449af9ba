/*
 * Locks on an event loop, against the blocking calls, in turns: one at a time,
 * and 64 at a time. And what waits cost that are in progress, and a dispatch
 * with nothing to do.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "pairs.h"

#define CYCLES    400
#define BLOCK     20
#define AT_A_TIME 64
#define WAITS     10000
#define IDLE      1000000

/* --- pairs ---------------------------------------------------------------- */

/* us for a pair, when n requests make so many each. */
static double run(loop *l, request *r, int n, int pairs)
{
    int64_t began = bench_now_ns();
    loop_run(l, r, n, pairs);
    return (double)(bench_now_ns() - began) / 1000 / n / pairs;
}

static double run_blocking(rlock *lk)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++) {
        bench_ok(rlock_lock(lk));
        bench_ok(rlock_unlock(lk));
    }
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

enum { BLOCKING, ONE, MANY, PING, SUBJECTS };

static void compare(const char *uri, const char *how)
{
    static double us[SUBJECTS][CYCLES];
    loop l = {.cl = bench_client(uri)};
    redisContext *cx = bench_connect(uri);
    request r[AT_A_TIME];
    rlock *lk = bench_lock(l.cl, "bench:blocking");
    char what[128];
    l.fd = rlock_client_fd(l.cl);
    for (int i = 0; i < AT_A_TIME; i++)
        r[i] = request_new(&l, "bench:async", i);
    run(&l, r, AT_A_TIME, 4);
    run_blocking(lk);
    bench_begin();
    for (int i = 0; i < CYCLES; i++) {
        us[BLOCKING][i] = run_blocking(lk);
        us[ONE][i] = run(&l, r, 1, BLOCK);
        us[MANY][i] = run(&l, r, AT_A_TIME, 1);
        us[PING][i] = (double)bench_ping_ns(cx) / 1000;
    }
    double m[SUBJECTS];
    for (int i = 0; i < SUBJECTS; i++)
        m[i] = bench_median(us[i], CYCLES);
    snprintf(what, sizeof what, "a pair by callbacks, one at a time, %s", how);
    bench_row(what, 1.2, m[ONE] / m[BLOCKING], " blocking pairs",
              "%.1f µs against %.1f; PING %.1f µs", m[ONE], m[BLOCKING],
              m[PING]);
    snprintf(what, sizeof what, "- 64 at a time, %s", how);
    bench_row(what, 0.5, m[MANY] / m[BLOCKING], " blocking pairs", "%.1f µs",
              m[MANY]);
    redisFree(cx);
}

/* --- waits ---------------------------------------------------------------- */

static void until_waiting(rlock_client *cl, uint64_t n)
{
    rlock_stats st;
    do {
        bench_pause_us(10000);
        bench_ok(rlock_client_stats(cl, &st, sizeof st));
    } while (st.waiting_now < n);
    bench_pause_us(1500000); /* each has asked once more, with its bell */
}

static void wait_for_many(const char *uri)
{
    loop l = {.cl = bench_client(uri)};
    rlock_client *holder = bench_client(uri);
    request *r = bench_alloc(WAITS + 1, sizeof *r);
    l.fd = rlock_client_fd(l.cl);
    for (int i = 0; i <= WAITS; i++) {
        r[i] = request_new(&l, "bench:wait", i);
        char name[64];
        snprintf(name, sizeof name, "bench:wait:%d", i);
        bench_ok(rlock_acquire(bench_lock(holder, name), 0, 600000));
    }
    request_wait(&r[WAITS]); /* starts the threads */
    until_waiting(l.cl, 1);
    double before = bench_memory();
    int threads_before = bench_threads();
    for (int i = 0; i < WAITS; i++)
        request_wait(&r[i]);
    until_waiting(l.cl, WAITS + 1);
    double each = (bench_memory() - before) / WAITS;
    bench_row("threads that 10,000 waits start", 0,
              bench_threads() - threads_before, "", "there are %d",
              bench_threads());
    bench_row("memory of each of them", 1, each / 1024, " KiB",
              "growth of the resident set, without lock handle and owner");
    loop_cancel(&l);
}

static void dispatch_nothing(const char *uri)
{
    rlock_client *cl = bench_client(uri);
    rlock_client_fd(cl);
    int64_t began = bench_now_ns();
    for (int i = 0; i < IDLE; i++)
        rlock_client_dispatch(cl);
    bench_row("a dispatch without anything to do", 1,
              (double)(bench_now_ns() - began) / 1000 / IDLE, " µs", "-");
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    char tcp[64];
    compare(uri, "unix socket");
    bench_open_port(uri, tcp);
    compare(tcp, "TCP");
    wait_for_many(uri);
    dispatch_nothing(uri);
    return 0;
}
