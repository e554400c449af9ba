#include "net/mux_in.h"

#include <stdlib.h>

/* So large a buffer is not kept for what may come. */
#define BYTES_KEPT (16 * 1024)

rl_share *rl_share_new(const atomic_uint *crowd)
{
    rl_share *h = calloc(1, sizeof *h);
    if (!h)
        return NULL;
    h->crowd = crowd;
    h->signal = RL_SIGNAL_NONE;
    rl_mutex_init(&h->mutex);
    rl_list_init(&h->idle);
    return h;
}

static void free_seat(rl_seat *s)
{
    rl_line_fini(&s->line);
    rl_cond_fini(&s->cond);
    rl_mutex_fini(&s->mutex);
    free(s);
}

void rl_share_free(rl_share *h)
{
    while (h->seats) {
        rl_seat *s = h->seats;
        h->seats = s->next;
        free_seat(s);
    }
    rl_signal_fini(&h->signal);
    rl_bytes_fini(&h->sending);
    rl_mutex_fini(&h->mutex);
    free(h);
}

void rl_share_attach(rl_share *h, rl_conn *c)
{
    h->conn = c;
    if (h->signal.fd < 0)
        rl_signal_init(&h->signal);
}

rl_conn *rl_share_detach(rl_share *h)
{
    rl_conn *c = h->conn;
    rl_mutex_lock(&h->mutex);
    h->spent = h->spent || rl_bytes_left(&h->sending) > 0;
    if (h->cannot_write)
        rl_conn_break(c, &h->fault);
    else if (h->spent && c->line.pending > 0)
        rl_conn_time_out(c);
    c->line.retired = c->line.retired || h->spent;
    rl_mutex_unlock(&h->mutex);
    h->conn = NULL;
    return c;
}

static rl_seat *new_seat_locked(rl_share *h) RL_REQUIRES(&h->mutex)
{
    rl_seat *s = calloc(1, sizeof *s);
    if (!s || !rl_line_init(&s->line)) {
        free(s);
        return NULL;
    }
    s->share = h;
    s->slot.answered = rl_seat_answered;
    s->slot.failed = rl_seat_failed;
    rl_mutex_init(&s->mutex);
    rl_cond_init(&s->cond);
    s->next = h->seats;
    h->seats = s;
    h->seated++;
    return s;
}

rl_seat *rl_share_sit(rl_share *h)
{
    rl_mutex_lock(&h->mutex);
    rl_link *k = rl_list_first(&h->idle);
    rl_seat *s = k ? RL_CONTAINER(k, rl_seat, link) : new_seat_locked(h);
    if (k)
        rl_list_remove(k);
    rl_mutex_unlock(&h->mutex);
    return s;
}

static void trim_bytes(rl_bytes *b)
{
    if (b->room > BYTES_KEPT && rl_bytes_left(b) == 0)
        rl_bytes_fini(b);
}

void rl_share_trim(rl_share *h, size_t kept)
{
    rl_mutex_lock(&h->mutex);
    rl_seat **at = &h->seats;
    while (*at && h->seated > kept) {
        rl_seat *s = *at;
        if (!rl_link_is_in(&s->link)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        h->seated--;
        rl_list_remove(&s->link);
        free_seat(s);
    }
    trim_bytes(&h->sending);
    if (h->conn)
        trim_bytes(rl_line_begin(&h->conn->line));
    rl_mutex_unlock(&h->mutex);
}

bool rl_seat_leave(rl_seat *s)
{
    rl_share *h = s->share;
    rl_mutex_lock(&h->mutex);
    s->left = rl_seat_waits(s);
    h->spent = h->spent || s->left || s->line.retired;
    bool spent = h->spent;
    if (!spent && !s->line.failed)
        rl_list_add_first(&h->idle, &s->link);
    if (h->leader == s) {
        atomic_store(&s->leads, false);
        rl_share_pass_lead_locked(h);
    }
    rl_share_unlock_and_wake(h);
    return !spent;
}
