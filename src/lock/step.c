#include "lock/step.h"

#include <limits.h>

static void begin(rl_step *s, rl_verb verb, rl_engine *e, rl_hold *h,
                  int64_t lease_ms)
{
    int64_t now_us = rl_now_us();
    *s = (rl_step){.verb = verb,
                   .e = e,
                   .hold = h,
                   .lease_ms = rl_lease_of(e, lease_ms),
                   .renewed = lease_ms == RLOCK_WATCHDOG,
                   .began_us = now_us,
                   .until_us = rl_after_ms(now_us, e->set.command_timeout_ms),
                   .bell = ""};
}

void rl_step_call(const rl_step *s, rl_hold_call *c)
{
    switch (s->verb) {
    case RL_VERB_ACQUIRE:
    case RL_VERB_REENTER:
        rl_call_acquire(c, s->hold, s->lease_ms, s->level, s->bell, s->ticket,
                        s->minds_token ? &s->token : NULL);
        break;
    case RL_VERB_RELEASE:
    case RL_VERB_UNDO:
        rl_call_release(c, s->hold, s->level);
        break;
    case RL_VERB_EXTEND:
        rl_call_extend(c, s->hold, s->lease_ms);
        break;
    }
}

void rl_step_ask(const rl_step *s, rl_answer *a)
{
    rl_hold_call c;
    rl_step_call(s, &c);
    rl_ask(s->e, &c.call, s->until_us, a);
}

rl_hold *rl_pick_up(rl_engine *e, const rl_target *what, bool *valid)
{
    rl_holds *t = &e->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_mine_locked(t, what);
    if (h)
        h->refs++;
    *valid = h && h->state == RL_HELD;
    rl_mutex_unlock(&t->mutex);
    return h;
}

void rl_put_back(rl_engine *e, rl_hold *h)
{
    if (!h)
        return;
    rl_mutex_lock(&e->holds.mutex);
    rl_hold_unref_locked(&e->holds, h);
    rl_mutex_unlock(&e->holds.mutex);
}

/* The fault of a call about a hold that is lost. */
static rlock_status lost(rl_fault *f, rl_loss why)
{
    return rl_fault_set(f, RLOCK_LOST, 0, "%s", rl_loss_text(why));
}

/* The server says that the hold is gone; says so, or why it was lost before. */
static rlock_status note_loss(rl_engine *e, rl_hold *h, rl_loss why,
                              rl_fault *f)
{
    rl_holds *t = &e->holds;
    int64_t now_us = rl_now_us();
    rl_mutex_lock(&t->mutex);
    if (rl_hold_is_valid_locked(t, h, now_us))
        rl_hold_lose_locked(t, h, why, now_us);
    why = h->loss;
    rl_mutex_unlock(&t->mutex);
    return lost(f, why);
}

/* A call failed: because of the hold, should that have been lost meanwhile. */
static rlock_status failed(rl_engine *e, rl_hold *h, const rl_answer *a,
                           rl_fault *f)
{
    rl_holds *t = &e->holds;
    if (a->fault.status == RLOCK_EWRONGTYPE) {
        note_loss(e, h, RL_LOSS_FOREIGN, NULL);
        *f = a->fault;
        return f->status;
    }
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, rl_now_us());
    rl_loss why = h->loss;
    rl_mutex_unlock(&t->mutex);
    if (!valid)
        return lost(f, why);
    *f = a->fault;
    return f->status;
}

/* --- acquire ------------------------------------------------------------- */

rl_hold *rl_draft(rl_engine *e, const rl_target *what, const char *holder,
                  int64_t lease_ms)
{
    char fresh[RL_HOLDER_MAX];
    if (!holder) {
        if (!rl_owner_watch() || !rl_holder_id(fresh, e->set.process))
            return NULL;
        holder = fresh;
    }
    rl_hold *h = rl_hold_new(&e->holds, what, holder);
    if (h)
        h->lease_ms = rl_lease_of(e, lease_ms);
    return h;
}

void rl_acquire_begin(rl_step *s, rl_engine *e, rl_hold *draft,
                      int64_t lease_ms)
{
    begin(s, RL_VERB_ACQUIRE, e, draft, lease_ms);
    s->level = 1;
    rl_hold_expect(draft, s->began_us, s->lease_ms);
}

