/*
 * Hand-over: who unlocks a lock that another thread of this client waits for
 * passes it on to that one, by one call. See handover.c.
 */
#ifndef RL_CORE_HANDOVER_H
#define RL_CORE_HANDOVER_H

#include "core/op.h"

/* Locks of this scope may be handed over: those of one server, in hashes. */
static inline bool rl_scope_hands_over(uint64_t scope)
{
    return scope == RLOCK_LAYOUT_HASH;
}

/*
 * For a waiter that sleeps from now on: until until_us the lock may be granted
 * to its draft (NULL: may not), which is not its own meanwhile.
 */
void rl_room_rest(rl_rooms *r, rl_waiter *w, struct rl_hold *draft,
                  bool renewed, int64_t until_us);

/*
 * For a waiter whose sleep has ended, for this reason. RL_OFFERED: it sleeps
 * on, until it is woken; the reason is kept. RL_HANDED: the lock is its own,
 * and what w has to say of that is there. RL_AWAKE: neither.
 */
rl_rest rl_room_rise(rl_rooms *r, rl_waiter *w, rl_wake why);

/*
 * A hold has ended here, and was not handed over: the front looks. rings: the
 * server has rung who stood first in its queue, or may have; if this client may
 * be there, its front is left to that. A queue that is empty rings nobody,
 * whatever the client believes: a slot that moved may have left it behind.
 */
void rl_rooms_look(rl_rooms *r, const void *name, size_t len, uint64_t scope,
                   bool rings);

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
