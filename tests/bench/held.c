/*
 * What 100,000 locks cost the client that holds them: memory, and the CPU of
 * one round of renewals, of fewer locks, too. Both come from the process as a
 * whole, all threads together, while the main thread sleeps. And what it costs
 * to renew as many by raw hiredis, by a script for each.
 */
#include <stdio.h>
#include <string.h>

#include "rounds.h"

#define LOCKS 100000
#define STEPS 3

static const int held[STEPS] = {1000, 10000, LOCKS};

static rlock *take(rlock_client *cl, int i)
{
    char name[32];
    snprintf(name, sizeof name, "bench:%d", i);
    rlock *lk = bench_lock(cl, name);
    bench_ok(rlock_lock(lk));
    return lk;
}

/* --- raw ------------------------------------------------------------------ */

static void load_raw(redisContext *cx, char sha1[41])
{
    redisReply *r = redisCommand(
        cx, "SCRIPT LOAD %s",
        "if redis.call('GET', KEYS[1]) == ARGV[1] then "
        "return redis.call('PEXPIRE', KEYS[1], ARGV[2]) else return 0 end");
    bench_check(r && r->type == REDIS_REPLY_STRING && r->len == 40, "SCRIPT");
    memcpy(sha1, r->str, 41);
    freeReplyObject(r);
}

static void answered(redisContext *cx, int type)
{
    void *reply = NULL;
    bench_check(redisGetReply(cx, &reply) == REDIS_OK &&
                    ((redisReply *)reply)->type == type,
                "another answer");
    freeReplyObject(reply);
}

static void take_raw(redisContext *cx)
{
    for (int i = 0; i < LOCKS; i++)
        redisAppendCommand(cx, "SET bench:raw:%d %s PX 600000", i, BENCH_VALUE);
    for (int i = 0; i < LOCKS; i++)
        answered(cx, REDIS_REPLY_STATUS);
}

/* Processor time of this process to renew n of them, in seconds. */
static double renew_raw(redisContext *cx, const char *sha1, int n)
{
    double began = bench_cpu_s();
    for (int i = 0; i < n; i++) {
        redisAppendCommand(cx, "EVALSHA %s 1 bench:raw:%d %s 600000", sha1, i,
                           BENCH_VALUE);
        answered(cx, REDIS_REPLY_INTEGER);
    }
    return bench_cpu_s() - began;
}

/* -------------------------------------------------------------------------- */

static void note_each(const char *by, const double cpu[STEPS])
{
    for (int i = 0; i < STEPS; i++) {
        char what[96];
        snprintf(what, sizeof what, "- client CPU to renew one of %d%s",
                 held[i], by);
        bench_note(what, "%.2f µs", cpu[i] * 1e6 / held[i]);
    }
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    rlock_client *cl = bench_client(uri);
    redisContext *cx = bench_connect(uri);
    rlock *first = take(cl, LOCKS); /* starts the threads */
    double before = bench_memory(), cpu[STEPS], raw[STEPS], server, each,
           seconds;
    char sha1[41];
    for (int i = 0, k = 0; k < STEPS; k++) {
        while (i < held[k])
            take(cl, i++); /* the handles stay to the end */
        each = (bench_memory() - before) / LOCKS;
        seconds = bench_round(cl, cx, held[k], &cpu[k], &server);
    }
    rlock_free(first);
    rlock_client_free(cl);
    load_raw(cx, sha1);
    take_raw(cx);
    for (int k = 0; k < STEPS; k++)
        raw[k] = renew_raw(cx, sha1, held[k]);

    bench_row("one renewal round of 100,000 held locks, client CPU", 0.1,
              cpu[STEPS - 1], " s", "%.1f µs a lock, in the course of %.1f s",
              cpu[STEPS - 1] * 1e6 / LOCKS, seconds);
    bench_row("- the server's", 0.35, server, " s", "%.1f µs a lock",
              server * 1e6 / LOCKS);
    bench_row("client memory per held lock", 320, each, " bytes",
              "growth of the resident set; handle and hold");
    note_each("", cpu);
    note_each(" by raw hiredis, a call for each", raw);
    redisFree(cx);
    return 0;
}
