/*
 * What a lock and its unlock cost when nobody else wants it, against the least
 * that any lock on Redis needs: SET NX PX, and a script that compares and
 * deletes. Short blocks of each take turns, in a changing order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define CYCLES 1500
#define BLOCK  20 /* of one subject, between two readings of the clock */

#define VALUE "7c9e6679-7425-40de-944b-e07fc1f90ae7"

typedef struct server {
    redisContext *raw;
    char sha1[41]; /* of compare-and-delete */
    rlock *lk;
} server;

static void raw_pair(server *s)
{
    redisReply *r = redisCommand(s->raw, "SET bench:raw %s NX PX 30000", VALUE);
    bench_check(r && r->type == REDIS_REPLY_STATUS, "SET");
    freeReplyObject(r);
    r = redisCommand(s->raw, "EVALSHA %s 1 bench:raw %s", s->sha1, VALUE);
    bench_check(r && r->type == REDIS_REPLY_INTEGER && r->integer == 1,
                "EVALSHA");
    freeReplyObject(r);
}

static void lock_pair(server *s)
{
    bench_ok(rlock_lock(s->lk));
    bench_ok(rlock_unlock(s->lk));
}

static void trylock_pair(server *s)
{
    bench_ok(rlock_trylock(s->lk));
    bench_ok(rlock_unlock(s->lk));
}

static void ping(server *s)
{
    bench_ask(s->raw, "PING");
}

enum { RAW, LOCK, TRYLOCK, PING, SUBJECTS };

static void (*const subjects[SUBJECTS])(server *) = {
    [RAW] = raw_pair,
    [LOCK] = lock_pair,
    [TRYLOCK] = trylock_pair,
    [PING] = ping,
};

static void load_script(server *s)
{
    redisReply *r =
        redisCommand(s->raw, "SCRIPT LOAD %s",
                     "if redis.call('GET', KEYS[1]) == ARGV[1] then "
                     "return redis.call('DEL', KEYS[1]) else return 0 end");
    bench_check(r && r->type == REDIS_REPLY_STRING && r->len == 40, "SCRIPT");
    strcpy(s->sha1, r->str);
    freeReplyObject(r);
}

/* Microseconds for one round of the subject. */
static double block(server *s, int subject)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++)
        subjects[subject](s);
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

static void measure(server *s, double *us[SUBJECTS])
{
    for (int i = 0; i < SUBJECTS; i++)
        block(s, i); /* connects, loads scripts */
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        for (int i = 0; i < SUBJECTS; i++) {
            int subject = (cycle + i) % SUBJECTS;
            us[subject][cycle] = block(s, subject);
        }
    }
}

static void compare(server *s, double median[SUBJECTS])
{
    double *us[SUBJECTS];
    for (int i = 0; i < SUBJECTS; i++)
        us[i] = bench_alloc(CYCLES, sizeof(double));
    measure(s, us);
    for (int i = 0; i < SUBJECTS; i++) {
        median[i] = bench_median(us[i], CYCLES);
        free(us[i]);
    }
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    double apart[SUBJECTS], together[SUBJECTS];
    bool placed = bench_place(uri, true);
    rlock_client *cl = bench_client(uri);
    server s = {.raw = bench_connect(uri), .lk = bench_lock(cl, "bench:lock")};
    load_script(&s);
    compare(&s, apart);
    bench_row("uncontended `rlock_lock` + `rlock_unlock`, as a multiple of "
              "`SET NX PX` + compare-and-delete",
              1.10, apart[LOCK] / apart[RAW], "", "%.1f µs against %.1f µs; %s",
              apart[LOCK], apart[RAW],
              placed ? "the server has a processor of its own"
                     : "wherever the kernel put them");
    bench_note("- the same with `rlock_trylock`", "%.2f",
               apart[TRYLOCK] / apart[RAW]);
    bench_note("- PING", "%.1f µs", apart[PING]);
    if (bench_place(uri, false)) {
        compare(&s, together);
        bench_note("- client and server on one processor",
                   "%.2f; %.1f µs against %.1f µs, PING %.1f µs",
                   together[LOCK] / together[RAW], together[LOCK],
                   together[RAW], together[PING]);
    }
    rlock_free(s.lk);
    rlock_client_free(cl);
    redisFree(s.raw);
    return 0;
}
