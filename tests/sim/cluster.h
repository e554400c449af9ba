/*
 * A cluster: three masters with a replica each, or without. What is so is
 * `truth`; what each node believes is its view, which is told the truth when
 * gossip reaches it, and until then answers as it believes.
 */
#ifndef SIM_CLUSTER_H
#define SIM_CLUSTER_H

#include "world.h"

#define MASTERS   3
#define NODES_MAX 6
#define NOBODY    0xff
#define SLOTS     16384

typedef struct node {
    char id[41];
    int port; /* 0: not known */
    int64_t epoch;
    int master; /* whose replica it is; -1: it is a master */
    bool has_failed;
} node;

typedef struct map {
    unsigned char owner[SLOTS];
    node node[NODES_MAX];
} map;

extern map truth, views[NODES_MAX];

/* A slot whose keys move one by one. */
typedef struct migration {
    int slot; /* -1: none */
    int from, to;
    event next;
} migration;

extern migration moving;

/* When a node got the keys of a slot last. */
extern int64_t keys_came[NODES_MAX];

/* --- cluster_map.c -------------------------------------------------------- */

void map_begin(void);
void map_name_nodes(void); /* each gets a new id */
int64_t map_new_epoch(void);
void map_tell(int i);  /* the node learns the truth, and acts by it */
void map_gossip(void); /* all do, sooner or later */
void map_put_nodes(int i, text *out);
void map_put_slots(int i, text *out);
int slot_of(const word *key);

/* --- cluster_failover.c --------------------------------------------------- */

bool cluster_is_changing(void);
void cluster_kill(void);
void cluster_take_over(void);
void cluster_change_places(void);
void cluster_make_anew(void);
void cluster_swap(void);

/* --- cluster.c ------------------------------------------------------------ */

/* Who listens to what is not the node's any more is told so. */
void cluster_drop_listeners(int i);
void cluster_refuse_until(int i, int64_t until); /* CLUSTERDOWN */

#endif
