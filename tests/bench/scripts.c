/*
 * What a lock and its unlock cost the server's processor, against the least
 * that any lock on Redis needs: SET NX PX, and a script that compares and
 * deletes. One at a time, where reading and writing cost most, and many in
 * flight, where the scripts do. The calls are those that the library writes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "op/call.h"

#define OWNER  "bench:1:2:"
#define HOLDER OWNER "7c9e6679-7425-40de-944b-e07fc1f90ae7"
#define NAME   "bench:lock"

#define ROUNDS 9
#define PAIRS  10000 /* a round of one subject */
#define DEEP   50

enum { RAW, LOCK, TOKENLESS, PING, SUBJECTS };

typedef struct subject {
    rl_bytes call; /* both commands */
    int replies;
    int good; /* the type of the last reply */
    double us[ROUNDS];
} subject;

static rl_hold *a_hold(unsigned layout)
{
    rl_hold *h = bench_alloc(1, sizeof *h + sizeof NAME);
    h->record = bench_alloc(1, sizeof *h->record + sizeof OWNER);
    h->record->name_len = sizeof OWNER - 1;
    memcpy(h->record->name, OWNER, sizeof OWNER);
    h->layout = (uint8_t)layout;
    h->name_len = sizeof NAME - 1;
    memcpy(h->name, NAME, sizeof NAME);
    return h;
}

static void write_lock(subject *s, unsigned layout)
{
    rl_hold *h = a_hold(layout);
    rl_request r = {.lease_ms = 30000, .level = 1, .bell = ""};
    rl_call_acquire(&s->call, false, h, &r);
    rl_call_release(&s->call, false, h, 0, false, "");
    free(h->record);
    free(h);
    s->replies = 2;
    s->good = REDIS_REPLY_INTEGER;
}

static void write_raw(subject *s, const char *sha1)
{
    static const char *const set[] = {"SET", "bench:raw", HOLDER,
                                      "NX",  "PX",        "30000"};
    const char *eval[] = {"EVALSHA", sha1, "1", "bench:raw", HOLDER};
    rl_put_array(&s->call, 6);
    for (size_t i = 0; i < 6; i++)
        rl_put_text(&s->call, set[i]);
    rl_put_array(&s->call, 5);
    for (size_t i = 0; i < 5; i++)
        rl_put_text(&s->call, eval[i]);
    s->replies = 2;
    s->good = REDIS_REPLY_INTEGER;
}

static void write_ping(subject *s)
{
    rl_put_array(&s->call, 1);
    rl_put_text(&s->call, "PING");
    s->replies = 1;
    s->good = REDIS_REPLY_STATUS;
}

static void send_some(redisContext *c, const subject *s, int n)
{
    for (int i = 0; i < n; i++)
        redisAppendFormattedCommand(c, s->call.at, s->call.end);
    for (int i = 0; i < n * s->replies; i++) {
        redisReply *r = NULL;
        bench_check(redisGetReply(c, (void **)&r) == REDIS_OK && r &&
                        r->type != REDIS_REPLY_ERROR,
                    r ? r->str : "no reply");
        bench_check((i + 1) % s->replies != 0 ||
                        (r->type == s->good &&
                         (r->type == REDIS_REPLY_STATUS || r->integer == 1)),
                    "a pair came to nothing");
        freeReplyObject(r);
    }
}

static double cost(redisContext *c, const subject *s, int deep)
{
    double before = bench_server_us(c);
    for (int i = 0; i < PAIRS; i += deep)
        send_some(c, s, deep);
    return (bench_server_us(c) - before) / PAIRS;
}

static void measure(redisContext *c, subject s[SUBJECTS], int deep)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < SUBJECTS; i++) {
            subject *one = &s[(round + i) % SUBJECTS];
            one->us[round] = cost(c, one, deep);
        }
    }
}

static void row(const char *what, double limit, subject s[SUBJECTS], int which)
{
    double us[SUBJECTS];
    for (int i = 0; i < SUBJECTS; i++)
        us[i] = bench_median(s[i].us, ROUNDS);
    bench_row(what, limit, us[which] / us[RAW], "",
              "%.1f µs against %.1f µs, PING %.1f µs", us[which], us[RAW],
              us[PING]);
}

static void load(redisContext *c, rl_script_id id)
{
    redisReply *r = redisCommand(c, "SCRIPT LOAD %s", rl_scripts[id].body);
    bench_check(r && r->type == REDIS_REPLY_STRING, "SCRIPT");
    freeReplyObject(r);
}

int main(int argc, char **argv)
{
    char sha1[41];
    const char *uri = bench_uri(argc, argv);
    redisContext *c = bench_connect(uri);
    subject s[SUBJECTS] = {0};
    bench_place(uri, true);
    bench_load_raw(c, sha1);
    load(c, RL_SCRIPT_HASH_ACQUIRE);
    load(c, RL_SCRIPT_HASH_RELEASE);
    load(c, RL_SCRIPT_TOKENLESS_ACQUIRE);
    write_raw(&s[RAW], sha1);
    write_lock(&s[LOCK], RLOCK_LAYOUT_HASH);
    write_lock(&s[TOKENLESS], RL_LAYOUT_TOKENLESS);
    write_ping(&s[PING]);
    measure(c, s, 1);
    row("the server's processor time for an uncontended pair, one at a time, "
        "as a multiple of `SET NX PX` + compare-and-delete",
        1.5, s, LOCK);
    measure(c, s, DEEP);
    row("- the same, 50 in flight", 3.0, s, LOCK);
    row("- the same, 50 in flight, with `no_tokens`", 2.1, s, TOKENLESS);
    for (int i = 0; i < SUBJECTS; i++)
        rl_bytes_fini(&s[i].call);
    redisFree(c);
    return 0;
}
