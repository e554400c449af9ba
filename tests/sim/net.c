/*
 * Connections. Each has two ways, in which bytes arrive in their order, each
 * piece after its own delay. A connection that is cut loses all bytes behind
 * some byte, in either direction; those before it still arrive, also when the
 * sender has long given up. So a request can be executed at any time after it
 * was sent, or a part of it never.
 *
 * What stays true: a connection is freed when both sides have closed it and
 * nothing is under way any more.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "drive/inquiry.h"
#include "world.h"

typedef struct chunk {
    timer timer;
    rl_link link;
    conn *c;
    bool is_up, is_end;
    size_t len;
    char bytes[];
} chunk;

static int64_t delay_us(world *w)
{
    const config *set = &w->set;
    if (!w->is_quiet && chance_ppm(&w->chance, set->tail_ppm))
        return 1 + chance_skewed(&w->chance, set->tail_us);
    return set->delay_us / 4 + chance_below(&w->chance, set->delay_us);
}

static void arrive_up(conn *c, const chunk *k)
{
    if (!c->server_open || c->server_run != c->s->run)
        return;
    text_add(&c->input, k->bytes, k->len);
    server_take(c);
    if (k->is_end)
        server_hang_up(c);
}

static void arrive_down(conn *c, const chunk *k)
{
    if (!c->client_open)
        return;
    text_add(&c->inbox, k->bytes, k->len);
    c->ended = c->ended || k->is_end;
    if (c->user)
        task_wake(c->user);
}

static void chunk_free(chunk *k)
{
    timer_fini(k->c->w, &k->timer);
    rl_list_remove(&k->link);
    free(k);
}

static void arrive(timer *a)
{
    chunk *k = RL_CONTAINER(a, chunk, timer);
    conn *c = k->c;
    if (k->is_up)
        arrive_up(c, k);
    else
        arrive_down(c, k);
    chunk_free(k);
    conn_forget_if_over(c);
}

static void put(conn *c, bool is_up, const char *bytes, size_t len, bool is_end)
{
    world *w = c->w;
    way *p = is_up ? &c->up : &c->down;
    if (c->silent || c->of->p->is_dead)
        return;
    chunk *k = need_memory(sizeof *k + len);
    k->c = c;
    k->is_up = is_up;
    k->is_end = is_end;
    k->len = len;
    if (len > 0)
        memcpy(k->bytes, bytes, len);
    timer_init(w, &k->timer, arrive);
    rl_list_add_last(&p->chunks, &k->link);
    /* Never at the same time as the one before, whose turn could be later. */
    p->last_us =
        rl_max(rl_max(p->last_us + 1, p->frozen_us), w->now_us + delay_us(w));
    timer_set(w, &k->timer, p->last_us);
}

void conn_reply(conn *c, const text *bytes)
{
    if (c->server_open && bytes->len > 0)
        put(c, false, bytes->at, bytes->len, false);
}

/* --- dialing -------------------------------------------------------------- */

static void write_identify(const rl_ask *a, rl_bytes *to)
{
    rl_put_call(to, RL_SCRIPT_IDENTIFY, a->whole, 0, 0);
}

static void identified(rl_ask *a, rl_outcome outcome, const rl_reply *r,
                       int64_t now_us)
{
    conn *c = RL_CONTAINER(a, conn, identify);
    rl_core *core = &c->of->e.core;
    c->c.known = outcome == RL_ANSWERED && r->count == 2 &&
                 rl_identity_note(&core->identity, r->item, now_us);
    if (c->c.known)
        rl_pace_note(&core->pace, now_us - a->sent_us);
    c->state = c->c.known ? CONN_OPEN : CONN_FAILED;
    if (outcome == RL_ANSWERED && !c->c.known)
        rl_fault_set(&c->fault, RLOCK_EIO, 0, "it does not tell its run_id");
}

