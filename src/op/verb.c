/*
 * Verbs: each has a file, verb_*.c, which says how its parts begin, how their
 * call is written, and what an answer does to the hold table. Here is what they
 * share. Answers are noted by the thread that has read them, mostly the owner's;
 * of a part that is late, by whichever has its connection.
 *
 * Only the owner counts its hold, so between a part's beginning and its end
 * nobody else changes the level; the keeper may prolong the hold or find it
 * lost, which the end takes into account. Scripts are told the level to reach,
 * so an answer that never came can be asked for again.
 *
 * An answer that is late prolongs nothing: what the owner has asked since may
 * have been executed after it.
 */
#include "op/verb.h"

#include "hold/step.h"

/* The fault of a call about a hold that is lost. */
rlock_status rl_lost(rl_fault *f, rl_loss why)
{
    return rl_fault_set(f, RLOCK_LOST, 0, "%s", rl_loss_text(why));
}

/* The server says that the hold is gone; says so, or why it was lost before. */
void rl_note_loss(rl_part *x, rl_loss why, rl_fault *f, int64_t now_us)
{
    rl_holds *t = &x->core->holds;
    rl_lost(f, rl_hold_note_gone(t, x->hold, why, x->ask.sent_us, now_us));
}

/* A call failed: because of the hold, should that have been lost meanwhile. */
void rl_note_failure(rl_part *x, int64_t now_us)
{
    rl_fault foreign = x->fault;
    rl_loss why;
    if (foreign.status == RLOCK_EWRONGTYPE) {
        rl_note_loss(x, RL_LOSS_FOREIGN, &x->fault, now_us);
        x->fault = foreign;
        return;
    }
    if (!rl_hold_is_valid(&x->core->holds, x->hold, &why, now_us))
        rl_lost(&x->fault, why);
}

/* Too few replicas have what was answered yes, as the fault says. */
bool rl_is_short(rl_part *x)
{
    if (rl_ask_is_durable(&x->ask))
        return false;
    rl_add(&x->core->stats.replica_shortfalls, 1);
    return true;
}

/*
 * An answer that no script of ours gives may be another one's, and then those
 * behind it are, too.
 */
void rl_mistrust(const rl_part *x)
{
    if (x->ask.line)
        x->ask.line->odd = true;
}

void rl_note_code(rl_part *x, const rl_reply *r, int64_t now_us)
{
    (void)now_us;
    x->ok = r != NULL;
    x->code = r ? r->top.integer : 0;
}
