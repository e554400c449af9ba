/*
 * What stays true: of the trunks to a node, at most one is not old, and one
 * that is old is freed as soon as its last user leaves and nobody polls it.
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
        rl_completions_unwatch(t->completions, t->conn->io.fd);
    t->watched = false;
}

/* What it still owes, nobody waits for. */
static void disconnect(rl_trunk *t)
{
    if (!t->conn)
        return;
    unwatch(t);
    if (t->conn->line.pending > 0)
        rl_conn_time_out(t->conn);
    rl_pool_close(t->node->pool, t->conn);
    t->conn = NULL;
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
    const rl_conn *c = t->conn;
    return c->line.failed || c->line.retired ||
           rl_conn_is_outdated(c, rl_now_us()) ||
           rl_pool_may_have_lost(t->node->pool, c);
}

/* The one that is not old; NULL: out of memory. */
static rl_trunk *trunk_to(rl_trunks *ts, rl_node *node)
{
    for (rl_link *k = rl_list_first(&ts->all); k;
         k = rl_list_next(&ts->all, k)) {
        rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        t->old = t->old || (t->conn && is_spent(t));
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

static void look_for_connection(rl_trunks *ts, rl_trunk *t)
{
    if (!t->visiting ||
        !rl_connector_has_news(&t->node->connector, &t->visitor))
        return;
    t->visiting = false;
    t->visits = ++ts->visits;
    t->fault = t->visitor.fault;
    t->conn = t->visitor.conn;
    t->visitor.conn = NULL;
}

/* Nobody uses it. The loop, which polls it, is called, and gives it up. */
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
        t->old = t->old || (t->conn && is_spent(t));
        if (t->old && t->users == 0)
            give_up(ts, t);
        else if (rl_trunk_has_failed(t))
            unwatch(t);
        else if (t->conn && !t->watched)
            t->watched = rl_completions_watch(ts->completions, t->conn->io.fd);
    }
}

void rl_trunks_tidy(rl_trunks *ts)
{
    for (rl_link *k = rl_list_first(&ts->all); k;
         k = rl_list_next(&ts->all, k)) {
        rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        if (t->conn)
            rl_bytes_trim(rl_line_begin(&t->conn->line));
    }
}

static void visit(rl_trunks *ts, rl_trunk *t)
{
    rl_core *c = &t->node->e->core;
    int64_t until_us = rl_after_ms(rl_now_us(), c->set.connect_timeout_ms);
    t->visiting = true;
    rl_connector_visit(t->node, &t->visitor, until_us, ts->signal);
}

static rl_trunk *fail(unsigned *visits)
{
    *visits = UINT_MAX;
    return NULL;
}

/* Whoever waited for a trunk that is old by now waits for its successor. */
static bool has_waited(const rl_trunk *t, unsigned visits)
{
    return visits != RL_NO_VISIT && visits >= t->first && visits != t->visits;
}

rl_trunk *rl_trunks_join(rl_trunks *ts, rl_node *node, unsigned *visits,
                         rl_fault *f)
{
    rl_trunk *t = trunk_to(ts, node);
    if (!t) {
        rl_fault_passes(f, rl_fault_set(f, RLOCK_ENOMEM, 0, "out of memory"));
        return fail(visits);
    }
    if (t->conn) {
        t->users++;
        return t;
    }
    if (has_waited(t, *visits)) {
        *f = t->fault;
        return fail(visits);
    }
    *visits = t->visits;
    if (!t->visiting)
        visit(ts, t);
    return NULL;
}

void rl_trunk_leave(rl_trunk *t)
{
    t->users--;
}

struct pollfd rl_trunk_poll(rl_trunk *t, bool attended)
{
    short events = rl_conn_events(t->conn);
    bool left = attended && t->watched && !(events & POLLOUT);
    t->polled = true;
    return (struct pollfd){.fd = t->conn->io.fd,
                           .events = left ? RL_POLL_END : events};
}

void rl_trunks_polled(rl_trunks *ts)
{
    for (rl_link *k = rl_list_first(&ts->all); k; k = rl_list_next(&ts->all, k))
        RL_CONTAINER(k, rl_trunk, link)->polled = false;
}

static bool was_told(const rl_trunk *t, const struct pollfd *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].fd == t->conn->io.fd && p[i].revents)
            return true;
    return false;
}

bool rl_trunks_serve(rl_trunks *ts, const struct pollfd *p, size_t n,
                     bool attended)
{
    bool broke = false;
    for (rl_link *k = rl_list_first(&ts->all); k;
         k = rl_list_next(&ts->all, k)) {
        rl_trunk *t = RL_CONTAINER(k, rl_trunk, link);
        if (!t->conn || t->conn->line.failed)
            continue;
        if (!rl_conn_send(t->conn)) {
            broke = true;
            continue;
        }
        bool may_have = t->watched || t->conn->line.pending > 0;
        if ((attended && may_have) || was_told(t, p, n))
            rl_conn_receive(t->conn);
    }
    return broke;
}
