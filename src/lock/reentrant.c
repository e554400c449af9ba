/*
 * The lock on one server, in any layout: it adds to the steps (lock/step.h)
 * whom to ask, how often, and how to wait.
 */
#include <stdlib.h>
#include <string.h>

#include "lock/holder.h"
#include "lock/lock.h"
#include "lock/step.h"

/* --- the outermost acquire ---------------------------------------------- */

#define FIRST_PAUSE_US (20 * 1000)
#define LAST_PAUSE_US  (500 * 1000)

/* How often a waiter looks by itself, lest it missed a ring. */
#define FALLBACK_POLL_US (2000 * 1000)
/* The same when the holder is a program that does not ring. */
#define FOREIGN_POLL_US (250 * 1000)

typedef struct attempt {
    rlock *lk;
    rl_engine *e;
    rl_hold *hold;    /* the draft */
    int64_t lease_ms; /* as asked for */
    rl_cancel cancel;
    int64_t began_us, wait_until_us, call_until_us;
    bool contended; /* it had to wait */
    bool asked;     /* the server has been asked */
    bool rung;      /* the last wake-up was a ring */
    bool with_bell; /* the last try gave the bell */
    bool failing;   /* the last try had no answer */
    int64_t pause_us;
    rl_fault fault; /* the last failure */
} attempt;

static rl_verdict try_once(attempt *a, const char *bell, int64_t ticket,
                           rl_grant *g)
{
    rl_step step;
    rl_answer ans;
    rl_acquire_begin(&step, a->e, a->hold, a->lease_ms);
    step.bell = bell;
    step.ticket = ticket;
    step.until_us = rl_min(a->call_until_us, step.until_us);
    rl_step_ask(&step, &ans);
    rl_verdict v = rl_acquire_end(&step, &ans, g, &a->fault);
    if (v == RL_ACQUIRED) {
        rl_take_over(&step, g, g->token);
        rl_owner_count(1);
    }
    a->asked = true;
    a->with_bell = *bell != '\0';
    a->failing = v == RL_FAILED;
    return v;
}

static void contend(attempt *a)
{
    if (a->contended)
        return;
    a->contended = true;
    rl_add(&a->e->stats.acquires_contended, 1);
    rl_add(&a->e->stats.waiting_now, 1);
    rl_lock_emit(a->lk, RLOCK_EVENT_CONTENDED, 0, 0, 0);
}

/*
 * After a failure: when to try again, or RL_NEVER: not at all. An outage is
 * survived for as long as a lease would be.
 */
static int64_t retry_at(attempt *a, rl_waiter *w)
{
    int64_t now_us = rl_now_us();
    int64_t since_us = rl_waiter_failed(&a->e->rooms, w);
    if (!a->fault.transient ||
        now_us - since_us > a->e->set.watchdog_lease_ms * 1000)
        return RL_NEVER;
    a->pause_us =
        rl_min(rl_max(a->pause_us * 2, FIRST_PAUSE_US), LAST_PAUSE_US);
    return now_us + rl_jitter(a->pause_us);
}

/* After "busy": when to look again if nobody rings. */
static int64_t look_at(const rl_grant *g)
{
    int64_t now_us = rl_now_us();
    int64_t at_us =
        now_us + rl_jitter(g->foreign ? FOREIGN_POLL_US : FALLBACK_POLL_US);
    if (g->ttl_ms >= 0)
        at_us = rl_min(at_us, rl_after_ms(now_us + 1000, g->ttl_ms));
    return at_us;
}

/*
 * The front's try. RLOCK_OK: owned; RLOCK_BUSY: not now, *again_us is when to
 * look again; anything else is final.
 */
