/*
 * Masters and replicas. What a master's commands have changed is carried to its
 * replicas after a while, in order: each time all of the store as it was, which
 * is small, so a replica has what the master had at some time, as a stream of
 * commands would leave it. A copy that is under way when the replica gets
 * another master, or becomes one, does not arrive any more: that is what a
 * failover loses.
 *
 * WAIT waits until so many replicas have acknowledged what its connection has
 * changed; until then nothing else of that connection is executed.
 */
#include <stdlib.h>
#include <string.h>

#include "world.h"

static struct link {
    unsigned term;  /* grows with each master */
    uint64_t acked; /* of the master's changes, as the master knows */
    bool is_synced;
    int64_t last; /* when the last copy arrives */
    event sync;
} links[SERVERS_MAX];

static struct link *link_of(const server *s)
{
    return &links[s->index];
}

/* --- WAIT ----------------------------------------------------------------- */

typedef struct waiter {
    event limit; /* the first member */
    struct waiter *next;
    conn *c;
    long long need;
    uint64_t changes;
} waiter;

static waiter *waiters;

static int count_acks(const server *master, uint64_t changes)
{
    int n = 0;
    for (int i = 0; i < servers_n; i++)
        n += servers[i].master == master && links[i].is_synced &&
             links[i].acked >= changes;
    return n;
}

/* Its connection goes on, if it is still there. */
static void end_wait(waiter *x)
{
    static text out;
    conn *c = x->c;
    waiter **at = &waiters;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    event_clear(&x->limit);
    c->is_waiting = false;
    if (c->run == c->s->run && !c->server_closed) {
        out.len = 0;
        text_number(&out, count_acks(c->s, x->changes));
        conn_reply(c, &out);
        server_take(c);
    }
    free(x);
}

static void wait_is_over(event *e)
{
    end_wait((waiter *)e);
}

static void end_waits(const server *master)
{
    for (waiter *x = waiters, *next; x; x = next) {
        next = x->next;
        if (x->c->s == master &&
            (count_acks(master, x->changes) >= x->need || master->master)) {
            end_wait(x);
            next = waiters; /* others may have come and gone */
        }
    }
}

void replicas_wait(conn *c, const word *argv, text *out)
{
    long long need = 0, ms = 0;
    if (!word_number(&argv[1], &need) || !word_number(&argv[2], &ms) || ms <= 0)
        finding("a WAIT that the library does not ask for");
    uint64_t changes = c->s->store.changes;
    if (c->s->master) {
        text_print(out, "-ERR WAIT cannot be used with replica instances.\r\n");
        return;
    }
    if (count_acks(c->s, changes) >= need) {
        text_number(out, count_acks(c->s, changes));
        return;
    }
    waiter *x = need_memory(sizeof *x);
    x->limit.fire = wait_is_over;
    x->c = c;
    x->need = need;
    x->changes = changes;
    x->next = waiters;
    waiters = x;
    c->is_waiting = true;
    event_set(&x->limit, w.now + ms * MS);
}

/* --- copies --------------------------------------------------------------- */

typedef struct copy {
    event arrival; /* the first member */
    server *to;
    unsigned term;
    uint64_t changes;
    bool is_ack;
    store keys;
} copy;

static int64_t lag(void)
{
    return 10 * US + chance_skewed(&w.dice, cfg.lag_us * US);
}

static void acknowledge(copy *k)
{
    struct link *l = link_of(k->to);
    if (k->changes > l->acked) /* they may overtake each other */
        l->acked = k->changes;
    l->is_synced = true;
    if (server_is_up(k->to->master))
        end_waits(k->to->master);
}

static void arrive(event *e)
{
    copy *k = (copy *)e;
    server *s = k->to;
    bool is_current = k->term == link_of(s)->term && s->master;
    if (is_current && !k->is_ack && server_is_up(s)) {
        store_copy(&s->store, &k->keys);
        store_clear(&k->keys);
        k->is_ack = true;
        event_set(&k->arrival,
                  w.now + 10 * US + chance_skewed(&w.dice, cfg.delay_us * US));
        return;
    }
    if (is_current && k->is_ack)
        acknowledge(k);
    store_clear(&k->keys);
    free(k);
}

static void send_copy(server *s)
{
    struct link *l = link_of(s);
    copy *k = need_memory(sizeof *k);
    k->to = s;
    k->term = l->term;
    k->changes = s->master->store.changes;
    store_copy(&k->keys, &s->master->store);
    k->arrival.fire = arrive;
    int64_t t = w.now + lag();
    if (t <= l->last)
        t = l->last + 1;
    l->last = t;
    event_set(&k->arrival, t);
}

void replicas_send(server *master)
{
    for (int i = 0; i < servers_n; i++)
        if (servers[i].master == master && servers[i].store.is_replica &&
            !links[i].sync.pos)
            send_copy(&servers[i]);
}

static void begin_sync(event *e)
{
    server *s = &servers[OWNER_OF(e, struct link, sync) - links];
    if (!s->master)
        return;
    if (server_is_up(s) && server_is_up(s->master))
        send_copy(s);
    else
        event_set(e, w.now + 50 * MS);
}

static void begin_link(server *s)
{
    struct link *l = link_of(s);
    l->term++;
    l->acked = 0;
    l->is_synced = false;
    l->last = 0;
    l->sync.fire = begin_sync;
    event_set(&l->sync, w.now + MS + lag());
}

void replica_follow(server *s, server *master)
{
    struct link *l = link_of(s);
    s->master = master;
    s->store.is_replica = master != NULL;
    if (master) {
        trace("server %d copies server %d", s->index, master->index);
        begin_link(s);
        end_waits(s);
        return;
    }
    trace("server %d is a master", s->index);
    l->term++;
    event_clear(&l->sync);
}

void replicas_resync(server *s)
{
    if (s->master)
        begin_link(s);
    for (int i = 0; i < servers_n; i++)
        if (servers[i].master == s)
            begin_link(&servers[i]);
}

bool replica_is_synced(const server *s)
{
    return s->master && link_of(s)->is_synced;
}

void replica_catch_up(server *s)
{
    store_copy(&s->store, &s->master->store);
}

int replicas_backing(const server *master)
{
    return count_acks(master, 0);
}
