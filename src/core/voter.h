/*
 * Who may vote. A server has one vote, as whatever nodes it is reached; and one
 * that restarted, and may have lost what it granted, has none until every lease
 * from before has run out (Redis documentation, "Distributed locks with Redis":
 * delayed restarts).
 *
 * The owner's thread calls it just before a vote is sent, for only then is it
 * known which server that connection leads to; the keeper before it asks a node
 * that is back.
 */
#ifndef RL_CORE_VOTER_H
#define RL_CORE_VOTER_H

#include "core/acquire.h"

/* For so long, a server that has restarted has no vote. */
int64_t rl_vote_longest_us(const rl_acquire *a, int64_t now_us);

/* May this part of an acquire be sent? Otherwise its fault says why not. */
bool rl_vote_may_ask(rl_op *op, rl_part *x, int64_t now_us);

/* May the server of this node vote now? Otherwise *f says why not. */
bool rl_may_vote(rl_core *c, int64_t longest_us, bool check_uptime,
                 int64_t now_us, rl_fault *f);

#endif
