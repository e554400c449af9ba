/*
 * The end of a hold, by its last unlock: what the answer means, or that none
 * came, and who is to look for the lock now. Called by the thread that has read
 * the answer, mostly the owner's. A hold that is counted down only goes on.
 */
#include "hold/step.h"
#include "op/call.h"
#include "op/handover.h"
#include "op/verb.h"

/* The thread of the next owner has to be woken, and has a way to go. */
#define WAKE_UP_US 200

/* Of several, who has few rings waits for more of them. */
#define WAKE_UP_OF_SEVERAL_US 4000
#define LONGEST_HOLD_BACK_US  (20 * 1000)

/* A release that is put off, as its slot moves, drops the lock by then. */
#define LAST_MOMENT_US (500 * 1000)

/* The server does not know the hold any more, after it left the table. */
static void lost_at_release(rl_part *x, rl_loss why, rl_fault *f,
                            int64_t now_us)
{
    rl_hold_report_loss(&x->core->holds, x->hold, why, now_us);
    rl_lost(f, why);
}

/*
 * A release rang another client, which has the same way to the server as this
 * one, and a thread to wake: the next comer here is held back.
 */
static void hold_back(const rl_part *x, int64_t now_us)
{
    const rl_hold *h = x->hold;
    int64_t us = now_us - x->ask.sent_us + WAKE_UP_US;
    if (h->scope >= RL_SINGLE_SCOPES)
        us += WAKE_UP_OF_SEVERAL_US;
    rl_rooms_hold_back(&x->core->rooms, rl_hold_name(h), h->name_len,
                       now_us + rl_min(us, LONGEST_HOLD_BACK_US));
}

/* A hold has ended here: it is let go of, and the front may have to look. */
static void let_go(rl_core *c, rl_hold *h, bool rings, bool undo,
                   int64_t now_us)
{
    rl_rooms_look(&c->rooms, rl_hold_name(h), h->name_len, h->scope, rings);
    rl_hold_drop(&c->holds, h, undo, now_us);
}

/* The last unlock. What stays unknown is left to the keeper. */
void rl_note_free(rl_part *x, long long code, int64_t now_us)
{
    bool undo, rings = true;
    if (code >= 0) {
        undo = code >= RL_UNBURIED;
        code %= RL_UNBURIED;
        /* Gone, after a try whose answer was lost: it was that one. */
        x->ok = code > 0 || x->ask.unknown;
        rings = code >= RL_RUNG;
        if (!x->ok)
            lost_at_release(x, RL_LOSS_GONE, &x->fault, now_us);
        if (code == RL_RUNG && !rl_hold_layout(x->hold)->line)
            hold_back(x, now_us);
    } else {
        rl_fault ignored;
        rings = undo = x->fault.status != RLOCK_EWRONGTYPE;
        if (!undo)
            lost_at_release(x, RL_LOSS_FOREIGN, &ignored, now_us);
    }
    let_go(x->core, x->hold, rings, undo, now_us);
    x->hold = NULL;
}

/* A level that was asked for before may be noted by another thread now. */
static void note_level(rl_part *x)
{
    x->ok = true;
    if (x->op && x->level == 1)
        rl_hold_come_up(&x->core->holds, x->hold);
}

static void note_release(rl_part *x, const rl_reply *r, int64_t now_us)
{
    if (x->heir)
        rl_note_hand_over(x, r, now_us);
    else if (x->level == 0)
        rl_note_free(x, r ? rl_max(r->top.integer, 0) : -1, now_us);
    else if (!r)
        rl_note_failure(x, now_us);
    else if (r->top.integer == 1)
        note_level(x);
    else
        rl_note_loss(x, RL_LOSS_GONE, &x->fault, now_us);
}

static void write_release(const rl_part *x, rl_bytes *to)
{
    if (x->drops)
        rl_call_drop(to, x->ask.whole, x->hold);
    else if (x->heir)
        rl_hand_over_write(x, to);
    else
        rl_call_release(to, x->ask.whole, x->hold, x->level, x->quiet,
                        x->hold->unknown ? x->core->bell : "");
}

/* Those who wait are not rung, so only when nothing else will do in time. */
static void drop_if_late(rl_part *x, int64_t now_us)
{
    if (!x->ask.split || rl_hold_layout(x->hold)->drop == RL_SCRIPT_COUNT ||
        x->level > 0 || x->next || x->hold->unknown ||
        now_us < x->until_us - LAST_MOMENT_US)
        return;
    if (x->heir && x->ask.unknown)
        return; /* it may have got the lock */
    if (x->heir)
        rl_part_take_back(x);
    x->drops = true;
    x->ask.script = rl_hold_layout(x->hold)->drop;
    x->ask.whole = false;
}

const rl_verb rl_verb_release = {.write = write_release,
                                 .note = note_release,
                                 .ready = drop_if_late,
                                 .ends_hold = true};

void rl_part_release(rl_part *x, rl_core *c, rl_hold *h, int level,
                     int64_t now_us)
{
    rl_part_begin(x, c, &rl_verb_release, rl_hold_layout(h)->release, now_us);
    x->hold = h;
    x->level = level;
}

rlock_status rl_release_lost(rl_core *c, rl_hold *h, int level, rl_fault *f,
                             int64_t now_us)
{
    rl_loss why = h->loss;
    if (level == 0)
        let_go(c, h, true, h->unknown || rl_hold_lingers(h), now_us);
    return rl_lost(f, why);
}
