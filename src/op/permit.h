/* What is asked about a semaphore without taking permits of it. */
#ifndef RL_OP_PERMIT_H
#define RL_OP_PERMIT_H

#include "op/op.h"

/*
 * Adds what the draft, a mark (op/mark.h), is for; h->lease_ms: how many permits
 * there are if nobody has said yet. Code 1: it is done; 0: there would be too many.
 * The draft stays its caller's.
 */
void rl_part_add_permits(rl_part *x, rl_core *c, rl_hold *draft,
                         int64_t now_us);

/* Code: so many are free. */
void rl_part_available(rl_part *x, rl_core *c, const rl_target *what,
                       int64_t now_us);

#endif
