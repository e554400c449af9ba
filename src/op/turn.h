/*
 * Turns: a lock that was handed over may for some milliseconds be passed on
 * between threads of this client without asking the server. See turn.c.
 */
#ifndef RL_OP_TURN_H
#define RL_OP_TURN_H

#include "op/op.h"

/*
 * For a draft that has been handed over with so many tokens to spare, before it
 * is granted here. Without memory the lock is not passed on, and that is all.
 */
void rl_turn_begin(rl_holds *t, rl_hold *draft, const rl_waiter *w);

/*
 * The last unlock, if somebody waits here for it who may have it at once: the
 * hold is that one's from now on. False: it is not to be, and nothing changed.
 * The clock is looked at when it is certain that nothing else keeps us waiting.
 */
bool rl_turn_pass(rl_core *c, rl_hold *h, int64_t (*clock_us)(void));

/* The part of an acquire to whose thread the lock was passed. False: it has
   been lost since, and the draft is as it was. */
bool rl_note_passed(rl_part *x, rl_hold *passed, int64_t now_us);

#endif
