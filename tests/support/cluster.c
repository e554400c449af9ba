/* The six processes of a cluster, which begin as if they had met before. */
#include "cluster_view.h"

#include <stdarg.h>
#include <unistd.h>

#include "server_process.h"

enum {
    PORT_TRIES = 20,
    FIRST_PORT = 10000,
    PORTS = 10000,
    BUS = 10000 /* from a node's port to that of its bus */
};

/* --- what they know when they begin --------------------------------------- */

/*
 * The ids are this cluster's: nodes look for one that is dead where they saw it
 * last, and may find another test's cluster there by now, which must not be
 * taken for it.
 */
static void name_nodes(cluster *c)
{
    unsigned long long now = (unsigned long long)test_now_us();
    for (int i = 0; i < CLUSTER_NODES; i++)
        snprintf(c->at[i].id, sizeof c->at[i].id, "%08x%016llx%015x%d",
                 (unsigned)getpid(), now, 0U, i);
}

/* The slots of a third begin where those of the one before end. */
static int first_slot(int third)
{
    static const int first[] = {0, 5461, 10923, CLUSTER_SLOTS};
    return first[third];
}

static void write_line(FILE *f, const cluster *c, int i, bool myself)
{
    const cluster_node *n = &c->at[i];
    int port = server_port(n->sv);
    fprintf(f, "%s 127.0.0.1:%d@%d %s", n->id, port, port + BUS,
            myself ? "myself," : "");
    int third = (i + c->anew) % CLUSTER_MASTERS;
    if (i < CLUSTER_MASTERS)
        fprintf(f, "master - 0 0 %d connected %d-%d\n", i + 1,
                first_slot(third), first_slot(third + 1) - 1);
    else
        fprintf(f, "slave %s 0 0 0 connected\n", c->at[i - CLUSTER_MASTERS].id);
}

/* Meeting one another by commands would take seconds. */
static void write_conf(const cluster *c, int self)
{
    FILE *f = fopen(server_file(c->at[self].sv, "nodes.conf"), "w");
    EXPECT(f);
    for (int i = 0; i < CLUSTER_NODES; i++)
        write_line(f, c, i, i == self);
    fprintf(f, "vars currentEpoch %d lastVoteEpoch 0\n", CLUSTER_MASTERS);
    EXPECT_INT(fclose(f), 0);
}

/* --- the processes -------------------------------------------------------- */

int cluster_take_port(void)
{
    int port;
    do
        port = process_some_port(FIRST_PORT, PORTS);
    while (!process_take_port(port) || !process_take_port(port + BUS));
    return port;
}

static void choose_ports(cluster *c)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        cluster_node *n = &c->at[i];
        int port = cluster_take_port();
        process_set_port(n->sv, port);
        snprintf(n->uri, sizeof n->uri, "redis://127.0.0.1:%d", port);
    }
}

/* False: one of them ended, as it does when a port of its is taken. */
static bool launch(cluster *c)
{
    bool all = true;
    for (int i = 0; i < CLUSTER_NODES; i++)
        write_conf(c, i);
    for (int i = 0; i < CLUSTER_NODES; i++)
        process_launch(c->at[i].sv);
    for (int i = 0; i < CLUSTER_NODES && all; i++)
        all = process_wait_ready(c->at[i].sv);
    for (int i = 0; i < CLUSTER_NODES && !all; i++)
        process_end(c->at[i].sv);
    return all;
}

static void start_on_some_ports(cluster *c)
{
    for (int i = 0; i < PORT_TRIES; i++) {
        choose_ports(c);
        if (launch(c))
            return;
    }
    process_fail(c->at[0].sv, "does not start as a cluster");
}

static void write_uri(cluster *c)
{
    size_t n = 0;
    for (int i = 0; i < CLUSTER_NODES; i++)
        n += (size_t)snprintf(c->uri + n, sizeof c->uri - n, "%s127.0.0.1:%d",
                              i ? "," : "redis-cluster://", cluster_port(c, i));
    EXPECT(n < sizeof c->uri);
}

/* --- until it works ------------------------------------------------------- */

static bool is_ok(cluster *c, int i)
{
    const char *info = server_str(c->at[i].sv, "CLUSTER INFO");
    return strstr(info, "cluster_state:ok") != NULL;
}

void cluster_await_ok(cluster *c)
{
    for (int i = 0; i < CLUSTER_NODES; i++)
        EVENTUALLY(SOON, !cluster_lives(c, i) || is_ok(c, i));
}

static bool is_linked(cluster *c, int i)
{
    cluster_view v = cluster_look(c, i);
    bool all = true;
    for (int k = 0; k < CLUSTER_NODES; k++)
        all = all && v.at[k].linked;
    return all;
}

/* WAIT is about what its own connection has written. */
static bool replicates(cluster *c, int i, const char *name)
{
    const redisReply *r = cluster_cmd(c, i, "SET %s 1", name);
    return r->type == REDIS_REPLY_STATUS && cluster_int(c, i, "WAIT 1 100") > 0;
}

static void await_ready(cluster *c)
{
    cluster_await_ok(c);
    for (int i = 0; i < CLUSTER_NODES; i++)
        EVENTUALLY(SOON, is_linked(c, i));
    for (int i = 0; i < CLUSTER_MASTERS; i++) {
        const char *name = cluster_name_on(c, i, "rlock:test:replicates");
        EVENTUALLY(SOON, replicates(c, i, name));
        cluster_int(c, i, "DEL %s", name);
    }
}

