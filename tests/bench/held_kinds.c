/*
 * What one round of renewals costs a client that has 100,000 holds of a kind, and
 * the server. A process for each kind.
 */
#include <stdio.h>
#include <unistd.h>

#include "rounds.h"

#define HOLDS 100000

enum { PLAIN, READ, PERMIT, KINDS };

typedef struct cost {
    double cpu_s, server_s;
} cost;

static void take(rlock_client *cl, int kind, int i)
{
    char name[32];
    rlock *lk;
    rlock_semaphore *of;
    rlock_permit *p;
    snprintf(name, sizeof name, "bench:%d", i);
    if (kind == PERMIT) {
        bench_ok(rlock_semaphore_new(cl, name, 1, &of));
        bench_ok(rlock_semaphore_acquire(of, 1, 0, RLOCK_WATCHDOG, &p));
        rlock_semaphore_free(of);
        return;
    }
    if (kind == READ)
        bench_ok(rlock_rw_new(cl, name, &lk, NULL));
    else
        bench_ok(rlock_new(cl, name, &lk));
    bench_ok(rlock_lock(lk));
}

/* The handles stay to the end. */
static void measure(const char *uri, int kind, cost *c)
{
    rlock_client *cl = bench_client(uri);
    redisContext *cx = bench_connect(uri);
    for (int i = 0; i < HOLDS; i++)
        take(cl, kind, i);
    bench_round(cl, cx, HOLDS, &c->cpu_s, &c->server_s);
    freeReplyObject(redisCommand(cx, "FLUSHALL"));
    redisFree(cx);
}

static void compare(const char *what, double most, double is, double plain)
{
    bench_row(what, most, is / plain, "", "%.2f s against %.2f s", is, plain);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    cost *c = bench_share(KINDS * sizeof *c);
    bench_place(uri, true);
    for (int kind = 0; kind < KINDS; kind++) {
        if (bench_fork()) {
            measure(uri, kind, &c[kind]);
            _exit(0);
        }
        bench_join();
    }
    compare("one renewal round of 100,000 read locks, client CPU, as a "
            "multiple of plain ones'",
            1.3, c[READ].cpu_s, c[PLAIN].cpu_s);
    compare("- the server's", 2.0, c[READ].server_s, c[PLAIN].server_s);
    bench_note("- of 100,000 permits", "client CPU %.2f s, the server's %.2f s",
               c[PERMIT].cpu_s, c[PERMIT].server_s);
    return 0;
}
