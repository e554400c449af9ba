/*
 * Renewals, and looks, which ask only whether the server still has a hold.
 *
 * The answer to several has a letter for each; one that is not told yes is
 * asked about by itself, so no batch can end a hold. When the server refuses
 * the call as a whole, not for the moment only (a right is missing for one of
 * the keys, or they lie in several slots of a cluster), or its answer cannot be
 * understood, all are asked by themselves, and the connection gets no batch of
 * several again.
 *
 * What stays true: every hold of a batch ends once, by its letter, by a call of
 * its own, or with the batch.
 */
#include "base/probe.h"
#include "hold/due.h"
#include "hold/side.h"
#include "op/call.h"
#include "op/call_side.h"
#include "run/batch.h"

/* What came of it for one hold. */
typedef enum result { RENEWED, NOT_HELD, NOT_ANSWERED } result;

static bool renews(const rl_batch *b)
{
    return b->verb == &rl_batch_renew;
}

static rl_holds *table_of(const rl_batch *b)
{
    return &b->node->e->core.holds;
}

static rl_script_id script(const rl_batch *b)
{
    const rl_layout *l = rl_hold_layout(b->hold[0]);
    if (b->bare)
        return RL_SCRIPT_HASH_RENEW;
    return b->n > 1 ? l->renew_many : l->renew;
}

static void write_renewal(const rl_batch *b, rl_bytes *to)
{
    int64_t lease_ms = table_of(b)->renewal_ms;
    if (b->bare)
        rl_call_renew_bare(to, b->ask.whole, b->hold[0], lease_ms);
    else if (b->n > 1)
        rl_call_renew_many(to, b->ask.whole, (const rl_hold *const *)b->hold,
                           b->n, lease_ms);
    else
        rl_call_renew(to, b->ask.whole, b->hold[0], lease_ms, b->compare);
}

static void write_look(const rl_batch *b, rl_bytes *to)
{
    rl_call_renew(to, b->ask.whole, b->hold[0], 0, b->compare);
}

/* --- what it means to a hold ---------------------------------------------- */

/* The server has it. What only looked has prolonged nothing. */
static void has_locked(const rl_batch *b, rl_holds *t, rl_hold *h,
                       int64_t now_us) RL_REQUIRES(&t->mutex)
{
    int64_t sent_us = b->ask.sent_us;
    if (renews(b)) {
        rl_stats_took(t->stats, RL_TIME_RENEWAL, now_us - h->renewal_us);
        rl_hold_warn_if_late_locked(t, h, now_us);
        rl_hold_prolong_locked(t, h, sent_us, t->renewal_ms, now_us);
        if (h->keeps)
            rl_hold_keep_token_locked(t, h, sent_us);
        rl_add(&t->stats->renewals, 1);
        rl_hold_report_locked(t, h, RLOCK_EVENT_RENEWED);
        RL_PROBE(renew, &h->name[0], h->name_len, true, now_us - h->renewal_us);
    } else {
        h->confirmed_us = rl_max(h->confirmed_us, sent_us);
    }
    rl_hold_ask_next_locked(t, h, sent_us);
}

/* Of what only looked nobody is told: the lease runs on. */
static void tell_failure_locked(const rl_batch *b, rl_holds *t, rl_hold *h,
                                int64_t now_us) RL_REQUIRES(&t->mutex)
{
    if (!renews(b))
        return;
    RL_PROBE(renew, &h->name[0], h->name_len, false, now_us - h->renewal_us);
    rl_add(&t->stats->renew_failures, 1);
    rl_hold_warn_if_late_locked(t, h, now_us);
    if (rl_due_queue_tells_locked(t, b->node->queue, now_us))
        rl_hold_report_locked(t, h, RLOCK_EVENT_RENEW_FAILED);
}

/* Does the answer still matter? Not of what has been lost, released or extended
   while it was asked. */
static bool matters_locked(const rl_batch *b, rl_holds *t, rl_hold *h,
                           int64_t now_us) RL_REQUIRES(&t->mutex)
{
    return renews(b) || h->renewed ? rl_hold_renews_locked(t, h, now_us)
                                   : rl_hold_is_valid_locked(t, h, now_us);
}

/* Where it is asked next, the due queue it is put into tells. */
static void send_on_locked(const rl_batch *b, rl_holds *t, rl_hold *h,
                           int64_t now_us) RL_REQUIRES(&t->mutex)
{
    h->sent_on++;
    h->detour = (uint16_t)b->ask.detour;
    rl_hold_schedule_locked(t, h, rl_batch_next_try_us(b, now_us));
}

static void failed_locked(const rl_batch *b, rl_holds *t, rl_hold *h,
                          const rl_fault *f, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    bool circles = rl_batch_is_sent_on(b);
    if (circles && h->sent_on < RL_ASK_REDIRECTS) {
        send_on_locked(b, t, h, now_us);
        return;
    }
    h->sent_on = 0;
    rl_hold_schedule_locked(t, h,
                            circles
                                ? now_us + rl_keeper_longest_pause_us(b->node)
                                : rl_batch_next_try_us(b, now_us));
    if (circles)
        rl_batch_fail_locked(b, t, f);
    tell_failure_locked(b, t, h, now_us);
}

static void noted_locked(const rl_batch *b, rl_holds *t, rl_hold *h,
                         result what, const rl_fault *f, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    if (!matters_locked(b, t, h, now_us))
        return;
    if (what == NOT_ANSWERED && f->status != RLOCK_EWRONGTYPE) {
        failed_locked(b, t, h, f, now_us);
        return;
    }
    h->sent_on = 0;
    if (what == RENEWED && b->bare &&
        h->paired) /* its own lease is as it was */
        rl_hold_schedule_locked(t, h, now_us);
    else if (what == RENEWED)
        has_locked(b, t, h, now_us);
    else if (what == NOT_HELD)
        rl_hold_lose_locked(t, h, RL_LOSS_GONE, now_us);
    else
        rl_hold_lose_locked(t, h, RL_LOSS_FOREIGN, now_us);
}

