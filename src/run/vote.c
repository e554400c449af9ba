/*
 * A vote: a node of a Red lock that does not have it is asked again, as long as
 * a quorum has the lock. So one that is back takes part again.
 */
#include "op/call.h"
#include "op/op.h"
#include "run/batch.h"

static rl_script_id script(const rl_batch *b)
{
    return rl_hold_layout(b->hold[0])->acquire;
}

static void write_call(const rl_batch *b, rl_bytes *to)
{
    const rl_hold *h = b->hold[0];
    rl_request r = {.lease_ms = b->node->e->core.holds.renewal_ms,
                    .level = 1,
                    .bell = "",
                    .says_least = true,
                    .least = h->group->token};
    rl_call_acquire(to, b->ask.whole, h, &r);
}

static void voted_locked(const rl_batch *b, rl_holds *t, bool granted,
                         int64_t now_us) RL_REQUIRES(&t->mutex)
{
    rl_hold *h = b->hold[0];
    h->in_flight = false;
    if (h->state != RL_VACANT) /* released meanwhile, and being undone */
        return;
    if (rl_hold_join_late_locked(t, h, granted, now_us, b->ask.sent_us,
                                 t->renewal_ms, now_us))
        return;
    h->unknown = h->unknown || granted;
    rl_hold_vacate_locked(t, h, now_us);
}

/* odd: it may be granted all the same. */
static void end(rl_batch *b, bool granted, bool odd, int64_t now_us)
{
    rl_hold *h = b->hold[0];
    rl_holds *t = &b->node->e->core.holds;
    rl_mutex_lock(&t->mutex);
    h->unknown = h->unknown || b->ask.unknown || odd;
    rl_hold_expect(h, now_us, t->renewal_ms);
    voted_locked(b, t, granted, now_us);
    rl_hold_unref_locked(t, h);
    rl_mutex_unlock(&t->mutex);
}

static void note(rl_batch *b, const rl_reply *r, const rl_fault *why,
                 int64_t now_us)
{
    rl_grant g;
    rl_fault f;
    (void)why;
    bool granted = r && rl_grant_read(r, 1, &g, &f) == RL_ACQUIRED;
    if (granted && b->hold[0]->replicas)
        return;
    bool odd = r && g.odd;
    if (odd && b->ask.line)
        b->ask.line->odd = true;
    end(b, granted, odd, now_us);
    b->n = 0;
}

static void confirmed(rl_batch *b, rl_hold *h, const rl_fault *f,
                      int64_t now_us)
{
    (void)h;
    end(b, !f, f != NULL, now_us);
}

const rl_batch_verb rl_batch_vote = {.script = script,
                                     .write = write_call,
                                     .note = note,
                                     .confirmed = confirmed};
