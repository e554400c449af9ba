/*
 * The thread's loop: connect, subscribe, wake everybody to look, hear rings
 * until the connection breaks; then pause, and again. Rings wake fronts and
 * listeners (hold/room.h); a ring for a name that nobody here wants is passed
 * on to the next client in the server's queue, by a call on a borrowed
 * connection.
 *
 * What stays true: the rooms are told that it hears only while the subscription
 * stands, and a waiter that queued under it before a break is woken when it
 * stands again. A silent connection is pinged, and given up when it stays
 * silent.
 */
#include "run/doorbell.h"

#include <poll.h>
#include <string.h>

#include "op/op.h"
#include "run/caller.h"
#include "run/engine.h"
#include "wire/error.h"

#define FIRST_PAUSE_US   50000
#define LAST_PAUSE_US    2000000
#define REFUSED_PAUSE_US 60000000

/* Other rings wait while one is passed on. */
#define PASS_ON_MS 500

/* A connection that lasted for so long was worth having. */
#define LASTED_US 1000000

/* A connection that is silent for so long is asked whether it is alive. */
#define SILENCE_US 15000000

bool rl_doorbell_init(rl_doorbell *d)
{
    d->signal = RL_SIGNAL_NONE;
    rl_mutex_init(&d->starting);
    bool ok = rl_bells_init(&d->bells);
    return rl_channels_init(&d->channels) && ok;
}

void rl_doorbell_fini(rl_doorbell *d, bool forked)
{
    rl_channels_fini(&d->channels);
    rl_bells_fini(&d->bells, forked);
    rl_signal_fini(&d->signal);
    if (!forked)
        rl_mutex_fini(&d->starting);
}

static bool is_message(const rl_reply *r, const char *kind, size_t elements)
{
    return rl_reply_is_array(r, elements) &&
           rl_item_is(&r->item[0], REDIS_REPLY_STRING) &&
           strcmp(r->item[0].str, kind) == 0;
}

/* A ring for a name that nobody here wants any more. */
static void pass_on(rl_node *node, const rl_item *name)
{
    rl_op op;
    rl_part x;
    rl_target what = {.name = name->str,
                      .len = name->len,
                      .slot = rl_slot_of(&node->e->core, name->str, name->len)};
    int64_t now_us = rl_now_us();
    rl_op_init(&op, &op.lent);
    op.lent = &x;
    rl_part_leave(&x, &node->e->core, &what, now_us);
    x.until_us = rl_min(x.until_us, rl_after_ms(now_us, PASS_ON_MS));
    x.op = &op;
    x.heap = false;
    op.n = op.quorum = 1;
    rl_drive(&op);
}

/* Not what comes late, from a channel that is not listened to any more. */
static bool is_ring(const rl_node *node, const rl_reply *r)
{
    const rl_item *channel = &r->item[1], *name = &r->item[2];
    return rl_item_is(channel, REDIS_REPLY_STRING) &&
           strcmp(channel->str, node->e->core.bell) == 0 &&
           rl_item_is(name, REDIS_REPLY_STRING) && name->len > 0 &&
           name->len <= RLOCK_NAME_MAX;
}

/* The reply's text goes with the next one. */
static void pass_on_copy(rl_node *node, rl_item name)
{
    char text[RLOCK_NAME_MAX + 1];
    memcpy(text, name.str, name.len + 1);
    name.str = text;
    pass_on(node, &name);
}

static void hear_ring(rl_node *node, const rl_reply *r)
{
    const rl_item *name = &r->item[2];
    if (is_ring(node, r) && !rl_rooms_wake(&node->e->core.rooms, name->str,
                                           name->len, RL_WAKE_RUNG))
        pass_on_copy(node, *name);
}

/* A server that is busy or loading will have time before long. */
static void hear_refusal(rl_doorbell *d, const rl_reply *r)
{
    rl_fault f;
    rl_error_reply(r, &f);
    d->refused = true;
    d->for_good = !f.transient;
}

/* What the server says on the subscriber connection. */
static void hear(void *arg, const rl_reply *r)
{
    rl_node *node = arg;
    rl_doorbell *d = &node->doorbell;
    rl_item name;
    if (node->e->cluster) {
        if (rl_bells_take(node, r, &name))
            pass_on_copy(node, name);
        return;
    }
    if (rl_channels_hear(node, r))
        return;
    if (is_message(r, "message", 3))
        hear_ring(node, r);
    else if (is_message(r, "subscribe", 3))
        d->subscribed = true;
    else if (rl_reply_is(r, REDIS_REPLY_ERROR) && !d->subscribed)
        hear_refusal(d, r);
}

