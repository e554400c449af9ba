/*
 * What a Redis Cluster costs, against one server: a pair, a round of renewals
 * of many held locks, and the memory of a client; and what it takes to hand a
 * lock over there. The one server has a replica, as each master has: what is
 * written to it costs the same.
 */
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nodes.h"
#include "pairs.h"
#include "rounds.h"

#define CYCLES 500
#define BLOCK  20

#define PROCESSES  32
#define SECTION_US 1000
#define RUN_NS     INT64_C(4000000000)

#define CLIENTS   50
#define SETTLE_US 200000

#define LOCKS     100000
#define LEASE_MS  12000
#define PERIOD_US (LEASE_MS * 1000 / 3)
#define TURNS     3

static bench_server server[2]; /* one, and its replica */
static bench_nodes nodes;

/* --- a pair --------------------------------------------------------------- */

#define PAIR "bench:pair"

typedef struct side {
    redisContext *c; /* to the server that has the lock */
    rlock_client *cl;
    rlock *lk;
    double us[CYCLES], server_us;
} side;

static void meet(side *s, const char *uri, const char *server)
{
    s->c = bench_connect(server);
    s->cl = bench_client(uri);
    s->lk = bench_lock(s->cl, PAIR);
}

static void part(side *s)
{
    rlock_free(s->lk);
    rlock_client_free(s->cl);
    redisFree(s->c);
}

static void block(side *s, int cycle)
{
    int64_t began = bench_now_ns();
    for (int i = 0; i < BLOCK; i++) {
        bench_ok(rlock_lock(s->lk));
        bench_ok(rlock_unlock(s->lk));
    }
    s->us[cycle] = (double)(bench_now_ns() - began) / 1000 / BLOCK;
}

static double pings(redisContext *c)
{
    int64_t ns = 0;
    for (int i = 0; i < BLOCK; i++)
        ns += bench_ping_ns(c);
    return (double)ns / 1000 / BLOCK;
}

/* Both are pinged, as that costs the server's CPU, too. */
static void take_turns(side s[2], double ping[2][CYCLES])
{
    double before[2];
    for (int k = 0; k < 2; k++) {
        block(&s[k], 0); /* connects, loads scripts */
        before[k] = bench_server_us(s[k].c);
    }
    bench_begin();
    for (int i = 0; i < CYCLES; i++) {
        for (int k = 0; k < 2; k++)
            block(&s[(i + k) % 2], i);
        for (int k = 0; k < 2; k++)
            ping[k][i] = pings(s[k].c);
    }
    for (int k = 0; k < 2; k++)
        s[k].server_us =
            (bench_server_us(s[k].c) - before[k]) / (CYCLES * BLOCK);
}

static void compare(const char *one)
{
    static side s[2];
    static double ping[2][CYCLES];
    const bench_server *master = bench_master_of(&nodes, PAIR);
    meet(&s[0], one, one);
    meet(&s[1], nodes.uri, master->uri);
    for (int i = 0; i < 2; i++)
        bench_place(server[i].uri, true);
    for (int i = 0; i < BENCH_NODES; i++)
        bench_place(nodes.at[i].uri, true);
    take_turns(s, ping);
    double a = bench_median(s[0].us, CYCLES), b = bench_median(s[1].us, CYCLES);
    bench_row("uncontended pair in a cluster, as a multiple of one server's",
              1.10, b / a, "",
              "%.1f µs against %.1f µs, PING %.1f µs and %.1f µs", b, a,
              bench_median(ping[1], CYCLES), bench_median(ping[0], CYCLES));
    bench_row("- the server's CPU for it and a PING", 1.10,
              s[1].server_us / s[0].server_us, "", "%.1f µs against %.1f µs",
              s[1].server_us, s[0].server_us);
    for (int k = 0; k < 2; k++)
        part(&s[k]);
    for (int i = 0; i < 2; i++)
        bench_displace(server[i].uri);
    for (int i = 0; i < BENCH_NODES; i++)
        bench_displace(nodes.at[i].uri);
}

/* --- a hand-over ---------------------------------------------------------- */

typedef struct shared {
    atomic_int ready, inside;
    _Atomic int64_t end_ns; /* 0: not begun */
    atomic_llong sections;
} shared;

static void compete(shared *sh)
{
    int64_t end;
    rlock_client *cl = bench_client(nodes.uri);
    rlock *lk = bench_lock(cl, "bench:contended");
    atomic_fetch_add(&sh->ready, 1);
    while ((end = atomic_load(&sh->end_ns)) == 0)
        bench_pause_us(1000);
    while (bench_now_ns() < end) {
        bench_ok(rlock_lock(lk));
        bench_check(atomic_fetch_add(&sh->inside, 1) == 0,
                    "two owners at a time");
        bench_pause_us(SECTION_US);
        atomic_fetch_sub(&sh->inside, 1);
        bench_ok(rlock_unlock(lk));
        atomic_fetch_add(&sh->sections, 1);
    }
    rlock_free(lk);
    rlock_client_free(cl);
}

