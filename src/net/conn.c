#include "net/conn.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

rl_conn *rl_conn_new(rl_transport io)
{
    rl_conn *c = calloc(1, sizeof *c);
    if (c && rl_line_init(&c->line)) {
        c->io = io;
        c->made_us = rl_now_us();
        c->expires_us = RL_NEVER;
        return c;
    }
    free(c);
    io.ops->close(&io);
    return NULL;
}

void rl_conn_free(rl_conn *c)
{
    if (!c)
        return;
    c->io.ops->close(&c->io);
    rl_line_fini(&c->line);
    free(c);
}

void rl_conn_break(rl_conn *c, const rl_fault *why)
{
    rl_line_fail(&c->line, why, rl_now_us());
}

void rl_conn_time_out(rl_conn *c)
{
    rl_line_time_out(&c->line, rl_now_us());
}

ssize_t rl_conn_read(rl_conn *c, char *bytes, size_t room, rl_fault *f)
{
    c->io.again = false;
    ssize_t n = c->io.ops->read(&c->io, bytes, room, f);
    /* A whole buffer: more may wait inside. */
    c->io.again = c->io.again || n == (ssize_t)room;
    if (!atomic_load(&c->forsaken))
        return n;
    rl_fault_set(f, RLOCK_EIO, 0, "this server is not the master any more");
    return -1;
}

static void feed(rl_conn *c, const char *bytes, size_t n)
{
    c->heard_us = rl_now_us();
    c->arrivals++;
    rl_line_feed(&c->line, bytes, n, c->heard_us);
}

/*
 * A server that is full says so and closes, without reading what we send: what
 * it said is read before the connection is given up.
 */
static void break_after_last_words(rl_conn *c, const rl_fault *why)
{
    char bytes[512];
    rl_fault ignored;
    ssize_t n;
    while (!c->line.failed &&
           (n = rl_conn_read(c, bytes, sizeof bytes, &ignored)) > 0)
        feed(c, bytes, (size_t)n);
    rl_conn_break(c, why);
}

bool rl_conn_send(rl_conn *c)
{
    rl_fault f;
    const char *bytes;
    size_t n;
    while (!c->line.failed &&
           ((n = rl_line_bytes(&c->line, &bytes)) > 0 || c->io.holds)) {
        ssize_t sent = c->io.ops->write(&c->io, bytes, n, &f);
        if (sent < 0)
            break_after_last_words(c, &f);
        else
            rl_line_sent(&c->line, (size_t)sent);
        if (sent <= 0)
            break;
    }
    return !c->line.failed;
}

bool rl_conn_receive(rl_conn *c)
{
    char bytes[4096];
    rl_fault f;
    ssize_t n;
    do {
        if (c->line.failed)
            return false;
        n = rl_conn_read(c, bytes, sizeof bytes, &f);
        if (n < 0)
            rl_conn_break(c, &f);
        else if (n > 0)
            feed(c, bytes, (size_t)n);
    } while (n > 0 && c->io.again);
    return !c->line.failed;
}

/* Did something come, were it the end? */
static bool look(void *arg)
{
    rl_conn *c = arg;
    unsigned before = c->arrivals;
    return !rl_conn_receive(c) || c->arrivals != before;
}

bool rl_conn_spin(rl_conn *c)
{
    return rl_spin_a_while(&c->spin, look, c);
}

short rl_conn_events(const rl_conn *c)
{
    const char *bytes;
    bool more = rl_line_bytes(&c->line, &bytes) > 0 || c->io.holds;
    return (short)(POLLIN | (more ? POLLOUT : 0));
}

static bool cannot_wait(rl_conn *c, int err)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, err, "no reply: %s", strerror(err));
    rl_conn_break(c, &f);
    return false;
}

/*
 * A socket may be ready each time and never do anything, so the deadline comes
 * first.
 */
bool rl_conn_step(rl_conn *c, int64_t deadline_us)
{
    if (!rl_conn_send(c))
        return false;
    struct pollfd p = {.fd = c->io.fd, .events = rl_conn_events(c)};
    while (rl_now_us() < deadline_us) {
        int n = poll(&p, 1, rl_poll_ms(deadline_us));
        if (n > 0)
            return rl_conn_send(c) && rl_conn_receive(c);
        if (n < 0 && errno != EINTR)
            return cannot_wait(c, errno);
    }
    rl_conn_time_out(c);
    return false;
}

/* --- questions ------------------------------------------------------------ */

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    rl_question *q = RL_CONTAINER(s, rl_question, slot);
    (void)now_us;
    rl_reply_copy(&q->reply, r);
    q->status = RLOCK_OK;
    q->over = true;
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    rl_question *q = RL_CONTAINER(s, rl_question, slot);
    (void)whole;
    (void)now_us;
    q->fault = *why;
    q->status = why->status;
    q->over = true;
}

void rl_conn_put(rl_conn *c, rl_question *q, int argc, const char **argv)
{
    rl_bytes *to = rl_line_begin(&c->line);
    q->slot = (rl_slot){.answered = answered,
                        .failed = failed,
                        .replies = q->replies,
                        .subscribes = q->subscribes};
    rl_put_array(to, (size_t)argc);
    for (int i = 0; i < argc; i++)
        rl_put_text(to, argv[i]);
    q->over = !rl_line_push(&c->line, &q->slot);
    if (!q->over)
        return;
    if (c->line.failed)
        q->fault = c->line.fault;
    else
        rl_fault_set(&q->fault, RLOCK_ENOMEM, 0, "out of memory");
    q->status = q->fault.status;
}

/* Replies come in order, so with the last one all are there. */
rlock_status rl_conn_await(rl_conn *c, int64_t deadline_us, rl_question *q,
                           size_t n, rl_fault *f)
{
    for (size_t i = 0; i < n; i++)
        while (!q[i].over)
            rl_conn_step(c, deadline_us);
    for (size_t i = 0; i < n; i++)
        if (q[i].status != RLOCK_OK) {
            *f = q[i].fault;
            return q[i].status;
        }
    return RLOCK_OK;
}

rlock_status rl_conn_ask(rl_conn *c, int64_t deadline_us, rl_reply *into,
                         rl_fault *f, int argc, const char **argv)
{
    rl_question q = {.replies = 0};
    rl_conn_put(c, &q, argc, argv);
    rlock_status s = rl_conn_await(c, deadline_us, &q, 1, f);
    if (s == RLOCK_OK)
        rl_reply_copy(into, &q.reply);
    return s;
}

rlock_status rl_conn_ping(rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    rl_question q = {.replies = RL_REPLY_BIT(REDIS_REPLY_STATUS)};
    rl_conn_put(c, &q, 1, (const char *[]){"PING"});
    rlock_status s = rl_conn_await(c, deadline_us, &q, 1, f);
    if (s == RLOCK_OK && rl_reply_is(&q.reply, REDIS_REPLY_ERROR))
        s = rl_fault_set(f, RLOCK_ESERVER, 0, "the server answered: %s",
                         q.reply.top.str);
    return s;
}

bool rl_conn_is_stale(rl_conn *c)
{
    struct pollfd p = {.fd = c->io.fd, .events = POLLIN};
    int n;
    do {
        n = poll(&p, 1, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        rl_conn_receive(c);
    return c->line.failed;
}
