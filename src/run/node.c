#include "base/clock.h"
#include "route/pool.h"
#include "run/engine.h"

/* Whose calls these are, the pool does not know. */
static bool on_open(void *arg, rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    rl_node *n = arg;
    rl_cluster *cluster = n->e->cluster;
    /* Who opens it may have for ever; who answers has not. */
    deadline_us = rl_min(deadline_us, rl_command_end(&n->e->core, rl_now_us()));
    return (!cluster || rl_cluster_recognizes(cluster, n, c, deadline_us, f)) &&
           n->e->check(n, c, deadline_us, f);
}

static void on_reconnect(void *arg)
{
    const rl_node *n = arg;
    rl_add(&n->e->core.stats.reconnects, 1);
    rl_holds_reconnected(&n->e->core.holds);
}

void rl_node_complain(rl_node *n)
{
    if (n->e->sentinels)
        rl_sentinels_suspect(n->e->sentinels);
    if (n->e->cluster)
        rl_cluster_suspect(n->e->cluster, n);
}

/* Others may have been lost with that one. */
static void on_trouble(void *arg)
{
    rl_node *n = arg;
    rl_node_complain(n);
    rl_loop_nudge(&n->e->loop, &n->keeper.watcher);
    rl_doorbell_wake(n);
}

static void on_dial(void *arg, bool begins)
{
    rl_node *n = arg;
    rl_cluster_dials(n->e->cluster, n, begins);
}

bool rl_node_connect(rl_node *n, rl_dialer *d)
{
    rl_pool *p = rl_pool_new(d, n->e->pool_size);
    if (!p)
        return false;
    n->pool = n->muxes.pool = p;
    p->on_open = on_open;
    p->on_reconnect = on_reconnect;
    p->on_trouble = on_trouble;
    p->on_dial = n->e->cluster ? on_dial : NULL;
    p->arg = n;
    p->on_want = rl_mux_set_give_back;
    p->keeps = &n->muxes;
    p->identified_only = &n->e->core.server_run.wanted;
    return true;
}

bool rl_node_init(rl_node *n, rl_engine *e, rl_due_queue *queue)
{
    n->e = e;
    n->queue = queue;
    rl_mutex_init(&n->starting, RL_RANK_NODE);
    rl_connector_init(&n->connector);
    rl_mux_set_init(&n->muxes);
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
    rl_mux_set_fini(&n->muxes, forked);
    rl_pool_free(n->pool, forked);
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
    bool ok = !n->stopped && rl_keeper_start(n);
    if (ok)
        rl_connector_open(n);
    atomic_store(&n->started, ok);
    rl_mutex_unlock(&n->starting);
    return ok;
}

static bool is_idle(rl_node *n)
{
    rl_mutex_lock(&n->e->core.holds.mutex);
    bool idle = n->queue->held == 0 && n->queue->work.count == 0;
    rl_mutex_unlock(&n->e->core.holds.mutex);
    return idle;
}

/* What comes to be due here meanwhile waits until it is started. */
bool rl_node_dismiss(rl_node *n)
{
    if (!is_idle(n))
        return false;
    rl_mutex_lock(&n->starting);
    bool stopped = n->stopped;
    atomic_store(&n->started, false);
    if (!stopped) {
        rl_doorbell_dismiss(n);
        rl_keeper_dismiss(n);
        rl_connector_close(n);
    }
    rl_mutex_unlock(&n->starting);
    if (!stopped)
        rl_mux_set_trim(&n->muxes);
    return !stopped;
}

static void begin_no_more(rl_node *n)
{
    rl_mutex_lock(&n->starting);
    n->stopped = true;
    rl_mutex_unlock(&n->starting);
}

void rl_node_hush(rl_node *n)
{
    begin_no_more(n);
    rl_connector_rest(n);
    rl_doorbell_quit(n);
}

void rl_node_silence(rl_node *n)
{
    rl_doorbell_await_end(n);
}

void rl_node_stop(rl_node *n)
{
    if (!n->pool)
        return; /* it was never connected */
    begin_no_more(n);
    rl_keeper_stop(n);
    rl_connector_stop(n);
}
