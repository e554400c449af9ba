/*
 * What the other kinds of locks cost against the plain one, when nobody else
 * wants them: the time of a pair, and what it costs the server's processor with
 * fifty in flight, where the scripts are all that counts. Short blocks of each
 * take turns, in a changing order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pairs.h"

#define CYCLES 1000
#define BLOCK  20 /* pairs of one subject, between two readings of the clock */

#define DEEP   50
#define ROUNDS 9
#define EACH   200 /* pairs of each of those in flight, a round */

enum { PLAIN, FAIR, WRITE, READ, LOCKS, ONE = LOCKS, EIGHT, SUBJECTS };

typedef struct kind {
    const char *name;
    double most_time, most_work; /* as multiples of the plain lock's */
} kind;

static const kind kinds[SUBJECTS] = {
    [PLAIN] = {"a plain lock", 0, 0},
    [FAIR] = {"a fair lock", 1.05, 1.25},
    [WRITE] = {"the side that writes", 1.1, 1.6},
    [READ] = {"the side that reads", 1.15, 2.1},
    [ONE] = {"one permit", 0, 1.4},
    [EIGHT] = {"eight permits", 0, 2.6},
};

static rlock *lock_of(rlock_client *cl, int which, int i)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    char name[40];
    rlock *lk;
    snprintf(name, sizeof name, "bench:%d:%d", which, i);
    o.fair = which == FAIR;
    if (which == READ)
        bench_ok(rlock_rw_new(cl, name, &lk, NULL));
    else if (which == WRITE)
        bench_ok(rlock_rw_new(cl, name, NULL, &lk));
    else
        bench_ok(rlock_new_ex(cl, name, strlen(name), &o, &lk));
    return lk;
}

/* --- time ----------------------------------------------------------------- */

/* Microseconds of a pair, and of the server for it. */
typedef struct cost {
    double us, server_us;
} cost;

static cost block(rlock *lk, redisContext *raw)
{
    double before = bench_server_us(raw);
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++) {
        bench_ok(rlock_lock(lk));
        bench_ok(rlock_unlock(lk));
    }
    int64_t ended = bench_now_ns();
    return (cost){(double)(ended - began) / 1000 / BLOCK,
                  (bench_server_us(raw) - before) / BLOCK};
}

/* What asking the server for its own time costs it, spread over a block. */
static double asking_us(redisContext *raw)
{
    double before = bench_server_us(raw);
    return (bench_server_us(raw) - before) / BLOCK;
}

/* of: the medians of each. */
static void tell_times(const cost of[LOCKS], double ping_us)
{
    char what[96];
    double plain_us = of[PLAIN].us - of[PLAIN].server_us;
    for (int i = PLAIN + 1; i < LOCKS; i++) {
        double us = of[i].us - of[i].server_us;
        snprintf(what, sizeof what,
                 "uncontended pair of %s, server apart, as a multiple of a "
                 "plain lock's",
                 kinds[i].name);
        bench_row(what, kinds[i].most_time, us / plain_us, "",
                  "%.1f µs against %.1f µs, PING %.1f µs", us, plain_us,
                  ping_us);
    }
    for (int i = PLAIN + 1; i < LOCKS; i++) {
        snprintf(what, sizeof what, "- with the server, %s", kinds[i].name);
        bench_note(what, "%.2f, %.1f µs against %.1f µs",
                   of[i].us / of[PLAIN].us, of[i].us, of[PLAIN].us);
    }
}

static void compare_times(rlock *const lk[LOCKS], redisContext *raw)
{
    static double us[LOCKS][CYCLES], server_us[LOCKS][CYCLES], ping_us[CYCLES],
        asked_us[CYCLES];
    cost median[LOCKS];
    bench_begin();
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        for (int i = 0; i < LOCKS; i++) {
            int which = (cycle + i) % LOCKS;
            cost c = block(lk[which], raw);
            us[which][cycle] = c.us;
            server_us[which][cycle] = c.server_us;
        }
        asked_us[cycle] = asking_us(raw);
        ping_us[cycle] = (double)bench_ping_ns(raw) / 1000;
    }
    double asked = bench_median(asked_us, CYCLES);
    for (int i = 0; i < LOCKS; i++)
        median[i] = (cost){bench_median(us[i], CYCLES),
                           bench_median(server_us[i], CYCLES) - asked};
    tell_times(median, bench_median(ping_us, CYCLES));
}

