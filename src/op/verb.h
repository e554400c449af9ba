/* What the verbs' files share: how a part begins, and how a hold is found lost,
   and let go of. */
#ifndef RL_OP_VERB_H
#define RL_OP_VERB_H

#include "op/op.h"

/* All of it but the hold, or what it is about. */
void rl_part_begin(rl_part *x, rl_core *c, const rl_verb *verb,
                   rl_script_id script, int64_t now_us);

/* Its hold, and the lease that is asked for. */
void rl_part_begin_lease(rl_part *x, rl_hold *h, int64_t lease_ms);

/* It is answered by a number, and that is all: x->code. */
void rl_note_code(rl_part *x, const rl_reply *r, int64_t now_us);

/*
 * Its answer may move a deadline: replicas have to have it, too. A lease that
 * has run out meanwhile is worth nothing.
 */
void rl_part_confirm(rl_part *x);

/* Too few replicas have what was answered yes, as the fault says. */
bool rl_is_short(rl_part *x);

/* No script of ours has answered so; what is answered behind it may be odd, too.
 */
void rl_mistrust(const rl_part *x);

/* The fault of a call about a hold that is lost. */
rlock_status rl_lost(rl_fault *f, rl_loss why);

/* The server says that the hold is gone; says so, or why it was lost before. */
void rl_note_loss(rl_part *x, rl_loss why, rl_fault *f, int64_t now_us);

/* A call failed: because of the hold, should that have been lost meanwhile. */
void rl_note_failure(rl_part *x, int64_t now_us);

/*
 * The last one of a hold has ended, with what the release script answers; -1:
 * without an answer.
 */
void rl_note_free(rl_part *x, long long code, int64_t now_us);

#endif
