/*
 * Idle connections are kept as a stack: the one used last is warm, and those
 * at the bottom show how many are really needed. A connection may have died
 * while it was idle, and finding that out by using it makes the outcome of an
 * acquire unknown; so one that has rested for a while, or since before some
 * other connection broke, is looked at (one poll) before it is handed out.
 */
#include "route/pool.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/thread.h"

#define TRUSTED_IDLE_US 1000000

typedef struct pool {
    rl_source source;
    rl_dialer dialer;
    unsigned limit;
    rl_mutex mutex; /* guards all below */
    rl_cond returned;
    TAILQ_HEAD(, rl_conn) idle;
    LIST_HEAD(, rl_conn) open; /* idle, borrowed and opened */
    unsigned places;           /* of the limit that are taken */
    unsigned broken;           /* closed in trouble and not replaced yet */
    int64_t last_trouble_us;
    struct pool *next_left_behind; /* in a forked child */
} pool;

static pool *pool_of(rl_source *s)
{
    return RL_CONTAINER(s, pool, source);
}

static bool is_ours(void *arg, const redisContext *ctx)
{
    pool *p = arg;
    rl_conn *c;
    rl_mutex_lock(&p->mutex);
    LIST_FOREACH (c, &p->open, all) {
        if (c->ctx == ctx)
            break;
    }
    rl_mutex_unlock(&p->mutex);
    return c != NULL;
}

static int64_t connect_deadline(const pool *p)
{
    return rl_after_ms(rl_now_us(), p->dialer.connect_timeout_ms);
}

static rlock_status pool_open(rl_source *s, int64_t deadline_us, rl_conn **out,
                              rl_fault *f)
{
    pool *p = pool_of(s);
    rl_conn *c;
    *out = NULL;
    rlock_status status = rl_dial(&p->dialer, deadline_us, &c, f);
    if (status != RLOCK_OK)
        return status;
    int64_t until_us = rl_min(deadline_us, connect_deadline(p));
    if (s->on_open && !s->on_open(s->arg, c, until_us, f)) {
        rl_conn_free(c);
        return f->status;
    }
    *out = c;
    rl_mutex_lock(&p->mutex);
    LIST_INSERT_HEAD(&p->open, c, all);
    bool replaces = p->broken > 0;
    if (replaces)
        p->broken--;
    rl_mutex_unlock(&p->mutex);
    if (replaces && s->on_reconnect)
        s->on_reconnect(s->arg);
    return RLOCK_OK;
}

static void pool_close(rl_source *s, rl_conn *c)
{
    if (!c)
        return;
    pool *p = pool_of(s);
    rl_mutex_lock(&p->mutex);
    LIST_REMOVE(c, all);
    if (c->broken) {
        p->broken++;
        p->last_trouble_us = rl_now_us();
    }
    rl_mutex_unlock(&p->mutex);
    rl_conn_free(c);
}

static void leave_place(pool *p)
{
    rl_mutex_lock(&p->mutex);
    p->places--;
    rl_cond_wake(&p->returned);
    rl_mutex_unlock(&p->mutex);
}

/*
 * Takes a place, and with it an idle connection (or NULL: open one). False:
 * none came free in time.
 */
static bool take_place(pool *p, int64_t deadline_us, rl_conn **idle,
                       bool *suspect)
{
    rl_mutex_lock(&p->mutex);
    while (p->places >= p->limit && rl_now_us() < deadline_us)
        rl_cond_wait_until(&p->returned, &p->mutex, deadline_us);
    bool taken = p->places < p->limit;
    if (taken) {
        p->places++;
        *idle = TAILQ_FIRST(&p->idle);
        if (*idle)
            TAILQ_REMOVE(&p->idle, *idle, idle);
        *suspect = *idle && (*idle)->idle_since_us <= p->last_trouble_us;
    }
    rl_mutex_unlock(&p->mutex);
    return taken;
}

