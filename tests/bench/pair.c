/*
 * What a lock and its unlock cost when nobody else wants it, against the least
 * that any lock on Redis needs: SET NX PX, and a script that compares and
 * deletes; as hiredis does that, which sleeps until the answer comes, and as it
 * does if it looks out for the answer, as rlock does. Short blocks of each take
 * turns, in a changing order.
 *
 * Beside a neighbour that burns the client's processor what counts is how many
 * pairs come about in a time: most of them take no longer than without it, and
 * a few wait for their turn.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "rounds.h"

#define CYCLES 1500
#define BLOCK  20 /* of one subject, between two readings of the clock */

#define BUSY_CYCLES   60
#define BUSY_BLOCK_NS 30000000

typedef struct server {
    rlock_client *cl;
    redisContext *raw;
    redisContext *looking; /* only where nobody else wants the processor */
    char sha1[41];         /* of compare-and-delete */
    rlock *lk;
    rlock *local; /* with local_levels */
} server;

static void raw_pair(server *s)
{
    bench_raw_pair(s->raw, s->sha1, "bench:raw");
}

/* As redisCommand(), which never sleeps. */
static void look_out(redisContext *c, int type)
{
    int written = 0;
    void *reply = NULL;
    while (!written)
        bench_check(redisBufferWrite(c, &written) == REDIS_OK, "write");
    while (!reply)
        bench_check(redisBufferRead(c) == REDIS_OK &&
                        redisGetReplyFromReader(c, &reply) == REDIS_OK,
                    "read");
    bench_check(((redisReply *)reply)->type == type, "another answer");
    freeReplyObject(reply);
}

static void looking_pair(server *s)
{
    if (!s->looking)
        return;
    redisAppendCommand(s->looking, "SET bench:looking %s NX PX 30000",
                       BENCH_VALUE);
    look_out(s->looking, REDIS_REPLY_STATUS);
    redisAppendCommand(s->looking, "EVALSHA %s 1 bench:looking %s", s->sha1,
                       BENCH_VALUE);
    look_out(s->looking, REDIS_REPLY_INTEGER);
}

static redisContext *connect_looking(const char *uri)
{
    redisContext *c = bench_connect(uri);
    int flags = fcntl(c->fd, F_GETFL);
    bench_check(fcntl(c->fd, F_SETFL, flags | O_NONBLOCK) == 0, "O_NONBLOCK");
    c->flags &= ~REDIS_BLOCK;
    return c;
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

static void nested_pairs(server *s)
{
    for (int i = 0; i < 3; i++)
        bench_ok(rlock_lock(s->local));
    for (int i = 0; i < 3; i++)
        bench_ok(rlock_unlock(s->local));
}

static void ping(server *s)
{
    bench_ask(s->raw, "PING");
}

enum { RAW, LOOKING, LOCK, TRYLOCK, NESTED, PING, SUBJECTS };

static void (*const subjects[SUBJECTS])(server *) = {
    [RAW] = raw_pair,         [LOOKING] = looking_pair, [LOCK] = lock_pair,
    [TRYLOCK] = trylock_pair, [NESTED] = nested_pairs,  [PING] = ping,
};

/* Microseconds for one round of the subject. */
static double block(server *s, int subject)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++)
        subjects[subject](s);
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

/* The same of the processor's time, of all threads of this process. */
static double block_cpu(server *s, int subject)
{
    double began_s = bench_cpu_s();
    block(s, subject);
    return (bench_cpu_s() - began_s) * 1e6 / BLOCK;
}

static double long_block(server *s, int subject)
{
    int64_t began = bench_now_ns(), now;
    int rounds = 0;
    do {
        subjects[subject](s);
        rounds++;
        now = bench_now_ns();
    } while (now - began < BUSY_BLOCK_NS);
    return (double)(now - began) / 1000 / rounds;
}

/* What is measured of a subject at a time, and how often. */
typedef struct yardstick {
    double (*one)(server *s, int subject);
    int cycles;
} yardstick;

static const yardstick quiet = {block, CYCLES}, cpu = {block_cpu, CYCLES},
                       busy = {long_block, BUSY_CYCLES};

static void measure(server *s, const yardstick *y, double *us[SUBJECTS])
{
    for (int i = 0; i < SUBJECTS; i++)
        block(s, i); /* connects, loads scripts */
    for (int cycle = 0; cycle < y->cycles; cycle++) {
        for (int i = 0; i < SUBJECTS; i++) {
            int subject = (cycle + i) % SUBJECTS;
            us[subject][cycle] = y->one(s, subject);
        }
    }
}

