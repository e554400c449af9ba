/* What the verbs' files share: how a hold is found lost, and let go of. */
#ifndef RL_OP_VERB_H
#define RL_OP_VERB_H

#include "op/op.h"

/* The fault of a call about a hold that is lost. */
rlock_status rl_lost(rl_fault *f, rl_loss why);

/* The server says that the hold is gone; says so, or why it was lost before. */
void rl_note_loss(rl_part *x, rl_loss why, rl_fault *f, int64_t now_us);

/* A call failed: because of the hold, should that have been lost meanwhile. */
void rl_note_failure(rl_part *x, int64_t now_us);

/* Lets go of a hold that is out of the table. */
void rl_drop(rl_core *c, rl_hold *h, bool undo, int64_t now_us);

/* A release was answered (r), or not. */
void rl_note_release(rl_part *x, const rl_reply *r, int64_t now_us);

/*
 * The last one of a hold has ended, with what the release script answers; -1:
 * without an answer.
 */
void rl_note_free(rl_part *x, long long code, int64_t now_us);

#endif
