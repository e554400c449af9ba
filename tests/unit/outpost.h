/*
 * A client's engine and its server's node, without threads. Its connector only
 * lists who wants a connection: the test makes it, and is the server at its
 * other end. The clock is the real one, which the test may move on.
 */
#ifndef UNIT_OUTPOST_H
#define UNIT_OUTPOST_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "hold/due.h"
#include "play.h"
#include "run/async.h"
#include "run/batches.h"
#include "run/engine.h"
#include "shim.h"

#define OUTPOST_PEERS 160

typedef struct outpost {
    rl_engine e;
    int peers[OUTPOST_PEERS]; /* the servers' ends of all connections */
    int n;
    char said[8000]; /* what was read there last */
} outpost;

static inline rl_node *outpost_node(outpost *o)
{
    return &o->e.node;
}

/* places: so many connections may be borrowed at a time. */
static inline void outpost_open(outpost *o, play *p, unsigned number,
                                unsigned places)
{
    rl_dialer d;
    rl_fault f;
    rl_node *node = outpost_node(o);
    memset(o, 0, sizeof *o);
    play_open_core(p, &o->e.core, number);
    rl_loop_init(&o->e.loop);
    EXPECT(rl_loop_open(&o->e.loop));
    rl_dialer_init(&d);
    EXPECT_INT(rl_uri_parse(&d.uri, "unix:///nowhere", &f), RLOCK_OK);
    EXPECT(rl_node_init(node, &o->e, &o->e.core.holds.first));
    node->name = "its server";
    node->pool = node->muxes.pool = rl_pool_new(&d, places);
    EXPECT(node->pool);
    node->pool->on_want = rl_mux_set_give_back;
    node->pool->keeps = &node->muxes;
    node->connector.open = node->connector.runs = true;
}

static inline void outpost_close(outpost *o)
{
    rl_node *node = outpost_node(o);
    rl_conn *kept = node->keeper.conn;
    if (kept && kept->line.pending > 0)
        rl_conn_time_out(kept);
    rl_pool_close(node->pool, kept);
    node->connector.runs = false;
    rl_node_fini(node, false);
    rl_loop_stop(&o->e.loop);
    rl_loop_fini(&o->e.loop, false);
    play_close_core(&o->e.core);
    for (int i = 0; i < o->n; i++)
        close(o->peers[i]);
}

/* Jobs may be started there, too. */
static inline rl_async *outpost_open_async(outpost *o)
{
    rl_completions_init(&o->e.completions);
    rl_async_init(&o->e.async, &o->e.loop, &o->e.completions);
    return &o->e.async;
}

static inline void outpost_close_async(outpost *o)
{
    rl_trunks_close(&o->e.async.trunks);
    rl_async_fini(&o->e.async, false);
    rl_completions_fini(&o->e.completions, false);
}

/* As the dialer makes one; its server is known, and has just said something.
   The latest peer is its other end. */
static inline rl_conn *outpost_connect(outpost *o)
{
    int fds[2];
    rl_pool *pool = outpost_node(o)->pool;
    EXPECT(o->n < OUTPOST_PEERS);
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    rl_conn *c = rl_conn_new(rl_plain_transport(fds[0]));
    EXPECT(c);
    o->peers[o->n++] = fds[1];
    c->heard_us = rl_now_us();
    c->known = true;
    pool->dialer.met(pool->dialer.met_arg, c);
    return c;
}

/* One more connection in the pool, which nobody uses. */
static inline rl_conn *outpost_add_idle(outpost *o)
{
    rl_conn *c = outpost_connect(o);
    rl_pool *pool = outpost_node(o)->pool;
    rl_mutex_lock(&pool->mutex);
    pool->places++;
    rl_mutex_unlock(&pool->mutex);
    rl_pool_give_back(pool, c);
    return c;
}

static inline int outpost_peer(const outpost *o)
{
    return o->peers[o->n - 1];
}

static inline void outpost_say_at(int peer, const char *text)
{
    EXPECT_INT(write(peer, text, strlen(text)), strlen(text));
}

/* At its latest connection. */
static inline void outpost_say(outpost *o, const char *text)
{
    outpost_say_at(outpost_peer(o), text);
}

/* What has come to the server there; "": nothing. */
static inline const char *outpost_read_at(outpost *o, int peer)
{
    ssize_t n = read(peer, o->said, sizeof o->said - 1);
    EXPECT(n >= 0 || errno == EAGAIN || errno == ECONNRESET);
    o->said[n < 0 ? 0 : n] = '\0';
    return o->said;
}

static inline const char *outpost_read(outpost *o)
{
    return outpost_read_at(o, outpost_peer(o));
}

static inline bool outpost_is_closed(int peer)
{
    char byte;
    ssize_t n;
    while ((n = read(peer, &byte, 1)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

/* A part of an operation that asks there: it leaves the queue of play_job. */
static inline void outpost_begin_part(outpost *o, rl_part *x, rl_op *op)
{
    rl_part_leave(x, &o->e.core, &play_job, rl_now_us());
    x->op = op;
    x->heap = false;
}

static inline void outpost_expect_asked_at(outpost *o, int peer)
{
    EXPECT_CONTAINS(outpost_read_at(o, peer), "\r\njob\r\n");
}

static inline void outpost_expect_asked(outpost *o)
{
    outpost_expect_asked_at(o, outpost_peer(o));
}

/* Who waits for the connector; NULL: nobody. */
static inline rl_visitor *outpost_visitor(outpost *o)
{
    rl_connector *c = &outpost_node(o)->connector;
    rl_link *first = rl_list_first(&c->own);
    if (!first)
        first = rl_list_first(&c->others);
    return first ? RL_CONTAINER(first, rl_visitor, link) : NULL;
}

static inline void outpost_tell(outpost *o, rl_conn *c, const rl_fault *f)
{
    rl_visitor *v = outpost_visitor(o);
    EXPECT(v);
    rl_list_remove(&v->link);
    v->conn = c;
    v->fault = *f;
    v->waiting = false;
}

/* The visitor gets a connection of his own. */
static inline rl_conn *outpost_give(outpost *o)
{
    rl_fault none = {.status = RLOCK_OK};
    rl_conn *c = outpost_connect(o);
    outpost_tell(o, c, &none);
    return c;
}

static inline void outpost_refuse(outpost *o)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, ECONNREFUSED, "it is away: %s",
                 strerror(ECONNREFUSED));
    outpost_tell(o, NULL, &f);
}

/* So much later than the real clock; it goes on from there. */
static inline void outpost_pass(int64_t *ahead_ms, int64_t ms)
{
    *ahead_ms += ms;
    shim_clock(shim_here(), RL_LEASE_CLOCK, *ahead_ms);
}

/* The server has just reset another connection. */
static inline void outpost_lose_another(outpost *o, int64_t now_us)
{
    atomic_store(&outpost_node(o)->pool->last_reset_us, now_us);
}

static inline bool outpost_take_nudge(rl_watcher *w)
{
    return atomic_exchange(&w->nudged, false);
}

#endif
