/*
 * Plays the doorbell's thread (drive/doorbell.c, drive/channels.c): one
 * connection that is subscribed to the client's bell, on which rings come. A
 * ring for a name that nobody wants any more is passed on; while that is under
 * way, nothing else is heard.
 */
#include <string.h>

#include "world.h"

#define FIRST_PAUSE_US (50 * MS)
#define LAST_PAUSE_US  (2 * S)
#define PASS_ON_MS     500
#define LASTED_US      (1 * S)
#define SILENCE_US     (15 * S)

static client *client_of_bell(doorbell *d)
{
    return RL_CONTAINER(d, client, doorbell);
}

static bool is_message(const rl_reply *r, const char *kind)
{
    return rl_reply_is_array(r, 3) &&
           rl_item_is(&r->item[0], REDIS_REPLY_STRING) &&
           strcmp(r->item[0].str, kind) == 0;
}

/* --- names, each with a NUL behind it ------------------------------------- */

static void add_name(text *to, const char *name, size_t len)
{
    text_add(to, name, len);
    text_add(to, "", 1);
}

static bool has_name(const text *in, const char *name)
{
    for (size_t at = 0; at < in->len; at += strlen(in->at + at) + 1)
        if (strcmp(in->at + at, name) == 0)
            return true;
    return false;
}

/* --- what is heard -------------------------------------------------------- */

/* Redisson's channel of a name that is waited for. */
static bool hear_channel(doorbell *d, const rl_reply *r)
{
    rl_rooms *rooms = &client_of_bell(d)->e.core.rooms;
    if (!rl_reply_is_array(r, 3) || !r->item[0].str || !r->item[1].str)
        return false;
    for (size_t at = 0; at < d->known.len; at += strlen(d->known.at + at) + 1) {
        const char *name = d->known.at + at;
        rl_key key = rl_key_redisson(name, strlen(name));
        if (key.len != r->item[1].len ||
            memcmp(key.text, r->item[1].str, key.len) != 0)
            continue;
        if (strcmp(r->item[0].str, "message") == 0)
            rl_rooms_wake(rooms, name, strlen(name), RL_WAKE_RUNG);
        else if (strcmp(r->item[0].str, "subscribe") == 0)
            rl_rooms_wake(rooms, name, strlen(name), RL_WAKE_LOOK);
        return true;
    }
    return false;
}

static void hear(void *arg, const rl_reply *r)
{
    client *c = arg;
    doorbell *d = &c->doorbell;
    if (hear_channel(d, r))
        return;
    if (is_message(r, "message")) {
        const rl_item *name = &r->item[2];
        if (strcmp(r->item[1].str, c->e.core.bell) != 0)
            return;
        if (!rl_rooms_wake(&c->e.core.rooms, name->str, name->len,
                           RL_WAKE_RUNG))
            add_name(&d->names, name->str, name->len);
    } else if (is_message(r, "subscribe")) {
        d->subscribed = true;
    } else if (rl_reply_is(r, REDIS_REPLY_ERROR) && !d->subscribed) {
        d->refused = true;
    }
}

static void passed_on(runner *r)
{
    doorbell *d = RL_CONTAINER(r, doorbell, runner);
    text_cut(&d->names, strlen(d->names.at) + 1);
}

static void pass_on(client *c)
{
    doorbell *d = &c->doorbell;
    int64_t now_us = client_now(c);
    size_t len = strlen(d->names.at);
    memcpy(d->name, d->names.at, len + 1);
    trace(c->w, "process %u passes on a ring for %s", c->p->index, d->name);
    d->what = (rl_target){.name = d->name, .len = len};
    rl_op_init(&d->op, &d->op.lent);
    d->part = (rl_part){.heap = false};
    rl_part_leave(&d->part, &c->e.core, &d->what, now_us);
    d->part.until_us =
        rl_min(d->part.until_us, rl_after_ms(now_us, PASS_ON_MS));
    d->part.op = &d->op;
    d->op.n = d->op.quorum = 1;
    d->op.lent = &d->part;
    runner_start(&d->runner, &d->op, passed_on);
}

/* --- the connection ------------------------------------------------------- */

static bool say(conn *k, const char *command, const void *word, size_t len)
{
    rl_bytes *to = rl_line_begin(&k->c.line);
    rl_put_array(to, word ? 2 : 1);
    rl_put_text(to, command);
    if (word)
        rl_put_bytes(to, word, len);
    return rl_line_push(&k->c.line, NULL) && conn_send(k);
}

static void came(const char *name, size_t len, void *arg)
{
    doorbell *d = arg;
    char copy[RLOCK_NAME_MAX + 1];
    memcpy(copy, name, len);
    copy[len] = '\0';
    if (has_name(&d->known, copy))
        return;
    rl_key key = rl_key_redisson(name, len);
    add_name(&d->known, name, len);
    say(d->conn, "SUBSCRIBE", key.text, key.len);
}

