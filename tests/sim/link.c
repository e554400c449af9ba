/*
 * A connection is two queues: what is sent arrives after a delay, in order,
 * each way by itself. What can go wrong with one is decided as bytes are sent:
 * it is cut (a reset at once, or after the bytes have gone), frozen for a while
 * in either direction or both, or carries nothing any more and tells nobody.
 *
 * Called by sockets.c on the client's side, server.c on the other. A conn is
 * never freed, as events may still bear bytes for it; who has closed it is
 * written in it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "world.h"

conn *conns;
static unsigned conns_n;

typedef enum cargo { BYTES, END, RESET } cargo;

/* What is under way. */
typedef struct parcel {
    event arrival; /* the first member */
    conn *c;
    bool goes_up; /* to the server */
    cargo cargo;
    size_t len;
    char at[];
} parcel;

static int64_t delay(void)
{
    int64_t ns = 10 * US + chance_skewed(&w.dice, cfg.delay_us * US);
    if (!w.is_quiet && chance_ppm(&w.dice, cfg.tail_ppm))
        ns += chance_skewed(&w.dice, cfg.tail_us * US);
    return ns;
}

void conn_cut(conn *c)
{
    if (c->was_reset || c->error)
        return;
    c->was_reset = c->server_closed = true;
    c->inbox.len = 0;
    secure_end(c);
    if (c->fd >= 0)
        descriptor_changed(c->fd);
}

static void carry(conn *c, bool up, cargo cargo, const void *at, size_t n);

/* Its host has lost its power, and is back: it knows no such connection. */
static void refuse(conn *c, cargo cargo)
{
    if (cargo == BYTES && server_is_up(c->s))
        carry(c, false, RESET, NULL, 0);
}

static void reach_server(parcel *p)
{
    conn *c = p->c;
    if (c->server_closed || c->s->is_dark)
        return;
    if (c->run != c->s->run) {
        refuse(c, p->cargo);
        return;
    }
    if (p->cargo == BYTES) {
        text_add(cfg.tls ? &c->sealed : &c->input, p->at, p->len);
    } else {
        c->is_ending = true; /* once what came before is executed */
    }
    server_take(c);
}

static void reach_client(parcel *p)
{
    conn *c = p->c;
    if (c->was_reset || c->fd < 0)
        return;
    if (p->cargo == BYTES)
        text_add(&c->inbox, p->at, p->len);
    else if (p->cargo == END)
        c->has_ended = true;
    else
        c->was_reset = true;
    descriptor_changed(c->fd);
}

static void arrive(event *e)
{
    parcel *p = (parcel *)e;
    if (p->goes_up)
        reach_server(p);
    else
        reach_client(p);
    free(p);
}

static void carry(conn *c, bool up, cargo cargo, const void *at, size_t n)
{
    if (c->is_silent || (c->is_doomed && up))
        return;
    parcel *p = need_memory(sizeof *p + n);
    p->c = c;
    p->goes_up = up;
    p->cargo = cargo;
    p->len = n;
    if (n > 0)
        memcpy(p->at, at, n);
    p->arrival.fire = arrive;
    int64_t t = w.now + delay();
    if (t < c->frozen[up])
        t = c->frozen[up] + delay();
    if (t <= c->last[up])
        t = c->last[up] + 1;
    c->last[up] = t;
    event_set(&p->arrival, t);
}

/* --- the client's end ----------------------------------------------------- */

static void settle(event *e)
{
    conn_settle(OWNER_OF(e, conn, dialed));
}

void conn_settle(conn *c)
{
    event_clear(&c->dialed);
    if (c->s->is_dark) /* nobody says that nobody is there */
        return;
    c->is_dialing = false;
    c->run = c->s->run;
    if (w.now < c->s->down_until ||
        (!w.is_quiet && chance_ppm(&w.dice, cfg.refuse_ppm)))
        c->error = ECONNREFUSED;
    else
        c->is_open = true;
    if (c->fd >= 0)
        descriptor_changed(c->fd);
}

/* Beside those of the pool: shares, the keeper's, the doorbell's, the
   topology's, what is made anew, and is just being closed. */
#define OTHERS_MAX 10

/*
 * Judge 11: a process has one client for each server. Red and Multi locks take
 * more (client.h): a call that is decided leaves connections that still owe it
 * an answer, and the next one makes others. How many is not said, nor judged.
 */
static void check_number(const server *s)
{
    int64_t most = (cfg.pool > 0 ? cfg.pool : 16) + OTHERS_MAX, n = 0;
    for (const conn *c = conns; c; c = c->next)
        n += c->fd >= 0 && c->s == s && c->by == running->p;
    if (n > most && cfg.reds == 0 && cfg.multis == 0)
        finding("judge 11: process %d has %lld connections to server %d",
                running->p->index, (long long)n, s->index);
}

conn *conn_dial(int fd, int port)
{
    conn *c = need_memory(sizeof *c);
    for (int i = 0; i < servers_n; i++)
        if (servers[i].port == port)
            c->s = &servers[i];
    if (!c->s)
        finding("connects to port %d, where nobody is", port);
    c->fd = fd;
    c->number = ++conns_n;
    c->next = conns;
    conns = c;
    c->is_dialing = true;
    c->dialed.fire = settle;
    event_set(&c->dialed, w.now + delay() + delay());
    c->by = running->p;
    check_number(c->s);
    trace("connection %u to server %d", c->number, c->s->index);
    return c;
}

