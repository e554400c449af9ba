/*
 * What it costs to stand in line for a fair lock, and how soon who stands there
 * goes on: behind many that were killed, and behind the holder of a plain handle.
 * Waiters are started ones, so that a process can have many of them.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pairs.h"
#include "servers.h"

#define NAME   "bench:line"
#define LINE   "rlock_line:{" NAME "}"
#define ROUNDS 40

#define CROWD   40 /* of each of two clients */
#define LOOKS_S 12

#define CALM_MS    500
#define CALM_CALLS 8 /* ten lines are looked at five times a second */

#define MANY       10000
#define MANY_LOCKS 10
#define KILLED     50

#define TICK_US 1000
#define LIMIT_S 60

static rlock *lock_of(rlock_client *cl, const char *name, bool fair)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    o.fair = fair;
    bench_ok(rlock_new_ex(cl, name, strlen(name), &o, &lk));
    return lk;
}

static void await_count(redisContext *raw, const char *key, long long n)
{
    char command[80];
    int64_t end_ns = bench_now_ns() + LIMIT_S * INT64_C(1000000000);
    snprintf(command, sizeof command, "ZCARD %s", key);
    while (bench_ask(raw, command) != n) {
        bench_check(bench_now_ns() < end_ns, "they do not all stand");
        bench_pause_us(TICK_US);
    }
}

/* A client whose waits are started. */
static loop loop_open(const char *uri)
{
    loop l = {.cl = bench_client(uri)};
    l.fd = rlock_client_fd(l.cl);
    return l;
}

/* --- looks only ----------------------------------------------------------- */

/* Who has just stood up in a line tries once more, each of them. */
static void await_calm(const char *uri)
{
    int64_t end_ns = bench_now_ns() + LIMIT_S * INT64_C(1000000000);
    long long before, now = bench_script_calls(uri);
    do {
        bench_check(bench_now_ns() < end_ns, "they do not come to rest");
        before = now;
        bench_pause_us(CALM_MS * 1000);
        now = bench_script_calls(uri);
    } while (now - before > CALM_CALLS);
}

/* A second, while nothing happens. */
static double script_calls(const char *uri)
{
    await_calm(uri);
    long long before = bench_script_calls(uri);
    bench_pause_us(LOOKS_S * INT64_C(1000000));
    return (double)(bench_script_calls(uri) - before) / LOOKS_S;
}

static void look(const char *uri, redisContext *raw)
{
    static request r[2][CROWD];
    rlock_client *holder = bench_client(uri);
    rlock *held = lock_of(holder, NAME, true);
    loop l[2];
    bench_ok(rlock_acquire(held, 0, 60000)); /* nothing is renewed meanwhile */
    for (int i = 0; i < 2; i++) {
        l[i] = loop_open(uri);
        for (int k = 0; k < CROWD; k++) {
            r[i][k] = request_of(&l[i], lock_of(l[i].cl, NAME, true));
            request_wait(&r[i][k]);
        }
    }
    await_count(raw, LINE, 2 * CROWD);
    double calls = script_calls(uri);
    bench_row(
        "script calls a second and client, of two with 40 waiters each in "
        "a fair lock's line",
        0.5, calls / 2, "", "%.1f a second of both", calls);
    for (int i = 0; i < 2; i++) {
        loop_cancel(&l[i]);
        for (int k = 0; k < CROWD; k++)
            request_free(&r[i][k]);
        rlock_client_free(l[i].cl);
    }
    bench_ok(rlock_unlock(held));
    rlock_free(held);
    rlock_client_free(holder);
}

/* --- very many ------------------------------------------------------------ */

typedef struct crowd {
    loop l;
    rlock_client *holder;
    rlock *held[MANY_LOCKS];
    request r[MANY];
} crowd;

static const char *name_of(int i)
{
    static char name[32];
    snprintf(name, sizeof name, "bench:line:%d", i % MANY_LOCKS);
    return name;
}

static void crowd_open(crowd *c, const char *uri)
{
    c->l = loop_open(uri);
    c->holder = bench_client(uri);
    for (int i = 0; i < MANY_LOCKS; i++) {
        c->held[i] = lock_of(c->holder, name_of(i), true);
        bench_ok(rlock_acquire(c->held[i], 0, 120000));
    }
    for (int i = 0; i < MANY; i++)
        c->r[i] = request_of(&c->l, lock_of(c->l.cl, name_of(i), true));
}

static void crowd_close(crowd *c)
{
    loop_cancel(&c->l);
    for (int i = 0; i < MANY; i++)
        request_free(&c->r[i]);
    rlock_client_free(c->l.cl);
    for (int i = 0; i < MANY_LOCKS; i++) {
        bench_ok(rlock_unlock(c->held[i]));
        rlock_free(c->held[i]);
    }
    rlock_client_free(c->holder);
}

static void await_crowd(redisContext *raw)
{
    char line[64];
    for (int i = 0; i < MANY_LOCKS; i++) {
        snprintf(line, sizeof line, "rlock_line:{%s}", name_of(i));
        await_count(raw, line, MANY / MANY_LOCKS);
    }
}