static void begin_identifying(conn *c)
{
    rl_ask_init(&c->identify, RL_SCRIPT_IDENTIFY, &c->fault);
    c->identify.write = write_identify;
    c->identify.done = identified;
    c->identify.tries = 1;
    c->state = CONN_IDENTIFYING;
    rl_ask_push(&c->identify, &c->c.line, client_now(c->of));
    conn_send(c);
}

static void fail_to_connect(conn *c, int err)
{
    c->state = CONN_FAILED;
    rl_fault_set(&c->fault, RLOCK_EIO, err, "cannot connect: %s",
                 strerror(err));
}

static void dialed(timer *a)
{
    conn *c = RL_CONTAINER(a, conn, dialed);
    client *of = c->of;
    if (c->silent || of->p->is_dead || client_now(of) >= c->dial_until_us) {
        fail_to_connect(c, ETIMEDOUT);
    } else if (c->s->is_paused) {
        /* The kernel accepts it, as long as there is room. */
        c->server_open = true;
    } else {
        c->server_open = true;
    }
    if (c->server_open) {
        c->server_run = c->s->run;
        c->state = CONN_OPEN;
        c->c.heard_us = c->c.made_us = client_now(of);
        if (atomic_load(&of->e.core.identity.wanted))
            begin_identifying(c);
    }
    if (c->user)
        task_wake(c->user);
}

conn *conn_dial(client *of, task *user, int64_t until_local_us)
{
    world *w = of->w;
    conn *c = need_memory(sizeof *c);
    int64_t limit_us =
        rl_after_ms(client_now(of), of->e.core.set.connect_timeout_ms);
    c->w = w;
    c->of = of;
    c->s = of->s;
    c->user = user;
    c->number = ++w->conn_number;
    c->client_open = true;
    c->dial_until_us = rl_min(until_local_us, limit_us);
    rl_list_init(&c->up.chunks);
    rl_list_init(&c->down.chunks);
    rl_list_add_last(&w->conns, &c->all);
    memory_for_world++;
    if (!rl_line_init(&c->c.line))
        die("out of memory");
    memory_for_world--;
    timer_init(w, &c->dialed, dialed);
    c->silent = of->p->is_dead;
    int64_t us = w->now_us + delay_us(w) + delay_us(w);
    int64_t end_us = clock_true(&of->p->clock, c->dial_until_us);
    timer_set(w, &c->dialed, c->silent ? end_us : rl_min(us, end_us));
    return c;
}

conn_state conn_settle(conn *c)
{
    if (c->state != CONN_IDENTIFYING)
        return c->state;
    conn_send(c);
    conn_receive(c);
    if (c->state == CONN_IDENTIFYING && client_now(c->of) >= c->dial_until_us)
        conn_time_out(c);
    return c->state;
}

/* --- the client's side ---------------------------------------------------- */

static void fail(conn *c, int err, const char *what)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, err, "%s: %s", what, strerror(err));
    rl_line_fail(&c->c.line, &f, client_now(c->of));
}

void conn_time_out(conn *c)
{
    rl_line_time_out(&c->c.line, client_now(c->of));
}

/* The kernel may take a part now and the rest later; and poll() tells at once
   of an end that has come before. */
bool conn_send(conn *c)
{
    world *w = c->w;
    const rl_line *line = &c->c.line;
    const char *bytes;
    if (conn_is_broken(c) || line->written == line->sent)
        return !conn_is_broken(c);
    size_t n = rl_line_bytes(line, &bytes);
    size_t taken = n;
    if (w->set.pieces && chance_ppm(&w->chance, 100000))
        taken = (size_t)chance_below(&w->chance, (int64_t)n + 1);
    if (taken > 0)
        put(c, true, bytes, taken, false);
    rl_line_sent(&c->c.line, taken);
    if ((taken < n || c->ended) && c->user)
        task_wake(c->user);
    return true;
}

