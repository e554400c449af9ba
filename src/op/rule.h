/*
 * When a round is over: early, with a quorum, or without hope of one, for which
 * those who are slow are waited for as long as there is patience; otherwise,
 * when all have answered but those who are slow; these are waited for, too, as
 * long as a quorum lacks them. A quorum of 0: no answer is needed.
 */
#ifndef RL_OP_RULE_H
#define RL_OP_RULE_H

#include "op/op.h"

bool rl_rule_is_decided(const rl_op *op);

/* How many parts that were due are ok. */
size_t rl_rule_ok(const rl_op *op);

/* What each part answered, as far as there is room. */
#define RL_SAYS_MAX 200
void rl_rule_tell(const rl_op *op, char out[RL_SAYS_MAX]);

#endif
