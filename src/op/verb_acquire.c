/*
 * To acquire: a draft becomes a hold, a hold gets one level more, or what may
 * have been granted is undone. A draft in doubt stays in doubt: whatever is
 * answered later, a copy of the call may be executed yet, and its release has to
 * leave a tombstone.
 *
 * A grant counts from when it was asked for, and is worth nothing when its
 * answer took as long as the lease.
 *
 * What is tokenless is granted without doubt, or not at all: else a late copy of its
 * acquire might take the lock again, after it has been forced and others had it, and no
 * token would tell. So a call of it that may have been executed is not repeated, nor the
 * draft used again (attempt_one.c).
 */
#include <limits.h>

#include "hold/deadlock.h"
#include "hold/side.h"
#include "hold/step.h"
#include "op/call.h"
#include "op/verb.h"
#include "op/verb_query.h"

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

/* For good: nothing comes of asking again. */
static rl_verdict refused(rl_fault *f, rlock_status s, const char *why)
{
    rl_fault_set(f, s, 0, "%s", why);
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
    bool line = count == 6 && rl_item_is(&item[5], REDIS_REPLY_INTEGER);
    if (code == 0 && (count == 5 || line || count == 7) && level == 1) {
        g->ttl_ms = rl_item_number(&item[1]);
        g->ticket = rl_item_number(&item[2]);
        g->foreign = rl_item_number(&item[3]) == 1;
        g->rank = rl_item_number(&item[4]);
        g->anew = line && item[5].integer == 1;
        rl_fault_busy(f, &item[5], count - 5);
        return RL_BUSY;
    }
    if (code == -1 && level > 1)
        return RL_GONE;
    if (code == -2)
        return refused(f, RLOCK_EIO, "the acquire was given up");
    if (code == -3 && level == 1)
        return refused(f, RLOCK_EDEADLK, "deadlock: others read it, too");
    return unexpected(g, f);
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
    if (x->hold->record->weight ||
        rl_layout_is_tokenless(rl_hold_layout(x->hold)))
        x->grant.token = 0; /* there is only what stands for one */
}

