/*
 * How late a lock is granted again when the master of its slot in a Redis
 * Cluster has died (SIGKILL), or has fallen silent (SIGSTOP): from the moment
 * when its replica accepts a SET, which is tried every millisecond, to the next
 * grant. The failover itself is the servers', and takes its time.
 *
 * Two clients ask: one locks and unlocks all the time, so that it has a command
 * under way; the other one begins to wait just after the death.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "nodes.h"

#define ROUNDS  5
#define WAIT_MS 20000
#define TICK_US 1000

/* What was granted before may still be read for so long. */
#define LATE_NS 100000000

#define KEY "{bench}:key"

enum { BUSY, NEW, ASKERS };
static const char *const names[ASKERS] = {"{bench}:busy", "{bench}:new"};

typedef struct trial {
    const char *replica;
    _Atomic int64_t died_ns;                         /* 0: the master lives */
    _Atomic int64_t accepted_ns, granted_ns[ASKERS]; /* 0: not yet */
} trial;

typedef struct asker {
    trial *t;
    int which;
    rlock_client *cl;
    rlock *lk;
    pthread_t thread;
} asker;

typedef struct figure {
    double failover[ROUNDS], late[ASKERS][ROUNDS]; /* s */
} figure;

/* The server's own first possible grant. */
static void *poll_replica(void *arg)
{
    trial *t = arg;
    bool accepted = false;
    redisContext *c = bench_connect(t->replica);
    while (!accepted) {
        redisReply *r = redisCommand(c, "SET " KEY " 1");
        bench_check(r != NULL, "the replica has died, too");
        accepted = r->type == REDIS_REPLY_STATUS;
        freeReplyObject(r);
        if (!accepted)
            bench_pause_us(TICK_US);
    }
    atomic_store(&t->accepted_ns, bench_now_ns());
    redisFree(c);
    return NULL;
}

/* Of what happens at the death, an unlock may tell. */
static void *ask(void *arg)
{
    asker *a = arg;
    trial *t = a->t;
    while (a->which == NEW && atomic_load(&t->died_ns) == 0)
        bench_pause_us(TICK_US);
    while (atomic_load(&t->granted_ns[a->which]) == 0) {
        bench_ok(rlock_acquire(a->lk, WAIT_MS, RLOCK_WATCHDOG));
        int64_t died = atomic_load(&t->died_ns), now = bench_now_ns();
        if (died && now > died + LATE_NS)
            atomic_store(&t->granted_ns[a->which], now);
        rlock_unlock(a->lk);
    }
    return NULL;
}

static void end_it(trial *t, bench_server *master, bool silent)
{
    if (silent)
        bench_hang(master);
    else
        bench_stop(master);
    atomic_store(&t->died_ns, bench_now_ns());
}

static void bring_back(bench_nodes *n, bench_server *master, bool silent)
{
    if (silent)
        kill(master->pid, SIGCONT);
    else
        bench_restart_node(n, master);
    bench_await_nodes(n);
}

/* A client of its own each time: it remembers troubles for some seconds. */
static void start(asker *a, const char *uri, trial *t, int which)
{
    a->t = t;
    a->which = which;
    a->cl = bench_client(uri);
    a->lk = bench_lock(a->cl, names[which]);
    bench_ok(rlock_lock(a->lk)); /* it has a connection */
    bench_ok(rlock_unlock(a->lk));
    bench_check(pthread_create(&a->thread, NULL, ask, a) == 0, "no thread");
}

static void end(asker *a)
{
    pthread_join(a->thread, NULL);
    rlock_free(a->lk);
    rlock_client_free(a->cl);
}

static double seconds(int64_t from_ns, int64_t to_ns)
{
    return (double)(to_ns - from_ns) / 1e9;
}

static void try_once(bench_nodes *n, bool silent, int round, figure *f)
{
    bench_server *master = bench_master_of(n, KEY);
    trial t = {.replica = bench_replica_of(n, master)->uri};
    asker a[ASKERS];
    pthread_t poller;
    for (int i = 0; i < ASKERS; i++)
        start(&a[i], n->uri, &t, i);
    bench_pause_us(100 * TICK_US);
    end_it(&t, master, silent);
    bench_check(pthread_create(&poller, NULL, poll_replica, &t) == 0,
                "no thread");
    pthread_join(poller, NULL);
    for (int i = 0; i < ASKERS; i++) {
        end(&a[i]);
        f->late[i][round] = seconds(t.accepted_ns, t.granted_ns[i]);
    }
    f->failover[round] = seconds(t.died_ns, t.accepted_ns);
    bring_back(n, master, silent);
}

static void measure(bench_nodes *n, bool silent, const char *what)
{
    figure f;
    for (int i = 0; i < ROUNDS; i++)
        try_once(n, silent, i, &f);
    double failover = bench_median(f.failover, ROUNDS);
    double busy = bench_median(f.late[BUSY], ROUNDS);
    double new = bench_median(f.late[NEW], ROUNDS);
    double worst = f.late[BUSY][ROUNDS - 1] > f.late[NEW][ROUNDS - 1]
                       ? f.late[BUSY][ROUNDS - 1]
                       : f.late[NEW][ROUNDS - 1];
    bench_row(what, 0.3, worst, " s",
              "the worst of %d; medians: %.2f s for who locks all the time, "
              "%.2f s for who begins then; the servers' failover %.1f s",
              ROUNDS, busy, new, failover);
}

int main(int argc, char **argv)
{
    static bench_nodes nodes;
    bench_uri(argc, argv); /* the server is of no use here */
    bench_start_nodes(&nodes);
    measure(&nodes, false,
            "from a cluster master's death to the next grant, more than the "
            "servers' own time");
    measure(&nodes, true, "- when it falls silent");
    return 0;
}
