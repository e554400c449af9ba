/*
 * What a lock and its unlock cost when it is held on several servers (Red) or
 * consists of several locks (Multi), against a lock on one server, and Red also
 * against the least that Redlock needs: the commands of a lock without a library
 * to each server, which work beside each other. One sample
 * of each in turn, in a changing order. The program starts four servers beside
 * the one it is given.
 *
 * A Red call returns with the majority, and the other nodes' work goes on
 * behind it. Back to back, the next sample pays for that; spaced, it is over
 * by then, but every sample finds servers that have gone to sleep.
 *
 * The client has one processor and the single lock's server the other. The
 * four others are where the kernel puts them: five on one processor would
 * measure that processor, which is done as well.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rlock/multi.h>

#include "servers.h"

#define NODES    5
#define LOCKS    5
#define DOWN     2    /* the last ones */
#define ROUNDS   1000 /* of one sample of each kind */
#define WARM_UP  20
#define SPACE_US 500
#define COUNTED  200 /* pairs, for the count of commands */

typedef struct subjects {
    redisContext *raw, *each[NODES];
    char sha1[NODES][41];
    int up; /* of each, whom Redlock asks */
    rlock_client *one, *node[NODES];
    rlock *single, *red, *member[LOCKS], *multi;
} subjects;

enum { PING, SINGLE, RED, MULTI, REDLOCK, KINDS };

static bench_server servers[NODES];

/* --- servers ------------------------------------------------------------- */

static bool place_all(bool together)
{
    bool placed = true;
    for (int i = NODES - 1; i > 0; i--)
        placed = (together ? bench_place(servers[i].uri, true)
                           : bench_displace(servers[i].uri)) &&
                 placed;
    return bench_place(servers[0].uri, true) && placed;
}

/* --- samples ------------------------------------------------------------- */

static void prepare(subjects *s)
{
    char name[32];
    s->up = NODES;
    s->raw = bench_connect(servers[0].uri);
    s->one = bench_client(servers[0].uri);
    for (int i = 0; i < NODES; i++) {
        s->node[i] = bench_client(servers[i].uri);
        s->each[i] = bench_connect(servers[i].uri);
        bench_load_raw(s->each[i], s->sha1[i]);
    }
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "bench:member:%d", i);
        s->member[i] = bench_lock(s->one, name);
    }
    s->single = bench_lock(s->one, "bench:lock");
    bench_ok(rlock_red_new(s->node, NODES, "bench:red", &s->red));
    bench_ok(rlock_multi_new(s->member, LOCKS, &s->multi));
}

static void dismiss(subjects *s)
{
    rlock_free(s->multi);
    rlock_free(s->red);
    rlock_free(s->single);
    for (int i = 0; i < LOCKS; i++)
        rlock_free(s->member[i]);
    for (int i = 0; i < NODES; i++) {
        rlock_client_free(s->node[i]);
        redisFree(s->each[i]);
    }
    rlock_client_free(s->one);
    redisFree(s->raw);
}

static void pair(rlock *lk)
{
    bench_ok(rlock_lock(lk));
    bench_ok(rlock_unlock(lk));
}

/* Sends to all what has been appended, and waits for their answers. */
static void answered(subjects *s, int type)
{
    int done = 0;
    void *reply;
    for (int i = 0; i < s->up; i++)
        bench_check(redisBufferWrite(s->each[i], &done) == REDIS_OK && done,
                    "write");
    for (int i = 0; i < s->up; i++) {
        bench_check(redisGetReply(s->each[i], &reply) == REDIS_OK &&
                        ((redisReply *)reply)->type == type,
                    "Redlock");
        freeReplyObject(reply);
    }
}

static void redlock_pair(subjects *s)
{
    for (int i = 0; i < s->up; i++)
        redisAppendCommand(s->each[i], "SET bench:redlock %s NX PX 30000",
                           BENCH_VALUE);
    answered(s, REDIS_REPLY_STATUS);
    for (int i = 0; i < s->up; i++)
        redisAppendCommand(s->each[i], "EVALSHA %s 1 bench:redlock %s",
                           s->sha1[i], BENCH_VALUE);
    answered(s, REDIS_REPLY_INTEGER);
}

/* In microseconds. */
static double sample(subjects *s, int kind)
{
    rlock *const locks[KINDS] = {
        [SINGLE] = s->single, [RED] = s->red, [MULTI] = s->multi};
    int64_t began = bench_now_ns();
    if (kind == PING)
        bench_ask(s->raw, "PING");
    else if (kind == REDLOCK)
        redlock_pair(s);
    else
        pair(locks[kind]);
    return (double)(bench_now_ns() - began) / 1000;
}

/* A new order each time: what came before leaves the caches warm, or not. */
static void shuffle(int order[KINDS])
{
    for (int i = KINDS - 1; i > 0; i--) {
        int j = rand() % (i + 1), kind = order[i];
        order[i] = order[j];
        order[j] = kind;
    }
}

