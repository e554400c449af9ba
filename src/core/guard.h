/*
 * A guarded call: a script of the program, in front of which a guard looks
 * whether a hold has its lock (lua/hash/guard.lua). Guard and script are one
 * text, and so one script to the server; guards end where the program's text
 * begins, so nothing in that can keep them from being executed.
 */
#ifndef RL_CORE_GUARD_H
#define RL_CORE_GUARD_H

#include "core/op.h"

/* rl_guarded_sum(), as c remembers it. */
void rl_guarded_name(rl_guarded *g, rl_core *c, const rl_layout *layout);

/* g stays the caller's until the end, and what it points to. */
void rl_part_guard(rl_part *x, rl_core *c, rl_hold *h, rl_guarded *g,
                   int64_t now_us);

/* Of an op with such a part: is the hold good still? */
bool rl_guard_may_ask(rl_op *op, rl_part *x, int64_t now_us);

/* It was answered (r), or not. */
void rl_note_guarded(rl_part *x, const rl_reply *r, int64_t now_us);

#endif
