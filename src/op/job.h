/*
 * A job: a verb of a lock in progress, as one operation after the other. An
 * unlock is one, a Multi lock's acquire may be dozens. Who drives it
 * (run/caller.c, run/async.c) asks for the next operation, makes it go
 * until it is done, and asks again.
 *
 * What stays true: the driver is the job's owner (rl_owner_self()) whenever it
 * calls next() or resume(), and one thread at a time drives a job. next() may
 * set the thread's error, but never waits and sends nothing.
 */
#ifndef RL_OP_JOB_H
#define RL_OP_JOB_H

#include "op/op.h"

typedef struct rl_job rl_job;

struct rl_job {
    /* What is to be driven next; NULL: it is over, as status says, and the
       thread's error. */
    rl_op *(*next)(rl_job *j);
    rlock_status status;
    rl_part *lent; /* by the driver, before next(); see rl_op */
};

/* For next(): it is over. */
static inline rl_op *rl_job_over(rl_job *j, rlock_status s)
{
    j->status = s;
    return NULL;
}

/* For next(): this is driven, and then goes on there. */
static inline rl_op *rl_job_ask(rl_job *j, rl_op *op, rl_op *(*then)(rl_job *j))
{
    op->lent = j->lent;
    j->next = then;
    return op;
}

#endif