static double script_calls(void)
{
    return (double)(bench_sum_of(&nodes, "INFO commandstats",
                                 "cmdstat_evalsha:calls=") +
                    bench_sum_of(&nodes, "INFO commandstats",
                                 "cmdstat_eval:calls="));
}

/* By what they carry, as pings of the nodes' own have nothing to do with it. */
static double bus_messages(void)
{
    return (
        double)(bench_sum_of(&nodes, "CLUSTER INFO", "messages_publish_sent:") +
                bench_sum_of(&nodes, "CLUSTER INFO",
                             "messages_publishshard_sent:"));
}

static void contend(void)
{
    shared *sh = bench_share(sizeof *sh);
    for (int i = 0; i < PROCESSES; i++) {
        if (bench_fork()) {
            compete(sh);
            _exit(0);
        }
    }
    while (atomic_load(&sh->ready) < PROCESSES)
        bench_pause_us(1000);
    double calls = script_calls(), messages = bus_messages();
    atomic_store(&sh->end_ns, bench_now_ns() + RUN_NS);
    for (int i = 0; i < PROCESSES; i++)
        bench_join();
    double n = (double)atomic_load(&sh->sections);
    bench_row("script calls for a hand-over in a cluster, 32 processes", 4,
              (script_calls() - calls) / n, "", "%.0f sections of 1 ms in %g s",
              n, (double)RUN_NS / 1e9);
    bench_row("- messages on the cluster's bus", 3,
              (bus_messages() - messages) / n, "", "six nodes");
}

/* --- renewals ------------------------------------------------------------- */

/* A process that holds the locks. It is stopped until all of them are due. */
typedef struct holder {
    pid_t pid;
    atomic_int ready;
    atomic_int turn; /* that is to be measured; 0: none yet */
    atomic_int done; /* the latest that has been */
    _Atomic int64_t began_ns;
    double s[TURNS], cpu_s[TURNS];
} holder;

static rlock_client *take_many(const char *uri)
{
    char name[32];
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = uri;
    o.watchdog_lease_ms = LEASE_MS;
    bench_ok(rlock_client_new(&o, &cl));
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "bench:%d", i);
        bench_ok(rlock_lock(bench_lock(cl, name)));
    }
    return cl;
}

/* Nothing is asked any more: what is unanswered when it is stopped would count
   for the next turn, and be asked about once more in it. */
static void settle(rlock_client *cl)
{
    uint64_t before;
    do {
        before = bench_renewals(cl);
        bench_pause_us(SETTLE_US);
    } while (bench_renewals(cl) != before);
}

static void hold(holder *h, const char *uri)
{
    rlock_client *cl = take_many(uri);
    atomic_store(&h->ready, 1);
    for (int turn = 1; turn <= TURNS; turn++) {
        uint64_t first;
        double cpu;
        do {
            first = bench_renewals(cl);
            cpu = bench_cpu_s();
            bench_pause_us(1000);
        } while (atomic_load(&h->turn) < turn);
        while (bench_renewals(cl) - first < LOCKS)
            bench_pause_us(1000);
        h->s[turn - 1] = (double)(bench_now_ns() - h->began_ns) / 1e9;
        h->cpu_s[turn - 1] = bench_cpu_s() - cpu;
        settle(cl);
        atomic_store(&h->done, turn);
    }
    for (;;)
        bench_pause_us(1000000);
}

/* One that ends before it is told to has failed. */
static void await_holder(const holder *h, const atomic_int *number, int least)
{
    while (atomic_load(number) < least) {
        bench_check(waitpid(h->pid, NULL, WNOHANG) == 0, "a child failed");
        bench_pause_us(1000);
    }
}

static void let_go_on(holder *h, int turn)
{
    atomic_store(&h->turn, turn);
    atomic_store(&h->began_ns, bench_now_ns());
    kill(h->pid, SIGCONT);
    await_holder(h, &h->done, turn);
    kill(h->pid, SIGSTOP);
}

static void start_holder(holder *h, const char *uri)
{
    fflush(stdout); /* a child that fails would print the rows so far again */
    pid_t parent = getpid(), pid = fork();
    bench_check(pid >= 0, "cannot fork");
    if (pid > 0) {
        h->pid = pid;
        return;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent)
        hold(h, uri);
    _exit(1);
}

static void renew(const char *one)
{
    holder *h = bench_share(2 * sizeof *h);
    start_holder(&h[0], one);
    start_holder(&h[1], nodes.uri);
    for (int k = 0; k < 2; k++)
        await_holder(&h[k], &h[k].ready, 1);
    for (int k = 0; k < 2; k++)
        kill(h[k].pid, SIGSTOP);
    for (int turn = 1; turn <= TURNS; turn++) {
        bench_pause_us(PERIOD_US);
        for (int k = 0; k < 2; k++)
            let_go_on(&h[(turn + k) % 2], turn);
    }
    for (int k = 0; k < 2; k++)
        kill(h[k].pid, SIGKILL);
    double a = bench_median(h[0].s, TURNS), b = bench_median(h[1].s, TURNS);
    bench_row("one renewal round of 100,000 held locks on three masters, as a "
              "multiple of one server's",
              0.9, b / a, "", "%.2f s against %.2f s", b, a);
    bench_row("- client CPU", 0.5, bench_median(h[1].cpu_s, TURNS), " s",
              "against %.2f s", bench_median(h[0].cpu_s, TURNS));
}

