/*
 * The public verbs of latches. A latch's handle is one of a lock (lock.h), as
 * far as name, client and messages go; its verbs are its own. Each is one call,
 * but for the wait (op/latch_wait.c), and for a count-down without an answer,
 * which the keeper goes on with (run/undo.c).
 */
#include <rlock/latch.h>

#include <stdlib.h>
#include <string.h>

#include "hold/step.h"
#include "lock/lock.h"
#include "op/latch.h"
#include "op/mark.h"
#include "run/caller.h"
#include "run/client.h"

struct rlock_latch {
    rlock handle;
};

static void cancel_waits(rlock *handle)
{
    rl_rooms_cancel(&rl_lock_core(handle)->rooms, &handle->target, handle);
}

static const rl_lock_kind latch_kind = {.noun = "latch",
                                        .cancel = cancel_waits};

static rl_core *core_of(const rlock_latch *l)
{
    return rl_lock_core(&l->handle);
}

static rlock_status fail(const rlock_latch *l, rlock_status status,
                         const char *what)
{
    return rl_lock_error(&l->handle, status, what);
}

static rlock_status no_memory(const rlock_latch *l)
{
    return fail(l, RLOCK_ENOMEM, "out of memory, or no thread can be had");
}

static rlock_status enter(rlock_latch *l, int *cancel)
{
    if (!l)
        return rl_null_pointer("the latch");
    return rl_client_begin(l->handle.client, cancel);
}

static rlock_status leave(rlock_latch *l, int cancel, rlock_status s)
{
    rl_client_leave(l->handle.client, cancel);
    return s;
}

/* --- handles -------------------------------------------------------------- */

rlock_status rlock_latch_new_n(rlock_client *cl, const void *name, size_t len,
                               rlock_latch **out)
{
    int cancel;
    if (!out)
        return rl_null_pointer("out");
    *out = NULL;
    rlock_status s = rl_lock_check_new(cl, name, len);
    if (s == RLOCK_OK)
        s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    *out = rl_lock_new(sizeof **out, &latch_kind, cl, name, len,
                       RLOCK_LAYOUT_HASH);
    if (*out)
        (*out)->handle.target.scope = RL_LATCH_SCOPE;
    rl_client_leave(cl, cancel);
    return *out ? RLOCK_OK : RLOCK_ENOMEM;
}

rlock_status rlock_latch_new(rlock_client *cl, const char *name,
                             rlock_latch **out)
{
    return rlock_latch_new_n(cl, name, name ? strlen(name) : 0, out);
}

void rlock_latch_free(rlock_latch *l)
{
    if (l)
        rlock_free(&l->handle);
}

/* --- one call ------------------------------------------------------------- */

static bool is_count(int64_t n)
{
    return n >= 1 && n <= RLOCK_COUNT_MAX;
}

static rl_hold *draft(const rlock_latch *l, int64_t amount)
{
    return rl_mark_new(core_of(l), &l->handle.target, rl_owner_self(), amount,
                       rl_now_us());
}

static rlock_status set(rlock_latch *l, int64_t count, int64_t ttl_ms)
{
    rl_part x;
    if (!is_count(count))
        return fail(l, RLOCK_EINVAL, "count is out of range (1 to 2^52)");
    if (ttl_ms < 0 || ttl_ms > RLOCK_LEASE_MAX_MS)
        return fail(l, RLOCK_EINVAL, "ttl_ms is out of range (0 to 2^52)");
    rl_hold *h = draft(l, count);
    if (!h)
        return no_memory(l);
    h->lease_ms = ttl_ms;
    rl_part_latch_set(&x, core_of(l), h, rl_now_us());
    rlock_status s = rl_lock_ask(&l->handle, &x);
    rl_holds_put(&core_of(l)->holds, h);
    if (s != RLOCK_OK || x.code == 1)
        return s;
    return fail(l, RLOCK_BUSY, "it is set, and not counted down yet");
}

rlock_status rlock_latch_set(rlock_latch *l, int64_t count, int64_t ttl_ms)
{
    int cancel;
    rlock_status s = enter(l, &cancel);
    return s == RLOCK_OK ? leave(l, cancel, set(l, count, ttl_ms)) : s;
}

/* To the keeper, who has the draft from now on. */
static rlock_status owe(const rlock_latch *l, const rl_part *x)
{
    rl_fault f = x->fault;
    rl_hold_undo(&core_of(l)->holds, x->hold, rl_now_us());
    rl_fault_set(&f, RLOCK_EIO, x->fault.sys_errno,
                 "to be counted down in the background (%.150s)",
                 x->fault.text);
    return rl_lock_fail(&l->handle, &f);
}

static rlock_status count_down(rlock_latch *l, int64_t n)
{
    rl_part x;
    rl_core *c = core_of(l);
    if (!is_count(n))
        return fail(l, RLOCK_EINVAL, "n is out of range (1 to 2^52)");
    rl_engine *e = &l->handle.client->engine;
    bool started = rl_engine_start(e, l->handle.target.slot);
    rl_hold *h = started ? draft(l, n) : NULL;
    if (!h)
        return no_memory(l);
    rl_part_count_down(&x, c, h, rl_now_us());
    rlock_status s = rl_lock_ask(&l->handle, &x);
    if (rl_latch_is_owed(&x))
        return owe(l, &x);
    rl_holds_put(&c->holds, h);
    return s;
}

rlock_status rlock_latch_count_down(rlock_latch *l, int64_t n)
{
    int cancel;
    rlock_status s = enter(l, &cancel);
    return s == RLOCK_OK ? leave(l, cancel, count_down(l, n)) : s;
}

