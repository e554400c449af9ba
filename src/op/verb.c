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
bool rl_is_short(rl_part *x)
{
    if (rl_ask_is_durable(&x->ask))
        return false;
    rl_add(&x->core->stats.replica_shortfalls, 1);
    return true;
}

void rl_drop(rl_core *c, rl_hold *h, bool undo, int64_t now_us)
{
    rl_mutex_lock(&c->holds.mutex);
    rl_hold_drop_locked(&c->holds, h, undo, now_us);
    rl_mutex_unlock(&c->holds.mutex);
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
