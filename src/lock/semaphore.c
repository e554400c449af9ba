/*
 * The public verbs of semaphores: handles, what takes no permits, and what is
 * started. Those of permits that block are in lock/permit.c.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "lock/permit.h"
#include "op/mark.h"
#include "op/permit.h"
#include "run/client.h"
#include "wire/keys.h"

static void cancel_waits(rlock *handle)
{
    rl_rooms_cancel(&rl_lock_core(handle)->rooms, &handle->target, handle);
}

static const rl_lock_kind semaphore_kind = {.noun = "semaphore",
                                            .cancel = cancel_waits};

static rlock_status fail(const rlock_semaphore *s, rlock_status status,
                         const char *what)
{
    return rl_lock_error(&s->handle, status, what);
}

static rlock_status no_memory(const rlock_semaphore *s)
{
    return fail(s, RLOCK_ENOMEM, "out of memory, or no thread can be had");
}

static rlock_status enter(rlock_semaphore *s, int *cancel)
{
    return s ? rl_client_begin(s->handle.client, cancel)
             : rl_null_pointer("the semaphore");
}

static rlock_status leave(rlock_semaphore *s, int cancel, rlock_status status)
{
    rl_client_leave(s->handle.client, cancel);
    return status;
}

/* --- handles -------------------------------------------------------------- */

#define IDLE_MAX_MS ((int64_t)1 << 41) /* in seconds, of 32 bits */

static rlock_status bad_option(const char *which)
{
    return rl_error_set(RLOCK_EINVAL, 0, "bad option: %s", which);
}

static rlock_status read_options(rlock_semaphore_options *to,
                                 const rlock_semaphore_options *from)
{
    if (!rl_options_read(to, sizeof *to, from))
        return bad_option("size (use RLOCK_SEMAPHORE_OPTIONS_INIT)");
    if (to->permits < 0 || to->permits > RLOCK_SEMAPHORE_MAX)
        return bad_option("permits (0 to 2^52)");
    if (to->idle_ms < 0 || to->idle_ms > IDLE_MAX_MS)
        return bad_option("idle_ms (0 to 2^41)");
    if (to->min_replicas < -1 || to->min_replicas > RL_REPLICAS_MAX)
        return bad_option("min_replicas (-1 to 16)");
    return RLOCK_OK;
}

/* By Redisson's rule "{a}" has the permits of "a", though another counter. */
static rlock_status check_name(const rlock_client *cl, const void *name,
                               size_t len)
{
    rlock_status s = rl_lock_check_new(cl, name, len);
    if (s == RLOCK_OK && rl_name_is_in_braces(name, len))
        s = rl_error_set(RLOCK_EINVAL, 0,
                         "a semaphore's name must not be in braces as a whole: "
                         "it would have the permits of the one without them");
    return s;
}

rlock_status rlock_semaphore_new_ex(rlock_client *cl, const void *name,
                                    size_t len,
                                    const rlock_semaphore_options *opts,
                                    rlock_semaphore **out)
{
    int cancel;
    rlock_semaphore_options o;
    if (!out)
        return rl_null_pointer("out");
    *out = NULL;
    rlock_status s = check_name(cl, name, len);
    if (s == RLOCK_OK)
        s = read_options(&o, opts);
    if (s == RLOCK_OK)
        s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    *out = rl_lock_new(sizeof **out, &semaphore_kind, cl, name, len,
                       RL_LAYOUT_PERMIT);
    if (*out) {
        rl_target *t = &(*out)->handle.target;
        (*out)->as.permits = o.permits;
        (*out)->as.idle_s = (uint32_t)((o.idle_ms + 999) / 1000);
        t->semaphore = &(*out)->as;
        t->min_replicas = (int8_t)o.min_replicas;
    }
    rl_client_leave(cl, cancel);
    return *out ? RLOCK_OK : RLOCK_ENOMEM;
}

rlock_status rlock_semaphore_new(rlock_client *cl, const char *name,
                                 int64_t permits, rlock_semaphore **out)
{
    rlock_semaphore_options o = RLOCK_SEMAPHORE_OPTIONS_INIT;
    o.permits = permits;
    return rlock_semaphore_new_ex(cl, name, name ? strlen(name) : 0, &o, out);
}

void rlock_semaphore_free(rlock_semaphore *s)
{
    if (s)
        rlock_free(&s->handle);
}

void rlock_semaphore_cancel(rlock_semaphore *s)
{
    if (s)
        rlock_cancel(&s->handle);
}

/* --- what takes no permits ------------------------------------------------ */

