/*
 * What each verb means for one hold: how an answer is read, and what it does to
 * the hold table. Called by the thread that has read the answer, mostly the
 * owner's; of a part that is late, by whichever has its connection.
 *
 * Only the owner counts its hold, so between a part's beginning and its end
 * nobody else changes the level; the keeper may prolong the hold or find it
 * lost, which the end takes into account. Scripts are told the level to reach,
 * so an answer that never came can be asked for again.
 *
 * An answer that is late prolongs nothing: what the owner has asked since may
 * have been executed after it.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "op/handover.h"
#include "op/verb.h"
#include "op/verb_guard.h"
#include "op/verb_query.h"

/* The fault of a call about a hold that is lost. */
rlock_status rl_lost(rl_fault *f, rl_loss why)
{
    return rl_fault_set(f, RLOCK_LOST, 0, "%s", rl_loss_text(why));
}

/*
 * The server says that the hold is gone; says so, or why it was lost before. A
 * node of a Red lock may have granted it anew since this was asked, and an
 * answer that was late is not about that.
 */
void rl_note_loss(rl_part *x, rl_loss why, rl_fault *f, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    rl_hold *h = x->hold;
    rl_mutex_lock(&t->mutex);
    bool anew = x->ask.sent_us < h->began_us;
    if (rl_hold_is_valid_locked(t, h, now_us) && !anew)
        rl_hold_lose_locked(t, h, why, now_us);
    why = h->loss;
    rl_mutex_unlock(&t->mutex);
    rl_lost(f, why);
}

/* A call failed: because of the hold, should that have been lost meanwhile. */
void rl_note_failure(rl_part *x, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    rl_fault foreign = x->fault;
    if (foreign.status == RLOCK_EWRONGTYPE) {
        rl_note_loss(x, RL_LOSS_FOREIGN, &x->fault, now_us);
        x->fault = foreign;
        return;
    }
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, x->hold, now_us);
    rl_loss why = x->hold->loss;
    rl_mutex_unlock(&t->mutex);
    if (!valid)
        rl_lost(&x->fault, why);
}

/* Too few replicas have what was answered yes, as the fault says. */
static bool is_short(rl_part *x)
{
    if (rl_ask_is_durable(&x->ask))
        return false;
    rl_add(&x->core->stats.replica_shortfalls, 1);
    return true;
}

/* --- acquire ------------------------------------------------------------- */

rl_hold *rl_draft(rl_core *c, rl_owner_record *room, const rl_target *what,
                  const rl_uuid *id, int64_t lease_ms)
{
    rl_hold *h = rl_hold_new(&c->holds, room, what, id);
    if (h) {
        h->lease_ms = rl_lease_of(c, lease_ms);
        h->replicas = rl_replicas_of(c, what->min_replicas);
    }
    return h;
}

/* What no server of ours says: it may have done anything. */
static rl_verdict unexpected(rl_grant *g, rl_fault *f)
{
    g->odd = true;
    rl_fault_set(f, RLOCK_EIO, 0, "unexpected reply to an acquire");
    f->transient = false;
    return RL_FAILED;
}

static rl_verdict given_up(rl_fault *f)
{
    rl_fault_set(f, RLOCK_EIO, 0, "the acquire was given up");
    f->transient = false;
    return RL_FAILED;
}

/* What a reply that is an array begins with; LLONG_MIN: not with a number. */
static long long code_of(const rl_reply *r)
{
    return rl_reply_is_array(r, 1) &&
                   rl_item_is(&r->item[0], REDIS_REPLY_INTEGER)
               ? r->item[0].integer
               : LLONG_MIN;
}

static rl_verdict read_token(const rl_item *i, int level, rl_grant *g,
                             rl_fault *f)
{
    long long token = rl_item_number(i);
    g->token = (uint64_t)rl_max(token, 0);
    bool good = token > 0 || (token == 0 && level > 1);
    return good ? RL_ACQUIRED : unexpected(g, f);
}

