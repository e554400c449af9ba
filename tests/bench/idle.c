/*
 * What a waiter asks the server while nothing happens: one client waits for a
 * lock that another one keeps, and MONITOR shows what arrives.
 */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "bench.h"

#define WAIT_MS  11000
#define SETTLE_S 0.5
#define WINDOW_S 10.0

static void *wait_in_vain(void *lk)
{
    bench_check(rlock_acquire(lk, WAIT_MS, RLOCK_WATCHDOG) == RLOCK_TIMEOUT,
                "the wait was not in vain");
    return NULL;
}

static redisContext *monitor(const char *uri)
{
    redisContext *c = bench_connect(uri);
    bench_ask(c, "MONITOR");
    return c;
}

/* What scripts do by themselves is no command of a client's. */
static bool is_command(const char *line)
{
    return !strstr(line, " lua] ");
}

/* Reads what has come; returns the commands among it. */
static int drain(redisContext *c)
{
    int commands = 0;
    void *reply;
    bench_check(redisBufferRead(c) == REDIS_OK, "MONITOR broke");
    for (;;) {
        bench_check(redisReaderGetReply(c->reader, &reply) == REDIS_OK,
                    "MONITOR");
        if (!reply)
            return commands;
        commands += is_command(((redisReply *)reply)->str);
        freeReplyObject(reply);
    }
}

static int count_commands(redisContext *c, double seconds)
{
    int64_t end = bench_now_ns() + (int64_t)(seconds * 1e9), left;
    int commands = 0;
    while ((left = end - bench_now_ns()) > 0) {
        struct pollfd p = {.fd = c->fd, .events = POLLIN};
        if (poll(&p, 1, (int)(left / 1000000) + 1) > 0)
            commands += drain(c);
    }
    return commands;
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    rlock_client *holder = bench_client(uri), *waiter = bench_client(uri);
    rlock *held = bench_lock(holder, "bench");
    rlock *wanted = bench_lock(waiter, "bench");
    pthread_t thread;
    /* A lease of its own: the holder sends nothing meanwhile. */
    bench_ok(rlock_acquire(held, 0, 60000));
    redisContext *c = monitor(uri);
    pthread_create(&thread, NULL, wait_in_vain, wanted);
    int first = count_commands(c, SETTLE_S);
    int then = count_commands(c, WINDOW_S);
    pthread_join(thread, NULL);

    bench_row("commands per second of an idle waiter", 1, then / WINDOW_S, "",
              "%d to begin with, then %d in %g s", first, then, WINDOW_S);
    rlock_free(held);
    rlock_free(wanted);
    rlock_client_free(waiter);
    rlock_client_free(holder);
    redisFree(c);
    return 0;
}