/* What no server of ours says: it may have done anything. */
static rl_verdict unexpected(rl_answer *a)
{
    a->outcome = RL_UNKNOWN;
    a->open = true;
    rl_fault_set(&a->fault, RLOCK_EIO, 0, "unexpected reply to an acquire");
    a->fault.transient = false;
    return RL_FAILED;
}

static rl_verdict given_up(rl_answer *a)
{
    a->outcome = RL_NOT_EXECUTED;
    rl_fault_set(&a->fault, RLOCK_EIO, 0, "the acquire was given up");
    a->fault.transient = false;
    return RL_FAILED;
}

rl_verdict rl_grant_read(rl_answer *a, int level, rl_grant *g)
{
    const rl_item *item = a->reply.item;
    size_t count = a->reply.count;
    if (a->outcome != RL_ANSWERED)
        return RL_FAILED;
    long long code = count > 0 && rl_item_is(&item[0], REDIS_REPLY_INTEGER)
                         ? item[0].integer
                         : LLONG_MIN;
    g->sent_us = a->sent_us;
    g->clock_us = 0;
    if (code == 1 && (count == 2 || count == 3)) {
        long long token = rl_item_number(&item[1]);
        g->token = (uint64_t)token;
        if (count == 3)
            g->clock_us = rl_item_number(&item[2]);
        return token > 0 || level > 1 ? RL_ACQUIRED : unexpected(a);
    }
    if (code == 0 && (count == 3 || count == 4) && level == 1) {
        g->ttl_ms = rl_item_number(&item[1]);
        g->ticket = rl_item_number(&item[2]);
        g->foreign = count == 4;
        return RL_BUSY;
    }
    if (code == -1 && level > 1)
        return RL_GONE;
    return code == -2 ? given_up(a) : unexpected(a);
}

/* A grant is worth nothing when the answer took as long as the lease. */
static rl_verdict too_late(rl_step *s, rl_answer *a)
{
    s->hold->doubtful = true;
    rl_fault_set(&a->fault, RLOCK_EIO, 0,
                 "granted, but the answer came after the lease of %lld ms had "
                 "run out",
                 (long long)s->lease_ms);
    return RL_FAILED;
}

rl_verdict rl_acquire_end(rl_step *s, rl_answer *a, rl_grant *g, rl_fault *f)
{
    int64_t now_us = rl_now_us();
    rl_verdict v = rl_grant_read(a, 1, g);
    s->hold->doubtful = s->hold->doubtful || a->open;
    rl_hold_expect(s->hold, now_us, s->lease_ms);
    if (v == RL_ACQUIRED &&
        rl_lease_deadline(a->sent_us, s->lease_ms) <= now_us)
        v = too_late(s, a);
    if (v == RL_FAILED)
        *f = a->fault;
    return v;
}

void rl_take_over(rl_step *s, const rl_grant *g, uint64_t token)
{
    rl_holds *t = &s->e->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, s->hold, token, g->sent_us, s->renewed);
    rl_mutex_unlock(&t->mutex);
}

void rl_give_up(rl_engine *e, rl_hold *draft)
{
    rl_holds *t = &e->holds;
    rl_mutex_lock(&t->mutex);
    if (draft->doubtful)
        rl_hold_undo_locked(t, draft, rl_now_us());
    else
        rl_hold_unref_locked(t, draft);
    rl_mutex_unlock(&t->mutex);
}

void rl_undo_begin(rl_step *s, rl_engine *e, rl_hold *draft)
{
    begin(s, RL_VERB_UNDO, e, draft, 1);
}

void rl_undo_end(rl_step *s, const rl_answer *a)
{
    bool undone =
        a->outcome == RL_ANSWERED && a->reply.top.integer < RL_UNBURIED;
    s->hold->doubtful = !undone;
    rl_give_up(s->e, s->hold);
}

/* No later than the hold itself could still be believed in. */
bool rl_reenter_begin(rl_step *s, rl_engine *e, rl_hold *h, int64_t lease_ms)
{
    if (h->count == INT_MAX)
        return false;
    begin(s, RL_VERB_REENTER, e, h, lease_ms);
    s->level = h->count + 1;
    rl_mutex_lock(&e->holds.mutex);
    s->until_us = rl_min(h->deadline_us, s->until_us);
    rl_hold_expect(h, s->until_us, s->lease_ms);
    rl_mutex_unlock(&e->holds.mutex);
    return true;
}

