/*
 * peers NAME PROGRAM [NAME PROGRAM]... URI
 *
 * What an uncontended pair costs beside that of other libraries, and beside raw
 * hiredis with a connection for each thread: by one thread, and by 16 with a
 * lock each. Over TCP, since not all of them have Unix sockets.
 *
 * Each other library has a program of its own, which gets the server's port. To
 * each line "THREADS PAIRS" it makes so many pairs with so many threads, who
 * take them from one heap, and answers how many microseconds that took. So its
 * blocks and ours take turns, and none of them runs beside another one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

#define MOST    16 /* threads */
#define CYCLES  300
#define RUN_NS  INT64_C(25000000000) /* fewer cycles on a busy machine */
#define WARM_NS INT64_C(5000000000)  /* Java compiles what is used often */
#define PEERS   4

/* Blocks of one thread are short, so that few are cut in two. */
typedef struct shape {
    int threads, pairs; /* of a block */
    const char *what;
} shape;

static const shape shapes[] = {
    {1, 50, "one thread"},
    {MOST, 200 * MOST, "16 threads with a lock each"},
};

typedef struct local local;

typedef struct member {
    local *of;
    pthread_t thread;
    rlock *lk;
    redisContext *raw;
    char raw_name[32];
} member;

/* What runs in this process. */
struct local {
    rlock_client *cl;
    char sha1[41]; /* of compare-and-delete */
    void (*round)(member *m);
    atomic_int left; /* rounds that no thread has begun */
    member m[MOST];
};

/* Something that is measured, here or, if round is NULL, in a program. */
typedef struct subject {
    const char *name, *program;
    void (*round)(member *m);
    FILE *ask, *answer;
    double us[CYCLES]; /* for a pair */
    double median;
} subject;

enum { RAW, LOCK, PING, OTHERS };

static void raw_pair(member *m)
{
    bench_raw_pair(m->raw, m->of->sha1, m->raw_name);
}

static void lock_pair(member *m)
{
    bench_ok(rlock_lock(m->lk));
    bench_ok(rlock_unlock(m->lk));
}

static void ping(member *m)
{
    bench_ask(m->raw, "PING");
}

/* --- one block ----------------------------------------------------------- */

static void *work(void *arg)
{
    member *m = arg;
    while (atomic_fetch_sub(&m->of->left, 1) > 0)
        m->of->round(m);
    return NULL;
}

/* This thread is the first of them. */
static double own_block(local *l, const shape *sh)
{
    int64_t began = bench_now_ns();
    atomic_store(&l->left, sh->pairs);
    for (int i = 1; i < sh->threads; i++)
        bench_check(pthread_create(&l->m[i].thread, NULL, work, &l->m[i]) == 0,
                    "no thread");
    work(&l->m[0]);
    for (int i = 1; i < sh->threads; i++)
        pthread_join(l->m[i].thread, NULL);
    return (double)(bench_now_ns() - began) / 1000;
}

static double their_block(const subject *s, const shape *sh)
{
    double us = 0;
    fprintf(s->ask, "%d %d\n", sh->threads, sh->pairs);
    bench_check(fflush(s->ask) == 0 && fscanf(s->answer, "%lf", &us) == 1,
                s->name);
    return us;
}

/* The time of the block, in us, by the pairs of all its threads. */
static double block(local *l, const subject *s, const shape *sh)
{
    l->round = s->round;
    double us = s->round ? own_block(l, sh) : their_block(s, sh);
    return us / sh->pairs;
}

/* --- all of them --------------------------------------------------------- */

static void meet(local *l, const char *tcp)
{
    l->cl = bench_client(tcp);
    for (int i = 0; i < MOST; i++) {
        member *m = &l->m[i];
        char name[32];
        snprintf(name, sizeof name, "bench:%d", i);
        snprintf(m->raw_name, sizeof m->raw_name, "raw:%d", i);
        m->of = l;
        m->lk = bench_lock(l->cl, name);
        m->raw = bench_connect(tcp);
    }
    bench_load_raw(l->m[0].raw, l->sha1);
}

