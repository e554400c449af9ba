/*
 * What a lock and its unlock cost when it is held on several servers (Red) or
 * consists of several locks (Multi), against a lock on one server: one sample
 * of each in turn, in a changing order. The program starts four servers beside
 * the one it is given.
 *
 * A Red call returns with the majority, and the other nodes' work goes on
 * behind it. Back to back, the next sample pays for that; spaced, it is over
 * by then, but every sample finds servers that have gone to sleep.
 *
 * The client has one processor and the single lock's server the other. The
 * four others are where the kernel puts them: five on one processor would
 * measure that processor, which is done as well.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rlock/multi.h>

#include "bench.h"

#define NODES    5
#define LOCKS    5
#define DOWN     2    /* the last ones */
#define ROUNDS   1000 /* of one sample of each kind */
#define WARM_UP  20
#define SPACE_US 500
#define COUNTED  200 /* pairs, for the count of commands */

typedef struct server {
    char uri[128];
    pid_t pid; /* 0: not ours, or not running */
} server;

typedef struct subjects {
    redisContext *raw;
    rlock_client *one, *node[NODES];
    rlock *single, *red, *member[LOCKS], *multi;
} subjects;

enum { PING, SINGLE, RED, MULTI, KINDS };

static server servers[NODES];

/* --- servers ------------------------------------------------------------- */

static void await(const server *s)
{
    const char *path = s->uri + strlen("unix://");
    redisContext *c = NULL;
    for (int tries = 500; tries > 0 && (!c || c->err); tries--) {
        if (c)
            redisFree(c);
        bench_pause_us(10000);
        c = redisConnectUnix(path);
    }
    bench_check(c && !c->err, "a server does not start");
    bench_ask(c, "PING");
    redisFree(c);
}

static void start(server *s)
{
    pid_t parent = getpid();
    fflush(stdout); /* the child must not print it again */
    s->pid = fork();
    bench_check(s->pid >= 0, "cannot fork");
    if (s->pid > 0) {
        await(s);
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || !freopen("/dev/null", "w", stdout))
        _exit(1);
    execlp("redis-server", "redis-server", "--port", "0", "--unixsocket",
           s->uri + strlen("unix://"), "--save", "", "--appendonly", "no",
           (char *)NULL);
    _exit(1);
}

/* However it is. */
static void stop(server *s)
{
    if (s->pid <= 0)
        return;
    kill(s->pid, SIGKILL);
    waitpid(s->pid, NULL, 0);
    s->pid = 0;
}

static void stop_all(void)
{
    for (int i = 0; i < NODES; i++)
        stop(&servers[i]);
}

/* The first is there already; the others get sockets beside its own. */
static void start_all(const char *uri)
{
    snprintf(servers[0].uri, sizeof servers[0].uri, "%s", uri);
    atexit(stop_all);
    for (int i = 1; i < NODES; i++) {
        int len = snprintf(servers[i].uri, sizeof servers[i].uri, "%s.%d", uri,
                           i + 1);
        bench_check(len < (int)sizeof servers[i].uri, "the path is too long");
        start(&servers[i]);
    }
}

static bool place_all(bool together)
{
    bool placed = true;
    for (int i = NODES - 1; i > 0; i--)
        placed = (together ? bench_place(servers[i].uri, true)
                           : bench_displace(servers[i].uri)) &&
                 placed;
    return bench_place(servers[0].uri, true) && placed;
}

/* Calls of EVALSHA so far. */
static long long script_calls(const server *s)
{
    redisContext *c = bench_connect(s->uri);
    redisReply *r = redisCommand(c, "INFO commandstats");
    bench_check(r && r->type == REDIS_REPLY_STRING, "INFO");
    const char *calls = strstr(r->str, "cmdstat_evalsha:calls=");
    long long n = calls ? atoll(calls + strlen("cmdstat_evalsha:calls=")) : 0;
    freeReplyObject(r);
    redisFree(c);
    return n;
}

/* --- samples ------------------------------------------------------------- */

static void prepare(subjects *s)
{
    char name[32];
    s->raw = bench_connect(servers[0].uri);
    s->one = bench_client(servers[0].uri);
    for (int i = 0; i < NODES; i++)
        s->node[i] = bench_client(servers[i].uri);
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "bench:member:%d", i);
        s->member[i] = bench_lock(s->one, name);
    }
    s->single = bench_lock(s->one, "bench:lock");
    bench_ok(rlock_red_new(s->node, NODES, "bench:red", &s->red));
    bench_ok(rlock_multi_new(s->member, LOCKS, &s->multi));
}

static void dismiss(subjects *s)
{
    rlock_free(s->multi);
    rlock_free(s->red);
    rlock_free(s->single);
    for (int i = 0; i < LOCKS; i++)
        rlock_free(s->member[i]);
    for (int i = 0; i < NODES; i++)
        rlock_client_free(s->node[i]);
    rlock_client_free(s->one);
    redisFree(s->raw);
}

static void pair(rlock *lk)
{
    bench_ok(rlock_lock(lk));
    bench_ok(rlock_unlock(lk));
}