cluster *cluster_start_with(const char *args)
{
    char all[1024];
    cluster *c = calloc(1, sizeof *c);
    EXPECT(c);
    int n = snprintf(all, sizeof all,
                     "--cluster-enabled yes --cluster-node-timeout 1000 "
                     "--repl-diskless-sync yes --repl-diskless-sync-delay 0 %s",
                     args ? args : "");
    EXPECT(n < (int)sizeof all);
    for (int i = 0; i < CLUSTER_NODES; i++)
        c->at[i].sv = process_new(all);
    name_nodes(c);
    start_on_some_ports(c);
    write_uri(c);
    await_ready(c);
    return c;
}

bool has_sharded_channels(server *sv)
{
    const redisReply *r = server_cmd(sv, "COMMAND INFO SSUBSCRIBE");
    return r->elements == 1 && r->element[0]->type == REDIS_REPLY_ARRAY;
}

void need_sharded_channels(void)
{
    server *sv = server_start(NULL);
    bool has = has_sharded_channels(sv);
    server_stop(sv);
    if (!has)
        SKIP("this server has no sharded channels");
}

cluster *cluster_start(void)
{
    return cluster_start_with(NULL);
}

void cluster_stop(cluster *c)
{
    if (!c)
        return;
    for (int i = 0; i < CLUSTER_NODES; i++)
        server_stop(c->at[i].sv);
    free(c);
}

/* --- again ---------------------------------------------------------------- */

void cluster_make_anew(cluster *c)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        cluster_kill(c, i);
        server_forget(c->at[i].sv);
    }
    c->anew++;
    name_nodes(c);
    for (int i = 0; i < CLUSTER_NODES; i++)
        write_conf(c, i);
    for (int i = 0; i < CLUSTER_NODES; i++)
        cluster_restart(c, i);
    await_ready(c);
}

void cluster_swap_addresses(cluster *c, int i, int j)
{
    int at_i = cluster_port(c, i), at_j = cluster_port(c, j);
    char uri[sizeof c->at[i].uri];
    cluster_kill(c, i);
    cluster_kill(c, j);
    process_set_port(c->at[i].sv, at_j);
    process_set_port(c->at[j].sv, at_i);
    strcpy(uri, c->at[i].uri);
    strcpy(c->at[i].uri, c->at[j].uri);
    strcpy(c->at[j].uri, uri);
    cluster_restart(c, i);
    cluster_restart(c, j);
}

void cluster_lose_address(cluster *c, int i)
{
    server *sv = c->at[i].sv;
    cluster_kill(c, i);
    server_forget(sv);
    FILE *f = fopen(server_file(sv, "nodes.conf"), "w");
    EXPECT(f);
    fprintf(f,
            "%040llx 127.0.0.1:%d@%d myself,master - 0 0 99 connected 0-%d\n"
            "vars currentEpoch 99 lastVoteEpoch 0\n",
            (unsigned long long)test_now_us(), server_port(sv),
            server_port(sv) + BUS, CLUSTER_SLOTS - 1);
    EXPECT_INT(fclose(f), 0);
    server_restart(sv);
}

/* --- one of them ---------------------------------------------------------- */

const char *cluster_uri(const cluster *c)
{
    return c->uri;
}

const char *cluster_node_uri(const cluster *c, int i)
{
    return c->at[i].uri;
}

int cluster_port(const cluster *c, int i)
{
    return server_port(c->at[i].sv);
}

pid_t cluster_pid(const cluster *c, int i)
{
    return server_pid(c->at[i].sv);
}

const char *cluster_id(const cluster *c, int i)
{
    return c->at[i].id;
}

server *cluster_server(cluster *c, int i)
{
    return c->at[i].sv;
}

redisReply *cluster_cmd(cluster *c, int i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    redisReply *reply = asker_cmd(c->at[i].sv, fmt, ap);
    va_end(ap);
    return reply;
}

long long cluster_int(cluster *c, int i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    long long n = asker_int(c->at[i].sv, fmt, ap);
    va_end(ap);
    return n;
}

void cluster_order(cluster *c, int i, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const redisReply *r = asker_cmd(c->at[i].sv, fmt, ap);
    va_end(ap);
    if (r->type != REDIS_REPLY_STATUS)
        FAIL("node %d answers \"%s\" to \"%s\"", i, r->str ? r->str : "", fmt);
}

bool cluster_lives(const cluster *c, int i)
{
    return !c->at[i].killed && !c->at[i].paused;
}

void cluster_kill(cluster *c, int i)
{
    c->at[i].killed = true;
    server_kill(c->at[i].sv);
    c->at[i].paused = false;
}

void cluster_restart(cluster *c, int i)
{
    EXPECT(c->at[i].killed);
    server_restart(c->at[i].sv);
    c->at[i].killed = false;
}

void cluster_pause(cluster *c, int i)
{
    c->at[i].paused = true;
    server_pause(c->at[i].sv);
}

void cluster_resume(cluster *c, int i)
{
    server_resume(c->at[i].sv);
    c->at[i].paused = false;
}
