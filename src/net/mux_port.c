#include "net/mux.h"

#include <stdlib.h>

rl_mux *rl_mux_new(const atomic_uint *crowd)
{
    rl_mux *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->crowd = crowd;
    h->signal = RL_SIGNAL_NONE;
    rl_mutex_init(&h->mutex, RL_RANK_MUX);
    rl_list_init(&h->idle);
    return h;
}

static void free_port(rl_port *s)
{
    rl_line_fini(&s->line);
    rl_cond_fini(&s->cond);
    rl_mutex_fini(&s->mutex);
    free(s);
}

void rl_mux_free(rl_mux *h)
{
    while (h->ports) {
        rl_port *s = h->ports;
        h->ports = s->next;
        free_port(s);
    }
    rl_signal_fini(&h->signal);
    rl_bytes_fini(&h->sending);
    rl_mutex_fini(&h->mutex);
    free(h);
}

void rl_mux_attach(rl_mux *h, rl_conn *c)
{
    h->conn = c;
    if (h->signal.fd < 0)
        rl_signal_init(&h->signal);
}

rl_conn *rl_mux_detach(rl_mux *h)
{
    rl_conn *c = h->conn;
    rl_mutex_lock(&h->mutex);
    if (rl_bytes_left(&h->sending) > 0)
        atomic_store(&h->spent, true);
    bool spent = atomic_load(&h->spent);
    if (h->cannot_write)
        rl_conn_break(c, &h->fault);
    else if (spent && c->line.pending > 0)
        rl_conn_time_out(c);
    c->line.retired = c->line.retired || spent;
    rl_mutex_unlock(&h->mutex);
    h->conn = NULL;
    return c;
}

static rl_port *new_port(rl_mux *h)
{
    rl_port *s = calloc(1, sizeof *s);
    if (!s || !rl_line_init(&s->line)) {
        free(s);
        return NULL;
    }
    s->mux = h;
    s->slot.answered = rl_port_answered;
    s->slot.failed = rl_port_failed;
    rl_mutex_init(&s->mutex, RL_RANK_PORT);
    rl_cond_init(&s->cond);
    s->next = h->ports;
    h->ports = s;
    h->port_count++;
    return s;
}

rl_port *rl_mux_join(rl_mux *h)
{
    rl_link *k = rl_list_first(&h->idle);
    if (!k)
        return new_port(h);
    rl_list_remove(k);
    return RL_CONTAINER(k, rl_port, link);
}

/* It may be waiting, or have been told to lead since it was answered. */
static void leave_early(rl_mux *h, rl_port *s)
{
    rl_mutex_lock(&h->mutex);
    s->left = rl_port_waits(s);
    if (s->left)
        atomic_store(&h->spent, true);
    if (h->leader == s) {
        atomic_store(&s->leads, false);
        rl_mux_pass_lead_locked(h);
    }
    rl_mux_unlock_and_wake(h);
}

/* Mostly it is answered: then it is not in the mux's line, and leads nobody. */
bool rl_port_leave(rl_port *s)
{
    rl_mux *h = s->mux;
    if (rl_port_waits(s) || atomic_load(&s->leads))
        leave_early(h, s);
    if (s->line.retired)
        atomic_store(&h->spent, true);
    bool spent = atomic_load(&h->spent);
    if (!spent && !s->line.failed)
        rl_list_add_first(&h->idle, &s->link);
    return !spent;
}
