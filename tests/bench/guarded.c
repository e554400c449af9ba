/*
 * What a guarded script costs against the EVALSHA of the same script by raw
 * hiredis: one of a line, and one of some 2 KB, of which the library works out
 * the SHA1 each time. Short blocks of each take turns, in a changing order. Raw
 * hiredis sleeps while it waits for the answer, and the library looks out for
 * it first, so the comparison on one processor, where nobody can, says more of
 * the work.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

#define CYCLES 1500
#define BLOCK  20 /* of one subject, between two readings of the clock */

#define SCRIPT "return redis.call('INCRBY', KEYS[1], ARGV[1])"

enum { RAW, GUARDED, RAW_LONG, GUARDED_LONG, COMMAND, PING, SUBJECTS };

typedef struct side {
    redisContext *raw;
    rlock *lk;
    char text[2][2200]; /* the short script, and the long one */
    char sha1[2][41];
    double median[SUBJECTS];
} side;

static void raw_script(side *s, int which)
{
    redisReply *r =
        redisCommand(s->raw, "EVALSHA %s 1 bench:raw 1", s->sha1[which]);
    bench_check(r && r->type == REDIS_REPLY_INTEGER, "EVALSHA");
    freeReplyObject(r);
}

static void guarded_script(side *s, int which)
{
    redisReply *r;
    const char *argv[] = {"bench:guarded", "1"};
    bench_ok(rlock_eval(s->lk, s->text[which], 1, 1, argv, NULL, &r));
    freeReplyObject(r);
}

static void guarded_command(side *s)
{
    redisReply *r;
    bench_ok(rlock_command(s->lk, &r, "INCRBY bench:guarded 1"));
    freeReplyObject(r);
}

static void once(side *s, int subject)
{
    if (subject == PING)
        bench_ask(s->raw, "PING");
    else if (subject == COMMAND)
        guarded_command(s);
    else if (subject == GUARDED || subject == GUARDED_LONG)
        guarded_script(s, subject == GUARDED_LONG);
    else
        raw_script(s, subject == RAW_LONG);
}

static double block(side *s, int subject)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++)
        once(s, subject);
    return (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

static void compare(side *s)
{
    double *us[SUBJECTS];
    bench_begin();
    for (int i = 0; i < SUBJECTS; i++) {
        us[i] = bench_alloc(CYCLES, sizeof(double));
        block(s, i); /* connects, loads scripts */
    }
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        for (int i = 0; i < SUBJECTS; i++) {
            int subject = (cycle + i) % SUBJECTS;
            us[subject][cycle] = block(s, subject);
        }
    }
    for (int i = 0; i < SUBJECTS; i++) {
        s->median[i] = bench_median(us[i], CYCLES);
        free(us[i]);
    }
}

static void load(side *s, int which)
{
    redisReply *r = redisCommand(s->raw, "SCRIPT LOAD %s", s->text[which]);
    bench_check(r && r->type == REDIS_REPLY_STRING, "SCRIPT LOAD");
    snprintf(s->sha1[which], sizeof s->sha1[which], "%s", r->str);
    freeReplyObject(r);
}

/* Lines that are compiled, and never executed. */
static void write_scripts(side *s)
{
    static const char line[] = "if ARGV[2] then redis.call('DEL', 'x') end\n";
    strcpy(s->text[0], SCRIPT);
    for (size_t at = 0; at + 100 < sizeof s->text[1]; at += sizeof line - 1)
        strcpy(s->text[1] + at, line);
    strcat(s->text[1], SCRIPT);
    load(s, 0);
    load(s, 1);
}

static void row(const char *what, double limit, const side *s, int guarded,
                int raw)
{
    bench_row(what, limit, s->median[guarded] / s->median[raw], "",
              "%.1f µs against %.1f µs, PING %.1f µs", s->median[guarded],
              s->median[raw], s->median[PING]);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    rlock_client *cl = bench_client(uri);
    side s = {.raw = bench_connect(uri), .lk = bench_lock(cl, "bench:lock")};
    write_scripts(&s);
    bench_ok(rlock_lock(s.lk));
    bench_place(uri, true);
    compare(&s);
    row("`rlock_eval`, as a multiple of `EVALSHA` of the same script by raw "
        "hiredis",
        1.15, &s, GUARDED, RAW);
    row("- a script of 2 KB", 1.15, &s, GUARDED_LONG, RAW_LONG);
    row("- `rlock_command` of one command, against the script", 1.15, &s,
        COMMAND, RAW);
    if (bench_place(uri, false)) {
        compare(&s);
        bench_note("- client and server on one processor, quiet",
                   "%.2f, %.2f, %.2f; PING %.1f µs",
                   s.median[GUARDED] / s.median[RAW],
                   s.median[GUARDED_LONG] / s.median[RAW_LONG],
                   s.median[COMMAND] / s.median[RAW], s.median[PING]);
    }
    bench_ok(rlock_unlock(s.lk));
    rlock_free(s.lk);
    rlock_client_free(cl);
    redisFree(s.raw);
    return 0;
}
