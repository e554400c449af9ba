/*
 * Extend: sets the lease of one hold, or of several at once. A renewal that
 * overtook the extend would undo it, so renewal pauses, and what is under way
 * is waited for first; of a quorum, only for as many.
 *
 * When it is over renewal goes on, perhaps while an extend is late, on a node
 * of a quorum: until that has ended, the hold there is believed in for no
 * longer than its lease (rl_hold_owe_extend_locked).
 */
#ifndef RL_OP_EXTEND_H
#define RL_OP_EXTEND_H

#include "op/op.h"

typedef struct rl_extend {
    rl_op op; /* its parts: core and hold are set */
    int64_t lease_ms;
    int64_t until_us;  /* of the whole */
    int64_t quorum_us; /* when a quorum had landed; 0: not yet */
    bool asked;
} rl_extend;

/* op and its parts are set, and its waker. */
void rl_extend_init(rl_extend *x, int64_t lease_ms, int64_t until_us);

/*
 * The op's resume(). A part that is lent has to be set anew before, until it
 * has been asked: another one is lent after each sleep.
 */
rl_next rl_extend_resume(rl_op *op, rl_wake why, int64_t now_us);

#endif