rl_verdict rl_grant_read(const rl_reply *r, int level, rl_grant *g, rl_fault *f)
{
    const rl_item *item = r->item;
    size_t count = r->count;
    long long code = code_of(r);
    g->clock_us = 0;
    g->odd = false;
    if (rl_reply_is(r, REDIS_REPLY_STRING))
        return read_token(&r->top, level, g, f);
    if (code == 1 && count == 3) {
        g->clock_us = rl_item_number(&item[2]);
        return read_token(&item[1], level, g, f);
    }
    if (code == 0 && (count == 5 || count == 7) && level == 1) {
        g->ttl_ms = rl_item_number(&item[1]);
        g->ticket = rl_item_number(&item[2]);
        g->foreign = rl_item_number(&item[3]) == 1;
        g->rank = rl_item_number(&item[4]);
        rl_fault_busy(f, &item[5], count - 5);
        return RL_BUSY;
    }
    if (code == -1 && level > 1)
        return RL_GONE;
    return code == -2 ? given_up(f) : unexpected(g, f);
}

/* A grant is worth nothing when the answer took as long as the lease. */
static void came_too_late(rl_part *x)
{
    x->ask.unknown = true;
    x->verdict = RL_FAILED;
    rl_fault_set(&x->fault, RLOCK_EIO, 0,
                 "granted, but the answer came after the lease of %lld ms had "
                 "run out",
                 (long long)x->request.lease_ms);
}

static void check_grant(rl_part *x, int64_t now_us)
{
    if (x->verdict == RL_ACQUIRED &&
        rl_lease_deadline(x->grant.sent_us, x->request.lease_ms) <= now_us)
        came_too_late(x);
    x->ok = x->verdict == RL_ACQUIRED;
}

/*
 * An answer that no script of ours gives may be another one's, and then those
 * behind it are, too.
 */
static void mistrust(const rl_part *x)
{
    if (x->ask.line)
        x->ask.line->odd = true;
}

static void read_acquire(rl_part *x, const rl_reply *r, int64_t now_us)
{
    x->grant.sent_us = x->ask.sent_us;
    x->verdict = r ? rl_grant_read(r, 1, &x->grant, &x->fault) : RL_FAILED;
    if (r && x->grant.odd) {
        x->ask.unknown = true;
        mistrust(x);
    }
    /* As if nobody had answered: it is asked for again, or undone. */
    if (x->verdict == RL_ACQUIRED && is_short(x)) {
        x->ask.unknown = true;
        x->verdict = RL_FAILED;
    }
    check_grant(x, now_us);
}

/* What the answer means for the draft. */
static void note_draft(rl_part *x, int64_t now_us)
{
    x->hold->unknown = x->hold->unknown || x->ask.unknown;
    rl_hold_expect(x->hold, now_us, x->request.lease_ms);
}

void rl_note_granted(rl_part *x, int64_t now_us)
{
    x->verdict = RL_ACQUIRED;
    check_grant(x, now_us);
    note_draft(x, now_us);
}

void rl_take_over(rl_part *x, uint64_t token, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_grant_locked(t, x->hold, token, x->grant.sent_us, x->renewed,
                         now_us);
    rl_mutex_unlock(&t->mutex);
}

void rl_drop(rl_core *c, rl_hold *h, bool undo, int64_t now_us)
{
    rl_mutex_lock(&c->holds.mutex);
    rl_hold_drop_locked(&c->holds, h, undo, now_us);
    rl_mutex_unlock(&c->holds.mutex);
}

void rl_give_up(rl_core *c, rl_hold *draft, int64_t now_us)
{
    rl_drop(c, draft, draft->unknown, now_us);
}

/*
 * Mostly a grant is late because the others were quicker by a moment: it counts
 * from the beginning, like theirs. One for which no round would have waited may
 * have been executed just now.
 */
static int64_t there_since(const rl_part *x, int64_t now_us)
{
    bool at_once = now_us - x->ask.sent_us <= x->patience_us;
    return at_once ? x->hold->group->began_us : now_us;
}

/*
 * A grant of a Red lock that came late joins its group, unless the owner has
 * released it meanwhile, or undoes it.
 */
static void join_locked(rl_part *x, rl_holds *t, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    rl_hold *h = x->hold;
    rl_group *g = h->group;
    if (h->state != RL_DRAFT || !rl_link_is_in(&h->owned))
        return;
    note_draft(x, now_us);
    bool open = !t->closed && rl_hold_may_join_locked(t, h, now_us);
    if (x->verdict == RL_ACQUIRED && open) {
        rl_group_join(g, h->member, there_since(x, now_us),
                      rl_hold_lease_end(h, x->grant.sent_us, h->lease_ms));
        rl_hold_grant_locked(t, h, g->token, x->grant.sent_us,
                             rl_group_is_renewed(g), now_us);
        h->count = rl_group_count(g);
    } else if (!open || !rl_group_is_renewed(g)) {
        h->unknown = h->unknown || x->verdict == RL_ACQUIRED;
        rl_hold_end_locked(t, h, now_us);
        rl_hold_drop_locked(t, h, h->unknown, now_us);
    } else {
        rl_hold_vacate_locked(t, h, now_us);
    }
}

