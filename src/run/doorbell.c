/*
 * A turn: read what has come, and go on from there: connect, subscribe, wake
 * everybody to look, hear rings until the connection breaks; then pause, and
 * again. Rings wake fronts and listeners (hold/room.h); a ring for a name that
 * nobody here wants is passed on to the next client in the server's queue, by a
 * call on the keeper's connection, that nobody waits for.
 *
 * What stays true: the rooms are told that it hears only while the subscription
 * stands, and a waiter that queued under it before a break is woken when it
 * stands again. A silent connection is pinged, and given up when it stays
 * silent. Who leaves takes leave: a release may have rung before the server has
 * seen the connection end, and that ring would be nobody's. So the subscription
 * is ended first, and what comes until the server has said so is passed on.
 */
#include "run/doorbell.h"

#include <string.h>

#include "op/grant.h"
#include "op/op.h"
#include "run/engine.h"
#include "wire/error.h"

#define FIRST_PAUSE_US   50000
#define LAST_PAUSE_US    2000000
#define REFUSED_PAUSE_US 60000000

/* A connection that lasted for so long was worth having. */
#define LASTED_US 1000000

/*
 * The connector opens one at a time, and leases do not wait. So a doorbell that has
 * lost its server connects a little behind the keeper, and as long as that is cut
 * off from what it keeps, so much later: by then it has had several tries, if the
 * lease is short.
 */
#define BEHIND_US 10000
#define YIELD_US  1000000

/* So long the server has to say that a subscription has ended. */
#define LEAVE_US 250000

/* A connection that is silent for so long is asked whether it is alive. */
#define SILENCE_US 15000000

static int64_t turn(rl_watcher *w, int64_t now_us);
static size_t look(rl_watcher *w, struct pollfd *p, size_t room);

bool rl_doorbell_init(rl_doorbell *d)
{
    d->watcher = (rl_watcher){.turn = turn, .look = look, .most = 1};
    d->pause_us = FIRST_PAUSE_US;
    rl_mutex_init(&d->starting, RL_RANK_DOORBELL);
    return rl_subscriptions_init(&d->subscriptions);
}

void rl_doorbell_fini(rl_doorbell *d, bool forked)
{
    rl_subscriptions_fini(&d->subscriptions, forked);
    if (!forked)
        rl_mutex_fini(&d->starting);
}

/* --- what is heard -------------------------------------------------------- */

static bool is_kind(const rl_reply *r, const char *kind)
{
    return rl_reply_is_array(r, 3) &&
           rl_item_is(&r->item[0], REDIS_REPLY_STRING) &&
           strcmp(r->item[0].str, kind) == 0;
}

/*
 * A ring for a name that nobody here wants any more. Without a connection, or
 * memory, the next one in the queue looks by himself. Who leaves may not hear
 * that the server lacks the script, so that goes with the call.
 */
static void pass_on(rl_node *from, const rl_item *name)
{
    rl_engine *e = from->e;
    int64_t now_us = rl_now_us();
    rl_target what = {.name = name->str,
                      .len = name->len,
                      .slot = rl_slot_of(&e->core, name->str, name->len)};
    rl_node *node = rl_node_of(&e->core, what.slot);
    rl_part *x = rl_part_new_leave(&e->core, &what, now_us);
    if (!x)
        return;
    x->ask.whole = atomic_load(&from->doorbell.leaving);
    rl_keeper_ask(node, x, now_us);
}

/* Not what comes late, from a channel that is not listened to any more. */
static bool is_for_us(const rl_node *node, const rl_reply *r)
{
    const rl_item *channel = &r->item[1];
    return rl_item_is(channel, REDIS_REPLY_STRING) &&
           strcmp(channel->str, node->e->core.bell) == 0 &&
           rl_item_is(&r->item[2], REDIS_REPLY_STRING);
}

static bool is_ring(const rl_node *node, const rl_reply *r)
{
    const rl_item *name = &r->item[2];
    return is_for_us(node, r) && name->len > 0 && name->len <= RLOCK_NAME_MAX;
}

static void hear_ring(rl_node *node, const rl_reply *r)
{
    const rl_item *name = &r->item[2];
    if (is_for_us(node, r) && rl_grant_hear(&node->e->core.rooms, name))
        return;
    if (is_ring(node, r) && !rl_rooms_wake(&node->e->core.rooms, name->str,
                                           name->len, RL_WAKE_RUNG))
        pass_on(node, name);
}

/* A server that is busy or loading will have time before long. */
static void hear_refusal(rl_doorbell *d, const rl_reply *r)
{
    rl_fault f;
    rl_error_reply(r, &f);
    d->refused = true;
    d->for_good = !f.transient;
}

/* Of the last channel that was listened to, it says that none is left. */
static bool is_farewell(const rl_node *node, const rl_reply *r)
{
    return is_kind(r, node->e->cluster ? "sunsubscribe" : "unsubscribe") &&
           r->item[2].integer == 0;
}