static rlock_status try_in_front(attempt *a, rl_waiter *w, int64_t *again_us)
{
    rl_engine *e = a->e;
    rl_grant g;
    const char *bell = rl_doorbell_bell(&e->doorbell);
    int64_t ticket = *bell ? rl_waiter_ticket(&e->rooms, w) : 0;
    rl_verdict v = try_once(a, bell, ticket, &g);
    if (v == RL_ACQUIRED)
        return RLOCK_OK;
    if (v == RL_FAILED) {
        *again_us = retry_at(a, w);
        return *again_us == RL_NEVER ? a->fault.status : RLOCK_BUSY;
    }
    a->pause_us = 0;
    rl_waiter_answered(&e->rooms, w);
    if (a->rung)
        rl_add(&e->stats.wakeups_futile, 1);
    if (*bell)
        rl_waiter_set_ticket(&e->rooms, w, g.ticket);
    else
        rl_doorbell_start(e);
    if (!rl_waiter_is_listened_for(&e->rooms, w))
        rl_doorbell_poke(e);
    *again_us = look_at(&g);
    return RLOCK_BUSY;
}

/* The wait is over without success, unless the server was never asked. */
static rlock_status time_is_up(attempt *a)
{
    rl_grant g;
    if (!a->asked && try_once(a, "", 0, &g) == RL_ACQUIRED)
        return RLOCK_OK;
    return a->failing ? a->fault.status : RLOCK_TIMEOUT;
}

static rlock_status stand_in_line(attempt *a, rl_waiter *w)
{
    rl_rooms *rooms = &a->e->rooms;
    int64_t yield_us = rl_waiter_yields_until(rooms, w);
    for (;;) {
        int64_t until_us = a->wait_until_us;
        if (rl_canceled(&a->cancel))
            return RLOCK_CANCELED;
        if (yield_us > rl_now_us()) {
            until_us = rl_min(until_us, yield_us);
        } else if (rl_waiter_is_front(rooms, w)) {
            int64_t again_us;
            rlock_status s = try_in_front(a, w, &again_us);
            if (s != RLOCK_BUSY)
                return s;
            until_us = rl_min(until_us, again_us);
            contend(a);
        } else {
            contend(a);
        }
        rl_wake why = rl_waiter_sleep(rooms, w, until_us);
        if (why == RL_WAKE_CLOSE)
            return RLOCK_ECLOSED;
        if (why == RL_WAKE_CANCEL)
            return RLOCK_CANCELED;
        a->rung = why == RL_WAKE_RUNG;
        rl_add(&a->e->stats.wakeups, a->rung);
        if (rl_now_us() >= a->wait_until_us)
            return time_is_up(a);
    }
}

static rlock_status wait_for_turn(attempt *a)
{
    rl_engine *e = a->e;
    rlock *lk = a->lk;
    rl_waiter w;
    if (!rl_waiter_enter(&e->rooms, &w, &lk->target, lk))
        return rl_fault_set(&a->fault, RLOCK_ENOMEM, 0, "out of memory");
    rlock_status s = stand_in_line(a, &w);
    if (a->contended) {
        rl_add(&e->stats.wait_us_total, (uint64_t)(rl_now_us() - a->began_us));
        rl_sub(&e->stats.waiting_now, 1);
    }
    bool unqueued = s == RLOCK_OK && a->with_bell;
    bool must_leave = rl_waiter_leave(&e->rooms, &w, unqueued);
    if (a->contended)
        rl_doorbell_poke(e);
    if (must_leave)
        rl_leave_queue(e, lk->target.name, lk->target.len,
                       rl_min(a->call_until_us, rl_command_deadline(e)));
    return s;
}

static rlock_status try_now(attempt *a)
{
    rl_grant g;
    rl_verdict v = try_once(a, "", 0, &g);
    if (v == RL_ACQUIRED)
        return RLOCK_OK;
    return v == RL_FAILED ? a->fault.status : RLOCK_BUSY;
}

static rlock_status explain(const attempt *a, rlock_status s)
{
    switch (s) {
    case RLOCK_BUSY:
    case RLOCK_TIMEOUT:
    case RLOCK_CANCELED:
    case RLOCK_ECLOSED:
        return rl_lock_error(a->lk, s, rlock_status_str(s));
    default:
        return rl_lock_fail(a->lk, &a->fault);
    }
}