static void note_acquire(rl_part *x, const rl_reply *r, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    read_acquire(x, r, now_us);
    if (x->op) { /* the draft is the owner's alone */
        note_draft(x, now_us);
        return;
    }
    rl_mutex_lock(&t->mutex);
    join_locked(x, t, now_us);
    rl_mutex_unlock(&t->mutex);
}

/* Undone or not, the draft is gone afterwards. */
static void note_undo(rl_part *x, const rl_reply *r, int64_t now_us)
{
    x->hold->unknown = !r || r->top.integer >= RL_UNBURIED;
    x->ok = r != NULL;
    rl_give_up(x->core, x->hold, now_us);
    x->hold = NULL;
}

/* False: the hold is lost. */
static bool count_up(rl_part *x, const rl_grant *g, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    rl_hold *h = x->hold;
    rl_mutex_lock(&t->mutex);
    if (rl_hold_compares_locked(h) && g->token > h->token &&
        rl_hold_is_valid_locked(t, h, now_us))
        rl_hold_lose_locked(t, h, RL_LOSS_GONE, now_us);
    if (x->renewed && !h->renewed)
        rl_hold_start_renewal_locked(t, h, x->ask.sent_us, now_us);
    if (x->moves)
        rl_hold_prolong_locked(t, h, x->ask.sent_us, x->request.lease_ms,
                               now_us);
    bool valid = rl_hold_is_valid_locked(t, h, now_us);
    if (valid)
        h->count = x->request.level;
    rl_mutex_unlock(&t->mutex);
    return valid;
}

/*
 * Whatever was answered, the server may have counted; or may do so later, if
 * that was no answer of the script's.
 */
static void note_depth(rl_part *x, bool odd)
{
    rl_mutex_lock(&x->core->holds.mutex);
    x->hold->deep = true;
    x->hold->astray = x->hold->astray || odd;
    rl_mutex_unlock(&x->core->holds.mutex);
}

static void note_reentry(rl_part *x, const rl_reply *r, int64_t now_us)
{
    rl_grant g = {.odd = false};
    rl_verdict v = RL_FAILED;
    if (r)
        v = rl_grant_read(r, x->request.level, &g, &x->fault);
    note_depth(x, g.odd);
    if (g.odd)
        mistrust(x);
    if (v == RL_FAILED) {
        rl_note_failure(x, now_us);
    } else if (v != RL_ACQUIRED) {
        rl_note_loss(x, RL_LOSS_GONE, &x->fault, now_us);
    } else if (is_short(x)) {
        rl_note_failure(x, now_us);
    } else if (x->op) {
        x->ok = count_up(x, &g, now_us);
        if (!x->ok)
            rl_note_loss(x, RL_LOSS_EXPIRED, &x->fault, now_us);
    }
}

/* --- extend -------------------------------------------------------------- */

/* Goes on as before; at once, for nothing was renewed meanwhile. */
static void resume_renewal_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    if (h->renewed)
        rl_hold_start_renewal_locked(
            t, h, now_us - rl_hold_renewal_period_us(t, h, now_us), now_us);
    h->paused = false;
}

/* Puts the answer down. */
static void put_extension(rl_part *x, const rl_reply *r, bool set,
                          int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    rl_hold *h = x->hold;
    int64_t lease_ms = x->request.lease_ms;
    rl_mutex_lock(&t->mutex);
    if (!x->op)
        rl_hold_settle_extend_locked(t, h, lease_ms,
                                     x->ask.unknown ? RL_NEVER
                                     : r            ? now_us
                                                    : 0);
    else if (x->ask.unknown)
        rl_hold_cap_locked(t, h, x->began_us, lease_ms);
    if (x->op && set) {
        if (x->renewed)
            rl_hold_start_renewal_locked(t, h, x->ask.sent_us, now_us);
        else
            rl_hold_stop_renewal_locked(t, h);
        rl_hold_set_lease_locked(t, h, x->ask.sent_us, lease_ms, now_us);
    } else if (x->op) {
        if (!r && !x->ask.unknown && x->before_us)
            rl_hold_restore_locked(t, h, x->before_us, now_us);
        resume_renewal_locked(t, h, now_us);
    }
    rl_mutex_unlock(&t->mutex);
}

