/*
 * Jobs that have been started at a client without threads: the test has the loop's
 * turns, makes the connections, and is the server.
 */
#ifndef UNIT_JOBS_H
#define UNIT_JOBS_H

#include "outpost.h"
#include "run/desk.h"

/* Of jobs, in a turn; and by who drives in the loop's place. */
enum { STEPS = 64, STEPS_INSTEAD = 256 };

/* While somebody dispatches, the loop sleeps no longer; */
#define BACKUP_MS 20
/* which he does if he did within that. */
#define ATTENDED_MS 100

typedef struct stage {
    play p;
    outpost o;
    rl_async *a;
    int64_t ahead_ms;
    int64_t before_us, now_us; /* around the latest turn */
    struct pollfd polled[8];
} stage;

/* A job of one operation. */
typedef struct job {
    rl_started s;
    rl_job job;
    rl_op op;
    rl_part *parts[1];
    rl_part part;
    bool asks;        /* once; else it sleeps */
    int64_t sleep_us; /* for so long; 0: it does not */
    int resumed;
    atomic_int overs;
    rl_wake why;
    void (*at_end)(struct job *x); /* it is over; or NULL */
    stage *g;
    struct job *other;
} job;

static inline rl_next resume(rl_op *op, rl_wake why, int64_t now_us)
{
    job *x = RL_CONTAINER(op, job, op);
    x->why = why;
    if (x->resumed++ > 0 || !(x->asks || x->sleep_us))
        return RL_DONE;
    if (x->asks)
        return RL_ASK;
    op->sleep_us = now_us + x->sleep_us;
    return RL_SLEEP;
}

static inline rl_op *no_more(rl_job *j)
{
    return rl_job_over(j, RLOCK_OK);
}

static inline rl_op *first(rl_job *j)
{
    return rl_job_ask(j, &RL_CONTAINER(j, job, job)->op, no_more);
}

static inline void over(rl_started *s)
{
    job *x = RL_CONTAINER(s, job, s);
    x->overs++;
    if (x->at_end)
        x->at_end(x);
}

static inline void make_job(stage *g, job *x, int64_t sleep_us)
{
    *x = (job){.job = {.next = first}, .g = g, .sleep_us = sleep_us};
    rl_op_init(&x->op, x->parts);
    x->op.resume = resume;
    x->s.job = &x->job;
    x->s.over = over;
}

/* It leaves a queue. */
static inline void make_asker(stage *g, job *x)
{
    make_job(g, x, 0);
    x->asks = true;
    x->op.n = x->op.quorum = 1;
    x->parts[0] = &x->part;
    outpost_begin_part(&g->o, &x->part, &x->op);
}

static inline void open_stage(stage *g)
{
    memset(g, 0, sizeof *g);
    play_open(&g->p, 1);
    outpost_open(&g->o, &g->p, 1, 3);
    g->a = outpost_open_async(&g->o);
    EXPECT(rl_async_furnish(g->a));
    atomic_store(&g->a->started, true);
}

static inline void close_stage(stage *g)
{
    EXPECT(g->a->jobs == 0 && g->a->at_desks == 0);
    outpost_close_async(&g->o);
    outpost_close(&g->o);
    play_close(&g->p);
}

static inline void pass(stage *g, int64_t ms)
{
    outpost_pass(&g->ahead_ms, ms);
}

/* As the loop has it: what it answers. */
static inline int64_t take_turn(stage *g)
{
    rl_watcher *w = &g->a->watcher;
    w->n = w->look(w, g->polled, 8);
    EXPECT(w->n <= 8);
    w->polled = g->polled;
    poll(g->polled, w->n, 0);
    g->before_us = rl_now_us();
    int64_t us = w->turn(w, g->before_us);
    g->now_us = rl_now_us();
    w->n = 0;
    return us;
}

static inline bool is_called(stage *g)
{
    return outpost_take_nudge(&g->a->watcher);
}

/* Of whom the descriptor is that who dispatches waits with. */
static inline bool is_readable(stage *g)
{
    struct pollfd p = {.fd = rl_completions_fd(&g->o.e.completions),
                       .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* A connection of the trunk has been asked for. */
static inline void start_asker(stage *g, job *x)
{
    make_asker(g, x);
    rl_async_start(g->a, &x->s);
    EXPECT(x->s.desk && x->resumed == 1);
}

static inline rl_conn *give_trunk(stage *g)
{
    rl_conn *c = outpost_give(&g->o);
    take_turn(g);
    outpost_expect_asked(&g->o);
    return c;
}

#endif
