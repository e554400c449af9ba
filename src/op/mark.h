/*
 * What is done once, however often it is sent: a latch's count-down or setting, or
 * what is added to a semaphore. A mark is a draft of no hold, which is never HELD,
 * but may be UNDOING: then the keeper goes on with it. Its uuid is how the server
 * knows it, for RL_LATE_MS from now on at most.
 */
#ifndef RL_OP_MARK_H
#define RL_OP_MARK_H

#include "op/op.h"

/* One for that amount. NULL: out of memory, or randomness. */
rl_hold *rl_mark_new(rl_core *c, const rl_target *what, const rl_owner *owner,
                     int64_t amount, int64_t now_us);

/* A part that asks for it, within that time. The mark stays its caller's. */
void rl_part_begin_mark(rl_part *x, rl_core *c, const rl_verb *verb,
                        rl_script_id script, rl_hold *mark, int64_t now_us);

#endif
