/*
 * A Redis Cluster of six servers on 127.0.0.1, three masters with a replica
 * each, which notices a death within a second. Which one is what changes with
 * every failover: a slot is spoken of by a key.
 */
#ifndef BENCH_NODES_H
#define BENCH_NODES_H

#include "servers.h"

#define BENCH_NODES 6

typedef struct bench_nodes {
    bench_server at[BENCH_NODES]; /* uri: redis://127.0.0.1:port */
    char uri[256];                /* redis-cluster://, all of them */
    char dir[32];
} bench_nodes;

/* Returns when each master has its replica. They end with the program. Once for
 * each program. */
void bench_start_nodes(bench_nodes *n);

/* Until all slots are served, and by a master whose replica has its data. */
void bench_await_nodes(bench_nodes *n);

/* The master that has the key's slot; the replica of a master. */
bench_server *bench_master_of(bench_nodes *n, const char *key);
bench_server *bench_replica_of(bench_nodes *n, const bench_server *master);

/* Again, without its data, after bench_stop(). */
void bench_restart_node(bench_nodes *n, bench_server *s);

/* What INFO or CLUSTER INFO counts under that name, of all that answer; such as
   "cmdstat_evalsha:calls=". */
long long bench_sum_of(bench_nodes *n, const char *command, const char *name);

#endif