static void measure(subjects *s, bool spaced, double median[KINDS])
{
    int order[KINDS] = {PING, SINGLE, RED, MULTI, REDLOCK};
    double *us[KINDS];
    for (int kind = 0; kind < KINDS; kind++)
        us[kind] = bench_alloc(ROUNDS, sizeof(double));
    for (int round = -WARM_UP; round < ROUNDS; round++) {
        shuffle(order);
        for (int i = 0; i < KINDS; i++) {
            int kind = order[i];
            if (spaced)
                bench_pause_us(SPACE_US);
            double took = sample(s, kind);
            if (round >= 0)
                us[kind][round] = took;
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        median[kind] = bench_median(us[kind], ROUNDS);
        free(us[kind]);
    }
}

/* --- rows ---------------------------------------------------------------- */

typedef struct figure {
    double spaced[KINDS], dense[KINDS];
} figure;

static figure measure_both(subjects *s)
{
    figure f;
    measure(s, true, f.spaced);
    measure(s, false, f.dense);
    return f;
}

static void row(const char *what, double limit, const figure *f, int kind)
{
    double dense = f->dense[kind] / f->dense[SINGLE];
    double spaced = f->spaced[kind] / f->spaced[SINGLE];
    if (limit > 0)
        bench_row(what, limit, dense, "",
                  "%.1f µs against %.1f µs, PING %.1f µs; spaced %.2f",
                  f->dense[kind], f->dense[SINGLE], f->dense[PING], spaced);
    else
        bench_note(
            what, "%.2f; %.1f µs against %.1f µs, PING %.1f µs; spaced %.2f",
            dense, f->dense[kind], f->dense[SINGLE], f->dense[PING], spaced);
}

/* Script calls for a pair, on all servers. */
static double calls_for(rlock *lk)
{
    long long before = 0, after = 0;
    for (int i = 0; i < NODES; i++)
        before += bench_script_calls(servers[i].uri);
    for (int i = 0; i < COUNTED; i++) {
        pair(lk);
        bench_pause_us(SPACE_US);
    }
    for (int i = 0; i < NODES; i++)
        after += bench_script_calls(servers[i].uri);
    return (double)(after - before) / COUNTED;
}

typedef struct figures {
    figure whole, dead, hung;
    double red_calls, multi_calls;
} figures;

/* The last servers after the first use: dead, then hung. */
static void run(figures *f, bool together)
{
    subjects s;
    prepare(&s);
    f->whole = measure_both(&s);
    f->red_calls = calls_for(s.red);
    f->multi_calls = calls_for(s.multi);
    s.up = NODES - DOWN;
    for (int i = NODES - DOWN; i < NODES; i++)
        bench_stop(&servers[i]);
    f->dead = measure_both(&s);
    dismiss(&s);

    for (int i = NODES - DOWN; i < NODES; i++)
        bench_start(&servers[i]);
    place_all(together);
    prepare(&s);
    pair(s.red);
    s.up = NODES - DOWN;
    bench_pause_us(SPACE_US);
    for (int i = NODES - DOWN; i < NODES; i++)
        bench_hang(&servers[i]);
    f->hung = measure_both(&s);
    for (int i = NODES - DOWN; i < NODES; i++)
        bench_stop(&servers[i]);
    dismiss(&s);
    for (int i = NODES - DOWN; i < NODES; i++)
        bench_start(&servers[i]);
}

int main(int argc, char **argv)
{
    figures f, together;
    bench_start_servers(servers, NODES, bench_uri(argc, argv));
    bool placed = place_all(false);
    run(&f, false);
    row("Red on 5 servers, uncontended pair, as a multiple of a single lock's",
        2.5, &f.whole, RED);
    row("- the same with 2 of 5 dead", 3, &f.dead, RED);
    row("- the same with 2 of 5 hung", 3, &f.hung, RED);
    row("Multi of 5 locks on one server, uncontended pair, as a multiple of "
        "one lock's",
        1.35, &f.whole, MULTI);
    bench_note("- script calls for a pair",
               "Red %.2f on %d servers, Multi %.2f for %d locks", f.red_calls,
               NODES, f.multi_calls, LOCKS);
    bench_note("- Red, as a multiple of Redlock by raw hiredis",
               "%.2f; %.1f µs against %.1f µs",
               f.whole.dense[RED] / f.whole.dense[REDLOCK], f.whole.dense[RED],
               f.whole.dense[REDLOCK]);
    if (placed && place_all(true)) {
        run(&together, true);
        row("- all servers on one processor: Red", 0, &together.whole, RED);
        row("- - 2 of 5 dead", 0, &together.dead, RED);
        row("- - 2 of 5 hung", 0, &together.hung, RED);
    }
    return 0;
}
