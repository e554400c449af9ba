/*
 * When a round is over: early, with a quorum, or without hope of one, for which
 * those who are slow are waited for as long as there is patience; otherwise,
 * when all have answered but those who are slow; these are waited for, too, as
 * long as a quorum lacks them. A quorum of 0: no answer is needed.
 */
#ifndef RL_CORE_RULE_H
#define RL_CORE_RULE_H

#include "core/op.h"

bool rl_rule_is_decided(const rl_op *op);

/* How many parts that were due are ok. */
size_t rl_rule_ok(const rl_op *op);

#endif
