/*
 * What is said here is said on the loop, with no lock held, except that a
 * server of a cluster may become known on any thread, under the cluster's
 * mutex. Whoever sleeps because of a server that is gone is woken after the new
 * one can be asked.
 */
#include "client/topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hold/due.h"

/* After its retirement, what there is for a server of a cluster goes, as soon
   as nobody can be connecting to it any more, and so much later. */
#define DISMISS_US (1000 * 1000)

/* Sentinels or a cluster have something to do. Any thread. */
static void nudge(void *arg)
{
    rl_engine *e = arg;
    rl_loop_nudge(&e->loop, &e->topology);
}

/* What it pauses for may be over: another server is in office. */
static void hurry(rl_node *node)
{
    rl_doorbell_hurry(node);
    rl_keeper_hurry(node);
}

/* --- Sentinels ------------------------------------------------------------ */

static void on_leave(void *arg, uint64_t nth, const char *name)
{
    rl_engine *e = arg;
    if (name)
        atomic_store(&e->core.node, name);
    rl_pool_forsake(e->node.pool, nth);
}

static void on_failover(void *arg, const rl_place *was, const rl_place *is)
{
    rl_engine *e = arg;
    char text[640], new[100], old[100];
    rl_add(&e->core.stats.failovers, 1);
    rl_printable(new, sizeof new, is->host, strlen(is->host));
    rl_printable(old, sizeof old, was->host, strlen(was->host));
    snprintf(text, sizeof text, "%s:%d instead of %s:%d", new, is->port, old,
             was->port);
    hurry(&e->node);
    rl_rooms_look_all(&e->core.rooms);
    rl_notifier_failover(e, text);
}

static void on_dissent(void *arg, const char *text)
{
    rl_notifier_warn(arg, text);
}

static bool make_sentinels(rl_engine *e, const rlock_options *o, rl_dialer *d)
{
    rl_sentinels_options so = {.uri = &d->uri,
                               .tls = d->tls,
                               .credentials = &e->credentials,
                               .user = o->sentinel_user,
                               .password = o->sentinel_password,
                               .connect_timeout_ms =
                                   e->core.set.connect_timeout_ms,
                               .leave = on_leave,
                               .failed_over = on_failover,
                               .warn = on_dissent,
                               .nudge = nudge,
                               .arg = e,
                               .signal = &e->loop.signal,
                               .refreshes = &e->core.stats.refreshes};
    e->sentinels = rl_sentinels_new(&so);
    d->locate = rl_sentinels_locate;
    d->locate_arg = e->sentinels;
    d->role = true;
    e->core.patient = true;
    return e->sentinels != NULL;
}

/* --- a cluster ------------------------------------------------------------ */

/* The node stays until the client's end, and so does its due queue in the hold
   table; while its server is retired, without threads. */
static void *on_server(void *arg, rl_server *s, const char *name)
{
    rl_engine *e = arg;
    rl_fault f;
    rl_dialer d;
    rl_node *node = calloc(1, sizeof *node);
    if (!node)
        return NULL;
    rl_dialer_init(&d);
    d.connect_timeout_ms = e->core.set.connect_timeout_ms;
    d.credentials = &e->credentials;
    d.tls = e->tls;
    d.locate = rl_server_locate;
    d.locate_arg = s;
    node->name = name;
    bool ok = rl_node_init(node, e, &node->own_queue) &&
              rl_server_uri(s, &d.uri, &f) == RLOCK_OK;
    if (ok)
        ok = rl_node_connect(node, &d);
    else
        rl_dialer_fini(&d);
    if (ok && rl_holds_add_due_queue(&e->core.holds, node->queue)) {
        if (atomic_load(&e->started)) /* what has a hold may move here */
            rl_node_start(node);
        return node;
    }
    rl_node_fini(node, false);
    free(node);
    return NULL;
}

static void on_loss(void *arg, void *server, uint64_t nth)
{
    rl_node *node = server;
    (void)arg;
    rl_pool_forsake(node->pool, nth);
}

/* Connections to it were shut when it was left. */
static bool on_retirement(void *arg, void *server)
{
    (void)arg;
    return rl_node_dismiss(server);
}

/* What has holds may have become known just before there were any. */
static void on_map(void *arg, unsigned failovers, const char *text)
{
    rl_engine *e = arg;
    if (atomic_load(&e->started))
        rl_engine_start_servers(e);
    if (failovers == 0) { /* who waits in a slot that has moved was told so */
        rl_holds_failed_over(&e->core.holds, false, rl_now_us());
        return;
    }
    rl_add(&e->core.stats.failovers, failovers);
    rl_engine_each(e, hurry);
    rl_rooms_look_all(&e->core.rooms);
    rl_notifier_failover(e, text);
}

