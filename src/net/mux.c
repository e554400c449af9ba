/*
 * Whose turn it is to do what, on a connection that threads share.
 *
 * `mutex` guards the connection's line: its slots, its bytes and its parser. It
 * is not held while a thread reads, writes or polls. Who leads alone reads; who
 * has set `writing` alone writes, out of `sending`, which is what the line had
 * to send when he looked last.
 *
 * A thread appends its command, and then
 *
 *   - leads, if nobody does;
 *   - or sends all there is, if the leader sleeps in poll() and nobody sends:
 *     no command waits for the reply of another one;
 *   - or sleeps: the leader is awake, and looks for bytes before it sleeps.
 *
 * The leader serves the others until its own reply has come. Then it wakes the
 * one that waits longest, which leads from there on. So while somebody waits,
 * somebody leads, or has been told to. Those that are answered are woken when
 * the mutex is free again, because the first thing they do is to ask anew.
 *
 * When the kernel takes no more, the leader, who polls anyway, waits for that
 * as well. When it never will, what was not sent is certainly not executed: who
 * finds that out tells those whose commands it is, and the leader goes on
 * reading for the others.
 *
 * A port is freed with its mux only: its waker may still have it in hand when
 * its thread has long seen the answer and gone on.
 */
#include "net/mux.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* With more that wait for answers, the time of a spin belongs to those. */
#define MOST_SPUN_FOR 2

/* Without a descriptor for the signal, the leader looks up so often. */
#define NO_SIGNAL_US 10000

static rl_port *port_of(rl_slot *s)
{
    return RL_CONTAINER(s, rl_port, slot);
}

/* --- sleep ---------------------------------------------------------------- */

/* Whoever is about to sleep has the mutex, and has not looked yet, or sleeps.
 */
static void wake(rl_port *s)
{
    rl_mutex_lock(&s->mutex);
    rl_mutex_unlock(&s->mutex);
    rl_cond_wake(&s->cond);
}

static void sleep_until(rl_port *s, int64_t until_us)
{
    rl_mutex_lock(&s->mutex);
    while (rl_port_waits(s) && !atomic_load(&s->leads) &&
           rl_now_us() < until_us)
        rl_cond_wait_until(&s->cond, &s->mutex, until_us);
    rl_mutex_unlock(&s->mutex);
}

/* --- what comes ----------------------------------------------------------- */

static void wake_later_locked(rl_mux *h, rl_port *s) RL_REQUIRES(&h->mutex)
{
    if (h->wakes < RL_WAKES)
        h->woken[h->wakes++] = s;
    else
        wake(s);
}

static void settle(rl_port *s, rl_port_state state) RL_UNCHECKED
{
    if (s->left)
        return;
    atomic_store(&s->state, state);
    if (s != s->mux->leader)
        wake_later_locked(s->mux, s);
}

void rl_port_answered(rl_slot *slot, const rl_reply *r, int64_t now_us)
{
    rl_port *s = port_of(slot);
    (void)now_us;
    if (!s->left)
        rl_reply_copy(&s->reply, r);
    settle(s, RL_PORT_ANSWERED);
}

void rl_port_failed(rl_slot *slot, bool whole, const rl_fault *why,
                    int64_t now_us)
{
    rl_port *s = port_of(slot);
    (void)now_us;
    if (!s->left) {
        s->fault = *why;
        s->whole = whole;
    }
    settle(s, RL_PORT_FAILED);
}

static void fail_locked(rl_mux *h, const rl_fault *why, int64_t now_us)
    RL_REQUIRES(&h->mutex)
{
    atomic_store(&h->spent, true);
    /* What somebody is just writing may arrive. */
    if (!h->writing)
        rl_line_drop(&h->conn->line, why, rl_bytes_left(&h->sending), now_us);
    rl_line_fail(&h->conn->line, why, now_us);
}

void rl_mux_unlock_and_wake(rl_mux *h)
{
    rl_port *woken[RL_WAKES];
    size_t n = h->wakes;
    memcpy(woken, h->woken, n * sizeof *woken);
    h->wakes = 0;
    rl_mutex_unlock(&h->mutex);
    for (size_t i = 0; i < n; i++)
        wake(woken[i]);
}

/* Hands out so many bytes; none: the connection is broken. False: it is. */
static bool feed_locked(rl_mux *h, const char *bytes, ssize_t n,
                        const rl_fault *f) RL_REQUIRES(&h->mutex)
{
    rl_conn *c = h->conn;
    c->heard_us = rl_now_us();
    c->arrivals += n > 0;
    if (n < 0)
        fail_locked(h, f, c->heard_us);
    else if (!rl_line_feed(&c->line, bytes, (size_t)n, c->heard_us))
        atomic_store(&h->spent, true);
    return !c->line.failed;
}