static void compare(server *s, const yardstick *y, double median[SUBJECTS])
{
    double *us[SUBJECTS];
    for (int i = 0; i < SUBJECTS; i++)
        us[i] = bench_alloc((size_t)y->cycles, sizeof(double));
    bench_begin();
    measure(s, y, us);
    for (int i = 0; i < SUBJECTS; i++) {
        median[i] = bench_median(us[i], (size_t)y->cycles);
        free(us[i]);
    }
}

static void compare_looking(server *s, const char *uri, double median[SUBJECTS])
{
    s->looking = connect_looking(uri);
    compare(s, &quiet, median);
    redisFree(s->looking);
    s->looking = NULL;
}

static rlock *local_lock(rlock_client *cl)
{
    static const char name[] = "bench:nested";
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    opts.local_levels = true;
    bench_ok(rlock_new_ex(cl, name, sizeof name - 1, &opts, &lk));
    return lk;
}

static server meet(const char *uri)
{
    rlock_client *cl = bench_client(uri);
    server s = {.cl = cl,
                .raw = bench_connect(uri),
                .lk = bench_lock(cl, "bench:lock"),
                .local = local_lock(cl)};
    bench_load_raw(s.raw, s.sha1);
    return s;
}

static void part(server *s)
{
    rlock_free(s->lk);
    rlock_free(s->local);
    rlock_client_free(s->cl);
    redisFree(s->raw);
}

/* It burns the processor it is started on, until it is stopped. */
static void *neighbour(void *stop)
{
    while (!atomic_load((atomic_bool *)stop))
        ;
    return NULL;
}

static void beside_neighbour(server *s, double median[SUBJECTS])
{
    pthread_t thread;
    atomic_bool stop = false;
    bench_check(pthread_create(&thread, NULL, neighbour, &stop) == 0,
                "no thread");
    compare(s, &busy, median);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

static void row(const char *what, double limit, const double us[SUBJECTS])
{
    bench_row(what, limit, us[LOCK] / us[RAW], "",
              "%.1f µs against %.1f µs, with `rlock_trylock` %.1f µs, PING "
              "%.1f µs",
              us[LOCK], us[RAW], us[TRYLOCK], us[PING]);
}

static void row_of_cpu(server *s, const char *what)
{
    double us[SUBJECTS];
    compare(s, &cpu, us);
    bench_row(what, 1.2, us[LOCK] / us[RAW], "", "%.1f µs against %.1f µs",
              us[LOCK], us[RAW]);
}

static void rows_looking(server *s, const char *uri)
{
    double us[SUBJECTS];
    compare_looking(s, uri, us);
    row("uncontended `rlock_lock` + `rlock_unlock`, as a multiple of `SET NX "
        "PX` + compare-and-delete, Unix socket",
        1.10, us);
    bench_row("- three levels deep with `local_levels`, as a multiple of one",
              1.05, us[NESTED] / us[LOCK], "", "%.1f µs", us[NESTED]);
    bench_note("- the uncontended pair, as a multiple of the same by hiredis "
               "that looks out for its answers",
               "%.2f; %.1f µs against %.1f µs", us[LOCK] / us[LOOKING],
               us[LOCK], us[LOOKING]);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    double us[SUBJECTS];
    char tcp[64];
    bool placed = bench_place(uri, true);
    bench_open_port(uri, tcp);
    server local = meet(uri), remote = meet(tcp);
    if (!placed)
        bench_note("- of the next rows", "client and server are wherever the "
                                         "kernel put them");
    rows_looking(&local, uri);
    compare(&remote, &quiet, us);
    row("- the uncontended pair over TCP", 1.10, us);
    beside_neighbour(&local, us);
    row("- beside a busy neighbour on the client's processor, Unix socket", 1.5,
        us);
    beside_neighbour(&remote, us);
    row("- the same over TCP", 1.5, us);
    if (placed && bench_place(uri, false)) {
        compare(&local, &quiet, us);
        bench_note("- client and server on one processor, quiet",
                   "%.2f; %.1f µs against %.1f µs, PING %.1f µs",
                   us[LOCK] / us[RAW], us[LOCK], us[RAW], us[PING]);
    }
    bench_place(uri, true);
    row_of_cpu(&local, "- the client's processor for a pair, Unix socket, as a "
                       "multiple of that of raw hiredis");
    row_of_cpu(&remote, "- the same over TCP");
    part(&local);
    part(&remote);
    return 0;
}