/* In microseconds. */
static double sample(subjects *s, int kind)
{
    rlock *const locks[KINDS] = {
        [SINGLE] = s->single, [RED] = s->red, [MULTI] = s->multi};
    int64_t began = bench_now_ns();
    if (kind == PING)
        bench_ask(s->raw, "PING");
    else
        pair(locks[kind]);
    return (double)(bench_now_ns() - began) / 1000;
}

/* A new order each time: what came before leaves the caches warm, or not. */
static void shuffle(int order[KINDS])
{
    for (int i = KINDS - 1; i > 0; i--) {
        int j = rand() % (i + 1), kind = order[i];
        order[i] = order[j];
        order[j] = kind;
    }
}

static void measure(subjects *s, bool spaced, double median[KINDS])
{
    int order[KINDS] = {PING, SINGLE, RED, MULTI};
    double *us[KINDS];
    for (int kind = 0; kind < KINDS; kind++)
        us[kind] = bench_alloc(ROUNDS, sizeof(double));
    for (int round = -WARM_UP; round < ROUNDS; round++) {
        shuffle(order);
        for (int i = 0; i < KINDS; i++) {
            int kind = order[i];
            if (spaced)
                bench_pause_us(SPACE_US);
            double took = sample(s, kind);
            if (round >= 0)
                us[kind][round] = took;
        }
    }
    for (int kind = 0; kind < KINDS; kind++) {
        median[kind] = bench_median(us[kind], ROUNDS);
        free(us[kind]);
    }
}

/* --- rows ---------------------------------------------------------------- */

typedef struct figure {
    double spaced[KINDS], dense[KINDS];
} figure;

static figure measure_both(subjects *s)
{
    figure f;
    measure(s, true, f.spaced);
    measure(s, false, f.dense);
    return f;
}

static void row(const char *what, double limit, const figure *f, int kind)
{
    double dense = f->dense[kind] / f->dense[SINGLE];
    double spaced = f->spaced[kind] / f->spaced[SINGLE];
    if (limit > 0)
        bench_row(what, limit, dense, "",
                  "%.1f µs against %.1f µs, PING %.1f µs; spaced %.2f",
                  f->dense[kind], f->dense[SINGLE], f->dense[PING], spaced);
    else
        bench_note(
            what, "%.2f; %.1f µs against %.1f µs, PING %.1f µs; spaced %.2f",
            dense, f->dense[kind], f->dense[SINGLE], f->dense[PING], spaced);
}

/* Script calls for a pair, on all servers. */
static double calls_for(rlock *lk)
{
    long long before = 0, after = 0;
    for (int i = 0; i < NODES; i++)
        before += script_calls(&servers[i]);
    for (int i = 0; i < COUNTED; i++) {
        pair(lk);
        bench_pause_us(SPACE_US);
    }
    for (int i = 0; i < NODES; i++)
        after += script_calls(&servers[i]);
    return (double)(after - before) / COUNTED;
}

typedef struct figures {
    figure whole, dead, hung;
    double red_calls, multi_calls;
} figures;

/* The last servers after the first use: dead, then hung. */
static void run(figures *f, bool together)
{
    subjects s;
    prepare(&s);
    f->whole = measure_both(&s);
    f->red_calls = calls_for(s.red);
    f->multi_calls = calls_for(s.multi);
    for (int i = NODES - DOWN; i < NODES; i++)
        stop(&servers[i]);
    f->dead = measure_both(&s);
    dismiss(&s);

    for (int i = NODES - DOWN; i < NODES; i++)
        start(&servers[i]);
    place_all(together);
    prepare(&s);
    pair(s.red);
    bench_pause_us(SPACE_US);
    for (int i = NODES - DOWN; i < NODES; i++)
        kill(servers[i].pid, SIGSTOP);
    f->hung = measure_both(&s);
    for (int i = NODES - DOWN; i < NODES; i++)
        stop(&servers[i]);
    dismiss(&s);
    for (int i = NODES - DOWN; i < NODES; i++)
        start(&servers[i]);
}

int main(int argc, char **argv)
{
    figures f, together;
    start_all(bench_uri(argc, argv));
    bool placed = place_all(false);
    run(&f, false);
    row("Red on 5 servers, uncontended pair, as a multiple of a single lock's",
        2.5, &f.whole, RED);
    row("- the same with 2 of 5 dead", 3, &f.dead, RED);
    row("- the same with 2 of 5 hung", 3, &f.hung, RED);
    row("Multi of 5 locks on one server, uncontended pair, as a multiple of "
        "one lock's",
        2, &f.whole, MULTI);
    bench_note("- script calls for a pair",
               "Red %.2f on %d servers, Multi %.2f for %d locks", f.red_calls,
               NODES, f.multi_calls, LOCKS);
    if (placed && place_all(true)) {
        run(&together, true);
        row("- all servers on one processor: Red", 0, &together.whole, RED);
        row("- - 2 of 5 dead", 0, &together.dead, RED);
        row("- - 2 of 5 hung", 0, &together.hung, RED);
    }
    return 0;
}