/* The leader reads what has come. True: something did, were it the end, and he
   has the mutex. */
static bool receive(void *arg) RL_UNCHECKED
{
    rl_mux *h = arg;
    char bytes[4096];
    rl_fault f;
    ssize_t n;
    bool came = false;
    while ((n = rl_conn_read(h->conn, bytes, sizeof bytes, &f)) != 0) {
        rl_mutex_lock(&h->mutex);
        if (!feed_locked(h, bytes, n, &f) || !h->conn->io.again)
            return true;
        rl_mux_unlock_and_wake(h);
        came = true;
    }
    if (came)
        rl_mutex_lock(&h->mutex);
    return came;
}

/* --- what goes ------------------------------------------------------------ */

static bool has_bytes_locked(const rl_mux *h) RL_REQUIRES(&h->mutex)
{
    const char *bytes;
    /* Of one that failed, what was not sent has been said to be lost. */
    return !h->conn->line.failed &&
           (rl_bytes_left(&h->sending) > 0 || h->conn->io.holds ||
            rl_line_bytes(&h->conn->line, &bytes) > 0);
}

/* Nothing is sent from now on. */
static void end_writing_locked(rl_mux *h, const rl_fault *why)
    RL_REQUIRES(&h->mutex)
{
    size_t unsent = rl_bytes_left(&h->sending);
    h->fault = *why;
    h->cannot_write = true;
    atomic_store(&h->spent, true);
    rl_bytes_sent(&h->sending, unsent);
    rl_line_drop(&h->conn->line, why, unsent, rl_now_us());
    if (h->asleep)
        rl_signal_raise(&h->signal);
}

/* Whoever leads, or has found that the leader sleeps. */
static void write_locked(rl_mux *h) RL_REQUIRES(&h->mutex)
{
    rl_fault f;
    ssize_t n = 1;
    h->writing = true;
    h->blocked = false;
    while (n > 0 && has_bytes_locked(h)) {
        if (rl_bytes_left(&h->sending) == 0)
            rl_line_take(&h->conn->line, &h->sending);
        rl_bytes *b = &h->sending;
        rl_mux_unlock_and_wake(h);
        n = h->conn->io.ops->write(&h->conn->io, b->at + b->begin,
                                   rl_bytes_left(b), &f);
        rl_mutex_lock(&h->mutex);
        if (n > 0)
            rl_bytes_sent(b, (size_t)n);
    }
    h->writing = false;
    h->blocked = n == 0;
    if (n < 0)
        end_writing_locked(h, &f);
    if (h->blocked && h->asleep)
        rl_signal_raise(&h->signal);
}

/* --- to lead -------------------------------------------------------------- */

void rl_mux_pass_lead_locked(rl_mux *h)
{
    const rl_list *slots = &h->conn->line.slots;
    rl_link *k = rl_list_first(slots);
    while (k && port_of(RL_CONTAINER(k, rl_slot, link))->left)
        k = rl_list_next(slots, k);
    h->leader = k ? port_of(RL_CONTAINER(k, rl_slot, link)) : NULL;
    if (!h->leader)
        return;
    atomic_store(&h->leader->leads, true);
    wake_later_locked(h, h->leader);
}

static void cannot_wait(rl_mux *h, int err)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, err, "no reply: %s", strerror(err));
    rl_mutex_lock(&h->mutex);
    fail_locked(h, &f, rl_now_us());
    rl_mux_unlock_and_wake(h);
}

/* True: something came, and the leader has the mutex. */
static bool listen_for(rl_mux *h, bool few, bool blocked, int64_t until_us)
    RL_TSA(try_acquire_capability(true, &h->mutex)) RL_UNCHECKED
{
    rl_conn *c = h->conn;
    if (few && rl_spin_a_while(&c->spin, receive, h))
        return true;
    if (h->signal.fd < 0)
        until_us = rl_min(until_us, rl_now_us() + NO_SIGNAL_US);
    struct pollfd p[] = {
        {.fd = c->io.fd, .events = (short)(POLLIN | (blocked ? POLLOUT : 0))},
        {.fd = h->signal.fd, .events = POLLIN}};
    int n = poll(p, 2, rl_poll_ms(until_us));
    if (n < 0 && errno != EINTR)
        cannot_wait(h, errno);
    if (n <= 0)
        return false;
    if (p[1].revents)
        rl_signal_clear(&h->signal);
    return (p[0].revents & ~POLLOUT) && receive(h);
}