static size_t piece(conn *c, size_t left)
{
    world *w = c->w;
    if (!w->set.pieces || chance_ppm(&w->chance, 700000))
        return left;
    return 1 + (size_t)chance_below(&w->chance, (int64_t)left);
}

bool conn_receive(conn *c)
{
    int64_t now_us = client_now(c->of);
    text came = c->inbox;
    c->inbox = (text){0};
    for (size_t at = 0; at < came.len && !conn_is_broken(c);) {
        size_t n = piece(c, came.len - at);
        c->c.heard_us = now_us;
        rl_line_feed(&c->c.line, came.at + at, n, now_us);
        at += n;
    }
    text_free(&came);
    if (c->ended && !conn_is_broken(c))
        fail(c, ECONNRESET, "the connection was closed");
    return !conn_is_broken(c);
}

/* Closed, or something came that nobody asked for. */
bool conn_is_stale(conn *c)
{
    if (c->ended || (c->inbox.len > 0 && c->c.line.pending == 0))
        conn_receive(c);
    return conn_is_broken(c);
}

void conn_close(conn *c)
{
    if (!c)
        return;
    c->user = NULL;
    if (c->c.line.pending > 0)
        conn_time_out(c);
    timer_clear(c->w, &c->dialed);
    put(c, true, NULL, 0, true);
    c->client_open = false;
    if (c->silent || c->of->p->is_dead)
        server_hang_up(c); /* its host will notice, one day */
    conn_forget_if_over(c);
}

void conn_forget_if_over(conn *c)
{
    bool under_way =
        !rl_list_is_empty(&c->up.chunks) || !rl_list_is_empty(&c->down.chunks);
    if (c->client_open || under_way ||
        (c->server_open && c->server_run == c->s->run && !c->silent))
        return;
    for (size_t i = 0; i < c->channels; i++)
        text_free(&c->channel[i]);
    timer_fini(c->w, &c->dialed);
    rl_line_fini(&c->c.line);
    rl_list_remove(&c->all);
    text_free(&c->inbox);
    text_free(&c->input);
    free(c);
}

/* --- faults --------------------------------------------------------------- */

/* Only the first n bytes arrive, and then the end. */
static void cut_way(conn *c, way *p, bool is_up)
{
    rl_link *next;
    size_t total = 0;
    for (rl_link *k = rl_list_first(&p->chunks); k;
         k = rl_list_next(&p->chunks, k))
        total += RL_CONTAINER(k, chunk, link)->len;
    size_t left = (size_t)chance_below(&c->w->chance, (int64_t)total + 1);
    for (rl_link *k = rl_list_first(&p->chunks); k; k = next) {
        chunk *x = RL_CONTAINER(k, chunk, link);
        next = rl_list_next(&p->chunks, k);
        x->len = x->len < left ? x->len : left;
        left -= x->len;
        x->is_end = false;
        if (x->len == 0)
            chunk_free(x);
    }
    put(c, is_up, NULL, 0, true);
}

void conn_cut(conn *c)
{
    if (!c->server_open || !c->client_open || c->silent)
        return;
    trace(c->w, "connection %u is cut", c->number);
    cut_way(c, &c->up, true);
    cut_way(c, &c->down, false);
    /* What either side says from here on is lost. */
    c->silent = true;
}

void conn_end_all(world *w)
{
    rl_link *k, *next;
    for (k = rl_list_first(&w->conns); k; k = next) {
        conn *c = RL_CONTAINER(k, conn, all);
        rl_link *x;
        next = rl_list_next(&w->conns, k);
        while ((x = rl_list_first(&c->up.chunks)) != NULL)
            chunk_free(RL_CONTAINER(x, chunk, link));
        while ((x = rl_list_first(&c->down.chunks)) != NULL)
            chunk_free(RL_CONTAINER(x, chunk, link));
        c->client_open = c->server_open = false;
        conn_forget_if_over(c);
    }
}
