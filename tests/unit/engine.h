/*
 * A client's engine without threads: its keeper's line leads nowhere, and the
 * test says what comes over it.
 */
#ifndef UNIT_ENGINE_H
#define UNIT_ENGINE_H

#include "hold/due.h"
#include "play.h"
#include "run/batches.h"
#include "run/engine.h"

static inline void engine_close_nothing(rl_transport *t)
{
    (void)t;
}

/* Once more, after the line before has been freed. */
static inline void engine_connect(rl_engine *e)
{
    static const rl_transport_ops nowhere = {.close = engine_close_nothing};
    e->node.keeper.conn =
        rl_conn_new((rl_transport){.ops = &nowhere, .fd = -1});
    EXPECT(e->node.keeper.conn);
}

static inline rl_line *engine_line(rl_engine *e)
{
    return &e->node.keeper.conn->line;
}

/* Of the play's second server. */
static inline void engine_open(rl_engine *e, play *p)
{
    play_open(p, 1);
    play_open_core(p, &e->core, 1);
    e->node.e = e;
    e->node.queue = &e->core.holds.first;
    rl_batches_init(&e->node.keeper);
    e->node.keeper.end_us = RL_NEVER;
    engine_connect(e);
}

static inline void engine_cut(rl_engine *e, int64_t now_us)
{
    rl_fault f;
    rl_fault_set(&f, RLOCK_EIO, 0, "the connection broke");
    rl_line_fail(engine_line(e), &f, now_us);
}

static inline void engine_reconnect(rl_engine *e)
{
    rl_conn_free(e->node.keeper.conn);
    engine_connect(e);
}

/* What holds there are is dropped; the play goes on. */
static inline void engine_close(rl_engine *e, int64_t now_us)
{
    engine_cut(e, now_us);
    rl_conn_free(e->node.keeper.conn);
    rl_batches_fini(&e->node.keeper);
}

#endif
