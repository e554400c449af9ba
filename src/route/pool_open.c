/*
 * Which connections of a pool there are. What stays true: one is in the list
 * `open` from when it is there, which is before it has been introduced, until
 * it is closed; so whoever leaves a master finds all that lead to it, also
 * those that a thread is just waiting for.
 */
#include "route/pool.h"

#include <errno.h>
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

static bool is_ours(void *arg, const redisContext *ctx)
{
    rl_pool *p = arg;
    bool found = false;
    rl_mutex_lock(&p->mutex);
    for (rl_link *k = rl_list_first(&p->open); k && !found;
         k = rl_list_next(&p->open, k))
        found = RL_CONTAINER(k, rl_conn, open)->io.context == ctx;
    rl_mutex_unlock(&p->mutex);
    return found;
}

static void trouble(rl_pool *p)
{
    if (p->on_trouble)
        p->on_trouble(p->arg);
}

/* Whoever uses it, or is just making it, is woken, and believes nothing. */
static void forsake_locked(rl_pool *p, rl_conn *c) RL_REQUIRES(&p->mutex)
{
    if (c->nth >= p->nth)
        return;
    atomic_store(&c->forsaken, true);
    shutdown(c->io.fd, SHUT_RDWR);
}

/* One that is idle and of no use; what owes answers, the keeper takes. */
static rl_conn *take_useless_locked(rl_pool *p) RL_REQUIRES(&p->mutex)
{
    for (rl_link *k = rl_list_first(&p->idle); k;
         k = rl_list_next(&p->idle, k)) {
        rl_conn *c = RL_CONTAINER(k, rl_conn, idle);
        if (c->nth >= p->nth || c->line.pending > 0)
            continue;
        rl_list_remove(&c->idle);
        rl_list_remove(&c->open);
        return c;
    }
    return NULL;
}

void rl_pool_forsake(rl_pool *p, uint64_t nth)
{
    rl_mutex_lock(&p->mutex);
    p->nth = nth;
    for (rl_link *k = rl_list_first(&p->open); k; k = rl_list_next(&p->open, k))
        forsake_locked(p, RL_CONTAINER(k, rl_conn, open));
    rl_mutex_unlock(&p->mutex);
    if (p->on_want)
        p->on_want(p->keeps);
    rl_mutex_lock(&p->mutex);
    rl_conn *c = take_useless_locked(p);
    for (; c; c = take_useless_locked(p)) {
        rl_mutex_unlock(&p->mutex);
        rl_conn_free(c);
        rl_mutex_lock(&p->mutex);
    }
    rl_mutex_unlock(&p->mutex);
}

static void met(void *arg, rl_conn *c)
{
    rl_pool *p = arg;
    rl_mutex_lock(&p->mutex);
    rl_list_add_first(&p->open, &c->open);
    forsake_locked(p, c);
    rl_mutex_unlock(&p->mutex);
}

static void parted(void *arg, rl_conn *c)
{
    rl_pool *p = arg;
    rl_mutex_lock(&p->mutex);
    rl_list_remove(&c->open);
    rl_mutex_unlock(&p->mutex);
}

rlock_status rl_pool_open_unchecked(rl_pool *p, int64_t deadline_us,
                                    rl_conn **out, rl_fault *f)
{
    if (p->on_dial)
        p->on_dial(p->arg, true);
    rlock_status status = rl_dial(&p->dialer, deadline_us, out, f);
    if (p->on_dial)
        p->on_dial(p->arg, false);
    if (status != RLOCK_OK)
        trouble(p);
    return status;
}

static rlock_status dial(rl_pool *p, int64_t deadline_us, rl_conn **out,
                         rl_fault *f)
{
    rlock_status status = rl_pool_open_unchecked(p, deadline_us, out, f);
    if (status != RLOCK_OK)
        return status;
    if (!p->on_open || p->on_open(p->arg, *out, deadline_us, f))
        return RLOCK_OK;
    parted(p, *out);
    rl_conn_free(*out);
    return f->status;
}