/* --- memory --------------------------------------------------------------- */

/* All arenas, and what has a mapping of its own. */
static double used_kib(void)
{
    struct mallinfo2 m = mallinfo2();
    return (double)(m.uordblks + m.hblkhd) / 1024;
}

static double client_kib(const char *uri)
{
    rlock_client *cl[CLIENTS];
    double before = used_kib();
    for (int i = 0; i < CLIENTS; i++)
        cl[i] = bench_client(uri);
    bench_pause_us(SETTLE_US); /* threads end what they have begun */
    double grown = used_kib() - before;
    for (int i = 0; i < CLIENTS; i++)
        rlock_client_free(cl[i]);
    return grown / CLIENTS;
}

static void weigh(const char *one)
{
    double a = client_kib(one), b = client_kib(nodes.uri);
    bench_row("memory of an idle client of a cluster, more than of one server",
              48, b - a, " KiB",
              "%.1f KiB against %.1f KiB, stacks not counted", b, a);
}

/* --- renewals beside a burst ---------------------------------------------- */

#define BURST      10000
#define WAITS      100
#define RENEWED_MS 3000 /* the lease */
#define BURST_NS   INT64_C(6000000000)

/* Written by who tells events. */
typedef struct renewals {
    int64_t last_ns, most_ns;
} renewals;

static void note_renewal(const rlock_event *ev, void *arg)
{
    renewals *x = arg;
    int64_t now_ns = bench_now_ns();
    if (ev->type != RLOCK_EVENT_RENEWED || ev->name_len != strlen(PAIR) ||
        memcmp(ev->name, PAIR, strlen(PAIR)) != 0)
        return;
    if (x->last_ns && now_ns - x->last_ns > x->most_ns)
        x->most_ns = now_ns - x->last_ns;
    x->last_ns = now_ns;
}

/* One that has not the lock of the pairs, with its replica; a key of its. */
static void silence_another(char key[32])
{
    const bench_server *kept = bench_master_of(&nodes, PAIR);
    bench_server *other = NULL;
    for (int i = 0; !other || other == kept; i++) {
        snprintf(key, 32, "{silent:%d}", i);
        other = bench_master_of(&nodes, key);
    }
    for (int i = 0; i < BENCH_NODES; i++)
        freeReplyObject(bench_reply(
            &nodes.at[i], "CONFIG SET cluster-require-full-coverage no"));
    bench_hang(bench_replica_of(&nodes, other));
    bench_hang(other);
}

/* Some wait at the silent one; all pairs are where the lock is renewed. */
static int burst(loop busy, const char *silent)
{
    int rounds = 0;
    loop waiting = busy;
    request w[WAITS], *r = bench_alloc(BURST, sizeof *r);
    for (int i = 0; i < BURST; i++)
        r[i] = request_new(&busy, "{" PAIR "}", i);
    for (int i = 0; i < WAITS; i++) {
        w[i] = request_new(&waiting, silent, i);
        request_wait(&w[i]);
    }
    for (int64_t began = bench_now_ns(); bench_now_ns() - began < BURST_NS;
         rounds++)
        loop_run(&busy, r, BURST, 1);
    loop_cancel(&waiting);
    for (int i = 0; i < BURST; i++)
        request_free(&r[i]);
    for (int i = 0; i < WAITS; i++)
        request_free(&w[i]);
    free(r);
    return rounds;
}

static void keep_time(void)
{
    char silent[32];
    renewals x = {0};
    loop l = {0};
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = nodes.uri;
    o.watchdog_lease_ms = RENEWED_MS;
    o.on_event = note_renewal;
    o.event_arg = &x;
    bench_ok(rlock_client_new(&o, &l.cl));
    l.fd = rlock_client_fd(l.cl);
    rlock *lk = bench_lock(l.cl, PAIR);
    bench_ok(rlock_lock(lk));
    silence_another(silent);
    int rounds = burst(l, silent);
    bench_ok(rlock_unlock(lk));
    rlock_free(lk);
    rlock_client_free(l.cl);
    bench_check(x.most_ns > 0, "nothing was renewed twice");
    bench_row("latest renewal beside 10,000 started pairs and a master that is "
              "silent, after it was due",
              20, (double)x.most_ns / 1e6 - RENEWED_MS / 3.0, " ms",
              "%d pairs in %.1f s", rounds * BURST, (double)BURST_NS / 1e9);
}

int main(int argc, char **argv)
{
    const char *uri = bench_uri(argc, argv);
    char tcp[64];
    redisContext *c = bench_connect(uri);
    bench_open_port(uri, tcp);
    bench_start_servers(server, 2, uri);
    bench_follow(c, server[1].uri, tcp);
    redisFree(c);
    bench_start_nodes(&nodes);
    compare(tcp);
    contend();
    weigh(tcp);
    renew(tcp);
    keep_time();
    return 0;
}