static rlock_status add(rlock_semaphore *s, int64_t delta)
{
    rl_part x;
    rl_core *c = rl_lock_core(&s->handle);
    const rl_target *t = &s->handle.target;
    if (delta < -RLOCK_SEMAPHORE_MAX || delta > RLOCK_SEMAPHORE_MAX)
        return fail(s, RLOCK_EINVAL, "delta is out of range (up to 2^52)");
    rl_owner apart = rl_owner_apart();
    rl_hold *mark = rl_mark_new(c, t, &apart, delta, rl_now_us());
    if (!mark)
        return no_memory(s);
    mark->lease_ms = t->semaphore->permits;
    rl_part_add_permits(&x, c, mark, rl_now_us());
    rlock_status status = rl_lock_ask(&s->handle, &x);
    rl_holds_put(&c->holds, mark);
    if (status == RLOCK_OK && x.code != 1)
        status = fail(s, RLOCK_EINVAL, "so many permits there cannot be");
    return status;
}

rlock_status rlock_semaphore_add(rlock_semaphore *s, int64_t delta)
{
    int cancel;
    rlock_status status = enter(s, &cancel);
    return status == RLOCK_OK ? leave(s, cancel, add(s, delta)) : status;
}

rlock_status rlock_semaphore_available(rlock_semaphore *s, int64_t *out)
{
    int cancel;
    rl_part x;
    if (!out)
        return rl_null_pointer("out");
    *out = 0;
    rlock_status status = enter(s, &cancel);
    if (status != RLOCK_OK)
        return status;
    rl_part_available(&x, rl_lock_core(&s->handle), &s->handle.target,
                      rl_now_us());
    status = rl_lock_ask(&s->handle, &x);
    if (status == RLOCK_OK)
        *out = x.code;
    return leave(s, cancel, status);
}

/* --- started -------------------------------------------------------------- */

typedef struct started_verb {
    rl_started started;
    rl_completion completion;
    rl_lock_job job;
    rlock lk;
    rlock_permit *p;
    rlock_permit_done *done;
    void *arg;
    /* Of the lock's job; and when that is over, what went wrong. */
    _Alignas(max_align_t) char room[];
} started_verb;

static void deliver(rl_completion *l)
{
    started_verb *v = RL_CONTAINER(l, started_verb, completion);
    rlock_status status = v->job.job.status;
    bool has = status == RLOCK_OK && v->job.args.verb == RL_JOB_ACQUIRE;
    if (status != RLOCK_OK)
        rl_error_put((const rlock_error *)v->room);
    if (v->done)
        v->done(has ? v->p : NULL, status, v->arg);
    if (!has)
        rl_permit_free(v->p);
    free(v);
}

static void over(rl_started *started)
{
    started_verb *v = RL_CONTAINER(started, started_verb, started);
    *(rlock_error *)v->room = *rlock_last_error();
    rl_started_post(started, &v->completion);
}

/* Inside the client. The permits are its own from now on, if it is started. */
static rlock_status start(rlock_permit *p, rl_job_args w,
                          rlock_permit_done *done, void *arg)
{
    rlock lk;
    rl_permit_as_lock(&lk, p);
    rl_async *a = &lk.client->engine.async;
    rlock_status status = rl_lock_check_args(&lk, &w);
    if (status != RLOCK_OK)
        return status;
    started_verb *v =
        rl_async_run(a) ? calloc(1, sizeof *v + rl_permits.job_size) : NULL;
    if (!v)
        return no_memory(p->of);
    w.asked_us = rl_now_us();
    rl_permit_as_lock(&v->lk, p);
    v->p = p;
    v->done = done;
    v->arg = arg;
    v->completion = (rl_completion){.deliver = deliver};
    v->started = (rl_started){.over = over};
    v->started.job = rl_lock_begin(&v->job, &v->lk, &w, v->room);
    rlock_error before = *rlock_last_error();
    rl_async_start(a, &v->started);
    rl_error_put(&before);
    return RLOCK_OK;
}

static rlock_status start_acquire(rlock_semaphore *s, int n, rl_job_args w,
                                  rlock_permit_done *done, void *arg)
{
    if (!done)
        return fail(s, RLOCK_EINVAL, "done is NULL");
    rlock_permit *p = rl_permit_new(s, n);
    if (!p)
        return no_memory(s);
    rlock_status status = start(p, w, done, arg);
    if (status != RLOCK_OK)
        rl_permit_free(p);
    return status;
}

rlock_status rlock_semaphore_acquire_start(rlock_semaphore *s, int n,
                                           int64_t wait_ms, int64_t lease_ms,
                                           rlock_permit_done *done, void *arg)
{
    int cancel;
    rlock_status status = enter(s, &cancel);
    if (status != RLOCK_OK)
        return status;
    rl_job_args w = rl_permit_acquire_args(s, wait_ms, lease_ms);
    return leave(s, cancel, start_acquire(s, n, w, done, arg));
}

/* Its handle may go with it, before who has started it leaves the client. */
rlock_status rlock_permit_release_start(rlock_permit *p,
                                        rlock_permit_done *done, void *arg)
{
    int cancel;
    if (!p)
        return rl_null_pointer("the permit");
    rlock_client *cl = p->of->handle.client;
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    s = start(p, (rl_job_args){.verb = RL_JOB_UNLOCK}, done, arg);
    rl_client_leave(cl, cancel);
    return s;
}