static rlock_status acquire_first(rlock *lk, int64_t wait_ms, int64_t lease_ms,
                                  rl_cancel cancel)
{
    rl_engine *e = rl_engine_of(lk);
    int64_t now_us = rl_now_us();
    attempt a = {.lk = lk,
                 .e = e,
                 .lease_ms = lease_ms,
                 .cancel = cancel,
                 .began_us = now_us,
                 .wait_until_us = rl_after_ms(now_us, wait_ms)};
    a.call_until_us = rl_after_ms(a.wait_until_us, e->set.command_timeout_ms);
    a.hold = rl_lock_draft(lk, lease_ms);
    if (!a.hold)
        return RLOCK_ENOMEM;
    rlock_status s = wait_ms == 0 ? try_now(&a) : wait_for_turn(&a);
    if (s != RLOCK_OK) {
        rl_give_up(e, a.hold);
        return explain(&a, s);
    }
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, a.hold->token, 1,
                 rl_now_us() - now_us);
    return RLOCK_OK;
}

/* --- re-entry, release, extend ------------------------------------------ */

#define WAKE_UP_US       200
#define LONGEST_YIELD_US (20 * 1000)

static rlock_status reenter(rlock *lk, rl_hold *h, int64_t lease_ms)
{
    rl_engine *e = rl_engine_of(lk);
    rl_step step;
    rl_answer a;
    rl_fault f;
    if (!rl_reenter_begin(&step, e, h, lease_ms))
        return rl_lock_error(lk, RLOCK_EINVAL, "the hold count is at its end");
    rl_step_ask(&step, &a);
    rlock_status s = rl_reenter_end(&step, &a, &f);
    if (s != RLOCK_OK)
        return rl_lock_fail(lk, &f);
    rl_lock_emit(lk, RLOCK_EVENT_ACQUIRED, h->token, h->count,
                 rl_now_us() - step.began_us);
    return RLOCK_OK;
}

static rlock_status reentrant_acquire(rlock *lk, int64_t wait_ms,
                                      int64_t lease_ms, rl_cancel cancel)
{
    bool valid;
    rl_hold *h = rl_pick_up(rl_engine_of(lk), &lk->target, &valid);
    if (!h)
        return acquire_first(lk, wait_ms, lease_ms, cancel);
    rlock_status s = valid ? reenter(lk, h, lease_ms) : rl_lock_lost(lk, h);
    rl_put_back(rl_engine_of(lk), h);
    return s;
}

void rl_make_way(const rlock *lk, int64_t sent_us)
{
    int64_t now_us = rl_now_us();
    int64_t yield_us = rl_min(now_us - sent_us + WAKE_UP_US, LONGEST_YIELD_US);
    rl_rooms_yield(&rl_engine_of(lk)->rooms, lk->target.name, lk->target.len,
                   now_us + yield_us);
}

static rlock_status release(rlock *lk, rl_hold *h, int level, rl_fault *f)
{
    rl_engine *e = rl_engine_of(lk);
    rl_step step;
    rl_answer a;
    bool rung;
    rl_release_begin(&step, e, h, level);
    rl_step_ask(&step, &a);
    rlock_status s = rl_release_end(&step, &a, &rung, f);
    if (rung)
        rl_make_way(lk, a.sent_us);
    return s;
}

static rlock_status unlock(rlock *lk, rl_hold *h)
{
    rl_engine *e = rl_engine_of(lk);
    rl_fault f;
    int level = h->count - 1;
    bool valid = rl_count_down(e, h, level);
    if (level == 0)
        rl_owner_count(-1);
    rlock_status s =
        valid ? release(lk, h, level, &f) : rl_release_lost(e, h, level, &f);
    if (s != RLOCK_OK)
        return rl_lock_fail(lk, &f);
    rl_lock_emit(lk, RLOCK_EVENT_RELEASED, h->token, level,
                 rl_now_us() - h->began_us);
    return RLOCK_OK;
}

