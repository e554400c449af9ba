/*
 * Hand-over: who unlocks a lock that another thread of this client waits for
 * passes it on to that one, by one call. See handover.c.
 */
#ifndef RL_OP_HANDOVER_H
#define RL_OP_HANDOVER_H

#include "op/op.h"

/* Locks of this scope may be handed over: those of one server, in hashes. */
static inline bool rl_scope_hands_over(uint64_t scope)
{
    return scope == RLOCK_LAYOUT_HASH;
}

/* May it be granted a lock by another thread now? Not if w is NULL. */
bool rl_waiter_takes_locked(rl_rooms *r, const rl_waiter *w, int64_t now_us)
    RL_REQUIRES(&r->mutex);

/*
 * The last release of a hold, to who waits for it here. False: nobody does, or
 * the lock is to be freed; the part has not begun.
 */
bool rl_part_hand_over(rl_part *x, rl_core *c, rl_hold *h, int64_t now_us);
void rl_hand_over_write(const rl_part *x, rl_bytes *to);
/* Before anything was executed: the offer is withdrawn, the lock only freed. */
void rl_part_take_back(rl_part *x);
void rl_note_hand_over(rl_part *x, const rl_reply *r, int64_t now_us);

/* The part of an acquire whose lock was handed over, as if it were answered. */
void rl_note_handed(rl_part *x, const rl_waiter *w, int64_t now_us);

#endif
