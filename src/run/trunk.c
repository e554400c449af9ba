/*
 * What stays true: of the trunks to a node, at most one is not old, and one
 * that is old is freed as soon as its last port is left and nobody polls it.
 *
 * Who closes the connection? Whoever drives, unless the loop may be in
 * poll() with it: then the loop does, as soon as it is back. Otherwise it
 * would poll a number that the program may have got anew for a file of its own.
 */
#include "run/trunk.h"

#include <poll.h>
#include <stdlib.h>

#include "base/clock.h"
#include "run/engine.h"

/* As many as a busy loop has in flight cost little, and are not made anew. */
#define PORTS_KEPT 64

void rl_trunks_init(rl_trunks *ts, const rl_signal *signal,
                    rl_completions *completions)
{
    rl_list_init(&ts->all);
    ts->signal = signal;
    ts->completions = completions;
}

static void unwatch(rl_trunk *t)
{
    if (t->watched)
        rl_completions_unwatch(t->completions, t->mux->conn->io.fd);
    t->watched = false;
}

static void disconnect(rl_trunk *t)
{
    if (!t->mux)
        return;
    unwatch(t);
    rl_pool_close(t->node->pool, rl_mux_detach(t->mux));
    rl_mux_free(t->mux);
    t->mux = NULL;
}

static void free_trunk(rl_trunk *t)
{
    if (t->visiting)
        rl_connector_forget(t->node, &t->visitor);
    disconnect(t);
    rl_list_remove(&t->link);
    free(t);
}

void rl_trunks_close(rl_trunks *ts)
{
    rl_link *k;
    while ((k = rl_list_first(&ts->all)) != NULL)
        free_trunk(RL_CONTAINER(k, rl_trunk, link));
}

/* It is asked no more. */
static bool is_spent(const rl_trunk *t)
{
    const rl_conn *c = t->mux->conn;
    return t->mux->spent || t->mux->cannot_write || c->line.failed ||
           c->line.retired || rl_conn_is_outdated(c, rl_now_us());
}

/* The one that is not old; NULL: out of memory. */
static rl_trunk *trunk_to(rl_trunks *ts, rl_node *node)
{
    for (rl_link *k = rl_list_first(&ts->all); k;
         k = rl_list_next(&ts->all, k)) {
        rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        t->old = t->old || (t->mux && is_spent(t));
        if (t->node == node && !t->old)
            return t;
    }
    rl_trunk *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->node = node;
    t->completions = ts->completions;
    t->first = t->visits = ++ts->visits;
    rl_list_add_last(&ts->all, &t->link);
    return t;
}