static rl_due_queue *queue_of(rl_holds *t, const rl_hold *h)
{
    rl_core *c = RL_CONTAINER(t, rl_core, holds);
    return (h->detour ? rl_node_at(c, h->detour) : rl_node_of(c, h->slot))
        ->queue;
}

static bool hears(rl_core *c, const rl_target *what)
{
    return rl_subscriptions_hear(rl_node_of(c, what->slot), what);
}

static bool make_cluster(rl_engine *e, rl_dialer *d)
{
    rl_core *c = &e->core;
    rl_cluster_options co = {
        .uri = &d->uri,
        .tls = d->tls,
        .credentials = &e->credentials,
        .connect_timeout_ms = e->core.set.connect_timeout_ms,
        .add = on_server,
        .leave = on_loss,
        .told = on_map,
        .dismiss = on_retirement,
        .dismiss_us = DISMISS_US + c->set.connect_timeout_ms * 1000,
        .nudge = nudge,
        .signal = &e->loop.signal,
        .arg = e,
        .refreshes = &c->stats.refreshes,
        .redirects = &c->stats.redirects,
        .nodes = &c->stats.nodes};
    char uuid[RL_UUID_LEN + 1];
    e->cluster = rl_cluster_new(&co);
    if (!e->cluster)
        return false;
    d->locate = rl_cluster_locate;
    d->locate_arg = e->cluster;
    strcpy(uuid, c->bell + strlen(RL_BELL_PREFIX));
    snprintf(c->bell, sizeof c->bell, RL_SBELL_PREFIX "%s", uuid);
    c->redirects = rl_cluster_redirects(e->cluster);
    c->patient = true;
    c->hears = hears;
    c->holds.queue_of = queue_of;
    return true;
}

/* --- both ----------------------------------------------------------------- */

rlock_status rl_topology_make(rl_engine *e, const rlock_options *o,
                              rl_dialer *d)
{
    bool ok = d->uri.cluster ? make_cluster(e, d) : make_sentinels(e, o, d);
    return ok ? RLOCK_OK : RLOCK_ENOMEM;
}

static int64_t turn(rl_watcher *w, int64_t now_us)
{
    rl_engine *e = RL_CONTAINER(w, rl_engine, topology);
    if (atomic_load(&e->topology_ends))
        return RL_LOOP_LEAVE;
    return e->cluster ? rl_cluster_turn(e->cluster, now_us, &w->called)
                      : rl_sentinels_turn(e->sentinels, now_us, &w->called);
}

static size_t look(rl_watcher *w, struct pollfd *p, size_t room)
{
    rl_engine *e = RL_CONTAINER(w, rl_engine, topology);
    (void)room;
    return e->cluster ? rl_cluster_look(e->cluster, p)
                      : rl_sentinels_look(e->sentinels, p);
}

bool rl_topology_start(rl_engine *e)
{
    if (!e->cluster && !e->sentinels)
        return true;
    e->topology = (rl_watcher){.turn = turn,
                               .look = look,
                               .most = e->cluster ? 1 : RL_SENTINELS_POLLED};
    return rl_loop_open(&e->loop) && rl_loop_add(&e->loop, &e->topology) &&
           rl_loop_start(&e->loop);
}

void rl_topology_stop(rl_engine *e)
{
    atomic_store(&e->topology_ends, true);
    if (e->cluster || e->sentinels) {
        rl_loop_nudge(&e->loop, &e->topology);
        rl_loop_await_end(&e->loop, &e->topology);
    }
    if (e->sentinels)
        rl_sentinels_stop(e->sentinels);
    if (e->cluster)
        rl_cluster_stop(e->cluster);
}

void rl_topology_fini(rl_engine *e, bool forked)
{
    unsigned n = e->cluster ? rl_cluster_count(e->cluster) : 0;
    for (unsigned i = 1; i <= n; i++)
        rl_node_fini(rl_cluster_server(e->cluster, i), forked);
    rl_sentinels_free(e->sentinels, forked);
    if (forked)
        rl_cluster_free(e->cluster, true);
}

void rl_topology_free(rl_engine *e)
{
    unsigned n = e->cluster ? rl_cluster_count(e->cluster) : 0;
    for (unsigned i = 1; i <= n; i++)
        free(rl_cluster_server(e->cluster, i));
    rl_cluster_free(e->cluster, false);
}
