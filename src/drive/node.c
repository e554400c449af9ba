#include "drive/engine.h"

bool rl_node_init(rl_node *n, rl_engine *e, rl_lane *lane)
{
    n->e = e;
    n->lane = lane;
    rl_mutex_init(&n->starting);
    rl_connector_init(&n->connector);
    rl_shares_init(&n->shares);
    bool ok = rl_keeper_init(n);
    return rl_doorbell_init(&n->doorbell) && ok;
}

/*
 * In a forked child only what was whole at the fork can be walked and freed;
 * mutexes may be locked for ever by threads that are not there.
 */
void rl_node_fini(rl_node *n, bool forked)
{
    rl_doorbell_fini(&n->doorbell, forked);
    rl_shares_fini(&n->shares, forked);
    rl_source_free(n->source, forked);
    rl_keeper_fini(&n->keeper);
    if (forked)
        return;
    rl_connector_fini(&n->connector);
    rl_mutex_fini(&n->starting);
}

bool rl_node_start(rl_node *n)
{
    if (atomic_load(&n->started))
        return true;
    rl_mutex_lock(&n->starting);
    bool ok = rl_connector_start(n) && rl_keeper_start(n);
    atomic_store(&n->started, ok);
    rl_mutex_unlock(&n->starting);
    return ok;
}

void rl_node_silence(rl_node *n)
{
    rl_doorbell_stop(n);
}

void rl_node_stop(rl_node *n)
{
    rl_keeper_stop(n);
    rl_connector_stop(n);
}