/* --- the server's processor ----------------------------------------------- */

/* One that takes permits and gives them back, one after the other. */
typedef struct taker {
    rlock_semaphore *of;
    int weight, left; /* pairs */
    int *under_way;
} taker;

typedef struct flight {
    loop on;
    request of[LOCKS][DEEP];
    taker taker[DEEP];
    redisContext *raw;
} flight;

static void take(taker *t);

static void given(rlock_permit *p, rlock_status s, void *arg)
{
    taker *t = arg;
    (void)p;
    bench_ok(s);
    if (--t->left > 0)
        take(t);
    else
        --*t->under_way;
}

static void taken(rlock_permit *p, rlock_status s, void *arg)
{
    bench_ok(s);
    bench_ok(rlock_permit_release_start(p, given, arg));
}

static void take(taker *t)
{
    bench_ok(rlock_semaphore_acquire_start(t->of, t->weight, RLOCK_FOREVER,
                                           RLOCK_WATCHDOG, taken, t));
}

static void take_permits(flight *f, int weight)
{
    f->on.under_way = DEEP;
    for (int i = 0; i < DEEP; i++) {
        taker *t = &f->taker[i];
        t->weight = weight;
        t->left = EACH;
        t->under_way = &f->on.under_way;
        take(t);
    }
    while (f->on.under_way > 0)
        loop_turn(&f->on);
}

/* Microseconds of the server for a pair. */
static double work_of(flight *f, int which)
{
    double before = bench_server_us(f->raw);
    if (which < LOCKS)
        loop_run(&f->on, f->of[which], DEEP, EACH);
    else
        take_permits(f, which == ONE ? 1 : 8);
    return (bench_server_us(f->raw) - before) / (DEEP * EACH);
}

static void compare_work(flight *f)
{
    static double us[SUBJECTS][ROUNDS];
    double median[SUBJECTS];
    bench_begin();
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SUBJECTS; i++) {
            int which = (round + i) % SUBJECTS;
            us[which][round] = work_of(f, which);
        }
    }
    for (int i = 0; i < SUBJECTS; i++)
        median[i] = bench_median(us[i], ROUNDS);
    for (int i = PLAIN + 1; i < SUBJECTS; i++) {
        char what[96];
        snprintf(what, sizeof what,
                 "- the server's processor time, 50 in flight, %s",
                 kinds[i].name);
        bench_row(what, kinds[i].most_work, median[i] / median[PLAIN], "",
                  "%.1f µs against %.1f µs", median[i], median[PLAIN]);
    }
}

/* -------------------------------------------------------------------------- */

static void flight_open(flight *f, const char *uri, rlock_client *cl)
{
    char name[40];
    f->on = (loop){.cl = cl, .fd = rlock_client_fd(cl)};
    f->raw = bench_connect(uri);
    for (int k = 0; k < DEEP; k++) {
        for (int i = 0; i < LOCKS; i++)
            f->of[i][k] = request_of(&f->on, lock_of(cl, i, k));
        snprintf(name, sizeof name, "bench:permits:%d", k);
        bench_ok(rlock_semaphore_new(cl, name, 8, &f->taker[k].of));
    }
}

static void flight_close(flight *f)
{
    for (int k = 0; k < DEEP; k++) {
        for (int i = 0; i < LOCKS; i++)
            request_free(&f->of[i][k]);
        rlock_semaphore_free(f->taker[k].of);
    }
    redisFree(f->raw);
}

int main(int argc, char **argv)
{
    static flight f;
    const char *uri = bench_uri(argc, argv);
    rlock_client *cl = bench_client(uri);
    rlock *lk[LOCKS];
    bench_place(uri, true);
    flight_open(&f, uri, cl);
    for (int i = 0; i < LOCKS; i++) {
        lk[i] = lock_of(cl, i, DEEP);
        block(lk[i], f.raw); /* connects, loads scripts */
    }
    compare_times(lk, f.raw);
    for (int i = 0; i < SUBJECTS; i++)
        work_of(&f, i); /* the same */
    compare_work(&f);
    for (int i = 0; i < LOCKS; i++)
        rlock_free(lk[i]);
    flight_close(&f);
    rlock_client_free(cl);
    return 0;
}
