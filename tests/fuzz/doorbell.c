/*
 * The doorbell's connection, with any messages: of bells and of Redisson's
 * channels. The real doorbell listens to a source of connections that has one,
 * with the input on it. Nobody is told of a ring for a name that was not rung.
 */
#include <rlock/lock.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"
#include "run/engine.h"

typedef struct wire {
    rl_source source;
    feed in;
    bool polite; /* the subscription succeeds */
    bool used;
    int peer;
    sem_t closed;
} wire;

static rlock_status no_connection(rl_source *s, int64_t deadline_us,
                                  rl_conn **out, rl_fault *f)
{
    (void)s;
    (void)deadline_us;
    (void)out;
    return rl_fault_set(f, RLOCK_EIO, 0, "no connection");
}

static void send_all(const wire *w)
{
    static const char ack[] = "*3\r\n$9\r\nsubscribe\r\n$1\r\nx\r\n:1\r\n";
    if (w->polite)
        send(w->peer, ack, sizeof ack - 1, 0);
    send(w->peer, w->in.at, w->in.left, MSG_DONTWAIT);
    shutdown(w->peer, SHUT_WR);
}

static rlock_status open_once(rl_source *s, int64_t deadline_us, rl_conn **out,
                              rl_fault *f)
{
    wire *w = RL_CONTAINER(s, wire, source);
    int fd[2];
    if (w->used)
        return no_connection(s, deadline_us, out, f);
    w->used = true;
    MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, fd) == 0);
    w->peer = fd[1];
    send_all(w);
    *out = rl_conn_new(rl_plain_transport(fd[0]));
    MUST(*out);
    return RLOCK_OK;
}

static void close_it(rl_source *s, rl_conn *c)
{
    if (!c)
        return;
    rl_conn_free(c);
    sem_post(&RL_CONTAINER(s, wire, source)->closed);
}

static const rl_source_ops ops = {
    .borrow = no_connection,
    .open = open_once,
    .close = close_it,
};

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
    MUST(rl_room_enter(r, &g->waiter, &g->what, g, &g->waker));
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

static void serve(rl_engine *e, wire *w)
{
    guest guests[3];
    rl_rooms *r = &e->core.rooms;
    enter(r, &guests[0], "job", RLOCK_LAYOUT_HASH);
    enter(r, &guests[1], "a{b}", RLOCK_LAYOUT_STRING);
    enter(r, &guests[2], "red", RL_SINGLE_SCOPES);
    rl_doorbell_start(&e->node);
    sem_wait(&w->closed);
    rl_doorbell_stop(&e->node);
    for (size_t i = 0; i < 3; i++)
        leave(r, &guests[i], w->in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rl_engine e;
    feed in = {data, size};
    wire w = {.source = {.ops = &ops, .server = "none"},
              .polite = feed_choice(&in, 8) != 7};
    memset(&e, 0, sizeof e);
    e.core.set.command_timeout_ms = 1000;
    e.core.set.redisson_channel = feed_choice(&in, 2);
    e.node.e = &e;
    e.node.source = &w.source;
    w.in = in;
    sem_init(&w.closed, 0, 0);
    rl_mux_set_init(&e.node.muxes); /* a ring for nobody is passed on */
    e.node.muxes.source = &w.source;
    MUST(rl_rooms_init(&e.core.rooms) && rl_doorbell_init(&e.node.doorbell));
    serve(&e, &w);
    rl_doorbell_fini(&e.node.doorbell, false);
    rl_mux_set_fini(&e.node.muxes, false);
    rl_rooms_fini(&e.core.rooms, false);
    sem_destroy(&w.closed);
    close(w.peer);
    return 0;
}