static bool say(rl_conn *c, const char *command, const char *channel)
{
    rl_bytes *to = rl_line_begin(&c->line);
    rl_put_array(to, channel ? 2 : 1);
    rl_put_text(to, command);
    if (channel)
        rl_put_text(to, channel);
    return rl_line_push(&c->line, NULL) && rl_conn_send(c);
}

/* Waits for input, a poke or the end. False: the time is over, or it broke. */
static bool listen_to(rl_node *node, rl_conn *c, int64_t until_us)
{
    rl_doorbell *d = &node->doorbell;
    struct pollfd p[2] = {
        {.fd = d->signal.fd, .events = POLLIN},
        {.fd = c ? c->io.fd : -1, .events = c ? rl_conn_events(c) : 0}};
    int n = poll(p, 2, rl_poll_ms(until_us));
    if (n > 0 && p[0].revents) {
        d->poked = true;
        if (!atomic_load(&d->stopping))
            rl_signal_clear(&d->signal);
    }
    if (n > 0 && p[1].revents)
        return rl_conn_send(c) && rl_conn_receive(c);
    return n != 0 || rl_now_us() < until_us;
}

static bool is_stopping(const rl_node *node)
{
    return atomic_load(&node->doorbell.stopping);
}

/* A server that refuses (an ACL, a proxy) will do so again: no hurry then. */
static bool subscribe(rl_node *node, rl_conn *c, int64_t *pause_us)
{
    rl_doorbell *d = &node->doorbell;
    int64_t until_us = rl_command_end(&node->e->core, rl_now_us());
    d->subscribed = d->refused = false;
    if (!say(c, "SUBSCRIBE", node->e->core.bell))
        return false;
    while (!d->subscribed && !d->refused && !is_stopping(node))
        if (!listen_to(node, c, until_us))
            return false;
    if (d->refused && d->for_good)
        *pause_us = REFUSED_PAUSE_US;
    return d->subscribed;
}

/* Which channels are to be listened on, beside the client's own? */
static bool adjust(rl_node *node, rl_conn *c)
{
    rl_doorbell *d = &node->doorbell;
    bool look = d->poked && node->e->core.set.redisson_channel;
    d->poked = false;
    if (node->e->cluster)
        return rl_bells_adjust(node, c, rl_now_us());
    return !look || rl_channels_adjust(node, c);
}

static int64_t rest_until_us(rl_node *node, const rl_conn *c)
{
    return node->e->cluster
               ? rl_min(c->expires_us, rl_bells_until(&node->doorbell.bells))
               : c->expires_us;
}

/* Serves rings until the connection breaks, or its login is old, or the client
   closes. */
static void serve(rl_node *node, rl_conn *c)
{
    bool asked = false;
    int64_t heard_us = rl_now_us();
    while (!is_stopping(node)) {
        if (!adjust(node, c))
            return;
        int64_t patience_us =
            asked ? rl_min(node->e->core.set.command_timeout_ms * 1000,
                           SILENCE_US)
                  : SILENCE_US;
        unsigned before = c->arrivals;
        bool more = listen_to(
            node, c, rl_min(heard_us + patience_us, rest_until_us(node, c)));
        if (rl_conn_is_broken(c) || rl_conn_is_outdated(c, rl_now_us()))
            return;
        if (c->arrivals != before) {
            heard_us = rl_now_us();
            asked = false;
        } else if (!more && rl_now_us() >= heard_us + patience_us) {
            if (asked || !say(c, "PING", NULL))
                break;
            heard_us = rl_now_us();
            asked = true;
        }
    }
    if (!is_stopping(node))
        rl_conn_time_out(c);
}

/* True: there is no reason any more. */
static bool pause_for(rl_node *node, int64_t us)
{
    bool hurry = false;
    int64_t until_us = rl_now_us() + rl_jitter(us);
    while (rl_now_us() < until_us && !is_stopping(node) && !hurry) {
        listen_to(node, NULL, until_us);
        hurry = atomic_exchange(&node->doorbell.hurry, false);
    }
    return hurry;
}