/* Takes a place, and a good idle connection with it, if there is one. */
static bool take_good(pool *p, int64_t deadline_us, rl_conn **idle)
{
    bool suspect = false;
    while (take_place(p, deadline_us, idle, &suspect)) {
        rl_conn *c = *idle;
        if (!c ||
            (!suspect && rl_now_us() - c->idle_since_us < TRUSTED_IDLE_US) ||
            !rl_conn_is_stale(c))
            return true;
        c->broken = true;
        rl_source_give_back(&p->source, c);
    }
    return false;
}

static rl_conn *pool_borrow_known(rl_source *s)
{
    pool *p = pool_of(s);
    rl_conn *c;
    while (take_good(p, 0, &c)) {
        if (c && c->known)
            return c;
        leave_place(p);
        if (!c)
            break;
        pool_close(s, c);
    }
    return NULL;
}

static rlock_status pool_borrow(rl_source *s, int64_t deadline_us,
                                rl_conn **out, rl_fault *f)
{
    pool *p = pool_of(s);
    rl_conn *c = NULL;
    if (!take_good(p, deadline_us, &c))
        return rl_fault_set(f, RLOCK_EIO, EBUSY,
                            "all %u connections are in use", p->limit);
    if (c) {
        *out = c;
        return RLOCK_OK;
    }
    rlock_status status = pool_open(s, deadline_us, out, f);
    if (status == RLOCK_OK) {
        (*out)->eager = true;
        return status;
    }
    leave_place(p);
    /* Only rlock_client_new() can blame its caller's arguments. */
    if (status == RLOCK_EINVAL)
        status = f->status = RLOCK_EIO;
    return status;
}

static void pool_give_back(rl_source *s, rl_conn *c)
{
    pool *p = pool_of(s);
    if (rl_conn_has_input(c))
        c->broken = true; /* what else came would answer the next question */
    if (c->broken) {
        pool_close(s, c);
        leave_place(p);
        return;
    }
    c->idle_since_us = rl_now_us();
    rl_mutex_lock(&p->mutex);
    TAILQ_INSERT_HEAD(&p->idle, c, idle);
    p->places--;
    rl_cond_wake(&p->returned);
    rl_mutex_unlock(&p->mutex);
}

/*
 * A forked child has copies of all descriptors, and closes them, which the
 * parent does not notice. The memory of a connection that another thread was
 * using at the fork may be half-changed, and is left alone; so is the pool,
 * lest it looks like a leak, and all of it when the list itself may be torn.
 */
static void pool_free_forked(pool *p)
{
    static _Atomic(pool *) left_behind;
    rl_conn *c;
    p->next_left_behind = atomic_exchange(&left_behind, p);
    if (!rl_mutex_was_free(&p->mutex))
        return;
    LIST_FOREACH (c, &p->open, all) {
        close(c->ctx->fd);
    }
}

static void pool_free(rl_source *s, bool forked)
{
    pool *p = pool_of(s);
    rl_conn *c;
    if (forked) {
        pool_free_forked(p);
        return;
    }
    while ((c = LIST_FIRST(&p->open)) != NULL) {
        LIST_REMOVE(c, all);
        rl_conn_free(c);
    }
    rl_cond_fini(&p->returned);
    rl_mutex_fini(&p->mutex);
    rl_dialer_fini(&p->dialer);
    free(p);
}

static const rl_source_ops pool_ops = {
    .borrow = pool_borrow,
    .borrow_known = pool_borrow_known,
    .give_back = pool_give_back,
    .open = pool_open,
    .close = pool_close,
    .free = pool_free,
};

rl_source *rl_pool_new(rl_dialer *dialer, unsigned limit)
{
    pool *p = calloc(1, sizeof *p);
    if (!p) {
        rl_dialer_fini(dialer);
        return NULL;
    }
    p->dialer = *dialer;
    p->dialer.is_ours = is_ours;
    p->dialer.is_ours_arg = p;
    p->limit = limit;
    rl_mutex_init(&p->mutex);
    rl_cond_init(&p->returned);
    TAILQ_INIT(&p->idle);
    LIST_INIT(&p->open);
    p->source.ops = &pool_ops;
    p->source.server =
        dialer->connect ? "the connect callback's server" : p->dialer.uri.shown;
    return &p->source;
}