static void went(const char *name, size_t len, void *arg)
{
    doorbell *d = arg;
    rl_key key = rl_key_redisson(name, len);
    text left = {0};
    for (size_t at = 0; at < d->known.len; at += strlen(d->known.at + at) + 1) {
        const char *known = d->known.at + at;
        if (strlen(known) == len && memcmp(known, name, len) == 0)
            say(d->conn, "UNSUBSCRIBE", key.text, key.len);
        else
            add_name(&left, known, strlen(known));
    }
    text_free(&d->known);
    d->known = left;
}

/* Of Redisson's channels, as many as names are waited for. */
static void adjust(client *c, bool all)
{
    doorbell *d = &c->doorbell;
    if (c->e.core.set.redisson_channel && d->conn && d->subscribed)
        rl_rooms_news(&c->e.core.rooms, all, came, went, d);
}

static void hang_up(client *c)
{
    doorbell *d = &c->doorbell;
    conn *k = d->conn;
    int64_t now_us = client_now(c);
    bool lasted = d->subscribed && now_us - d->began_us >= LASTED_US;
    d->conn = NULL;
    conn_close(k);
    rl_rooms_hear_no_more(&c->e.core.rooms);
    d->until_us = lasted ? now_us : now_us + rl_jitter(d->pause_us);
    d->pause_us =
        lasted ? FIRST_PAUSE_US : rl_min(d->pause_us * 2, LAST_PAUSE_US);
    d->subscribed = false;
}

static void is_subscribed(client *c)
{
    doorbell *d = &c->doorbell;
    d->began_us = client_now(c);
    d->known.len = 0;
    rl_rooms_hear(&c->e.core.rooms);
    adjust(c, true);
}

static void begin_to_subscribe(client *c)
{
    doorbell *d = &c->doorbell;
    d->subscribed = d->refused = d->asked = false;
    d->conn->c.line.pushed = hear;
    d->conn->c.line.arg = c;
    d->until_us = rl_command_end(&c->e.core, client_now(c));
    say(d->conn, "SUBSCRIBE", c->e.core.bell, strlen(c->e.core.bell));
}

/* A connection that is being made. False: there is none yet. */
static bool has_connected(client *c)
{
    doorbell *d = &c->doorbell;
    if (d->conn->c.line.pushed)
        return true;
    conn_state state = conn_settle(d->conn);
    if (state == CONN_FAILED)
        hang_up(c);
    else if (state == CONN_OPEN)
        begin_to_subscribe(c);
    return state == CONN_OPEN;
}

static int64_t patience_us(const client *c)
{
    return c->doorbell.asked
               ? rl_min(c->e.core.set.command_timeout_ms * 1000, SILENCE_US)
               : SILENCE_US;
}

static void listen_for_rings(client *c)
{
    doorbell *d = &c->doorbell;
    int64_t now_us = client_now(c), before_us = d->conn->c.heard_us;
    bool was = d->subscribed;
    if (!conn_send(d->conn) || !conn_receive(d->conn)) {
        hang_up(c);
        return;
    }
    if (!was && d->subscribed)
        is_subscribed(c);
    if (was && d->poked)
        adjust(c, false);
    d->poked = false;
    if (d->conn->c.heard_us != before_us) {
        d->asked = false;
        d->heard_us = now_us;
    }
    if (!d->subscribed && (d->refused || now_us >= d->until_us)) {
        hang_up(c);
    } else if (d->subscribed && now_us >= d->heard_us + patience_us(c)) {
        if (d->asked) {
            conn_time_out(d->conn);
            hang_up(c);
            return;
        }
        say(d->conn, "PING", NULL, 0);
        d->heard_us = now_us;
        d->asked = true;
    }
}

static int64_t wake_up_us(client *c)
{
    doorbell *d = &c->doorbell;
    if (!d->conn)
        return d->until_us;
    if (!d->conn->c.line.pushed)
        return d->conn->dial_until_us;
    return d->subscribed ? d->heard_us + patience_us(c) : d->until_us;
}

static void run(task *t)
{
    doorbell *d = RL_CONTAINER(RL_CONTAINER(t, runner, task), doorbell, runner);
    client *c = client_of_bell(d);
    if (!d->started || runner_go_on(&d->runner))
        return;
    if (!d->conn && client_now(c) >= d->until_us)
        d->conn = conn_dial(c, &d->runner.task, RL_NEVER);
    if (d->conn && has_connected(c))
        listen_for_rings(c);
    if (d->names.len > 0) {
        pass_on(c);
        task_wake(&d->runner.task);
        return;
    }
    task_sleep(&d->runner.task, wake_up_us(c));
}

void doorbell_start(client *c)
{
    c->doorbell.started = c->doorbell.poked = true;
    task_wake(&c->doorbell.runner.task);
}

void doorbell_open(client *c)
{
    c->doorbell.pause_us = FIRST_PAUSE_US;
    runner_init(&c->doorbell.runner, c->p, run, "doorbell");
}

void doorbell_close(client *c)
{
    doorbell *d = &c->doorbell;
    if (d->is_over)
        return;
    d->is_over = true;
    conn_close(d->conn);
    task_fini(&d->runner.task);
    text_free(&d->names);
    text_free(&d->known);
}
