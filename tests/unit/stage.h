/* Where jobs that have been started go on: without a loop, and without threads. */
#ifndef UNIT_STAGE_H
#define UNIT_STAGE_H

#include <errno.h>

#include "base/clock.h"
#include "run/async.h"
#include "run/desk.h"
#include "shim.h"
#include "test.h"

/* Nobody sleeps as long as that. */
#define LONG_US INT64_C(60000000)

typedef struct stage {
    rl_loop loop;
    rl_async a;
} stage;

/* A job of one operation that only sleeps, so often. */
typedef struct sleeper {
    rl_started s;
    rl_job job;
    rl_op op;
    int sleeps, resumed, overs;
    rl_wake calls; /* it is woken by that as it is about to sleep, or to end */
    rl_wake why;   /* the latest */
    unsigned rung;
    struct sleeper *then; /* whose operation is the job's next; NULL: none */
} sleeper;

static inline rl_next sleeper_resume(rl_op *op, rl_wake why, int64_t now_us)
{
    sleeper *x = RL_CONTAINER(op, sleeper, op);
    x->resumed++;
    x->why = why;
    x->rung = op->rung;
    op->rung = 0;
    if (x->calls != RL_WAKE_NONE)
        op->waker->wake(op->waker, x->calls, 0);
    x->calls = RL_WAKE_NONE;
    if (x->resumed > x->sleeps)
        return RL_DONE;
    op->sleep_us = now_us + LONG_US;
    return RL_SLEEP;
}

static inline rl_op *sleeper_next(rl_job *j)
{
    sleeper *x = RL_CONTAINER(j, sleeper, job), *then = x->then;
    x->then = NULL;
    return then ? rl_job_ask(j, &then->op, sleeper_next)
                : rl_job_over(j, RLOCK_OK);
}

static inline rl_op *sleeper_first(rl_job *j)
{
    sleeper *x = RL_CONTAINER(j, sleeper, job);
    EXPECT(j->lent == &x->s.desk->part);
    return rl_job_ask(j, &x->op, sleeper_next);
}

static inline void sleeper_over(rl_started *s)
{
    RL_CONTAINER(s, sleeper, s)->overs++;
}

static inline void open_stage(stage *g)
{
    memset(g, 0, sizeof *g);
    rl_loop_init(&g->loop);
    EXPECT(rl_loop_open(&g->loop));
    rl_async_init(&g->a, &g->loop, NULL);
    EXPECT(rl_async_furnish(&g->a));
}

static inline void close_stage(stage *g)
{
    EXPECT(g->a.jobs == 0 && g->a.at_desks == 0);
    EXPECT(g->a.sleeping.reserved == 0 && rl_list_is_empty(&g->a.woken));
    rl_async_fini(&g->a, false);
    rl_loop_stop(&g->loop);
    rl_loop_fini(&g->loop, false);
}

static inline void drive_at(stage *g, int64_t now_us)
{
    g->a.most_steps = 100;
    rl_async_take_inbox(&g->a);
    rl_async_take_woken(&g->a);
    rl_async_take_due(&g->a, now_us);
    rl_async_admit(&g->a);
}

static inline void drive(stage *g)
{
    drive_at(g, rl_now_us());
}

static inline sleeper sleeper_of(int sleeps)
{
    return (sleeper){.job = {.next = sleeper_first},
                     .op = {.resume = sleeper_resume},
                     .sleeps = sleeps};
}

static inline void put(stage *g, rl_started *s, rl_job *j,
                       void (*over)(rl_started *s))
{
    s->job = j;
    s->over = over;
    rl_async_put(&g->a, s);
}

static inline void start(stage *g, sleeper *x, int sleeps)
{
    *x = sleeper_of(sleeps);
    put(g, &x->s, &x->job, sleeper_over);
}

static inline void lose_memory(void)
{
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
}

#endif
