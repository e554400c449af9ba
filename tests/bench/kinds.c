/*
 * What the other kinds of locks cost against the plain one, when nobody else
 * wants them: the time of a pair, and what it costs the server's processor with
 * fifty in flight, where the scripts are all that counts. Short blocks of each
 * take turns, in a changing order.
 */
#include <stdio.h>
#include <stdlib.h>

#include "pairs.h"

#define CYCLES 1000
#define BLOCK  20 /* pairs of one subject, between two readings of the clock */

#define DEEP   50
#define ROUNDS 9
#define EACH   200 /* pairs of each of those in flight, a round */

enum { PLAIN, FAIR, SUBJECTS };

typedef struct kind {
    const char *name;
    double most_time, most_work; /* as multiples of the plain lock's */
} kind;

static const kind kinds[SUBJECTS] = {
    [PLAIN] = {"plain", 0, 0},
    [FAIR] = {"fair", 1.05, 1.25},
};

static rlock *lock_of(rlock_client *cl, int which, int i)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    char name[40];
    rlock *lk;
    int len = snprintf(name, sizeof name, "bench:%s:%d", kinds[which].name, i);
    o.fair = which == FAIR;
    bench_ok(rlock_new_ex(cl, name, (size_t)len, &o, &lk));
    return lk;
}

/* --- time ----------------------------------------------------------------- */

/* Microseconds of a pair. */
static double block(rlock *lk)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++) {
        bench_ok(rlock_lock(lk));
        bench_ok(rlock_unlock(lk));
    }
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

static void compare_times(rlock *const lk[SUBJECTS], redisContext *raw)
{
    static double us[SUBJECTS][CYCLES], ping_us[CYCLES];
    double median[SUBJECTS];
    bench_begin();
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        for (int i = 0; i < SUBJECTS; i++) {
            int which = (cycle + i) % SUBJECTS;
            us[which][cycle] = block(lk[which]);
        }
        ping_us[cycle] = (double)bench_ping_ns(raw) / 1000;
    }
    for (int i = 0; i < SUBJECTS; i++)
        median[i] = bench_median(us[i], CYCLES);
    double ping = bench_median(ping_us, CYCLES);
    for (int i = PLAIN + 1; i < SUBJECTS; i++) {
        char what[96];
        snprintf(what, sizeof what,
                 "uncontended pair of a %s lock, as a multiple of a plain one",
                 kinds[i].name);
        bench_row(what, kinds[i].most_time, median[i] / median[PLAIN], "",
                  "%.1f µs against %.1f µs, PING %.1f µs", median[i],
                  median[PLAIN], ping);
    }
}

/* --- the server's processor ----------------------------------------------- */

typedef struct flight {
    loop on;
    request of[SUBJECTS][DEEP];
    redisContext *raw;
} flight;

/* Microseconds of the server for a pair. */
static double work_of(flight *f, int which)
{
    double before = bench_server_us(f->raw);
    loop_run(&f->on, f->of[which], DEEP, EACH);
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

int main(int argc, char **argv)
{
    static flight f;
    const char *uri = bench_uri(argc, argv);
    rlock_client *cl = bench_client(uri);
    rlock *lk[SUBJECTS];
    bench_place(uri, true);
    f.on = (loop){.cl = cl, .fd = rlock_client_fd(cl)};
    f.raw = bench_connect(uri);
    for (int i = 0; i < SUBJECTS; i++) {
        lk[i] = lock_of(cl, i, DEEP);
        block(lk[i]); /* connects, loads scripts */
        for (int k = 0; k < DEEP; k++)
            f.of[i][k] = request_of(&f.on, lock_of(cl, i, k));
    }
    compare_times(lk, f.raw);
    compare_work(&f);
    for (int i = 0; i < SUBJECTS; i++) {
        rlock_free(lk[i]);
        for (int k = 0; k < DEEP; k++)
            request_free(&f.of[i][k]);
    }
    redisFree(f.raw);
    rlock_client_free(cl);
    return 0;
}