static void lead_locked(rl_mux *h, rl_port *s, int64_t until_us)
    RL_REQUIRES(&h->mutex)
{
    h->leader = s;
    atomic_store(&s->leads, false);
    do {
        if (!h->writing)
            write_locked(h);
        if (!rl_port_waits(s))
            break;
        bool blocked = h->blocked;
        bool few = !blocked && atomic_load(h->crowd) <= MOST_SPUN_FOR;
        h->asleep = true;
        rl_mux_unlock_and_wake(h);
        if (!listen_for(h, few, blocked, until_us))
            rl_mutex_lock(&h->mutex);
        h->asleep = false;
    } while (rl_port_waits(s) && rl_now_us() < until_us);
    rl_mux_pass_lead_locked(h);
}

/* --- a port's exchange ---------------------------------------------------- */

static void refuse(rl_port *s, const rl_fault *why)
{
    s->fault = *why;
    s->whole = false;
    atomic_store(&s->state, RL_PORT_FAILED);
}

static void ask_locked(rl_mux *h, rl_port *s) RL_REQUIRES(&h->mutex)
{
    const char *bytes;
    rl_fault f;
    rl_line *l = &h->conn->line;
    size_t n = rl_line_bytes(&s->line, &bytes);
    const rl_slot *first = rl_line_first(&s->line);
    if (n == 0 || !first)
        return;
    if (h->cannot_write || l->failed) {
        refuse(s, l->failed ? &l->fault : &h->fault);
        return;
    }
    /* Nobody is to stand behind who could not wait. */
    if (atomic_load(&h->spent)) {
        rl_fault_set(&f, RLOCK_EIO, 0, "the connection is given up");
        refuse(s, &f);
        return;
    }
    s->slot.replies = first->replies;
    rl_put_raw(rl_line_begin(l), bytes, n);
    if (rl_line_push(l, &s->slot)) {
        atomic_store(&s->state, RL_PORT_WAITS);
        return;
    }
    rl_fault_set(&f, RLOCK_ENOMEM, 0, "out of memory");
    refuse(s, &f);
}

/* Asks first, if it has not; then leads, or sends, if that is for this thread to
   do; else it can sleep. */
static bool help(rl_mux *h, rl_port *s, bool asks, int64_t until_us)
{
    rl_mutex_lock(&h->mutex);
    if (asks)
        ask_locked(h, s);
    bool leads = rl_port_waits(s) && (!h->leader || h->leader == s);
    if (leads)
        lead_locked(h, s, until_us);
    else if (h->asleep && !h->writing && !h->blocked && has_bytes_locked(h))
        write_locked(h);
    rl_mux_unlock_and_wake(h);
    return leads;
}

/* Its time is over. What was not sent will not be: who would wait for it? */
static void withdraw(rl_port *s)
{
    rl_mux *h = s->mux;
    rl_fault f;
    rl_mutex_lock(&h->mutex);
    uint64_t sent = h->conn->line.sent - rl_bytes_left(&h->sending);
    if (rl_port_waits(s) && !h->writing && s->slot.end > sent) {
        rl_fault_set(&f, RLOCK_EIO, ETIMEDOUT, "cannot send: %s",
                     strerror(ETIMEDOUT));
        end_writing_locked(h, &f);
    }
    rl_mux_unlock_and_wake(h);
}

/* One answer that makes no sense: from here on all may be others'. */
static void end_odd(rl_port *s)
{
    rl_mux *h = s->mux;
    rl_mutex_lock(&h->mutex);
    fail_locked(h, &s->line.fault, rl_now_us());
    if (h->asleep)
        rl_signal_raise(&h->signal);
    rl_mux_unlock_and_wake(h);
}

/* On the port's own thread: its line gets what came of the command. */
static void tell(rl_port *s)
{
    const char *bytes;
    rl_line *l = &s->line;
    rl_port_state state = atomic_load(&s->state);
    if (state == RL_PORT_IDLE)
        return;
    if (state != RL_PORT_FAILED || s->whole)
        rl_line_sent(l, rl_line_bytes(l, &bytes));
    if (state == RL_PORT_WAITS)
        return;
    atomic_store(&s->state, RL_PORT_IDLE);
    if (state == RL_PORT_ANSWERED && !rl_line_answer(l, &s->reply, rl_now_us()))
        end_odd(s);
    else if (state == RL_PORT_FAILED)
        rl_line_fail(l, &s->fault, rl_now_us());
}

/*
 * Before it asks, a reading of the caller's is good enough, as no deadline counts
 * from a later one. The answer is told with one that was made after it was seen:
 * who was stopped in between would else believe in a lease that is over.
 */
void rl_port_exchange(rl_port *s, int64_t until_us, int64_t now_us)
{
    bool asks = !rl_port_waits(s);
    while (now_us < until_us) {
        if (!help(s->mux, s, asks, until_us))
            sleep_until(s, until_us);
        if (!rl_port_waits(s))
            break;
        asks = false;
        now_us = rl_now_us();
    }
    if (rl_port_waits(s))
        withdraw(s);
    tell(s);
}