void rl_doorbell_wake(rl_node *node)
{
    rl_doorbell *d = &node->doorbell;
    rl_mutex_lock(&d->starting);
    if (d->signal.fd >= 0)
        rl_signal_raise(&d->signal);
    rl_mutex_unlock(&d->starting);
}

void rl_doorbell_hurry(rl_node *node)
{
    atomic_store(&node->doorbell.hurry, true);
    rl_doorbell_wake(node);
}

/* Until it breaks. How long it was of use. */
static int64_t serve_one_bell(rl_node *node, rl_conn *c)
{
    int64_t began_us = rl_now_us();
    rl_channels_forget(&node->doorbell.channels);
    node->doorbell.poked = true;
    rl_rooms_hear(&node->e->core.rooms);
    serve(node, c);
    rl_rooms_hear_no_more(&node->e->core.rooms);
    return rl_now_us() - began_us;
}

static int64_t serve_bells(rl_node *node, rl_conn *c)
{
    int64_t began_us = rl_now_us();
    serve(node, c);
    return rl_now_us() - began_us;
}

/*
 * One connection's life; true: it was worth having. A server that refuses to
 * subscribe us makes the pause longer.
 */
static bool connect_and_serve(rl_node *node, int64_t *pause_us)
{
    rl_conn *c = NULL;
    rl_fault f;
    int64_t served_us = 0;
    bool open = rl_source_open(node->source, RL_NEVER, &c, &f) == RLOCK_OK;
    if (open) {
        c->line.pushed = hear;
        c->line.arg = node;
    }
    if (open && node->e->cluster)
        served_us = serve_bells(node, c);
    else if (open && subscribe(node, c, pause_us))
        served_us = serve_one_bell(node, c);
    if (node->e->cluster)
        rl_bells_lose_all(node);
    rl_source_close(node->source, c);
    return served_us >= LASTED_US;
}

/* A server of a cluster at which nobody waits is not listened to. */
static void await_args(rl_node *node)
{
    while (node->e->cluster && !is_stopping(node) &&
           !rl_bells_are_wanted(&node->doorbell.bells))
        listen_to(node, NULL, RL_NEVER);
}

static void *run(void *arg)
{
    rl_node *node = arg;
    int64_t pause_us = FIRST_PAUSE_US;
    for (await_args(node); !is_stopping(node); await_args(node)) {
        if (connect_and_serve(node, &pause_us)) {
            pause_us = FIRST_PAUSE_US;
            continue;
        }
        pause_us = pause_for(node, pause_us)
                       ? FIRST_PAUSE_US
                       : rl_min(pause_us * 2, LAST_PAUSE_US);
    }
    return NULL;
}

void rl_doorbell_start(rl_node *node)
{
    rl_doorbell *d = &node->doorbell;
    if (atomic_load(&d->started))
        return;
    rl_mutex_lock(&d->starting);
    bool may = !atomic_load(&d->stopping);
    if (may && d->signal.fd < 0)
        rl_signal_init(&d->signal);
    if (may && d->signal.fd >= 0 && !d->thread.started &&
        rl_thread_start(&d->thread, "rlock-doorbell", run, node))
        atomic_store(&d->started, true);
    rl_mutex_unlock(&d->starting);
}

void rl_doorbell_listen(rl_node *node, const rl_target *what)
{
    rl_doorbell_start(node);
    if (node->e->cluster)
        rl_bells_want(node, what);
    else
        rl_doorbell_poke(node);
}

void rl_doorbell_poke(rl_node *node)
{
    if (node->e->core.set.redisson_channel &&
        atomic_load(&node->doorbell.started))
        rl_doorbell_wake(node);
}

void rl_doorbell_stop(rl_node *node)
{
    rl_doorbell *d = &node->doorbell;
    rl_mutex_lock(&d->starting);
    atomic_store(&d->stopping, true);
    if (d->signal.fd >= 0)
        rl_signal_raise(&d->signal);
    rl_mutex_unlock(&d->starting);
    rl_thread_join(&d->thread);
}

void rl_doorbell_dismiss(rl_node *node)
{
    rl_doorbell *d = &node->doorbell;
    rl_doorbell_stop(node);
    rl_mutex_lock(&d->starting);
    rl_signal_fini(&d->signal);
    d->signal = RL_SIGNAL_NONE;
    atomic_store(&d->started, false);
    atomic_store(&d->stopping, false);
    rl_mutex_unlock(&d->starting);
}