static void end(const rl_batch *b, rl_hold *h, result what, const rl_fault *f,
                int64_t now_us)
{
    rl_holds *t = table_of(b);
    rl_mutex_lock(&t->mutex);
    if (what == NOT_ANSWERED && !rl_batch_is_sent_on(b))
        rl_batch_fail_locked(b, t, f);
    h->in_flight = false;
    noted_locked(b, t, h, what, f, now_us);
    rl_extra *x = h->extra;
    if (x && x->landing)
        x->landing->wake(x->landing, RL_WAKE_LOOK, 0);
    if (x)
        x->landing = NULL;
    rl_hold_unref_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}

static void confirmed(rl_batch *b, rl_hold *h, const rl_fault *f,
                      int64_t now_us)
{
    end(b, h, f ? NOT_ANSWERED : RENEWED, f, now_us);
}

/* --- by itself ------------------------------------------------------------ */

/*
 * Is there still something to renew? Meanwhile the hold may have been lost, or
 * released, or its owner waits for this to end, to extend it. Its token's key is
 * left to the next renewal.
 */
static bool goes_on(rl_batch *alone, rl_hold *h, int64_t now_us)
{
    rl_holds *t = table_of(alone);
    rl_mutex_lock(&t->mutex);
    bool renews = rl_hold_renews_locked(t, h, now_us);
    h->keeps = false;
    if (renews) {
        alone->send_by_us = h->expiry.due_us;
        rl_hold_expect(h, now_us, t->renewal_ms);
    }
    rl_mutex_unlock(&t->mutex);
    return renews;
}

/*
 * Who writes has the key's TTL, until he asks to read, too; and the key of the
 * leases is not there. While the slot moves, only calls with one key are executed.
 */
static bool is_bare(const rl_batch *b, rl_hold *h)
{
    return b->ask.split && !b->compare && h->layout == RL_LAYOUT_WRITE &&
           !rl_hold_is_paired(table_of(b), h);
}

/* Without memory it has failed, and is tried again. */
static void ask_alone(const rl_batch *b, rl_hold *h, const rl_fault *f,
                      int64_t now_us)
{
    rl_batch *alone = rl_batch_take(b->node, &rl_batch_renew);
    if (alone && goes_on(alone, h, now_us)) {
        alone->bare = is_bare(b, h);
        alone->detour = b->detour;
        alone->hold[alone->n++] = h;
        rl_batch_push(alone, now_us);
        return;
    }
    if (alone)
        rl_batch_put(alone);
    end(b, h, NOT_ANSWERED, f, now_us);
}

/* --- the answer ----------------------------------------------------------- */

/* It stays, for replicas to be asked about it, or has ended. */
static void has(rl_batch *b, rl_hold *h, const rl_fault *f, int64_t now_us)
{
    if (h->replicas && renews(b))
        b->hold[b->n++] = h;
    else
        end(b, h, RENEWED, f, now_us);
}

/*
 * A renewal that keeps its token's key is not to fail for that: the two are not
 * in one place while their slot moves, or a right for the key is missing.
 */
static bool fails_for_token(const rl_batch *b, const rl_hold *h)
{
    return h->keeps &&
           (b->ask.split || rl_ask_is_refused(&b->ask, RL_NOT_EXECUTED));
}

static void note_one(rl_batch *b, const rl_reply *r, const rl_fault *f,
                     int64_t now_us)
{
    rl_hold *h = b->hold[0];
    b->n = 0;
    if (r && r->top.integer >= 1)
        has(b, h, f, now_us);
    else if (!r && (fails_for_token(b, h) ||
                    (renews(b) && !b->bare && is_bare(b, h))))
        ask_alone(b, h, f, now_us);
    else
        end(b, h, r ? NOT_HELD : NOT_ANSWERED, f, now_us);
}

/* To each it is as if it had asked by itself. */
static void note_several(rl_batch *b, const char *letters, bool apart,
                         const rl_fault *f, int64_t now_us)
{
    size_t n = b->n;
    b->n = 0;
    for (size_t i = 0; i < n; i++) {
        rl_hold *h = b->hold[i];
        if (letters && letters[i] == '1')
            has(b, h, f, now_us);
        else if (letters || apart)
            ask_alone(b, h, f, now_us);
        else
            end(b, h, NOT_ANSWERED, f, now_us);
    }
}

static void note(rl_batch *b, const rl_reply *r, const rl_fault *why,
                 int64_t now_us)
{
    rl_fault f = *why;
    if (b->n == 1) {
        note_one(b, r, why, now_us);
        return;
    }
    const char *letters = r && r->top.len == b->n ? r->top.str : NULL;
    bool refused = !letters && rl_ask_is_refused(&b->ask, r ? RL_ANSWERED
                                                            : RL_NOT_EXECUTED);
    if (r)
        rl_fault_set(&f, RLOCK_EIO, 0, "no answer of its own to a renewal");
    if (refused)
        b->node->keeper.one_by_one = true;
    note_several(b, letters, refused || b->ask.split, &f, now_us);
}

const rl_batch_verb rl_batch_renew = {.script = script,
                                      .write = write_renewal,
                                      .note = note,
                                      .confirmed = confirmed};
const rl_batch_verb rl_batch_look = {
    .script = script, .write = write_look, .note = note};
