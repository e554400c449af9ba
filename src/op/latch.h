/*
 * A latch, whose count falls and which is open at zero: what is done to it, and
 * the wait for it.
 */
#ifndef RL_OP_LATCH_H
#define RL_OP_LATCH_H

#include "op/acquire.h"

/* What is answered is the part's code: of a count-down what is left, of a set
   and a delete 1: done. The draft is a mark (op/mark.h), and stays its caller's. */
void rl_part_count_down(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us);
void rl_part_latch_set(rl_part *x, rl_core *c, rl_hold *draft, int64_t now_us);
void rl_part_latch_delete(rl_part *x, rl_core *c, const rl_target *what,
                          int64_t now_us);

/* Code: what is left, 0: it is open. Else the grant's rank: 0 if the bell,
   which the request has, is in the queue, or -1. */
void rl_part_latch_look(rl_part *x, rl_core *c, const rl_target *what,
                        int64_t now_us);

/*
 * Has a count-down no answer, or one that another server, or this one later,
 * would not give? Then it is to be asked again.
 */
bool rl_latch_is_owed(const rl_part *x);

/* The wait, driven as an acquire is. It has no owner. */
typedef struct rl_latch_wait {
    rl_op op;
    rl_core *home;
    const rl_target *what;
    const void *handle; /* whose rlock_latch_cancel() ends it */
    rl_cancel cancel;
    int64_t wait_ms;
    void (*listen)(rl_core *c, const rl_target *what);
    rl_phase phase;
    int64_t began_us, wait_until_us, call_until_us, tried_us, pause_us;
    rl_waiter waiter;
    rl_part *one;        /* that is asked */
    bool last_try;       /* whatever comes of this look, there is no other */
    bool asked;          /* the server has been */
    rlock_status status; /* when it is done */
    rl_fault fault;      /* of the last failure, or what was left */
} rl_latch_wait;

/* Begins; what is set before: home, what, handle, cancel, wait_ms, listen. */
void rl_latch_wait_init(rl_latch_wait *w, int64_t now_us);

#endif
