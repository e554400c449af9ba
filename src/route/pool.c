/*
 * The connections to one server. Called by every thread; `mutex` guards the
 * lists and counts, and whoever has taken a connection off the list of idle
 * ones has it alone.
 *
 * Idle connections are kept as a stack: the one used last is warm, and those
 * at the bottom show how many are really needed. A connection may have died
 * while it was idle, and finding that out by using it makes the outcome of an
 * acquire unknown; so one over which nothing has come for a while, or since
 * before some other connection broke, is looked at (one poll) before it is
 * handed out.
 *
 * At most `limit` places are taken at a time. Who finds none waits in a line,
 * and a place that is left goes to the first in it, with its connection: who
 * has just left one and comes again stands behind. Threads that share keep one
 * at hand (mux_set.c), and are asked for it before another one is opened, and
 * again by who has come to stand in line: whoever leaves one from then on sees
 * that it is wanted.
 */
#include "route/pool.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define TRUSTED_IDLE_US 1000000

/* So many answers a connection may owe and still be asked. */
#define MOST_OWED 64

static rl_conn *idle_conn(rl_link *k)
{
    return k ? RL_CONTAINER(k, rl_conn, idle) : NULL;
}

/* The place, with a connection or without, goes to who waits longest. */
static void leave_place_locked(rl_pool *p, rl_conn *c) RL_REQUIRES(&p->mutex)
{
    rl_link *first = rl_list_first(&p->line);
    if (first) {
        rl_claim *t = RL_CONTAINER(first, rl_claim, link);
        atomic_fetch_sub(&p->in_line, 1);
        rl_list_remove(&t->link);
        t->come = true;
        t->conn = c;
        if (t->signal)
            rl_signal_raise(t->signal);
        else
            rl_cond_wake(t->cond);
        return;
    }
    p->places--;
    if (c)
        rl_list_add_first(&p->idle, &c->idle);
}

void rl_pool_leave_place(rl_pool *p)
{
    rl_mutex_lock(&p->mutex);
    leave_place_locked(p, NULL);
    rl_mutex_unlock(&p->mutex);
}

bool rl_pool_has_room(rl_pool *p)
{
    rl_mutex_lock(&p->mutex);
    bool has_room = p->places < p->limit;
    rl_mutex_unlock(&p->mutex);
    return has_room;
}

/* That owes nothing; NULL: there is none. */
static rl_conn *first_idle_locked(rl_pool *p) RL_REQUIRES(&p->mutex)
{
    rl_link *k = rl_list_first(&p->idle);
    while (k && idle_conn(k)->line.pending > 0)
        k = rl_list_next(&p->idle, k);
    return idle_conn(k);
}

/* The same, off the list. */
static rl_conn *take_idle_locked(rl_pool *p) RL_REQUIRES(&p->mutex)
{
    rl_conn *c = first_idle_locked(p);
    if (c)
        rl_list_remove(&c->idle);
    return c;
}

static void stand_in_line_locked(rl_pool *p, rl_claim *t) RL_REQUIRES(&p->mutex)
{
    rl_list_add_last(&p->line, &t->link);
    atomic_fetch_add(&p->in_line, 1);
}

static void step_out_locked(rl_pool *p, rl_claim *t) RL_REQUIRES(&p->mutex)
{
    if (!rl_link_is_in(&t->link))
        return; /* it has come */
    rl_list_remove(&t->link);
    atomic_fetch_sub(&p->in_line, 1);
}

static void want(rl_pool *p)
{
    if (p->on_want)
        p->on_want(p->keeps);
}

/* Stands in line. False: its time ran out. */
static bool wait_locked(rl_pool *p, int64_t deadline_us, rl_conn **idle)
    RL_REQUIRES(&p->mutex)
{
    rl_cond served;
    rl_claim t = {.cond = &served};
    rl_cond_init(&served);
    stand_in_line_locked(p, &t);
    rl_mutex_unlock(&p->mutex);
    want(p);
    rl_mutex_lock(&p->mutex);
    while (!t.come && rl_now_us() < deadline_us)
        rl_cond_wait_until(&served, &p->mutex, deadline_us);
    step_out_locked(p, &t);
    rl_cond_fini(&served);
    *idle = t.conn;
    return t.come;
}

static bool has_idle_locked(rl_pool *p) RL_REQUIRES(&p->mutex)
{
    return p->places < p->limit && first_idle_locked(p);
}

