#include "drive/engine.h"
#include "route/pool.h"

/* Whose calls these are, the source does not know. */
static bool on_open(void *arg, rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    rl_node *n = arg;
    rl_cluster *cluster = n->e->cluster;
    return (!cluster || rl_cluster_recognizes(cluster, n, c, deadline_us, f)) &&
           n->e->check(n, c, deadline_us, f);
}

static void on_reconnect(void *arg)
{
    const rl_node *n = arg;
    rl_add(&n->e->core.stats.reconnects, 1);
    rl_holds_reconnected(&n->e->core.holds);
}

static void on_trouble(void *arg)
{
    rl_node *n = arg;
    if (n->e->sentinels)
        rl_sentinels_suspect(n->e->sentinels);
    if (n->e->cluster)
        rl_cluster_suspect(n->e->cluster, n);
}

static void on_dial(void *arg, bool begins)
{
    rl_node *n = arg;
    rl_cluster_dials(n->e->cluster, n, begins);
}

bool rl_node_connect(rl_node *n, rl_dialer *d)
{
    rl_source *s = rl_pool_new(d, n->e->pool_size);
    if (!s)
        return false;
    n->source = n->shares.source = s;
    s->on_open = on_open;
    s->on_reconnect = on_reconnect;
    s->on_trouble = on_trouble;
    s->on_dial = n->e->cluster ? on_dial : NULL;
    s->arg = n;
    s->identified_only = &n->e->core.identity.wanted;
    return true;
}

bool rl_node_init(rl_node *n, rl_engine *e, rl_lane *lane)
{
    n->e = e;
    n->lane = lane;
    rl_mutex_init(&n->starting);
    rl_connector_init(&n->connector);
    rl_shares_init(&n->shares);
    rl_keeper_init(n);
    return rl_doorbell_init(&n->doorbell);
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
    if (!n->source)
        return; /* it was never connected */
    rl_keeper_stop(n);
    rl_connector_stop(n);
}