/* False: meanwhile the master is elsewhere; it is closed. */
static bool keep_opened(rl_pool *p, rl_conn *c)
{
    rl_mutex_lock(&p->mutex);
    bool old = c->nth < p->nth;
    bool replaces = !old && p->broken > 0;
    if (old)
        rl_list_remove(&c->open);
    if (replaces)
        p->broken--;
    rl_mutex_unlock(&p->mutex);
    if (old)
        rl_conn_free(c);
    if (replaces && p->on_reconnect)
        p->on_reconnect(p->arg);
    return !old;
}

rlock_status rl_pool_open(rl_pool *p, int64_t deadline_us, rl_conn **out,
                          rl_fault *f)
{
    rl_conn *c;
    *out = NULL;
    do {
        rlock_status status = dial(p, deadline_us, &c, f);
        if (status != RLOCK_OK)
            return status;
    } while (!keep_opened(p, c));
    *out = c;
    return RLOCK_OK;
}

/* It broke, or its server says that it is not the one; it is not just old. */
static bool is_trouble(const rl_pool *p, const rl_conn *c, int64_t now_us)
{
    if (rl_conn_is_broken(c))
        return !rl_conn_is_outdated(c, now_us);
    return rl_line_is_spent(&c->line) && !rl_pool_is_doubtful(p, c, now_us);
}

/* By the server, or its host, which may have been away for a moment. */
static bool was_reset(const rl_conn *c)
{
    int err = c->line.fault.sys_errno;
    return (err == ECONNRESET || err == EPIPE) && !atomic_load(&c->forsaken);
}

static void note_trouble_locked(rl_pool *p, const rl_conn *c)
    RL_REQUIRES(&p->mutex)
{
    int64_t now_us = rl_now_us();
    p->broken++;
    atomic_store(&p->last_trouble_us, now_us);
    if (was_reset(c) && c->line.failed_us > atomic_load(&p->last_reset_us))
        atomic_store(&p->last_reset_us, c->line.failed_us);
}

void rl_pool_close(rl_pool *p, rl_conn *c)
{
    if (!c)
        return;
    rl_mutex_lock(&p->mutex);
    rl_list_remove(&c->open);
    if (rl_conn_is_broken(c))
        note_trouble_locked(p, c);
    rl_mutex_unlock(&p->mutex);
    if (is_trouble(p, c, rl_now_us()))
        trouble(p);
    rl_conn_free(c);
}

/* --- the end -------------------------------------------------------------- */

/*
 * A forked child has copies of all descriptors, and closes them, which the
 * parent does not notice. The memory of a connection that another thread was
 * using at the fork may be half-changed, and is left alone; so is the pool,
 * lest it looks like a leak, and all of it when the list itself may be torn.
 */
static void pool_free_forked(rl_pool *p)
{
    static _Atomic(rl_pool *) left_behind;
    p->next_left_behind = atomic_exchange(&left_behind, p);
    if (!rl_mutex_was_free(&p->mutex))
        return;
    for (rl_link *k = rl_list_first(&p->open); k; k = rl_list_next(&p->open, k))
        close(RL_CONTAINER(k, rl_conn, open)->io.fd);
}

void rl_pool_free(rl_pool *p, bool forked)
{
    rl_link *k;
    if (!p)
        return;
    if (forked) {
        pool_free_forked(p);
        return;
    }
    while ((k = rl_list_first(&p->open)) != NULL) {
        rl_conn *c = RL_CONTAINER(k, rl_conn, open);
        rl_list_remove(k);
        if (c->line.pending > 0)
            rl_conn_time_out(c);
        rl_conn_free(c);
    }
    rl_mutex_fini(&p->mutex);
    rl_dialer_fini(&p->dialer);
    free(p);
}

void rl_pool_watch(rl_pool *p)
{
    rl_dialer *d = &p->dialer;
    d->is_ours = is_ours;
    d->is_ours_arg = p;
    d->met = met;
    d->parted = parted;
    d->met_arg = p;
}
