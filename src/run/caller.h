/* The calling thread as a driver: it makes an operation go until it is done. */
#ifndef RL_RUN_CALLER_H
#define RL_RUN_CALLER_H

#include "op/job.h"

/*
 * Asks the parts that are due, sleeps when told so, and returns when the
 * operation is done. Parts on the heap may be late by then.
 */
void rl_drive(rl_op *op);

/* One part, of the caller's, which is over then. */
static inline void rl_drive_part(rl_part *x)
{
    rl_op op;
    rl_op_init(&op, &op.lent);
    op.n = op.quorum = 1;
    op.lent = x;
    x->op = &op;
    x->heap = false;
    rl_drive(&op);
}

/* One operation after the other, until the job is over. */
static inline rlock_status rl_drive_job(rl_job *j)
{
    rl_part part;
    rl_op *op;
    part.heap = false;
    j->lent = &part;
    while ((op = j->next(j)) != NULL)
        rl_drive(op);
    return j->status;
}

#endif
