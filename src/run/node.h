/*
 * What a client has of one server: connections, who makes them, who renews over
 * them, and the doorbell that listens there. A client has one node;
 * of a cluster one for each master that it has had to do with.
 */
#ifndef RL_RUN_NODE_H
#define RL_RUN_NODE_H

#include "net/dial.h"
#include "route/mux_set.h"
#include "run/connector.h"
#include "run/doorbell.h"
#include "run/keeper.h"

typedef struct rl_node {
    struct rl_engine *e;    /* fixed; whose it is */
    const char *name;       /* fixed; for messages; NULL: the client's */
    rl_due_queue *queue;    /* fixed; what is due here */
    rl_due_queue own_queue; /* of one among several, this one */
    rl_pool *pool;          /* fixed */
    rl_mux_set muxes;       /* of the connections there */
    rl_mutex starting; /* held while its watchers are put on the loop, or taken
                          off; guards */
    bool stopped;      /* for good: they are put on it no more */
    atomic_bool started;
    rl_connector connector;
    rl_keeper keeper;
    rl_doorbell doorbell;
} rl_node;

/* False: out of memory. */
bool rl_node_init(rl_node *n, struct rl_engine *e, rl_due_queue *queue);
/*
 * Where its connections come from: the dialer, which it takes over, also when
 * it fails. Opens none. False: out of memory.
 */
bool rl_node_connect(rl_node *n, rl_dialer *d);

/* Something is wrong with its server: who knows of others is asked. */
void rl_node_complain(rl_node *n);

/* It has been stopped, or, forked, never ran in this process. */
void rl_node_fini(rl_node *n, bool forked);

/* Starts what a hold needs before it exists: the keeper. No effect when it is
   started. False: out of memory. */
bool rl_node_start(rl_node *n);

/*
 * Takes it off the loop, and gives back its descriptors, soon, until it is
 * started again: its server is asked no more. False: something is held there,
 * or due.
 */
bool rl_node_dismiss(rl_node *n);

/* For good: tells the doorbell to end; */
void rl_node_hush(rl_node *n);
/* waits until it has; */
void rl_node_silence(rl_node *n);
/* and, after rl_holds_stop(), the keeper and the connector. */
void rl_node_stop(rl_node *n);

#endif
