/*
 * Locks on an event loop against hiredis' own asynchronous calls, on the same
 * loop in the same thread, in turns: one at a time, 64, and 4,096. The raw pair
 * is what pair.c's is: SET NX PX, and a script that compares and deletes.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hiredis/async.h>

#include "pairs.h"

#define MOST   4096
#define CYCLES 200

typedef struct raw_loop raw_loop;

typedef struct raw_request {
    raw_loop *on;
    char key[32];
    int left; /* pairs */
} raw_request;

struct raw_loop {
    redisAsyncContext *cx;
    short wants; /* what is to be polled for */
    char sha1[41];
    int under_way; /* requests that have pairs left */
    raw_request of[MOST];
};

/* What takes turns. */
typedef struct sides {
    raw_loop raw;
    loop ours;
    request of[MOST];
} sides;

/* --- hiredis -------------------------------------------------------------- */

static void add_read(void *arg)
{
    ((raw_loop *)arg)->wants |= POLLIN;
}

static void del_read(void *arg)
{
    ((raw_loop *)arg)->wants &= ~POLLIN;
}

static void add_write(void *arg)
{
    ((raw_loop *)arg)->wants |= POLLOUT;
}

static void del_write(void *arg)
{
    ((raw_loop *)arg)->wants &= ~POLLOUT;
}

static void clean_up(void *arg)
{
    ((raw_loop *)arg)->wants = 0;
}

static void raw_acquire(raw_request *r);

static void raw_released(redisAsyncContext *c, void *reply, void *arg)
{
    const redisReply *p = reply;
    raw_request *r = arg;
    (void)c;
    bench_check(p && p->type == REDIS_REPLY_INTEGER && p->integer == 1,
                "EVALSHA");
    if (--r->left > 0)
        raw_acquire(r);
    else
        r->on->under_way--;
}

static void raw_acquired(redisAsyncContext *c, void *reply, void *arg)
{
    const redisReply *p = reply;
    raw_request *r = arg;
    bench_check(p && p->type == REDIS_REPLY_STATUS, "SET");
    redisAsyncCommand(c, raw_released, r, "EVALSHA %s 1 %s %s", r->on->sha1,
                      r->key, BENCH_VALUE);
}

static void raw_acquire(raw_request *r)
{
    redisAsyncCommand(r->on->cx, raw_acquired, r, "SET %s %s NX PX 30000",
                      r->key, BENCH_VALUE);
}

static void raw_turn(raw_loop *l)
{
    struct pollfd p = {.fd = l->cx->c.fd, .events = l->wants};
    bench_check(poll(&p, 1, 10000) == 1, "nothing comes");
    if (p.revents & POLLIN)
        redisAsyncHandleRead(l->cx);
    if (p.revents & POLLOUT)
        redisAsyncHandleWrite(l->cx);
}

static void raw_open(raw_loop *l, const char *uri)
{
    redisContext *c = bench_connect(uri);
    bench_load_raw(c, l->sha1);
    redisFree(c);
    l->cx = strncmp(uri, "unix://", 7) == 0
                ? redisAsyncConnectUnix(uri + 7)
                : redisAsyncConnect("127.0.0.1", atoi(strrchr(uri, ':') + 1));
    bench_check(l->cx && !l->cx->err, "cannot connect");
    l->cx->ev.data = l;
    l->cx->ev.addRead = add_read;
    l->cx->ev.delRead = del_read;
    l->cx->ev.addWrite = add_write;
    l->cx->ev.delWrite = del_write;
    l->cx->ev.cleanup = clean_up;
    l->wants = POLLIN | POLLOUT;
}

/* --- in turns ------------------------------------------------------------- */

/* Of the whole process. */
static double processor_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

typedef struct cost {
    double us, processor_us; /* of a pair */
} cost;

static void run_raw(raw_loop *l, int n, int pairs)
{
    l->under_way = n;
    for (int i = 0; i < n; i++) {
        l->of[i].left = pairs;
        raw_acquire(&l->of[i]);
    }
    while (l->under_way > 0)
        raw_turn(l);
}

static cost run(sides *s, bool raw, int n, int pairs)
{
    int64_t began = bench_now_ns();
    double used = processor_us();
    if (raw)
        run_raw(&s->raw, n, pairs);
    else
        loop_run(&s->ours, s->of, n, pairs);
    double all = (double)n * pairs;
    return (cost){(double)(bench_now_ns() - began) / 1000 / all,
                  (processor_us() - used) / all};
}

static void compare(sides *s, int n, int pairs, int cycles, double most_time,
                    double most_processor, const char *how)
{
    static double us[2][CYCLES], processor[2][CYCLES];
    char what[128];
    bench_begin();
    for (int i = 0; i < cycles; i++) {
        for (int k = 0; k < 2; k++) {
            bool raw = (i + k) % 2;
            cost c = run(s, raw, n, pairs);
            us[raw][i] = c.us;
            processor[raw][i] = c.processor_us;
        }
    }
    double ours = bench_median(us[0], (size_t)cycles);
    double raws = bench_median(us[1], (size_t)cycles);
    double used = bench_median(processor[0], (size_t)cycles);
    double raw_used = bench_median(processor[1], (size_t)cycles);
    snprintf(what, sizeof what, "a pair by callbacks, %d in flight, %s", n,
             how);
    bench_row(what, most_time, ours / raws, " raw pairs",
              "%.1f µs against hiredis' asynchronous calls' %.1f", ours, raws);
    bench_row("- the client's processor", most_processor, used / raw_used,
              " raw pairs", "%.1f µs against %.1f", used, raw_used);
}

static void measure(const char *uri, const char *how)
{
    static sides s;
    memset(&s, 0, sizeof s);
    s.ours.cl = bench_client(uri);
    s.ours.fd = rlock_client_fd(s.ours.cl);
    raw_open(&s.raw, uri);
    for (int i = 0; i < MOST; i++) {
        raw_request *r = &s.raw.of[i];
        snprintf(r->key, sizeof r->key, "bench:raw:%d", i);
        r->on = &s.raw;
        s.of[i] = request_new(&s.ours, "bench:started", i);
    }
    for (int k = 0; k < 2; k++)
        run(&s, k, 64, 4);
    compare(&s, 1, 20, CYCLES, 1.2, 1.2, how);
    compare(&s, 64, 4, CYCLES, 2.0, 2.0, how);
    compare(&s, MOST, 1, CYCLES / 8, 2.0, 2.0, how);
    redisAsyncFree(s.raw.cx);
    for (int i = 0; i < MOST; i++)
        request_free(&s.of[i]);
    rlock_client_free(s.ours.cl);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    char tcp[64];
    measure(uri, "unix socket");
    bench_open_port(uri, tcp);
    measure(tcp, "TCP");
    return 0;
}