static void check_extension(rl_part *x, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    const rl_hold *h = x->hold;
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, x->hold, now_us);
    bool capped =
        !x->renewed && rl_hold_cap_ms(h, x->ask.sent_us) < x->request.lease_ms;
    rl_loss why = h->loss;
    rl_mutex_unlock(&t->mutex);
    x->ok = valid && !capped;
    if (!valid)
        rl_lost(&x->fault, why);
    else if (capped)
        rl_fault_set(&x->fault, RLOCK_EIO, 0,
                     "an earlier extend that has not been answered may still "
                     "arrive and shorten the lease");
}

static void note_extension(rl_part *x, const rl_reply *r, int64_t now_us)
{
    bool done = r && r->top.integer == 1, set = done && !is_short(x);
    put_extension(x, r, set, now_us);
    if (!r || (done && !set))
        rl_note_failure(x, now_us);
    else if (set)
        check_extension(x, now_us);
    else
        rl_note_loss(x, RL_LOSS_GONE, &x->fault, now_us);
}

/* --- all ------------------------------------------------------------------ */

static void note_holder(rl_part *x, const rl_reply *r)
{
    rlock_holder ignored;
    rlock_status s =
        rl_read_holder(r, x->holder ? x->holder : &ignored, &x->fault);
    x->ok = s == RLOCK_OK || s == RLOCK_NOT_HELD;
    x->code = s == RLOCK_OK;
}

/*
 * Whoever held what was forced, the next one here has nobody to think of it.
 * When the answer is late, the name has gone with the op.
 */
static void note_code(rl_part *x, const rl_reply *r)
{
    x->ok = r != NULL;
    x->code = r ? r->top.integer : 0;
    if (x->verb == RL_VERB_FORCE && x->op)
        rl_rooms_look(&x->core->rooms, x->what->name, x->what->len,
                      x->what->scope, true);
}

/* Somebody may have queued meanwhile, whom this has taken out. */
static void note_leave(rl_part *x, const rl_reply *r)
{
    if (x->outcome != RL_NOT_EXECUTED)
        rl_rooms_wake(&x->core->rooms, x->what->name, x->what->len,
                      RL_WAKE_LOOK);
    x->ok = r != NULL;
    if (r)
        rl_fault_busy(&x->fault, &r->item[1], r->count - 1);
}

static void forget_line(rl_part *x)
{
    rl_mutex_lock(&x->core->holds.mutex);
    x->hold->asked_on = NULL;
    rl_mutex_unlock(&x->core->holds.mutex);
}

/* A copy of the call may be executed yet. An acquire says so by `unknown`. */
static void note_astray(rl_part *x)
{
    rl_mutex_lock(&x->core->holds.mutex);
    x->hold->astray = true;
    rl_mutex_unlock(&x->core->holds.mutex);
}

void rl_part_note(rl_part *x, const rl_reply *r, int64_t now_us)
{
    if (x->heap && x->hold)
        forget_line(x);
    if (x->hold && x->ask.unknown && x->verb != RL_VERB_ACQUIRE)
        note_astray(x);
    switch (x->verb) {
    case RL_VERB_ACQUIRE:
        note_acquire(x, r, now_us);
        break;
    case RL_VERB_REENTER:
        note_reentry(x, r, now_us);
        break;
    case RL_VERB_RELEASE:
        rl_note_release(x, r, now_us);
        break;
    case RL_VERB_UNDO:
        note_undo(x, r, now_us);
        break;
    case RL_VERB_EXTEND:
        note_extension(x, r, now_us);
        break;
    case RL_VERB_GUARD:
        rl_note_guarded(x, r, now_us);
        break;
    case RL_VERB_INSPECT:
        if (r)
            note_holder(x, r);
        break;
    case RL_VERB_LEAVE:
        note_leave(x, r);
        break;
    case RL_VERB_RAISE:
    case RL_VERB_FORCE:
        note_code(x, r);
        break;
    }
}
