/*
 * The sides of a read-write lock. An owner has a hold for each that it holds: they
 * are found apart, but know of each other.
 */
#ifndef RL_HOLD_SIDE_H
#define RL_HOLD_SIDE_H

#include "hold/hold.h"

/* The owner's hold of the other side; NULL: it has none, or this is no side. */
rl_hold *rl_hold_other_side_locked(rl_holds *t, const rl_hold *h)
    RL_REQUIRES(&t->mutex);

/* Whoever holds the lock of a name; of a read-write lock, whichever side. */
void rl_holds_each_holder_locked(rl_holds *t, const rl_target *what,
                                 int64_t now_us,
                                 void (*fn)(rl_owner_record *x, void *arg),
                                 void *arg) RL_REQUIRES(&t->mutex);

/* Does the owner of a draft hold the other side, and as which hold? */
bool rl_hold_joins(rl_holds *t, rl_hold *draft, rl_uuid *other);

/* Has its owner asked for the other side, too? */
bool rl_hold_is_paired(rl_holds *t, const rl_hold *h);

/* Who joins to write has a token for both, also if it is undone: those who come to
   read get it. A larger one for who joins to read: his write side is lost. */
void rl_hold_share_token(rl_holds *t, const rl_hold *draft, uint64_t token);

#endif
