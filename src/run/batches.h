/*
 * The keeper's batches: what is due at its server, put on its line: renewals,
 * looks, undoing, and votes of nodes that do not have the lock yet. All is the
 * loop's.
 */
#ifndef RL_RUN_BATCHES_H
#define RL_RUN_BATCHES_H

#include "run/keeper.h"

void rl_batches_init(rl_keeper *k);
/* Memory for the first ones, before the first hold. False: there is none. */
bool rl_batches_reserve(rl_keeper *k);
void rl_batches_fini(rl_keeper *k); /* more may be reserved afterwards */

/* Is the connection up, and may more be put on its line? */
bool rl_batches_have_room(const rl_keeper *k);

/* Puts what is due on the line, as far as it may be in flight, and not more than
   a turn may take. */
void rl_batches_push_due(struct rl_node *node, int64_t now_us);

/* Notes everything that is due as failed; it is tried after the back-off. */
void rl_batches_fail_due(struct rl_node *node, const rl_fault *why,
                         int64_t now_us);

/* False: what waits to be sent is for a hold whose deadline has passed. */
bool rl_batches_may_send(const rl_keeper *k, int64_t now_us);

#endif