static void out_of_memory(rl_fault *f)
{
    rl_fault_passes(f, rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory"));
}

static void connected(rl_trunk *t, rl_conn *c)
{
    t->mux = rl_mux_new(&t->crowd);
    if (t->mux) {
        rl_mux_attach(t->mux, c);
        return;
    }
    rl_pool_close(t->node->pool, c);
    out_of_memory(&t->fault);
}

static void look_for_connection(rl_trunks *ts, rl_trunk *t)
{
    if (!t->visiting ||
        !rl_connector_has_news(&t->node->connector, &t->visitor))
        return;
    rl_conn *c = t->visitor.conn;
    t->visiting = false;
    t->visits = ++ts->visits;
    t->fault = t->visitor.fault;
    t->visitor.conn = NULL;
    if (c)
        connected(t, c);
}

/* Nobody has a port. The loop, which polls it, is called, and gives it up. */
static void give_up(rl_trunks *ts, rl_trunk *t)
{
    if (!t->polled) {
        free_trunk(t);
        return;
    }
    unwatch(t); /* who dispatches is not called for it all the while */
    rl_signal_raise(ts->signal);
}

void rl_trunks_look(rl_trunks *ts)
{
    rl_link *next;
    for (rl_link *k = rl_list_first(&ts->all); k; k = next) {
        rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        next = rl_list_next(&ts->all, k);
        look_for_connection(ts, t);
        t->old = t->old || (t->mux && is_spent(t));
        if (t->old && t->users == 0)
            give_up(ts, t);
        else if (rl_trunk_has_failed(t))
            unwatch(t);
        else if (t->mux && !t->watched)
            t->watched =
                rl_completions_watch(ts->completions, t->mux->conn->io.fd);
    }
}

void rl_trunks_tidy(rl_trunks *ts)
{
    for (rl_link *k = rl_list_first(&ts->all); k;
         k = rl_list_next(&ts->all, k)) {
        rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        if (t->mux)
            rl_mux_trim(t->mux, t->most > PORTS_KEPT ? t->most : PORTS_KEPT);
        t->most = t->users;
    }
}

static void visit(rl_trunks *ts, rl_trunk *t)
{
    rl_core *c = &t->node->e->core;
    int64_t until_us = rl_after_ms(rl_now_us(), c->set.connect_timeout_ms);
    t->visiting = true;
    rl_connector_visit(t->node, &t->visitor, until_us, ts->signal);
}

static rl_port *fail(unsigned *visits)
{
    *visits = UINT_MAX;
    return NULL;
}

static rl_port *sit_down(rl_trunk *t, rl_fault *f, unsigned *visits)
{
    rl_port *s = rl_mux_join(t->mux);
    if (!s) {
        out_of_memory(f);
        return fail(visits);
    }
    t->users++;
    if (t->most < t->users)
        t->most = t->users;
    return s;
}

/* Whoever waited for a trunk that is old by now waits for its successor. */
static bool has_waited(const rl_trunk *t, unsigned visits)
{
    return visits != RL_NO_VISIT && visits >= t->first && visits != t->visits;
}

rl_port *rl_trunks_join(rl_trunks *ts, rl_node *node, unsigned *visits,
                        rl_trunk **at, rl_fault *f)
{
    rl_trunk *t = *at = trunk_to(ts, node);
    if (!t) {
        out_of_memory(f);
        return fail(visits);
    }
    if (t->mux)
        return sit_down(t, f, visits);
    if (has_waited(t, *visits)) {
        *f = t->fault;
        return fail(visits);
    }
    *visits = t->visits;
    if (!t->visiting)
        visit(ts, t);
    return NULL;
}

void rl_trunk_leave(rl_trunk *t, rl_port *s)
{
    rl_port_leave(s);
    t->users--;
}

struct pollfd rl_trunk_poll(rl_trunk *t, bool attended)
{
    bool left = attended && t->watched && !t->mux->blocked;
    t->polled = true;
    return (struct pollfd){.fd = t->mux->conn->io.fd,
                           .events =
                               left ? RL_POLL_END : rl_mux_events(t->mux)};
}

void rl_trunks_polled(rl_trunks *ts)
{
    for (rl_link *k = rl_list_first(&ts->all); k; k = rl_list_next(&ts->all, k))
        RL_CONTAINER(k, rl_trunk, link)->polled = false;
}

static bool was_told(const rl_trunk *t, const struct pollfd *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].fd == t->mux->conn->io.fd && p[i].revents)
            return true;
    return false;
}

void rl_trunks_serve(rl_trunks *ts, const struct pollfd *p, size_t n)
{
    for (rl_link *k = rl_list_first(&ts->all); k;
         k = rl_list_next(&ts->all, k)) {
        const rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        if (t->mux)
            rl_mux_serve(t->mux, was_told(t, p, n));
    }
}

void rl_trunks_exchange(rl_trunks *ts, const struct pollfd *p, size_t n)
{
    for (rl_link *k = rl_list_first(&ts->all); k;
         k = rl_list_next(&ts->all, k)) {
        const rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        if (t->mux)
            rl_mux_serve(t->mux, t->watched || t->mux->conn->line.pending > 0 ||
                                     was_told(t, p, n));
    }
}
