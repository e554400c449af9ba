/* What the sources of cluster.h share. */
#ifndef TEST_SUPPORT_CLUSTER_VIEW_H
#define TEST_SUPPORT_CLUSTER_VIEW_H

#include <stdatomic.h>

#include "cluster.h"

enum { CLUSTER_MASTERS = 3 };

typedef struct cluster_node {
    server *sv;
    char id[41];
    char uri[40];
    atomic_bool killed, paused;
} cluster_node;

struct cluster {
    cluster_node at[CLUSTER_NODES];
    char uri[160];
    int anew; /* so many times it was made anew */
};

/* What a node believes. */
typedef struct cluster_view {
    int8_t owner[CLUSTER_SLOTS]; /* a node; -1: nobody */
    struct {
        long long epoch;
        int8_t master; /* -1: it is one itself */
        bool linked;
    } at[CLUSTER_NODES];
} cluster_view;

bool cluster_lives(const cluster *c, int i);
cluster_view cluster_look(cluster *c, int i);
/* Every living node that has a slot of its own names this one. */
bool cluster_masters_name(cluster *c, unsigned slot, int i);
/* Every living node names this one. */
bool cluster_all_name(cluster *c, unsigned slot, int i);
/* What answers to it must be: OK. */
void cluster_order(cluster *c, int i, const char *fmt, ...);

#endif