static rlock_status reentrant_unlock(rlock *lk)
{
    bool valid;
    rl_hold *h = rl_pick_up(rl_engine_of(lk), &lk->target, &valid);
    if (!h)
        return rl_lock_not_held(lk);
    rlock_status s = unlock(lk, h);
    rl_put_back(rl_engine_of(lk), h);
    return s;
}

static rlock_status extend(rlock *lk, rl_hold *h, int64_t lease_ms)
{
    rl_engine *e = rl_engine_of(lk);
    rl_step step;
    rl_fault f;
    rl_answer a;
    rlock_status s;
    if (rl_extend_begin(&step, e, h, lease_ms, rl_command_deadline(e))) {
        rl_step_ask(&step, &a);
        s = rl_extend_end(&step, &a, &f);
    } else {
        s = rl_extend_fail(&step, &f);
    }
    return s == RLOCK_OK ? s : rl_lock_fail(lk, &f);
}

static rlock_status reentrant_extend(rlock *lk, int64_t lease_ms)
{
    bool valid;
    rl_hold *h = rl_pick_up(rl_engine_of(lk), &lk->target, &valid);
    if (!h)
        return rl_lock_not_held(lk);
    rlock_status s = valid ? extend(lk, h, lease_ms) : rl_lock_lost(lk, h);
    rl_put_back(rl_engine_of(lk), h);
    return s;
}

/* --- what needs no hold -------------------------------------------------- */

static rlock_status reentrant_force_unlock(rlock *lk)
{
    rl_engine *e = rl_engine_of(lk);
    rl_hold_call c;
    rl_answer a;
    rl_call_force_release(&c, &lk->target);
    rl_ask(e, &c.call, rl_command_deadline(e), &a);
    if (a.outcome != RL_ANSWERED)
        return rl_lock_fail(lk, &a.fault);
    return a.reply.top.integer == 1
               ? RLOCK_OK
               : rl_lock_error(lk, RLOCK_NOT_HELD, "nobody holds it");
}

static void reentrant_cancel(rlock *lk)
{
    rl_rooms_cancel(&rl_engine_of(lk)->rooms, &lk->target, lk);
}

static rl_view reentrant_view(rlock *lk)
{
    rl_holds *t = &rl_engine_of(lk)->holds;
    rl_view v = {0};
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_mine_locked(t, &lk->target);
    if (h && h->state == RL_HELD) {
        v.count = h->count;
        v.valid_ms = rl_max(0, (h->deadline_us - rl_now_us()) / 1000);
        v.token = h->token;
    }
    rl_mutex_unlock(&t->mutex);
    return v;
}

static rlock_status reentrant_inspect(rlock *lk, rlock_holder *out)
{
    rl_engine *e = rl_engine_of(lk);
    rl_hold_call c;
    rl_answer a;
    rl_fault f;
    rl_call_inspect(&c, &lk->target);
    rl_ask(e, &c.call, rl_command_deadline(e), &a);
    rlock_status s = rl_read_holder(&a, out, &f);
    return s == RLOCK_OK || s == RLOCK_NOT_HELD ? s : rl_lock_fail(lk, &f);
}

static rlock *reentrant_copy(const rlock *lk)
{
    return rl_lock_new(sizeof *lk, lk->kind, lk->client, lk->target.name,
                       lk->target.len, (rlock_layout)lk->target.scope);
}

const rl_lock_kind rl_reentrant = {
    .acquire = reentrant_acquire,
    .unlock = reentrant_unlock,
    .extend = reentrant_extend,
    .force_unlock = reentrant_force_unlock,
    .cancel = reentrant_cancel,
    .view = reentrant_view,
    .inspect = reentrant_inspect,
    .copy = reentrant_copy,
};