static bool count_up(rl_step *s, const rl_answer *a)
{
    rl_holds *t = &s->e->holds;
    rl_hold *h = s->hold;
    rl_mutex_lock(&t->mutex);
    if (s->renewed && !h->renewed)
        rl_hold_start_renewal_locked(t, h, a->sent_us);
    rl_hold_prolong_locked(t, h, a->sent_us, s->lease_ms);
    bool valid = rl_hold_is_valid_locked(t, h, rl_now_us());
    if (valid)
        h->count = s->level;
    rl_mutex_unlock(&t->mutex);
    return valid;
}

rlock_status rl_reenter_end(rl_step *s, rl_answer *a, rl_fault *f)
{
    rl_grant g;
    switch (rl_grant_read(a, s->level, &g)) {
    case RL_ACQUIRED:
        if (count_up(s, a))
            return RLOCK_OK;
        return note_loss(s->e, s->hold, RL_LOSS_EXPIRED, f);
    case RL_BUSY:
    case RL_GONE:
        return note_loss(s->e, s->hold, RL_LOSS_GONE, f);
    case RL_FAILED:
        break;
    }
    return failed(s->e, s->hold, a, f);
}

/* --- release ------------------------------------------------------------- */

bool rl_count_down(rl_engine *e, rl_hold *h, int level)
{
    rl_holds *t = &e->holds;
    int64_t now_us = rl_now_us();
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, now_us);
    h->count = level;
    if (level == 0)
        rl_hold_end_locked(t, h, now_us);
    rl_mutex_unlock(&t->mutex);
    return valid;
}

void rl_release_begin(rl_step *s, rl_engine *e, rl_hold *h, int level)
{
    begin(s, RL_VERB_RELEASE, e, h, 1);
    s->level = level;
}

/* Lets go of a hold that is out of the table. */
static void discard(rl_engine *e, rl_hold *h, bool undo)
{
    rl_mutex_lock(&e->holds.mutex);
    if (undo)
        rl_hold_undo_locked(&e->holds, h, rl_now_us());
    else
        rl_hold_unref_locked(&e->holds, h);
    rl_mutex_unlock(&e->holds.mutex);
}

/* The server does not know the hold any more, after it left the table. */
static rlock_status lost_at_release(rl_step *s, rl_loss why, rl_fault *f)
{
    rl_holds *t = &s->e->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_report_loss_locked(t, s->hold, why);
    rl_mutex_unlock(&t->mutex);
    return lost(f, why);
}

/* The last unlock. What stays open is left to the watchdog. */
static rlock_status freed(rl_step *s, const rl_answer *a, bool *rung,
                          rl_fault *f)
{
    if (a->outcome == RL_ANSWERED) {
        long long code = a->reply.top.integer % RL_UNBURIED;
        *rung = code == 2;
        /* Gone, after a try whose answer was lost: it was that one. */
        rlock_status status = code > 0 || a->open
                                  ? RLOCK_OK
                                  : lost_at_release(s, RL_LOSS_GONE, f);
        discard(s->e, s->hold, a->reply.top.integer >= RL_UNBURIED);
        return status;
    }
    bool foreign = a->fault.status == RLOCK_EWRONGTYPE;
    if (foreign)
        lost_at_release(s, RL_LOSS_FOREIGN, NULL);
    discard(s->e, s->hold, !foreign);
    *f = a->fault;
    return f->status;
}

rlock_status rl_release_end(rl_step *s, const rl_answer *a, bool *rung,
                            rl_fault *f)
{
    *rung = false;
    if (s->level == 0)
        return freed(s, a, rung, f);
    if (a->outcome != RL_ANSWERED)
        return failed(s->e, s->hold, a, f);
    return a->reply.top.integer == 1
               ? RLOCK_OK
               : note_loss(s->e, s->hold, RL_LOSS_GONE, f);
}

rlock_status rl_release_lost(rl_engine *e, rl_hold *h, int level, rl_fault *f)
{
    rl_loss why = h->loss;
    /*
     * A renewal that was given up may have kept it alive on the server, and an
     * acquire that is late would take it anew.
     */
    bool lingers = (why == RL_LOSS_EXPIRED || why == RL_LOSS_TOO_LONG ||
                    why == RL_LOSS_GROUP) &&
                   rl_now_us() < h->gone_us;
    if (level == 0)
        discard(e, h, lingers || h->doubtful);
    return lost(f, why);
}