static void stand_in_crowds(const char *uri, redisContext *raw)
{
    static crowd c;
    crowd_open(&c, uri);
    request_wait(&c.r[0]); /* what there is of a client once */
    await_count(raw, "rlock_line:{bench:line:0}", 1);
    double before = bench_memory();
    int had = bench_threads();
    for (int i = 1; i < MANY; i++)
        request_wait(&c.r[i]);
    await_crowd(raw);
    double each = (bench_memory() - before) / MANY / 1024;
    int more = bench_threads() - had;
    bench_row("10,000 started waits for 10 fair locks, client memory of each",
              2.2, each, " KiB",
              "growth of the resident set, without lock handle and owner");
    bench_row("- threads started for them", 0, more, "", "there are %d",
              had + more);
    bench_row("- script calls a second when all stand", 10, script_calls(uri),
              "", "-");
    crowd_close(&c);
}

/* --- from unlock to owning ------------------------------------------------ */

typedef struct waiter {
    pthread_t thread;
    rlock *lk;
    int64_t owned_ns;
} waiter;

static void *wait_once(void *arg)
{
    waiter *w = arg;
    bench_ok(rlock_lock(w->lk));
    w->owned_ns = bench_now_ns();
    bench_ok(rlock_unlock(w->lk));
    return NULL;
}

static void waiter_start(waiter *w, rlock *lk)
{
    w->lk = lk;
    bench_check(pthread_create(&w->thread, NULL, wait_once, w) == 0,
                "no thread");
}

/* How long after the unlock it owns the lock; ms. */
static double unlock_for(waiter *w, rlock *held)
{
    int64_t began_ns = bench_now_ns();
    bench_ok(rlock_unlock(held));
    pthread_join(w->thread, NULL);
    return (double)(w->owned_ns - began_ns) / 1e6;
}

static void pass(const char *uri, redisContext *raw, bool to_fair)
{
    rlock_client *one = bench_client(uri), *two = bench_client(uri);
    rlock *held = lock_of(one, NAME, !to_fair);
    rlock *wanted = lock_of(two, NAME, to_fair);
    double ms[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        waiter w;
        bench_ok(rlock_lock(held));
        waiter_start(&w, wanted);
        await_count(raw, "rlock_queue:{" NAME "}", 1);
        ms[i] = unlock_for(&w, held);
        bench_ask(raw, "DEL rlock_queue:{" NAME "}");
    }
    double median = bench_median(ms, ROUNDS);
    bench_row(to_fair ? "a fair waiter behind a plain holder, from unlock to "
                        "owning"
                      : "- a plain waiter behind a fair holder",
              50, ms[ROUNDS - 1], " ms", "the worst of %d; median %.2f ms",
              ROUNDS, median);
    rlock_free(held);
    rlock_free(wanted);
    rlock_client_free(one);
    rlock_client_free(two);
}

/* A process whose waiters stand in line until it is killed. */
static pid_t fork_crowd(const char *uri)
{
    fflush(stdout);
    pid_t pid = fork();
    bench_check(pid >= 0, "cannot fork");
    if (pid > 0)
        return pid;
    static request r[KILLED];
    loop l = loop_open(uri);
    for (int i = 0; i < KILLED; i++)
        r[i] = request_of(&l, lock_of(l.cl, NAME, true));
    for (int i = 0; i < KILLED; i++)
        request_wait(&r[i]);
    for (;;)
        pause();
}

static void outlive(const char *uri, redisContext *raw)
{
    double ms[ROUNDS / 4];
    rlock_client *one, *two;
    for (int i = 0; i < ROUNDS / 4; i++) {
        waiter w;
        one = bench_client(uri);
        rlock *held = lock_of(one, NAME, true);
        bench_ok(rlock_lock(held));
        pid_t pid = fork_crowd(uri);
        await_count(raw, LINE, KILLED);
        await_count(raw, "rlock_queue:{" NAME "}", 1); /* they hear */
        two = bench_client(uri);
        rlock *wanted = lock_of(two, NAME, true);
        waiter_start(&w, wanted);
        await_count(raw, LINE, KILLED + 1);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        bench_pause_us(20 * TICK_US); /* its connections are closed */
        ms[i] = unlock_for(&w, held);
        rlock_free(held);
        rlock_free(wanted);
        rlock_client_free(one);
        rlock_client_free(two);
    }
    double median = bench_median(ms, ROUNDS / 4);
    bench_row("a living waiter behind 50 that were killed, from unlock to "
              "owning",
              10, ms[ROUNDS / 4 - 1], " ms", "the worst of %d; median %.2f ms",
              ROUNDS / 4, median);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    redisContext *raw = bench_connect(uri);
    outlive(uri, raw); /* first: a fork of a process with one thread */
    pass(uri, raw, true);
    pass(uri, raw, false);
    look(uri, raw);
    stand_in_crowds(uri, raw);
    redisFree(raw);
    return 0;
}
