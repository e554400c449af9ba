/*
 * To extend: a hold's lease becomes another one, longer or shorter, renewed or
 * not. As long as nobody knows whether the server has executed it, the hold is
 * believed in for the shorter of the two only: from when it is sent, and, when
 * no answer comes, until one of a later call says more (cap_ms).
 */
#include "hold/due.h"
#include "hold/step.h"
#include "op/call.h"
#include "op/verb.h"

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
        rl_hold_resume_renewal_locked(t, h, now_us);
    }
    rl_mutex_unlock(&t->mutex);
}

static void check_extension(rl_part *x, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    const rl_hold *h = x->hold;
    rl_mutex_lock(&t->mutex);
    bool valid = rl_hold_is_valid_locked(t, x->hold, now_us);
    bool capped = !x->renewed && rl_hold_cap_ms(h, x->ask.sent_us) <
                                     rl_min(x->request.lease_ms, RL_NO_CAP - 1);
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
    bool done = r && r->top.integer == 1, set = done && !rl_is_short(x);
    put_extension(x, r, set, now_us);
    if (!r || (done && !set))
        rl_note_failure(x, now_us);
    else if (set)
        check_extension(x, now_us);
    else
        rl_note_loss(x, RL_LOSS_GONE, &x->fault, now_us);
}

static void write_extension(const rl_part *x, rl_bytes *to)
{
    rl_call_extend(to, x->ask.whole, x->hold, x->request.lease_ms, x->compare);
}

/* Believed in for no longer than it asks for, from its first try on. */
static void lower(rl_part *x, int64_t now_us)
{
    if (x->before_us == 0)
        x->before_us = rl_hold_lower(&x->core->holds, x->hold, now_us,
                                     x->request.lease_ms);
}

static void owe_locked(rl_part *x, rl_holds *t) RL_REQUIRES(&t->mutex)
{
    rl_hold_owe_extend_locked(t, x->hold, x->began_us, x->request.lease_ms);
}

static const rl_verb extend = {.write = write_extension,
                               .note = note_extension,
                               .ready = lower,
                               .is_late_locked = owe_locked,
                               .for_owner = true,
                               .writes_anew = true};

/*
 * As long as renewal may have to go on afterwards, asking does not take long.
 */
void rl_part_extend(rl_part *x, rl_core *c, rl_hold *h, int64_t lease_ms,
                    int64_t until_us, int64_t now_us)
{
    rl_part_begin(x, c, &extend, rl_hold_layout(h)->extend, now_us);
    rl_part_begin_lease(x, h, lease_ms);
    rl_part_confirm(x);
    rl_mutex_lock(&c->holds.mutex);
    x->until_us = rl_min(h->expiry.due_us, rl_min(until_us, x->until_us));
    if (h->renewed)
        x->until_us = rl_min(x->until_us, rl_renewal_end(c, now_us));
    x->compare = rl_hold_compares_locked(h);
    rl_hold_expect(h, x->until_us, x->request.lease_ms);
    rl_mutex_unlock(&c->holds.mutex);
}
