#include "nodes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TICK_US 10000
#define TRIES   2000

static bench_nodes *running;

/* --- processes ------------------------------------------------------------ */

void bench_restart_node(bench_nodes *n, bench_server *s)
{
    char dir[64], port[16];
    char *command[] = {BENCH_SERVER(port),
                       "--cluster-enabled",
                       "yes",
                       "--cluster-node-timeout",
                       "1000",
                       NULL};
    snprintf(dir, sizeof dir, "%s/%d", n->dir, (int)(s - n->at));
    snprintf(port, sizeof port, "%s", bench_port_of(s));
    bench_start_at(s, dir, command);
}

static void stop_all(void)
{
    char command[64];
    for (int i = 0; i < BENCH_NODES; i++)
        bench_stop(&running->at[i]);
    snprintf(command, sizeof command, "rm -rf %s", running->dir);
    bench_check(system(command) == 0, "the nodes' folder stays");
}

/* --- one of them ---------------------------------------------------------- */

/* Only the master of the slot answers, the others send elsewhere. */
static bool has_slot_of(const bench_server *s, const char *key)
{
    char command[64];
    snprintf(command, sizeof command, "EXISTS %s", key);
    redisReply *r = bench_reply(s, command);
    bool has = r && r->type == REDIS_REPLY_INTEGER;
    freeReplyObject(r);
    return has;
}

/* "connected" is what a replica says that has all. */
static bool follows(const bench_server *s, const bench_server *master)
{
    redisReply *r = bench_reply(s, "ROLE");
    bool follows = r && r->elements == 5 &&
                   r->element[2]->integer == atoi(bench_port_of(master)) &&
                   strcmp(r->element[3]->str, "connected") == 0;
    freeReplyObject(r);
    return follows;
}

/* --- all ------------------------------------------------------------------ */

static bench_server *find_replica(bench_nodes *n, const bench_server *master)
{
    for (int i = 0; i < BENCH_NODES; i++)
        if (follows(&n->at[i], master))
            return &n->at[i];
    return NULL;
}

static bool is_well(bench_nodes *n)
{
    for (int i = 0; i < BENCH_NODES; i++) {
        const bench_server *s = &n->at[i];
        if (!bench_says(s, "CLUSTER INFO", "cluster_state:ok") ||
            bench_says(s, "CLUSTER NODES", "fail") ||
            (bench_says(s, "INFO", "role:master") && !find_replica(n, s)))
            return false;
    }
    return true;
}

void bench_await_nodes(bench_nodes *n)
{
    for (int tries = TRIES; tries > 0; tries--) {
        if (is_well(n))
            return;
        bench_pause_us(TICK_US);
    }
    bench_check(false, "the cluster does not get well");
}

void bench_start_nodes(bench_nodes *n)
{
    char command[512] = "redis-cli --cluster create", path[64];
    strcpy(n->dir, "/tmp/rlock-bench-XXXXXX");
    bench_check(mkdtemp(n->dir) != NULL, "no folder");
    strcpy(n->uri, "redis-cluster://");
    running = n;
    atexit(stop_all);
    for (int i = 0; i < BENCH_NODES; i++) {
        int port = bench_choose_port();
        snprintf(n->at[i].uri, sizeof n->at[i].uri, "redis://127.0.0.1:%d",
                 port);
        snprintf(path, sizeof path, "%s/%d", n->dir, i);
        bench_check(mkdir(path, 0700) == 0, "no folder");
        bench_restart_node(n, &n->at[i]);
        sprintf(strchr(command, '\0'), " 127.0.0.1:%d", port);
        sprintf(strchr(n->uri, '\0'), "%s127.0.0.1:%d", i ? "," : "", port);
    }
    strcat(command, " --cluster-replicas 1 --cluster-yes >/dev/null");
    bench_check(system(command) == 0, "no cluster comes about");
    bench_await_nodes(n);
}

bench_server *bench_master_of(bench_nodes *n, const char *key)
{
    for (int i = 0; i < BENCH_NODES; i++)
        if (has_slot_of(&n->at[i], key))
            return &n->at[i];
    bench_check(false, "nobody has the slot");
    return NULL;
}

bench_server *bench_replica_of(bench_nodes *n, const bench_server *master)
{
    bench_server *s = find_replica(n, master);
    bench_check(s != NULL, "a master has no replica");
    return s;
}

long long bench_sum_of(bench_nodes *n, const char *command, const char *name)
{
    long long sum = 0;
    for (int i = 0; i < BENCH_NODES; i++) {
        redisReply *r = bench_reply(&n->at[i], command);
        const char *at =
            r && r->type == REDIS_REPLY_STRING ? strstr(r->str, name) : NULL;
        sum += at ? atoll(at + strlen(name)) : 0;
        freeReplyObject(r);
    }
    return sum;
}
