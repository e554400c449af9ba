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

#include "bench.h"

#define MOST   4096
#define CYCLES 200

typedef struct loop loop;

/* One that makes pairs, one after the other. */
typedef struct request {
    loop *on;
    char key[32]; /* of a raw pair */
    rlock *lk;    /* of one of ours, and */
    rlock_owner *owner;
    int left; /* pairs */
} request;

struct loop {
    rlock_client *cl;
    redisAsyncContext *raw;
    short wants; /* raw: what is to be polled for */
    char sha1[41];
    int under_way; /* requests that have pairs left */
    request of[MOST];
};

/* --- hiredis -------------------------------------------------------------- */

static void add_read(void *arg)
{
    ((loop *)arg)->wants |= POLLIN;
}

static void del_read(void *arg)
{
    ((loop *)arg)->wants &= ~POLLIN;
}

static void add_write(void *arg)
{
    ((loop *)arg)->wants |= POLLOUT;
}

static void del_write(void *arg)
{
    ((loop *)arg)->wants &= ~POLLOUT;
}

static void clean_up(void *arg)
{
    ((loop *)arg)->wants = 0;
}

static void raw_acquire(request *r);

static void raw_released(redisAsyncContext *c, void *reply, void *arg)
{
    const redisReply *p = reply;
    request *r = arg;
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
    request *r = arg;
    bench_check(p && p->type == REDIS_REPLY_STATUS, "SET");
    redisAsyncCommand(c, raw_released, r, "EVALSHA %s 1 %s %s", r->on->sha1,
                      r->key, BENCH_VALUE);
}

static void raw_acquire(request *r)
{
    redisAsyncCommand(r->on->raw, raw_acquired, r, "SET %s %s NX PX 30000",
                      r->key, BENCH_VALUE);
}

static void raw_turn(loop *l)
{
    struct pollfd p = {.fd = l->raw->c.fd, .events = l->wants};
    bench_check(poll(&p, 1, 10000) == 1, "nothing comes");
    if (p.revents & POLLIN)
        redisAsyncHandleRead(l->raw);
    if (p.revents & POLLOUT)
        redisAsyncHandleWrite(l->raw);
}

static void raw_open(loop *l, const char *uri)
{
    redisContext *c = bench_connect(uri);
    bench_load_raw(c, l->sha1);
    redisFree(c);
    l->raw = strncmp(uri, "unix://", 7) == 0
                 ? redisAsyncConnectUnix(uri + 7)
                 : redisAsyncConnect("127.0.0.1", atoi(strrchr(uri, ':') + 1));
    bench_check(l->raw && !l->raw->err, "cannot connect");
    l->raw->ev.data = l;
    l->raw->ev.addRead = add_read;
    l->raw->ev.delRead = del_read;
    l->raw->ev.addWrite = add_write;
    l->raw->ev.delWrite = del_write;
    l->raw->ev.cleanup = clean_up;
    l->wants = POLLIN | POLLOUT;
}

/* --- ours ----------------------------------------------------------------- */

static void acquire(request *r);

static void released(rlock *lk, rlock_status s, void *arg)
{
    request *r = arg;
    (void)lk;
    bench_ok(s);
    if (--r->left > 0)
        acquire(r);
    else
        r->on->under_way--;
}

static void acquired(rlock *lk, rlock_status s, void *arg)
{
    bench_ok(s);
    bench_ok(rlock_unlock_start(lk, released, arg));
}

static void acquire(request *r)
{
    rlock_owner *former = rlock_owner_set(r->owner);
    bench_ok(
        rlock_acquire_start(r->lk, RLOCK_FOREVER, RLOCK_WATCHDOG, acquired, r));
    rlock_owner_set(former);
}

static void turn(loop *l)
{
    struct pollfd p = {.fd = rlock_client_fd(l->cl), .events = POLLIN};
    bench_check(poll(&p, 1, 10000) == 1, "nothing is delivered");
    bench_ok(rlock_client_dispatch(l->cl));
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

static cost run(loop *l, bool raw, int n, int pairs)
{
    int64_t began = bench_now_ns();
    double used = processor_us();
    l->under_way = n;
    for (int i = 0; i < n; i++) {
        l->of[i].left = pairs;
        (raw ? raw_acquire : acquire)(&l->of[i]);
    }
    while (l->under_way > 0)
        (raw ? raw_turn : turn)(l);
    double all = (double)n * pairs;
    return (cost){(double)(bench_now_ns() - began) / 1000 / all,
                  (processor_us() - used) / all};
}

static void compare(loop *l, int n, int pairs, int cycles, double most_time,
                    double most_processor, const char *how)
{
    static double us[2][CYCLES], processor[2][CYCLES];
    char what[128];
    bench_begin();
    for (int i = 0; i < cycles; i++) {
        for (int k = 0; k < 2; k++) {
            bool raw = (i + k) % 2;
            cost c = run(l, raw, n, pairs);
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
    static loop l;
    memset(&l, 0, sizeof l);
    l.cl = bench_client(uri);
    raw_open(&l, uri);
    for (int i = 0; i < MOST; i++) {
        request *r = &l.of[i];
        char name[32];
        snprintf(name, sizeof name, "bench:started:%d", i);
        snprintf(r->key, sizeof r->key, "bench:raw:%d", i);
        r->on = &l;
        r->lk = bench_lock(l.cl, name);
        bench_ok(rlock_owner_new(NULL, &r->owner));
    }
    for (int k = 0; k < 2; k++)
        run(&l, k, 64, 4);
    compare(&l, 1, 20, CYCLES, 1.2, 1.2, how);
    compare(&l, 64, 4, CYCLES, 2.0, 2.0, how);
    compare(&l, MOST, 1, CYCLES / 8, 2.0, 2.0, how);
    redisAsyncFree(l.raw);
    for (int i = 0; i < MOST; i++) {
        rlock_free(l.of[i].lk);
        rlock_owner_free(l.of[i].owner);
    }
    rlock_client_free(l.cl);
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
