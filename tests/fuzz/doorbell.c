/*
 * The doorbell's connection, with any messages: of bells and of Redisson's
 * channels. The real doorbell has its turns by hand, and gets a connection
 * with the input on it. Nobody is told of a ring for a name that was not rung,
 * nor handed what no grant in it says.
 */
#include <rlock/lock.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "op/grant.h"
#include "run/engine.h"

typedef struct wire {
    rl_pool pool;
    feed in;
    bool polite; /* the subscription succeeds */
    int peer;
} wire;

static void send_all(const wire *w)
{
    static const char ack[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
    if (w->polite)
        send(w->peer, ack, sizeof ack - 1, 0);
    send(w->peer, w->in.at, w->in.left, MSG_DONTWAIT);
    shutdown(w->peer, SHUT_WR);
}

/* With all the input on it. */
static rl_conn *connection(wire *w)
{
    int fd[2];
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    w->peer = fd[1];
    send_all(w);
    rl_conn *c = rl_conn_new(rl_plain_transport(fd[0]));
    MUST(c);
    return c;
}

/* --- who waits ----------------------------------------------------------- */

typedef struct guest {
    rl_waiter waiter;
    rl_waker waker;
    atomic_int why; /* the strongest */
    rl_target what;
} guest;

static void wake(rl_waker *w, rl_wake why, unsigned node)
{
    guest *g = RL_CONTAINER(w, guest, waker);
    (void)node;
    if ((int)why > atomic_load(&g->why))
        atomic_store(&g->why, why);
}

static void enter(rl_rooms *r, guest *g, const char *name, uint64_t scope)
{
    *g = (guest){.waker = {wake}};
    g->what = (rl_target){.name = name, .len = strlen(name), .scope = scope};
    MUST(rl_room_enter(r, &g->waiter, &g->what, g, &g->waker, 0));
}

/* It stands in line, with a uuid of zeros, and sleeps. */
static void stand(rl_rooms *r, guest *g)
{
    static const rl_uuid id;
    enter(r, g, "job", RL_LAYOUT_FAIR);
    rl_room_stand(r, &g->waiter, &id);
    rl_room_rest(r, &g->waiter, NULL, true, RL_NEVER);
}

static bool contains(feed in, const char *text)
{
    return memmem(in.at, in.left, text, strlen(text)) != NULL;
}

static void leave(rl_rooms *r, guest *g, feed in)
{
    int why = atomic_load(&g->why);
    MUST(why <= RL_WAKE_RUNG);
    MUST(why != RL_WAKE_RUNG ||
         (g->what.scope < RL_SINGLE_SCOPES && contains(in, g->what.name) &&
          contains(in, "message")));
    rl_room_leave(r, &g->waiter, false);
}

/* Only what is read from a grant for it can have woken it as handed. */
static void leave_line(rl_rooms *r, guest *g, feed in)
{
    const rl_waiter *w = &g->waiter;
    bool handed = rl_room_rise(r, &g->waiter, RL_WAKE_NONE) == RL_HANDED;
    MUST(!handed || (w->token > 0 && w->sent_us > 0 && w->claim_ms > 0 &&
                     w->claim_ms <= RL_CLAIM_MOST_MS &&
                     contains(in, "rlock_grant:00000000-0000-0000-0000-"
                                  "000000000000 ")));
    rl_room_leave(r, &g->waiter, false);
}

/* As the loop would, but that nobody waits: something has always come. */
static void take_turn(rl_engine *e)
{
    rl_watcher *d = &e->node.doorbell.watcher;
    struct pollfd p;
    d->polled = &p;
    d->n = d->look(d, &p, 1);
    p.revents = POLLIN;
    d->turn(d, rl_now_us());
}

static void serve(rl_engine *e, wire *w)
{
    guest guests[3], in_line;
    rl_rooms *r = &e->core.rooms;
    rl_doorbell *d = &e->node.doorbell;
    enter(r, &guests[0], "job", RLOCK_LAYOUT_HASH);
    enter(r, &guests[1], "a{b}", RLOCK_LAYOUT_STRING);
    enter(r, &guests[2], "red", RL_SINGLE_SCOPES);
    stand(r, &in_line);
    for (size_t i = 0; i < 3; i++)
        rl_subscriptions_want(&e->node, &guests[i].what);
    take_turn(e);
    MUST(d->state == RL_CONNECTS);
    d->visitor.conn = connection(w); /* the connector has no thread */
    do
        take_turn(e);
    while (d->state != RL_RESTS);
    rl_doorbell_quit(&e->node);
    rl_doorbell_await_end(&e->node);
    for (size_t i = 0; i < 3; i++)
        leave(r, &guests[i], w->in);
    leave_line(r, &in_line, w->in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rl_engine e;
    feed in = {data, size};
    wire w = {.pool = {.server = "none"}, .polite = feed_choice(&in, 8) != 7};
    memset(&e, 0, sizeof e);
    e.core.set.command_timeout_ms = 1000;
    e.core.set.redisson_channel = feed_choice(&in, 2);
    e.node.e = &e;
    e.node.pool = &w.pool;
    rl_mutex_init(&w.pool.mutex, RL_RANK_POOL);
    w.in = in;
    rl_loop_init(&e.loop);
    rl_connector_init(&e.node.connector);
    MUST(rl_rooms_init(&e.core.rooms) && rl_doorbell_init(&e.node.doorbell));
    serve(&e, &w);
    rl_doorbell_fini(&e.node.doorbell, false);
    rl_connector_fini(&e.node.connector);
    rl_loop_fini(&e.loop, false);
    rl_rooms_fini(&e.core.rooms, false);
    rl_mutex_fini(&w.pool.mutex);
    close(w.peer);
    return 0;
}
