/*
 * What a client runs: what it believes (op/core.h), its servers
 * (run/node.h), and the threads that make it go. client.c builds it.
 */
#ifndef RL_RUN_ENGINE_H
#define RL_RUN_ENGINE_H

#include "op/core.h"
#include "route/cluster.h"
#include "route/sentinel.h"
#include "run/async.h"
#include "run/completion.h"
#include "run/loop.h"
#include "run/node.h"
#include "run/notifier.h"

typedef struct rl_engine {
    rl_core core;
    rl_node node;        /* the only one; or the way into a cluster */
    rl_cluster *cluster; /* NULL: it is none */
    rl_mutex starting;   /* held while the loop and the notifier are */
    atomic_bool started; /* being started: they run */
    rl_loop loop;
    rl_watcher topology; /* asks Sentinels, or a cluster (client/topology.c), */
    atomic_bool topology_ends; /* until then */
    rl_tls *tls;               /* NULL: plain */
    rl_credentials credentials;
    unsigned pool_size;
    /* Whether a new connection will do; client.c's. */
    bool (*check)(rl_node *n, rl_conn *c, int64_t deadline_us, rl_fault *f);
    rl_sentinels *sentinels; /* NULL: the URI says where the server is */
    atomic_bool unchecked;   /* a lazy client's server was never met */
    rl_mutex check_mutex;    /* guards checking, */
    rl_cond checked;         /* which has come to its end */
    bool checking;           /* somebody is, on a connection of his */
    rl_notifier notifier;
    rl_async async;
    rl_completions completions;
} rl_engine;

static inline rl_engine *rl_engine_of(rl_core *c)
{
    return RL_CONTAINER(c, rl_engine, core);
}

/* Where a slot is asked about. */
static inline rl_node *rl_node_of(rl_core *c, unsigned slot)
{
    rl_engine *e = rl_engine_of(c);
    rl_node *node = e->cluster ? rl_cluster_route(e->cluster, slot) : NULL;
    return node ? node : &e->node;
}

/* The server that rl_redirects.ask has named. */
static inline rl_node *rl_node_at(rl_core *c, unsigned number)
{
    return rl_cluster_server(rl_engine_of(c)->cluster, number);
}

/* For every server that is known. */
void rl_engine_each(rl_engine *e, void (*what)(rl_node *n));

/* It does not answer in time. */
void rl_node_suspect(rl_node *n, const rl_fault *why);

/*
 * Starts what a hold of this slot needs before it exists: threads, and the
 * keeper of its server. False: one could not be started.
 */
bool rl_engine_start(rl_engine *e, unsigned slot);

/* Those of all servers of a cluster that have slots; one that cannot be is
   tried again. */
void rl_engine_start_servers(rl_engine *e);

#endif