/* --- extend -------------------------------------------------------------- */

void rl_extend_pause(rl_engine *e, rl_hold *h)
{
    rl_mutex_lock(&e->holds.mutex);
    rl_hold_pause_renewal_locked(&e->holds, h);
    rl_mutex_unlock(&e->holds.mutex);
}

bool rl_extend_wait(rl_engine *e, rl_hold *h, int64_t until_us)
{
    rl_holds *t = &e->holds;
    rl_mutex_lock(&t->mutex);
    until_us = rl_min(h->deadline_us, until_us);
    while (h->in_flight && rl_now_us() < until_us)
        rl_cond_wait_until(&t->landed, &t->mutex, until_us);
    bool landed = !h->in_flight;
    rl_mutex_unlock(&t->mutex);
    return landed;
}

/*
 * A renewal that overtook the extend would undo it. As long as renewal may
 * have to go on afterwards, asking does not take long.
 */
bool rl_extend_begin(rl_step *s, rl_engine *e, rl_hold *h, int64_t lease_ms,
                     int64_t patience_us)
{
    rl_holds *t = &e->holds;
    begin(s, RL_VERB_EXTEND, e, h, lease_ms);
    rl_extend_pause(e, h);
    bool landed = rl_extend_wait(e, h, patience_us);
    s->began_us = rl_now_us();
    s->until_us = rl_after_ms(s->began_us, e->set.command_timeout_ms);
    rl_mutex_lock(&t->mutex);
    s->until_us = rl_min(h->deadline_us, s->until_us);
    if (landed && h->renewed)
        s->until_us = rl_min(s->until_us, rl_watchdog_attempt_end(e));
    rl_hold_expect(h, landed ? s->until_us : 0, s->lease_ms);
    rl_mutex_unlock(&t->mutex);
    return landed;
}

/* Goes on as before; at once, for nothing was renewed meanwhile. */
static void resume_renewal_locked(rl_holds *t, rl_hold *h)
    RL_REQUIRES(&t->mutex)
{
    if (h->renewed)
        rl_hold_start_renewal_locked(
            t, h, rl_now_us() - rl_hold_renewal_period_us(t, h));
    h->paused = false;
}

/* Puts the answer down. */
static void note_extension(rl_step *s, const rl_answer *a)
{
    rl_holds *t = &s->e->holds;
    rl_hold *h = s->hold;
    rl_mutex_lock(&t->mutex);
    if (a->open)
        rl_hold_cap_locked(t, h, s->began_us, s->lease_ms);
    if (a->outcome != RL_ANSWERED || a->reply.top.integer != 1) {
        resume_renewal_locked(t, h);
    } else {
        if (s->renewed)
            rl_hold_start_renewal_locked(t, h, a->sent_us);
        else
            rl_hold_stop_renewal_locked(t, h);
        rl_hold_set_lease_locked(t, h, a->sent_us, s->lease_ms);
    }
    rl_mutex_unlock(&t->mutex);
}

static rlock_status extended(const rl_step *s, rl_fault *f)
{
    rl_holds *t = &s->e->holds;
    rl_hold *h = s->hold;
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, h, rl_now_us());
    bool capped = !s->renewed && h->cap_ms < s->lease_ms;
    rl_loss why = h->loss;
    rl_mutex_unlock(&t->mutex);
    if (!valid)
        return lost(f, why);
    if (capped)
        return rl_fault_set(f, RLOCK_EIO, 0,
                            "an earlier extend that was never answered may "
                            "still arrive and shorten the lease");
    return RLOCK_OK;
}

rlock_status rl_extend_end(rl_step *s, const rl_answer *a, rl_fault *f)
{
    note_extension(s, a);
    if (a->outcome != RL_ANSWERED)
        return failed(s->e, s->hold, a, f);
    return a->reply.top.integer == 1
               ? extended(s, f)
               : note_loss(s->e, s->hold, RL_LOSS_GONE, f);
}

rlock_status rl_extend_fail(rl_step *s, rl_fault *f)
{
    rl_answer a = {.outcome = RL_NOT_EXECUTED};
    rl_fault_set(&a.fault, RLOCK_EIO, 0, "a renewal does not end");
    return rl_extend_end(s, &a, f);
}
