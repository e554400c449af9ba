#include "run/engine.h"

static bool start_threads(rl_engine *e)
{
    if (atomic_load(&e->started))
        return true;
    rl_mutex_lock(&e->starting);
    bool ok = rl_notifier_start(e) && rl_loop_start(&e->loop);
    atomic_store(&e->started, ok);
    rl_mutex_unlock(&e->starting);
    return ok;
}

void rl_engine_start_servers(rl_engine *e)
{
    unsigned count = rl_cluster_count(e->cluster);
    for (unsigned i = 1; i <= count; i++)
        if (!rl_cluster_is_retired(e->cluster, i))
            rl_node_start(rl_cluster_server(e->cluster, i));
}

/*
 * With the first hold every server gets its keeper, as its slot may move
 * anywhere; those that come later, when they come (topology.c).
 */
bool rl_engine_start(rl_engine *e, unsigned slot)
{
    bool first = e->cluster && !atomic_load(&e->started);
    if (!start_threads(e))
        return false;
    if (first)
        rl_engine_start_servers(e);
    return rl_node_start(rl_node_of(&e->core, slot));
}

void rl_node_suspect(rl_node *n, const rl_fault *why)
{
    rl_connector_suspect(n, why);
    if (n->e->cluster)
        rl_cluster_suspect(n->e->cluster, n);
}

void rl_engine_each(rl_engine *e, void (*what)(rl_node *n))
{
    unsigned count = e->cluster ? rl_cluster_count(e->cluster) : 0;
    what(&e->node);
    for (unsigned i = 1; i <= count; i++)
        what(rl_cluster_server(e->cluster, i));
}
