/*
 * How soon an owner that does nothing learns what its server has lost: a server
 * that was killed and has come back empty, and a master of a Redis Cluster, or
 * one that Sentinels watch, that has died (SIGKILL), or has fallen silent
 * (SIGSTOP). Counted is from when somebody else could be granted the lock: the
 * server, or the replica, accepts a SET, which is tried every millisecond, or a
 * Sentinel names it. The replica has the lock, and to be asked about it is to be
 * renewed there.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "nodes.h"
#include "sentinels.h"

#define ROUNDS  5
#define TICK_US 1000
#define LIMIT_S 30

#define KEY  "{bench}:key"
#define LOCK "{bench}:lock"

typedef struct owner {
    _Atomic int64_t told_ns; /* when it was last told of either */
    rlock_client *cl;
    rlock *lk;
} owner;

static void note(const rlock_event *ev, void *arg)
{
    owner *o = arg;
    if (ev->type == RLOCK_EVENT_LOST || ev->type == RLOCK_EVENT_RENEWED)
        atomic_store(&o->told_ns, bench_now_ns());
}

static void begin(owner *o, const char *uri)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    opts.on_event = note;
    opts.event_arg = o;
    bench_ok(rlock_client_new(&opts, &o->cl));
    o->lk = bench_lock(o->cl, LOCK);
    bench_ok(rlock_lock(o->lk));
}

static void end(owner *o)
{
    rlock_unlock(o->lk);
    rlock_free(o->lk);
    rlock_client_free(o->cl);
}

/* When the server accepts a SET. */
static int64_t await_accepting(const char *uri)
{
    redisContext *c = bench_connect(uri);
    for (bool accepts = false; !accepts;) {
        redisReply *r = redisCommand(c, "SET " KEY " 1");
        bench_check(r != NULL, "the server has died, too");
        accepts = r->type == REDIS_REPLY_STATUS;
        freeReplyObject(r);
        if (!accepts)
            bench_pause_us(TICK_US);
    }
    redisFree(c);
    return bench_now_ns();
}

/* How long after that the owner is told; s. */
static double await_told(owner *o, int64_t since_ns, int64_t died_ns)
{
    while (atomic_load(&o->told_ns) < died_ns) {
        bench_check(bench_now_ns() < since_ns + LIMIT_S * INT64_C(1000000000),
                    "nobody is told");
        bench_pause_us(TICK_US);
    }
    double late = (double)(atomic_load(&o->told_ns) - since_ns) / 1e9;
    return late > 0 ? late : 0;
}

static void tell(const char *what, double limit, double late[ROUNDS])
{
    double median = bench_median(late, ROUNDS);
    bench_row(what, limit, late[ROUNDS - 1], " s",
              "the worst of %d; median %.2f s", ROUNDS, median);
}

static void restart_empty(const char *uri)
{
    bench_server s[2];
    double late[ROUNDS];
    bench_start_servers(s, 2, uri);
    for (int i = 0; i < ROUNDS; i++) {
        owner o = {.cl = NULL};
        begin(&o, s[1].uri);
        bench_stop(&s[1]);
        int64_t died_ns = bench_now_ns();
        bench_pause_us(i * 300 * TICK_US); /* pauses grow meanwhile */
        bench_start(&s[1]);
        int64_t since_ns = await_accepting(s[1].uri);
        late[i] = await_told(&o, since_ns, died_ns);
        end(&o);
    }
    tell("until an idle owner is told that its server has come back empty", 1.2,
         late);
}

static void bring_back(bench_nodes *n, bench_server *master, bool silent)
{
    if (silent)
        kill(master->pid, SIGCONT);
    else
        bench_restart_node(n, master);
    bench_await_nodes(n);
}

static void fail_over(bench_nodes *n, bool silent, const char *what)
{
    double late[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        owner o = {.cl = NULL};
        begin(&o, n->uri);
        bench_pause_us(200 * TICK_US); /* the replica has got it */
        bench_server *master = bench_master_of(n, KEY);
        bench_server replica = *bench_replica_of(n, master);
        int64_t died_ns = bench_now_ns();
        (silent ? bench_hang : bench_stop)(master);
        int64_t since_ns = await_accepting(replica.uri);
        late[i] = await_told(&o, since_ns, died_ns);
        end(&o);
        bring_back(n, master, silent);
    }
    tell(what, 1.5, late);
}

/* When the first of them sends clients there, which is up to a second after it
   has been promoted. */
static int64_t await_named(const bench_sentinels *n, const bench_server *master)
{
    redisContext *c[BENCH_SENTINELS];
    for (int i = 0; i < BENCH_SENTINELS; i++)
        c[i] = bench_connect(n->at[i].uri);
    for (bool named = false; !named; bench_pause_us(TICK_US))
        for (int i = 0; i < BENCH_SENTINELS; i++) {
            redisReply *r = redisCommand(
                c[i], "SENTINEL GET-MASTER-ADDR-BY-NAME " BENCH_MASTER);
            bench_check(r && r->elements == 2, "a Sentinel has died, too");
            named =
                named || strcmp(r->element[1]->str, bench_port_of(master)) == 0;
            freeReplyObject(r);
        }
    int64_t at_ns = bench_now_ns();
    for (int i = 0; i < BENCH_SENTINELS; i++)
        redisFree(c[i]);
    return at_ns;
}

static void kill_watched_masters(bench_sentinels *n)
{
    double late[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        owner o = {.cl = NULL};
        begin(&o, n->uri);
        bench_pause_us(200 * TICK_US); /* the replica has got it */
        bench_server *master = bench_master(n);
        int64_t died_ns = bench_now_ns();
        bench_stop(master);
        int64_t since_ns = await_named(n, bench_other(n, master));
        late[i] = await_told(&o, since_ns, died_ns);
        end(&o);
        bench_restart_copy(n, master);
        bench_await_sentinels(n);
    }
    tell("- at the new master that Sentinels name, after the old one's death",
         0.5, late);
}

int main(int argc, char **argv)
{
    static bench_nodes nodes;
    static bench_sentinels sentinels;
    restart_empty(bench_uri(argc, argv));
    bench_start_nodes(&nodes);
    fail_over(
        &nodes, false,
        "until an idle owner's hold is asked about at the new master of a "
        "cluster, after the old one's death");
    fail_over(&nodes, true, "- after it fell silent");
    bench_start_sentinels(&sentinels);
    kill_watched_masters(&sentinels);
    return 0;
}
