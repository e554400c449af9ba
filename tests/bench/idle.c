/*
 * What a waiter asks the server while nothing happens, and what an owner: one
 * client keeps a lock, and another waits for one that somebody else keeps, once and
 * 10,000 times. MONITOR shows what arrives. And how many threads many clients have.
 */
#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "pairs.h"
#include "rounds.h"

#define WAIT_MS  11000
#define WAITERS  10000
#define CLIENTS  1000
#define SETTLE_S 0.5
#define WINDOW_S 10.0
#define LONG_S   25.0 /* each of many has looked by then */

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

/* How often the loop has fallen asleep; -1: this system does not tell. */
static long long loop_sleeps(void)
{
    char path[300], line[128];
    long long sleeps = -1;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *e; tasks && (e = readdir(tasks)) != NULL;) {
        bool is_loop = false;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", e->d_name);
        FILE *f = fopen(path, "r");
        while (f && fgets(line, sizeof line, f)) {
            is_loop = is_loop || strstr(line, "rlock-loop");
            if (is_loop)
                sscanf(line, "voluntary_ctxt_switches: %lld", &sleeps);
        }
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return sleeps;
}

static void measure_owner(const char *uri, redisContext *c)
{
    rlock_client *cl = bench_client(uri);
    rlock *lk = bench_lock(cl, "bench:held");
    /* A lease of its own: nothing is renewed meanwhile. */
    bench_ok(rlock_acquire(lk, 0, 60000));
    count_commands(c, SETTLE_S);
    long long slept = loop_sleeps();
    int commands = count_commands(c, WINDOW_S);
    slept = loop_sleeps() - slept;
    bench_row("commands per second of an idle owner", 1.2, commands / WINDOW_S,
              "", "%d in %g s; its loop woke up %.1f times a second", commands,
              WINDOW_S, (double)slept / WINDOW_S);
    bench_ok(rlock_unlock(lk));
    count_commands(c, SETTLE_S + 1);
    commands = count_commands(c, WINDOW_S / 2);
    bench_row("- of a client that holds nothing", 0, commands, "", "in %g s",
              WINDOW_S / 2);
    rlock_free(lk);
    rlock_client_free(cl);
}

/* Somebody else has it, who says nothing meanwhile. */
static void hold_by_hand(const char *uri)
{
    redisContext *other = bench_connect(uri);
    bench_ask(other, "HSET bench somebody 1");
    bench_ask(other, "PEXPIRE bench 60000");
    redisFree(other);
}

static void measure_waiter(const char *uri, redisContext *c)
{
    rlock_client *cl = bench_client(uri);
    rlock *wanted = bench_lock(cl, "bench");
    pthread_t thread;
    hold_by_hand(uri);
    count_commands(c, SETTLE_S);
    pthread_create(&thread, NULL, wait_in_vain, wanted);
    int first = count_commands(c, SETTLE_S);
    int then = count_commands(c, WINDOW_S);
    pthread_join(thread, NULL);
    bench_row("commands per second of an idle waiter", 1, then / WINDOW_S, "",
              "%d to begin with, then %d in %g s", first, then, WINDOW_S);
    rlock_free(wanted);
    rlock_client_free(cl);
}

/* One client's waits for one lock: their front asks for all of them. */
static void measure_waiters(const char *uri, redisContext *c)
{
    loop l = {.cl = bench_client(uri)};
    hold_by_hand(uri);
    l.fd = rlock_client_fd(l.cl);
    for (int i = 0; i < WAITERS; i++) {
        request *r = bench_alloc(1, sizeof *r);
        *r = request_of(&l, bench_lock(l.cl, "bench"));
        request_wait(r);
    }
    count_commands(c, 5 * SETTLE_S);
    double cpu_s = bench_cpu_s();
    int commands = count_commands(c, LONG_S);
    cpu_s = bench_cpu_s() - cpu_s;
    bench_row("commands per second of 10,000 waits for one lock", 1,
              commands / LONG_S, "", "%d in %g s", commands, LONG_S);
    bench_row("- the client's processor", 0.5, cpu_s / LONG_S * 100, " %",
              "%.0f ms in %g s", cpu_s * 1e3, LONG_S);
    loop_cancel(&l);
}

/* Each holds a lock of its own. */
static void measure_clients(const char *uri)
{
    struct rlimit most;
    bench_check(getrlimit(RLIMIT_NOFILE, &most) == 0, "getrlimit");
    most.rlim_cur = most.rlim_max;
    bench_check(setrlimit(RLIMIT_NOFILE, &most) == 0, "setrlimit");
    int threads = bench_threads();
    for (int i = 0; i < CLIENTS; i++) {
        char name[32];
        snprintf(name, sizeof name, "bench:%d", i);
        bench_ok(rlock_lock(bench_lock(bench_client(uri), name)));
    }
    bench_row("threads that 1,000 clients start which hold a lock each",
              CLIENTS, bench_threads() - threads, "", "-");
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    redisContext *c = monitor(uri);
    measure_owner(uri, c);
    measure_waiter(uri, c);
    measure_waiters(uri, c);
    redisFree(c);
    measure_clients(uri);
    return 0;
}