/* A place, and with it an idle connection, or NULL: open one. */
static bool take_place(rl_pool *p, int64_t deadline_us, rl_conn **idle)
{
    bool taken = true;
    rl_mutex_lock(&p->mutex);
    if (!has_idle_locked(p)) {
        rl_mutex_unlock(&p->mutex);
        want(p);
        rl_mutex_lock(&p->mutex);
    }
    if (p->places >= p->limit) {
        taken = wait_locked(p, deadline_us, idle);
    } else {
        p->places++;
        *idle = take_idle_locked(p);
    }
    rl_mutex_unlock(&p->mutex);
    return taken;
}

bool rl_pool_trusts(const rl_pool *p, const rl_conn *c, int64_t now_us)
{
    return c->heard_us > atomic_load(&p->last_trouble_us) &&
           now_us - c->heard_us < TRUSTED_IDLE_US;
}

/* Is it of use yet? */
static bool is_good(const rl_pool *p, rl_conn *c)
{
    int64_t now_us = rl_now_us();
    return !rl_pool_is_outdated(p, c, now_us) &&
           (rl_pool_trusts(p, c, now_us) ||
            (!rl_pool_may_have_lost(p, c) && !rl_conn_is_stale(c)));
}

static rlock_status open_in_place(rl_pool *p, int64_t deadline_us,
                                  rl_conn **out, rl_fault *f)
{
    rlock_status status = rl_pool_open(p, deadline_us, out, f);
    if (status == RLOCK_OK)
        return status;
    rl_pool_leave_place(p);
    /* Only rlock_client_new() can blame its caller's arguments. */
    if (status == RLOCK_EINVAL)
        status = f->status = RLOCK_EIO;
    return status;
}

rlock_status rl_pool_borrow(rl_pool *p, int64_t deadline_us, rl_conn **out,
                            rl_fault *f)
{
    while (take_place(p, deadline_us, out)) {
        if (!*out)
            return open_in_place(p, deadline_us, out, f);
        if (is_good(p, *out))
            return RLOCK_OK;
        rl_pool_give_back(p, *out);
    }
    return rl_fault_set(f, RLOCK_EIO, EBUSY, "all %u connections are in use",
                        p->limit);
}

static rlock_status ping(rl_pool *p, int64_t deadline_us, bool *rested,
                         rl_fault *f)
{
    rl_conn *c;
    *rested = false;
    rlock_status s = rl_pool_borrow(p, deadline_us, &c, f);
    if (s != RLOCK_OK)
        return s;
    *rested = c->rested_us != 0;
    s = rl_conn_ping(c, deadline_us, f);
    rl_pool_give_back(p, c);
    return s;
}

rlock_status rl_pool_ping(rl_pool *p, int64_t deadline_us, rl_fault *f)
{
    bool rested;
    rlock_status s = ping(p, deadline_us, &rested, f);
    bool was_lost = s == RLOCK_EIO && rested && f->sys_errno != ETIMEDOUT;
    return was_lost ? ping(p, deadline_us, &rested, f) : s;
}

static bool may_use(const rl_conn *c)
{
    return !c->line.retired && c->line.pending < MOST_OWED;
}

/*
 * Of those that are open, the one that is asked for; or the one used last of
 * those that owe nothing, as what is owed may be a WAIT, and until that has ended
 * its server reads nothing else there; or any.
 */
static rl_conn *find_idle_locked(rl_pool *p, const rl_line *behind)
    RL_REQUIRES(&p->mutex)
{
    rl_conn *first = NULL;
    for (rl_link *k = rl_list_first(&p->idle); k;
         k = rl_list_next(&p->idle, k)) {
        rl_conn *c = idle_conn(k);
        if (&c->line == behind && may_use(c))
            return c;
        bool better =
            !first || (first->line.pending > 0 && c->line.pending == 0);
        if (better && may_use(c))
            first = c;
    }
    return first;
}

/* Can it still be used, by who takes also one that owes answers? */
static bool is_usable(const rl_pool *p, rl_conn *c)
{
    return is_good(p, c) && (c->line.pending == 0 || rl_conn_receive(c));
}

/* With its place. NULL: there is none. */
static rl_conn *take_usable(rl_pool *p, const rl_line *behind)
{
    rl_mutex_lock(&p->mutex);
    rl_conn *c = p->places < p->limit ? find_idle_locked(p, behind) : NULL;
    if (c) {
        rl_list_remove(&c->idle);
        p->places++;
    }
    rl_mutex_unlock(&p->mutex);
    return c;
}