static void read_acquire(rl_part *x, const rl_reply *r, int64_t now_us)
{
    x->grant.sent_us = x->ask.sent_us;
    x->verdict = r ? rl_grant_read(r, 1, &x->grant, &x->fault) : RL_FAILED;
    if (r && x->fault.status == RLOCK_EDEADLK)
        rl_wait_is_refused(&x->core->holds, x->hold, now_us, &x->fault);
    if (r && x->grant.odd) {
        x->ask.unknown = true;
        rl_mistrust(x);
    }
    if (x->verdict == RL_ACQUIRED && x->request.joins)
        rl_hold_share_token(&x->core->holds, x->hold, x->grant.token);
    /* As if nobody had answered: it is asked for again, or undone. */
    if (x->verdict == RL_ACQUIRED && rl_is_short(x)) {
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

void rl_give_up(rl_core *c, rl_hold *draft, int64_t now_us)
{
    rl_hold_drop(&c->holds, draft, draft->unknown, now_us);
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
    if (h->state != RL_DRAFT || !rl_link_is_in(&h->owned))
        return;
    note_draft(x, now_us);
    bool granted = x->verdict == RL_ACQUIRED;
    if (rl_hold_join_late_locked(t, h, granted, there_since(x, now_us),
                                 x->grant.sent_us, h->lease_ms, now_us))
        return;
    h->unknown = h->unknown || granted;
    if (!t->closed && rl_hold_may_join_locked(t, h, now_us) &&
        rl_group_is_renewed(h->group)) {
        rl_hold_vacate_locked(t, h, now_us);
        return;
    }
    rl_hold_end_locked(t, h, now_us);
    rl_hold_drop_locked(t, h, h->unknown, now_us);
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

/* Each time it is sent, with the clock before that. */
static void write_acquire(const rl_part *x, rl_bytes *to)
{
    rl_request r = x->request;
    r.beat_us = x->ask.sent_us;
    rl_call_acquire(to, x->ask.whole, x->hold, &r);
}

const rl_verb rl_verb_acquire = {
    .write = write_acquire, .note = note_acquire, .grants = true};

void rl_part_acquire(rl_part *x, rl_core *c, rl_hold *draft, int64_t lease_ms,
                     int64_t now_us)
{
    const rl_layout *l = rl_hold_layout(draft);
    rl_part_begin(x, c, &rl_verb_acquire, l->acquire, now_us);
    rl_part_begin_lease(x, draft, lease_ms);
    rl_part_confirm(x);
    x->ask.once = rl_layout_is_tokenless(l);
    if (l->line && rl_layout_is_side(l))
        x->request.joins = rl_hold_joins(&c->holds, draft, &x->request.other);
    rl_hold_expect(draft, now_us, x->request.lease_ms);
}

/* --- one level more ------------------------------------------------------- */

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

static void note_reentry(rl_part *x, const rl_reply *r, int64_t now_us)
{
    rl_grant g = {.odd = false};
    rl_verdict v = RL_FAILED;
    if (r)
        v = rl_grant_read(r, x->request.level, &g, &x->fault);
    /* Whatever was answered, the server may have counted; or may do so later,
       if that was no answer of the script's. */
    rl_hold_go_deep(&x->core->holds, x->hold, g.odd);
    if (g.odd)
        rl_mistrust(x);
    if (v == RL_FAILED) {
        rl_note_failure(x, now_us);
    } else if (v != RL_ACQUIRED) {
        rl_note_loss(x, RL_LOSS_GONE, &x->fault, now_us);
    } else if (rl_is_short(x)) {
        rl_note_failure(x, now_us);
    } else if (x->op) {
        x->ok = count_up(x, &g, now_us);
        if (!x->ok)
            rl_note_loss(x, RL_LOSS_EXPIRED, &x->fault, now_us);
    }
}

static const rl_verb reenter = {
    .write = write_acquire, .note = note_reentry, .for_owner = true};

/*
 * What waits for replicas is asked only for more than the hold has, or will get
 * by its renewal.
 */
static bool moves_locked(const rl_part *x, const rl_hold *h, int64_t now_us)
{
    bool by_renewal = x->renewed && h->renewed;
    return !h->replicas ||
           (!by_renewal &&
            rl_lease_deadline(now_us, x->request.lease_ms) > h->expiry.due_us);
}

/* No later than the hold itself could still be believed in. */
bool rl_part_reenter(rl_part *x, rl_core *c, rl_hold *h, int64_t lease_ms,
                     int64_t now_us)
{
    if (h->count == INT_MAX)
        return false;
    rl_part_begin(x, c, &reenter, rl_hold_layout(h)->acquire, now_us);
    rl_part_begin_lease(x, h, lease_ms);
    x->request.level = h->count + 1;
    rl_mutex_lock(&c->holds.mutex);
    x->moves = moves_locked(x, h, now_us);
    if (x->moves)
        rl_part_confirm(x);
    x->until_us = rl_min(h->expiry.due_us, x->until_us);
    rl_hold_expect(h, x->until_us, x->request.lease_ms);
    rl_mutex_unlock(&c->holds.mutex);
    return true;
}

/* --- undone --------------------------------------------------------------- */

/* A key of another type has nothing of it. */
static bool is_left(const rl_part *x, const rl_reply *r)
{
    if (!r && x->fault.status == RLOCK_EWRONGTYPE)
        return x->hold->unknown;
    return !r || r->top.integer >= RL_UNBURIED;
}

/* Undone or not, the draft is gone afterwards. */
static void note_undo(rl_part *x, const rl_reply *r, int64_t now_us)
{
    x->hold->unknown = is_left(x, r);
    x->ok = r != NULL;
    rl_give_up(x->core, x->hold, now_us);
    x->hold = NULL;
}

static void write_undo(const rl_part *x, rl_bytes *to)
{
    rl_call_release(to, x->ask.whole, x->hold, 0, x->quiet, x->core->bell);
}

static const rl_verb undo = {
    .write = write_undo, .note = note_undo, .ends_hold = true};

void rl_part_undo(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us)
{
    rl_part_begin(x, c, &undo, rl_hold_layout(draft)->release, now_us);
    x->hold = draft;
}
