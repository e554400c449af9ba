/*
 * Undoing: a hold that is over, and that the server may still have, is released
 * until the server says that it is gone, or its lease has run out. And what a
 * call has left uncounted: a latch's count-down is asked for again until it is
 * answered, or its mark may have gone.
 */
#include "hold/due.h"
#include "op/call.h"
#include "run/batch.h"

/* What has never been held may be granted what it wanted yet. */
static bool may_be_granted(const rl_hold *h)
{
    return rl_hold_layout(h)->line || (h->stood && h->token == 0);
}

/* What is in doubt needs a tombstone, which cannot be had while a slot moves; nor
   can the line, or the queue, in which it may stand yet. */
static bool drops(const rl_hold *h)
{
    return h->split && !h->unknown && !may_be_granted(h);
}

static rl_script_id script(const rl_batch *b)
{
    const rl_layout *l = rl_hold_layout(b->hold[0]);
    return drops(b->hold[0]) ? l->drop : l->release;
}

static void write_call(const rl_batch *b, rl_bytes *to)
{
    if (drops(b->hold[0]))
        rl_call_drop(to, b->ask.whole, b->hold[0]);
    else
        rl_call_release(to, b->ask.whole, b->hold[0], 0, false,
                        b->node->e->core.bell);
}

static void note_locked(const rl_batch *b, rl_holds *t, bool done,
                        int64_t now_us) RL_REQUIRES(&t->mutex)
{
    rl_hold *h = b->hold[0];
    h->detour = (uint16_t)b->ask.detour;
    h->split = h->split || b->ask.split;
    bool goes_on = !t->stopping || rl_batch_has_broken(b);
    if (!done && goes_on && now_us < h->gone_us) {
        rl_hold_schedule_locked(t, h, rl_batch_next_try_us(b, now_us));
        return;
    }
    /* What has run out may stay only where the clock was put back. */
    bool left = !done && now_us < h->gone_us;
    t->left += left;
    t->uncounted += left && h->scope == RL_LATCH_SCOPE;
    rl_hold_undone_locked(t, h);
}

static void note(rl_batch *b, bool done, const rl_fault *f, int64_t now_us)
{
    rl_holds *t = &b->node->e->core.holds;
    rl_mutex_lock(&t->mutex);
    if (!done && t->stopping)
        rl_batch_fail_locked(b, t, f);
    note_locked(b, t, done, now_us);
    rl_mutex_unlock(&t->mutex);
    b->n = 0;
}

static void note_undone(rl_batch *b, const rl_reply *r, const rl_fault *f,
                        int64_t now_us)
{
    bool done =
        r ? r->top.integer < RL_UNBURIED : f->status == RLOCK_EWRONGTYPE;
    note(b, done, f, now_us);
}

const rl_batch_verb rl_batch_undo = {
    .script = script, .write = write_call, .note = note_undone};

/* --- count-downs ---------------------------------------------------------- */

static rl_script_id count_down(const rl_batch *b)
{
    (void)b;
    return RL_SCRIPT_LATCH_COUNT_DOWN;
}

static void write_count_down(const rl_batch *b, rl_bytes *to)
{
    rl_call_count_down(to, b->ask.whole, b->hold[0]);
}

static void note_counted(rl_batch *b, const rl_reply *r, const rl_fault *f,
                         int64_t now_us)
{
    note(b, r || f->status == RLOCK_EWRONGTYPE, f, now_us);
}

const rl_batch_verb rl_batch_count = {
    .script = count_down, .write = write_count_down, .note = note_counted};
