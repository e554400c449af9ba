/*
 * A guarded call: a script of the program, in front of which a guard looks
 * whether a hold has its lock (lua/hash/guard.lua). Guard and script are one
 * text, and so one script to the server; guards end where the program's text
 * begins, so nothing in that can keep them from being executed.
 */
#ifndef RL_OP_VERB_GUARD_H
#define RL_OP_VERB_GUARD_H

#include "op/op.h"

/*
 * A command's keys are not known here. In a cluster the server is made to
 * refuse those of another slot than the lock's, which it would not by itself if
 * that were its own. The part's hold, x->guarded and its `compare` are set.
 */

/* g stays the caller's until the end, and what it points to. */
void rl_part_guard(rl_part *x, rl_core *c, rl_hold *h, rl_guarded *g,
                   int64_t now_us);

/* Of an op with such a part: is the hold good still? */
bool rl_guard_may_ask(rl_op *op, rl_part *x, int64_t now_us);

#endif