static void part(local *l)
{
    for (int i = 0; i < MOST; i++) {
        rlock_free(l->m[i].lk);
        redisFree(l->m[i].raw);
    }
    rlock_client_free(l->cl);
}

static void start(subject *s, const char *tcp)
{
    int in[2], out[2];
    bench_check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0,
                "no pipe");
    if (bench_fork()) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execl(s->program, s->program, strrchr(tcp, ':') + 1, (char *)NULL);
        _exit(1);
    }
    close(in[0]);
    close(out[1]);
    s->ask = fdopen(in[1], "w");
    s->answer = fdopen(out[0], "r");
    bench_check(s->ask && s->answer, "no stream");
}

static void stop(subject *s)
{
    fclose(s->ask); /* it ends at the end of its input */
    bench_join();
    fclose(s->answer);
}

static void warm(local *l, const subject *s, const shape *sh)
{
    int64_t end = bench_now_ns() + WARM_NS;
    do
        block(l, s, sh);
    while (!s->round && bench_now_ns() < end);
}

static void measure(local *l, subject *s, int n, const shape *sh)
{
    int cycle = 0;
    for (int i = 0; i < n; i++)
        warm(l, &s[i], sh);
    bench_begin();
    int64_t end = bench_now_ns() + RUN_NS;
    for (; cycle < CYCLES && bench_now_ns() < end; cycle++) {
        for (int i = 0; i < n; i++) {
            int k = (cycle + i) % n;
            s[k].us[cycle] = block(l, &s[k], sh);
        }
    }
    for (int i = 0; i < n; i++)
        s[i].median = bench_median(s[i].us, (size_t)cycle);
}

static void row(const subject *s, const subject *other, const shape *sh)
{
    char what[160];
    double us = s[LOCK].median, raw = s[RAW].median;
    snprintf(what, sizeof what,
             "uncontended pair over TCP, %s, as a multiple of that of %s",
             sh->what, other->name);
    bench_row(what, 1, us / other->median, "",
              "%.1f µs against %.1f µs; as multiples of raw hiredis' %.1f µs "
              "%.2f and %.2f; PING %.1f µs",
              us, other->median, raw, us / raw, other->median / raw,
              s[PING].median);
}

/* All that runs is started anew, since bench_place() moves nothing else. */
static void compare(subject *s, int n, const char *tcp, const shape *sh)
{
    local l = {0};
    meet(&l, tcp);
    for (int i = OTHERS; i < n; i++)
        start(&s[i], tcp);
    measure(&l, s, n, sh);
    for (int i = OTHERS; i < n; i++)
        row(s, &s[i], sh);
    for (int i = OTHERS; i < n; i++)
        stop(&s[i]);
    part(&l);
}

int main(int argc, char **argv)
{
    static subject s[OTHERS + PEERS] = {[RAW] = {.round = raw_pair},
                                        [LOCK] = {.round = lock_pair},
                                        [PING] = {.round = ping}};
    int n = OTHERS;
    char tcp[64];
    bench_check(argc >= 4 && argc % 2 == 0 && argc / 2 - 1 <= PEERS,
                "usage: peers NAME PROGRAM [NAME PROGRAM]... unix:///path");
    const char *uri = bench_uri(2, argv + argc - 2);
    for (int i = 1; i < argc - 1; i += 2) {
        s[n].name = argv[i];
        s[n++].program = argv[i + 1];
    }
    bench_open_port(uri, tcp);
    if (!bench_place(uri, true))
        bench_note("- of the next rows", "client and server are wherever the "
                                         "kernel put them");
    compare(s, n, tcp, &shapes[0]);
    bench_displace(uri);
    compare(s, n, tcp, &shapes[1]);
    return 0;
}