/* What the server says on the subscriber connection. */
static void hear(void *arg, const rl_reply *r)
{
    rl_node *node = arg;
    rl_doorbell *d = &node->doorbell;
    rl_item unwanted;
    bool last = is_farewell(node, r);
    bool taken = rl_subscriptions_take(node, r, &unwanted);
    bool refuses = !taken && rl_reply_is(r, REDIS_REPLY_ERROR);
    d->gone = d->gone || last || refuses; /* who may not say so just goes */
    if (taken && unwanted.str)
        pass_on(node, &unwanted);
    if (taken || node->e->cluster)
        return;
    if (is_kind(r, "message"))
        hear_ring(node, r);
    else if (is_kind(r, "subscribe"))
        d->subscribed = true;
    else if (refuses && !d->subscribed)
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

/* --- the connection ------------------------------------------------------- */

static bool is_worth_listening(rl_node *node)
{
    return !node->e->cluster ||
           rl_subscriptions_are_wanted(&node->doorbell.subscriptions);
}

/* A server that refuses (an ACL, a proxy) will do so again: no hurry then. */
static void pause_for(rl_doorbell *d, int64_t us, int64_t now_us)
{
    d->until_us = now_us + rl_jitter(us);
    d->pause_us = rl_min(us * 2, LAST_PAUSE_US);
}

/* The connection has ended, or could not be made. */
static void come_to_rest(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    bool heard = d->state == RL_HEARS || d->state == RL_TAKES_LEAVE;
    bool lasted = heard && now_us - d->began_us >= LASTED_US;
    bool refuses = d->state == RL_SUBSCRIBES && d->refused && d->for_good;
    if (heard && !node->e->cluster)
        rl_rooms_hear_no_more(&node->e->core.rooms);
    rl_subscriptions_lose_all(node);
    rl_pool_close(node->pool, d->conn);
    d->conn = NULL;
    d->state = RL_RESTS;
    d->yields_until_us = now_us + YIELD_US;
    if (lasted) {
        d->until_us = now_us + BEHIND_US;
        d->pause_us = FIRST_PAUSE_US;
    } else {
        pause_for(d, refuses ? REFUSED_PAUSE_US : d->pause_us, now_us);
    }
}

/* When it may connect. */
static int64_t may_connect_us(rl_node *node)
{
    const rl_doorbell *d = &node->doorbell;
    return rl_keeper_is_cut_off(&node->keeper)
               ? rl_max(d->until_us, d->yields_until_us)
               : d->until_us;
}

static void begin_to_connect(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    const rl_settings *set = &node->e->core.set;
    if (atomic_exchange(&d->hurry, false)) {
        d->until_us = now_us;
        d->pause_us = FIRST_PAUSE_US;
    }
    if (now_us < may_connect_us(node) || !is_worth_listening(node))
        return;
    d->state = RL_CONNECTS;
    rl_connector_visit(
        node, &d->visitor,
        rl_after_ms(now_us, set->connect_timeout_ms + set->command_timeout_ms),
        &node->e->loop.signal);
}

static void begin_to_hear(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    d->state = RL_HEARS;
    d->began_us = d->heard_us = now_us;
    d->arrivals = d->conn->arrivals;
    d->asked = false;
    if (node->e->cluster)
        return;
    rl_rooms_hear(&node->e->core.rooms);
}

static void take_connection(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    if (!rl_connector_has_news(&node->connector, &d->visitor))
        return;
    d->conn = d->visitor.conn;
    d->visitor.conn = NULL;
    if (!d->conn) {
        come_to_rest(node, now_us);
        return;
    }
    d->conn->line.pushed = hear;
    d->conn->line.arg = node;
    if (node->e->cluster) {
        begin_to_hear(node, now_us);
        return;
    }
    d->state = RL_SUBSCRIBES;
    d->subscribed = d->refused = false;
    d->until_us = rl_command_end(&node->e->core, now_us);
    if (!say(d->conn, "SUBSCRIBE", node->e->core.bell))
        come_to_rest(node, now_us);
}

static void subscribe(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    if (d->subscribed)
        begin_to_hear(node, now_us);
    else if (d->refused || rl_conn_is_broken(d->conn) || now_us >= d->until_us)
        come_to_rest(node, now_us);
}

static int64_t silent_until_us(const rl_node *node)
{
    const rl_doorbell *d = &node->doorbell;
    int64_t command_us = node->e->core.set.command_timeout_ms * 1000;
    if (d->asked)
        return d->heard_us + rl_min(command_us, SILENCE_US);
    return rl_pool_may_have_lost(node->pool, d->conn)
               ? d->heard_us
               : d->heard_us + SILENCE_US;
}

/* False: it has been silent for too long. */
static bool is_alive(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    if (d->arrivals != d->conn->arrivals) {
        d->arrivals = d->conn->arrivals;
        d->heard_us = now_us;
        d->asked = false;
    }
    if (now_us < silent_until_us(node))
        return true;
    if (d->asked || !say(d->conn, "PING", NULL)) {
        rl_conn_time_out(d->conn);
        return false;
    }
    d->heard_us = now_us;
    return d->asked = true;
}

/* Serves rings until the connection breaks, or its login is old. */
static void serve(rl_node *node, int64_t now_us)
{
    const rl_doorbell *d = &node->doorbell;
    if (rl_conn_is_broken(d->conn) || rl_conn_is_outdated(d->conn, now_us) ||
        !is_alive(node, now_us) ||
        !rl_subscriptions_adjust(node, d->conn, now_us))
        come_to_rest(node, now_us);
}

/* --- a turn --------------------------------------------------------------- */

static size_t look(rl_watcher *w, struct pollfd *p, size_t room)
{
    const rl_doorbell *d = RL_CONTAINER(w, rl_doorbell, watcher);
    (void)room;
    if (!d->conn)
        return 0;
    *p = (struct pollfd){.fd = d->conn->io.fd,
                         .events = rl_conn_events(d->conn)};
    return 1;
}

static void read_what_has_come(const rl_doorbell *d)
{
    const rl_watcher *w = &d->watcher;
    if (d->conn && w->n > 0 && w->polled[0].revents && rl_conn_send(d->conn))
        rl_conn_receive(d->conn);
}

static int64_t due_us(rl_node *node)
{
    rl_doorbell *d = &node->doorbell;
    switch (d->state) {
    case RL_RESTS:
        return is_worth_listening(node) ? may_connect_us(node) : RL_NEVER;
    case RL_CONNECTS: /* it is called */
        return RL_NEVER;
    case RL_SUBSCRIBES:
    case RL_TAKES_LEAVE:
        return d->until_us;
    case RL_HEARS:
        break;
    }
    int64_t us = rl_min(silent_until_us(node), d->conn->expires_us);
    return rl_min(us, rl_subscriptions_until(&d->subscriptions));
}

/* False: there is nothing to wait for, or no more. */
static bool takes_leave(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    read_what_has_come(d);
    if (d->state == RL_HEARS) {
        d->state = RL_TAKES_LEAVE;
        d->gone = false;
        d->until_us =
            rl_min(rl_command_end(&node->e->core, now_us), now_us + LEAVE_US);
        say(d->conn, node->e->cluster ? "SUNSUBSCRIBE" : "UNSUBSCRIBE", NULL);
    }
    return d->state == RL_TAKES_LEAVE && !d->gone &&
           !rl_conn_is_broken(d->conn) && now_us < d->until_us;
}

static void wind_up(rl_node *node, int64_t now_us)
{
    rl_doorbell *d = &node->doorbell;
    rl_connector_forget(node, &d->visitor);
    come_to_rest(node, now_us);
    d->until_us = d->yields_until_us = 0;
    d->pause_us = FIRST_PAUSE_US;
}

static int64_t turn(rl_watcher *w, int64_t now_us)
{
    rl_doorbell *d = RL_CONTAINER(w, rl_doorbell, watcher);
    rl_node *node = RL_CONTAINER(d, rl_node, doorbell);
    if (atomic_load(&d->leaving)) {
        if (takes_leave(node, now_us))
            return due_us(node);
        wind_up(node, now_us);
        return RL_LOOP_LEAVE;
    }
    if (d->state == RL_TAKES_LEAVE) /* it stays, and has to subscribe anew */
        wind_up(node, now_us);
    read_what_has_come(d);
    if (d->state == RL_CONNECTS)
        take_connection(node, now_us);
    if (d->state == RL_SUBSCRIBES)
        subscribe(node, now_us);
    if (d->state == RL_HEARS)
        serve(node, now_us);
    if (d->state == RL_RESTS)
        begin_to_connect(node, now_us);
    w->called = d->state == RL_CONNECTS;
    return due_us(node);
}

/* --- from other threads --------------------------------------------------- */

void rl_doorbell_wake(rl_node *node)
{
    rl_loop_nudge(&node->e->loop, &node->doorbell.watcher);
}

void rl_doorbell_hurry(rl_node *node)
{
    atomic_store(&node->doorbell.hurry, true);
    rl_doorbell_wake(node);
}

void rl_doorbell_start(rl_node *node)
{
    rl_doorbell *d = &node->doorbell;
    if (atomic_load(&d->started))
        return;
    rl_mutex_lock(&d->starting);
    atomic_store(&d->leaving, d->stopped);
    if (!d->stopped && rl_loop_add(&node->e->loop, &d->watcher))
        atomic_store(&d->started, true);
    rl_mutex_unlock(&d->starting);
}

void rl_doorbell_listen(rl_node *node, const rl_target *what)
{
    rl_doorbell_start(node);
    rl_subscriptions_want(node, what);
}

static void dismiss(rl_node *node, bool for_good)
{
    rl_doorbell *d = &node->doorbell;
    rl_mutex_lock(&d->starting);
    d->stopped = for_good;
    atomic_store(&d->started, false);
    atomic_store(&d->leaving, true);
    rl_mutex_unlock(&d->starting);
    rl_loop_nudge(&node->e->loop, &d->watcher);
}

void rl_doorbell_dismiss(rl_node *node)
{
    dismiss(node, false);
}

void rl_doorbell_quit(rl_node *node)
{
    dismiss(node, true);
}

void rl_doorbell_await_end(rl_node *node)
{
    rl_loop_await_end(&node->e->loop, &node->doorbell.watcher);
}
