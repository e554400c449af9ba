/*
 * How a Red lock is made, of which clients, and copied for a Multi lock. While
 * it is made the call is inside of every client that was accepted, so that
 * their servers can be compared; the handle counts the clients' structs, no
 * more: any of them may be closed later.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/options.h"
#include "lock/red.h"
#include "run/client.h"

void rl_red_free(rlock *lk)
{
    rl_red *r = (rl_red *)lk;
    for (size_t i = 0; i < r->n; i++)
        rl_client_unref(r->client[i]);
}

rlock *rl_red_copy(const rlock *lk)
{
    const rl_red *from = rl_red_of(lk);
    rl_red *r = rl_lock_new(sizeof *r, lk->kind, lk->client, lk->target.name,
                            lk->target.len, RLOCK_LAYOUT_HASH);
    if (!r)
        return NULL;
    r->base.target.scope = lk->target.scope;
    r->base.target.layout = lk->target.layout;
    r->longest_lease_ms = from->longest_lease_ms;
    r->check_uptime = from->check_uptime;
    for (r->n = 0; r->n < from->n; r->n++) {
        r->client[r->n] = from->client[r->n];
        rl_client_ref(r->client[r->n]);
    }
    return &r->base;
}

static rlock_status refuse(rlock_status s, size_t position, const char *why)
{
    return rl_error_set(s, 0, "client %zu %s", position, why);
}

static rlock_status read_options(rlock_red_options *to,
                                 const rlock_red_options *from)
{
    if (!rl_options_read(to, sizeof *to, from))
        return rl_error_set(RLOCK_EINVAL, 0,
                            "bad option: size (use RLOCK_RED_OPTIONS_INIT)");
    if ((unsigned)to->layout > RLOCK_LAYOUT_TIMESTAMP)
        return rl_error_set(RLOCK_EINVAL, 0, "bad option: layout");
    if (to->layout == RLOCK_LAYOUT_TIMESTAMP)
        return rl_error_set(RLOCK_ENOTSUP, 0,
                            "a Red lock has no timestamp layout: nobody would "
                            "share it");
    if (to->longest_lease_ms < 0 || to->longest_lease_ms > RLOCK_LEASE_MAX_MS)
        return rl_error_set(RLOCK_EINVAL, 0, "bad option: longest_lease_ms");
    return RLOCK_OK;
}

/*
 * Inside the client, and those that were added before. A lazy client may not
 * have met its server yet: then the vote tells (red/attempt_red.c).
 */
static rlock_status check_server(const rl_red *r, rlock_client *cl,
                                 size_t position)
{
    rl_core *c = &cl->engine.core;
    if (cl->engine.cluster)
        return refuse(RLOCK_ENOTSUP, position,
                      "is a cluster's, where one name is on one server");
    rl_run run = rl_server_run_read(&c->server_run);
    if (!*run.id && !run.awaited)
        return refuse(RLOCK_ENOTSUP, position,
                      "does not know its server's run_id: its user needs the "
                      "right to INFO");
    for (size_t i = 0; i < r->n; i++) {
        char why[64];
        rl_run other =
            rl_server_run_read(&r->client[i]->engine.core.server_run);
        snprintf(why, sizeof why, "leads to the same server as client %zu",
                 i + 1);
        if (*run.id && strcmp(other.id, run.id) == 0)
            return refuse(RLOCK_EINVAL, position, why);
    }
    if (!rl_engine_start(&cl->engine, 0))
        return rl_error_set(
            RLOCK_ENOMEM, 0,
            "the threads of client %zu, or memory for them, cannot be had",
            position);
    atomic_store(&c->server_run.wanted, true);
    return RLOCK_OK;
}

/* Adds a node, and stays inside of its client, if RLOCK_OK. */
static rlock_status add(rl_red *r, rlock_client *cl, size_t position)
{
    int cancel;
    if (!cl)
        return refuse(RLOCK_EINVAL, position, "is NULL");
    for (size_t i = 0; i < r->n; i++) {
        if (r->client[i] == cl)
            return refuse(RLOCK_EINVAL, position, "is listed twice");
    }
    rlock_status s = rl_client_enter(cl, &cancel);
    if (s == RLOCK_ECLOSED)
        return refuse(RLOCK_EINVAL, position, "is closed");
    if (s == RLOCK_EFORKED)
        return refuse(s, position, "was made before fork()");
    s = check_server(r, cl, position);
    if (s != RLOCK_OK) {
        rl_client_leave(cl, cancel);
        return s;
    }
    rl_client_ref(cl);
    r->client[r->n++] = cl;
    return RLOCK_OK;
}

static rlock_status add_all(rl_red *r, rlock_client *const clients[], size_t n)
{
    int cancel;
    rlock_status s = RLOCK_OK;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    for (size_t i = 0; i < n && s == RLOCK_OK; i++)
        s = add(r, clients[i], i + 1);
    for (size_t i = 0; i < r->n; i++)
        rl_client_leave(r->client[i], PTHREAD_CANCEL_DISABLE);
    pthread_setcancelstate(cancel, NULL);
    return s;
}

/* Holds of this lock, and of no other, whatever the order of its clients. */
static uint64_t scope_of(const rl_red *r, rlock_layout layout)
{
    uint64_t sum = 0, seed = r->n * 4 + layout;
    for (size_t i = 0; i < r->n; i++)
        sum += rl_hash(&r->client[i], sizeof r->client[i], seed);
    return sum | UINT64_C(1) << 63;
}

rlock_status rlock_red_new_ex(rlock_client *const clients[], size_t n,
                              const void *name, size_t len,
                              const rlock_red_options *opts, rlock **out)
{
    rlock_red_options o;
    if (!out)
        return rl_null_pointer("out");
    *out = NULL;
    if (!clients || n == 0 || n > RLOCK_RED_MAX)
        return rl_error_set(RLOCK_EINVAL, 0, "a Red lock has 1 to %d clients",
                            RLOCK_RED_MAX);
    if (!clients[0])
        return refuse(RLOCK_EINVAL, 1, "is NULL");
    rlock_status s = rl_lock_check_name(name, len);
    if (s == RLOCK_OK)
        s = read_options(&o, opts);
    if (s != RLOCK_OK)
        return s;
    rl_red *r =
        rl_lock_new(sizeof *r, &rl_red_kind, clients[0], name, len, o.layout);
    if (!r)
        return RLOCK_ENOMEM;
    r->longest_lease_ms = o.longest_lease_ms;
    r->check_uptime = o.check_uptime;
    s = add_all(r, clients, n);
    if (s != RLOCK_OK) {
        rlock_free(&r->base);
        return s;
    }
    r->base.target.scope = scope_of(r, o.layout);
    *out = &r->base;
    return RLOCK_OK;
}

rlock_status rlock_red_new(rlock_client *const clients[], size_t n,
                           const char *name, rlock **out)
{
    return rlock_red_new_ex(clients, n, name, name ? strlen(name) : 0, NULL,
                            out);
}
