/*
 * A Redis Cluster: three masters, 0 to 2, and three replicas, of which i + 3 is
 * that of master i; real processes on 127.0.0.1, quick to notice and to fail
 * over. They are killed by the kernel when the test's process dies. No function
 * returns an error: what cannot be done fails the test.
 *
 * Functions that ask the cluster ask the nodes that live: those that are
 * neither killed nor paused.
 */
#ifndef TEST_SUPPORT_CLUSTER_H
#define TEST_SUPPORT_CLUSTER_H

#include "server.h"

typedef struct cluster cluster;

#define CLUSTER_NODES 6
#define CLUSTER_SLOTS 16384

/*
 * Waits until it serves all slots and each master has its replica, which takes
 * two seconds: a master that has just been started refuses commands as long.
 * Master 0 has the slots up to 5460, master 1 those up to 10922, 2 the rest.
 */
cluster *cluster_start(void);
/* With further arguments for every node, as those of server_start(). */
cluster *cluster_start_with(const char *args);
void cluster_stop(cluster *c);

/*
 * Skips the test before Redis 7, which has no sharded channels: nobody is
 * queued or rung there, and who waits looks from time to time.
 */
void need_sharded_channels(void);
bool has_sharded_channels(server *sv);

/* redis-cluster://127.0.0.1:port,... with all six; valid until the stop. */
const char *cluster_uri(const cluster *c);
/* redis://127.0.0.1:port; valid until the stop. */
const char *cluster_node_uri(const cluster *c, int i);
int cluster_port(const cluster *c, int i);
pid_t cluster_pid(const cluster *c, int i);
/* 40 hexadecimal digits. */
const char *cluster_id(const cluster *c, int i);
/* The node for what else server.h has, such as server_calls(); to be killed,
   paused and restarted only by the functions here. */
server *cluster_server(cluster *c, int i);

/* A command on one node, as server_cmd() and server_int(). */
redisReply *cluster_cmd(cluster *c, int i, const char *fmt, ...);
long long cluster_int(cluster *c, int i, const char *fmt, ...);

/* --- who serves what ------------------------------------------------------ */

/* By the part of the name that counts: {tag}. */
unsigned cluster_slot(const char *name);
/* The node that serves the name's slot, as told now; it may be dead. -1: none.
 */
int cluster_owner(cluster *c, const char *name);
int cluster_slot_owner(cluster *c, unsigned slot);
/* A living replica that says it is one of this master; -1: there is none. */
int cluster_replica_of(cluster *c, int master);
/* On its slot's owner. A key that is being moved away is there no more. */
bool cluster_has_key(cluster *c, const char *key);
/* A name like "prefix-17" whose slot the node serves. It is in one of eight
   buffers of the thread, so that it is valid until the eighth call after. */
const char *cluster_name_on(cluster *c, int i, const char *prefix);

/* A port of 127.0.0.1 that is this test's alone, with that of its bus. */
int cluster_take_port(void);

/* --- faults --------------------------------------------------------------- */

void cluster_kill(cluster *c, int i);    /* SIGKILL, and reaped */
void cluster_restart(cluster *c, int i); /* a killed one: without its data */
void cluster_pause(cluster *c, int i);   /* SIGSTOP, returns when it stopped */
void cluster_resume(cluster *c, int i);  /* SIGCONT */

/*
 * All of them end, and a new cluster begins at their addresses: with other ids,
 * epochs from 1, no data, and the slots of each master at the next one.
 */
void cluster_make_anew(cluster *c);
/* Two end, and begin again with each other's address, with what they had saved:
   see cluster_start_with(). */
void cluster_swap_addresses(cluster *c, int i, int j);
/* It ends, and at its address begins a node of another cluster, which has all
   slots. To the functions here it is dead. */
void cluster_lose_address(cluster *c, int i);

/* Makes a replica the master, without asking anybody, or by agreement with its
   master; until every living node names it. */
void cluster_promote(cluster *c, int replica);
void cluster_fail_over(cluster *c, int replica);
/* Until every living master names node i as the owner. */
void cluster_await_owner(cluster *c, const char *name, int i);
/* Does every living node say that node i is a master? */
bool cluster_all_agree_on_master(cluster *c, int i);
/* All live and name the same owners, and each master has a replica that has all
   of its data. */
bool cluster_is_well(cluster *c);
/* Until every living node says that the cluster is well. */
void cluster_await_ok(cluster *c);

/* --- a slot that moves ---------------------------------------------------- */

/* All steps of it. */
void cluster_move_slot(cluster *c, unsigned slot, int to);

/* Begins: the owner sends askers on for keys that it does not have. */
void cluster_slot_begin(cluster *c, unsigned slot, int to);
/* One key, if it is there. */
void cluster_slot_move_key(cluster *c, const char *key, int to);
/* All that are there. */
void cluster_slot_move_keys(cluster *c, unsigned slot, int to);
/* Ends: `to` is the owner; until every living node names it. What has not been
   moved is lost. */
void cluster_slot_end(cluster *c, unsigned slot, int to);

#endif