rlock_status rlock_latch_count(rlock_latch *l, int64_t *out)
{
    int cancel;
    rl_part x;
    if (!out)
        return rl_null_pointer("out");
    *out = 0;
    rlock_status s = enter(l, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_part_latch_look(&x, core_of(l), &l->handle.target, rl_now_us());
    s = rl_lock_ask(&l->handle, &x);
    if (s == RLOCK_OK)
        *out = x.code;
    return leave(l, cancel, s);
}

rlock_status rlock_latch_delete(rlock_latch *l)
{
    int cancel;
    rl_part x;
    rlock_status s = enter(l, &cancel);
    if (s != RLOCK_OK)
        return s;
    rl_part_latch_delete(&x, core_of(l), &l->handle.target, rl_now_us());
    s = rl_lock_ask(&l->handle, &x);
    if (s == RLOCK_OK && x.code != 1)
        s = fail(l, RLOCK_NOT_HELD, "it is open");
    return leave(l, cancel, s);
}

/* --- waiting -------------------------------------------------------------- */

static rlock_status check_wait(const rlock_latch *l, int64_t wait_ms)
{
    if (wait_ms < RLOCK_FOREVER)
        return fail(l, RLOCK_EINVAL, "wait_ms is negative");
    if (!rl_engine_start(&l->handle.client->engine, l->handle.target.slot))
        return no_memory(l);
    return RLOCK_OK;
}

static void begin_wait(rlock_latch *l, rl_latch_wait *w, int64_t wait_ms)
{
    *w = (rl_latch_wait){
        .home = core_of(l),
        .what = &l->handle.target,
        .handle = &l->handle,
        .cancel = {&l->handle.cancels, atomic_load(&l->handle.cancels)},
        .wait_ms = wait_ms,
        .listen = rl_lock_listen};
    rl_latch_wait_init(w, rl_now_us());
}

static rlock_status end_wait(const rlock_latch *l, const rl_latch_wait *w)
{
    return w->status == RLOCK_OK ? RLOCK_OK
                                 : rl_lock_fail(&l->handle, &w->fault);
}

static rlock_status wait_open(rlock_latch *l, int64_t wait_ms)
{
    rl_latch_wait w;
    rl_part part;
    rlock_status s = check_wait(l, wait_ms);
    if (s != RLOCK_OK)
        return s;
    begin_wait(l, &w, wait_ms);
    part.heap = false;
    w.op.lent = &part;
    rl_drive(&w.op);
    return end_wait(l, &w);
}

rlock_status rlock_latch_wait(rlock_latch *l, int64_t wait_ms)
{
    int cancel;
    rlock_status s = enter(l, &cancel);
    return s == RLOCK_OK ? leave(l, cancel, wait_open(l, wait_ms)) : s;
}

void rlock_latch_cancel(rlock_latch *l)
{
    if (l)
        rlock_cancel(&l->handle);
}

/* --- started waits -------------------------------------------------------- */

typedef struct started_wait {
    rl_started started;
    rl_completion completion;
    rl_job job;
    rl_latch_wait wait;
    rlock_latch *latch; /* counted */
    rlock_latch_done *done;
    void *arg;
    int cancel;
    rlock_error why;
} started_wait;

static void deliver(rl_completion *l)
{
    started_wait *s = RL_CONTAINER(l, started_wait, completion);
    if (s->job.status != RLOCK_OK)
        rl_error_put(&s->why);
    if (s->done)
        s->done(s->latch, s->job.status, s->arg);
    rlock_latch_free(s->latch);
    free(s);
}

static void over(rl_started *started)
{
    started_wait *s = RL_CONTAINER(started, started_wait, started);
    s->why = *rlock_last_error();
    rl_started_post(started, &s->completion);
}

static rl_op *waited(rl_job *j)
{
    started_wait *s = RL_CONTAINER(j, started_wait, job);
    rlock_status status = end_wait(s->latch, &s->wait);
    return rl_job_over(j, leave(s->latch, s->cancel, status));
}

static rl_op *begin_job(rl_job *j)
{
    started_wait *s = RL_CONTAINER(j, started_wait, job);
    rlock_status status = enter(s->latch, &s->cancel);
    if (status != RLOCK_OK)
        return rl_job_over(j, status);
    return rl_job_ask(j, &s->wait.op, waited);
}

static rlock_status start(rlock_latch *l, int64_t wait_ms,
                          rlock_latch_done *done, void *arg)
{
    rl_async *a = &l->handle.client->engine.async;
    rlock_status status = check_wait(l, wait_ms);
    if (status != RLOCK_OK)
        return status;
    started_wait *s = rl_async_run(a) ? calloc(1, sizeof *s) : NULL;
    if (!s)
        return no_memory(l);
    s->started = (rl_started){.over = over, .job = &s->job};
    s->completion = (rl_completion){.deliver = deliver};
    s->job = (rl_job){.next = begin_job};
    begin_wait(l, &s->wait, wait_ms);
    s->latch = l;
    s->done = done;
    s->arg = arg;
    rl_lock_ref(&l->handle);
    rlock_error before = *rlock_last_error();
    rl_async_start(a, &s->started);
    rl_error_put(&before);
    return RLOCK_OK;
}

rlock_status rlock_latch_wait_start(rlock_latch *l, int64_t wait_ms,
                                    rlock_latch_done *done, void *arg)
{
    int cancel;
    rlock_status s = enter(l, &cancel);
    return s == RLOCK_OK ? leave(l, cancel, start(l, wait_ms, done, arg)) : s;
}