/* True: the call has failed, or is done, by this. */
static bool is_cut(conn *c, const void *bytes, size_t n, ssize_t *result)
{
    if (!chance_ppm(&w.dice, cfg.cut_ppm))
        return false;
    size_t part = (size_t)chance_below(&w.dice, (int64_t)n + 1);
    w.faults++;
    trace("connection %u is cut after %zu of %zu bytes", c->number, part, n);
    if (part > 0)
        carry(c, true, BYTES, bytes, part);
    if (chance_below(&w.dice, 2)) {
        conn_cut(c);
        errno = ECONNRESET;
        *result = -1;
    } else { /* the reset comes when it comes */
        carry(c, false, RESET, NULL, 0);
        c->is_doomed = true;
        *result = (ssize_t)n;
    }
    return true;
}

static void freeze(conn *c)
{
    bool up = chance_below(&w.dice, 2), both = chance_below(&w.dice, 2);
    int64_t ns = chance_skewed(&w.dice, cfg.freeze_us * US);
    int64_t more = both ? chance_skewed(&w.dice, cfg.freeze_us * US) : 0;
    if (up || both)
        c->frozen[1] = w.now + ns;
    if (!up || both)
        c->frozen[0] = w.now + ns + more;
    w.faults++;
    trace("connection %u is frozen %s for %lld us", c->number,
          both ? "both ways"
          : up ? "to the server"
               : "to the client",
          (long long)(ns / US));
}

static void strike(conn *c)
{
    if (chance_ppm(&w.dice, cfg.freeze_ppm))
        freeze(c);
    if (chance_ppm(&w.dice, cfg.silence_ppm)) {
        w.faults++;
        trace("connection %u is silent from now on", c->number);
        c->is_silent = true;
    }
}

static void drain(event *e)
{
    conn *c = OWNER_OF(e, conn, drained);
    c->is_full = false;
    if (c->fd >= 0)
        descriptor_changed(c->fd);
}

/* What is sent behind a part is not taken before some of that has gone. */
static void fill(conn *c)
{
    int64_t t = w.now + delay();
    c->is_full = true;
    c->drained.fire = drain;
    event_set(&c->drained, t < c->frozen[1] ? c->frozen[1] : t);
}

static size_t some_of(size_t n)
{
    if (n > 1 && chance_ppm(&w.dice, cfg.short_ppm))
        return 1 + (size_t)chance_below(&w.dice, (int64_t)n - 1);
    return n;
}

/* Of what is under way; ciphers say nothing. */
static int shown(size_t n, size_t most)
{
    return cfg.tls ? 0 : n > most ? (int)most : (int)n;
}

ssize_t conn_send(conn *c, const void *bytes, size_t n)
{
    ssize_t result;
    if (c->error || c->was_reset || c->is_shut) {
        errno = c->was_reset ? ECONNRESET : EPIPE;
        return -1;
    }
    if (c->is_full) {
        errno = EAGAIN;
        return -1;
    }
    if (!w.is_quiet) {
        if (is_cut(c, bytes, n, &result))
            return result;
        strike(c);
    }
    size_t all = n;
    n = some_of(all);
    if (n < all && !descriptor_of(c->fd)->blocks)
        fill(c);
    if (w.traces > 1)
        trace("    connection %u sends %zu bytes: %.*s", c->number, n,
              shown(n, 300), (const char *)bytes);
    carry(c, true, BYTES, bytes, n);
    return (ssize_t)n;
}

ssize_t conn_receive(conn *c, void *at, size_t room, bool peeks)
{
    if (c->was_reset) {
        errno = ECONNRESET;
        return -1;
    }
    if (c->inbox.len == 0) {
        if (c->has_ended || c->is_shut)
            return 0;
        errno = EAGAIN;
        return -1;
    }
    size_t n = some_of(c->inbox.len < room ? c->inbox.len : room);
    memcpy(at, c->inbox.at, n);
    if (w.traces > 1)
        trace("    connection %u gets %zu of %zu bytes%s: %.*s", c->number, n,
              c->inbox.len, peeks ? " (looks)" : "", shown(n, 200), (char *)at);
    if (!peeks)
        text_cut(&c->inbox, n);
    return (ssize_t)n;
}

void conn_close(conn *c)
{
    event_clear(&c->dialed);
    c->fd = -1;
    c->inbox.len = 0;
    if (c->is_open && !c->was_reset)
        carry(c, true, END, NULL, 0);
}

/* --- the server's end ----------------------------------------------------- */

/* Each byte comes long after the one before. */
static void trickle(conn *c, const text *t)
{
    int64_t each = 1 + chance_skewed(&w.dice, cfg.trickle_us * US);
    w.faults++;
    trace("connection %u gets %zu bytes one by one, every %lld us", c->number,
          t->len, (long long)(each / US));
    for (size_t i = 0; i < t->len; i++) {
        if (i > 0)
            c->frozen[0] = c->last[0] + each;
        carry(c, false, BYTES, t->at + i, 1);
    }
}

static void put(conn *c, const text *t)
{
    if (!w.is_quiet && t->len > 0 && chance_ppm(&w.dice, cfg.trickle_ppm))
        trickle(c, t);
    else if (t->len > 0)
        carry(c, false, BYTES, t->at, t->len);
}

static void put_sealed(conn *c, const text *t)
{
    static text sealed;
    sealed.len = 0;
    secure_say(c, t, &sealed);
    put(c, &sealed);
}

void conn_reply(conn *c, const text *t)
{
    if (!cfg.tls)
        put(c, t);
    else if (t->len > 0)
        put_sealed(c, t);
}

void conn_unseal(conn *c)
{
    static text said;
    said.len = 0;
    bool goes_on = secure_hear(c, &said);
    put(c, &said);
    c->is_ending = c->is_ending || !goes_on;
}

void conn_end(conn *c)
{
    static const text nothing;
    if (cfg.tls)
        put_sealed(c, &nothing);
    c->server_closed = true;
    carry(c, false, END, NULL, 0);
}