rl_conn *rl_pool_borrow_idle(rl_pool *p, const rl_line *behind)
{
    for (bool asked = false;; asked = true) {
        rl_conn *c = take_usable(p, behind);
        if (!c && !asked) {
            want(p);
            c = take_usable(p, behind);
        }
        if (!c || is_usable(p, c))
            return c;
        rl_pool_give_back(p, c);
    }
}

bool rl_pool_line_up(rl_pool *p, rl_claim *t, const rl_signal *signal)
{
    *t = (rl_claim){.signal = signal};
    rl_mutex_lock(&p->mutex);
    bool full = p->places >= p->limit;
    if (full)
        stand_in_line_locked(p, t);
    rl_mutex_unlock(&p->mutex);
    if (full)
        want(p);
    return full;
}

bool rl_pool_take_claim(rl_pool *p, rl_claim *t, const rl_line *behind,
                        rl_conn **out)
{
    rl_mutex_lock(&p->mutex);
    bool come = t->come;
    rl_conn *c = t->conn;
    if (come && !c && (c = find_idle_locked(p, behind)) != NULL)
        rl_list_remove(&c->idle);
    rl_mutex_unlock(&p->mutex);
    *out = c;
    if (come && !c)
        rl_pool_leave_place(p);
    if (c && !(may_use(c) && is_usable(p, c))) {
        rl_pool_give_back(p, c);
        *out = NULL;
    }
    return come;
}

void rl_pool_leave_line(rl_pool *p, rl_claim *t)
{
    rl_mutex_lock(&p->mutex);
    step_out_locked(p, t);
    if (t->come)
        leave_place_locked(p, t->conn);
    rl_mutex_unlock(&p->mutex);
}

rl_conn *rl_pool_borrow_owing(rl_pool *p, int64_t since_us, int64_t *next_us)
{
    rl_conn *found = NULL;
    *next_us = RL_NEVER;
    rl_mutex_lock(&p->mutex);
    for (rl_link *k = rl_list_first(&p->idle); k;
         k = rl_list_next(&p->idle, k)) {
        rl_conn *c = idle_conn(k);
        if (c->line.pending == 0)
            continue;
        if (!found && c->rested_us <= since_us)
            found = c;
        else
            *next_us = rl_min(*next_us, c->rested_us);
    }
    if (found) {
        rl_list_remove(&found->idle);
        p->places++;
    }
    rl_mutex_unlock(&p->mutex);
    return found;
}

void rl_pool_give_back(rl_pool *p, rl_conn *c)
{
    const char *bytes;
    c->line.retired = c->line.retired || rl_pool_is_doubtful(p, c, rl_now_us());
    /* A late answer may have had its call say more: "NOSCRIPT". Somebody is
       there yet, who is told what comes of that. */
    if (!c->line.retired && !rl_conn_is_broken(c) && c->line.pending > 0)
        rl_conn_send(c);
    /* What was not sent whole, or read whole, nobody could go on with. */
    if (!rl_conn_is_broken(c) &&
        (rl_line_bytes(&c->line, &bytes) > 0 || c->io.holds ||
         (c->line.pending == 0 && rl_line_is_mid_reply(&c->line))))
        rl_conn_time_out(c);
    if (rl_line_is_spent(&c->line)) {
        rl_pool_close(p, c);
        rl_pool_leave_place(p);
        return;
    }
    c->rested_us = rl_now_us();
    rl_mutex_lock(&p->mutex);
    if (c->line.pending > 0) { /* nobody who waits could use it */
        rl_list_add_first(&p->idle, &c->idle);
        leave_place_locked(p, NULL);
    } else {
        leave_place_locked(p, c);
    }
    rl_mutex_unlock(&p->mutex);
}

rl_pool *rl_pool_new(rl_dialer *dialer, unsigned limit)
{
    rl_pool *p = calloc(1, sizeof *p);
    if (!p) {
        rl_dialer_fini(dialer);
        return NULL;
    }
    p->dialer = *dialer;
    rl_resolver_fini(&dialer->resolver); /* a mutex cannot be moved */
    rl_resolver_init(&p->dialer.resolver);
    rl_pool_watch(p);
    p->limit = limit;
    rl_mutex_init(&p->mutex, RL_RANK_POOL);
    rl_list_init(&p->idle);
    rl_list_init(&p->open);
    rl_list_init(&p->line);
    /* What a program has made may be TLS, which has one thread at a time. */
    p->exclusive = dialer->connect != NULL;
    p->server =
        dialer->connect ? "the connect callback's server" : p->dialer.uri.shown;
    return p;
}
