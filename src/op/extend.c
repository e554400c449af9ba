#include "op/extend.h"

#include "hold/step.h"

/* How long a renewal is waited for that nobody depends on. */
#define LANDING_US 2000

/* The parts whose renewal is not under way any more. */
static size_t count_landed(rl_extend *e)
{
    size_t landed = 0;
    for (size_t i = 0; i < e->op.n; i++) {
        rl_part *x = e->op.part[i];
        if (!x)
            continue;
        x->ok = rl_hold_has_landed(&x->core->holds, x->hold, e->op.waker);
        landed += x->ok;
    }
    return landed;
}

static size_t count_parts(const rl_extend *e)
{
    size_t n = 0;
    for (size_t i = 0; i < e->op.n; i++)
        n += e->op.part[i] != NULL;
    return n;
}

/* How long those that have not landed are waited for. */
static int64_t patience_end(rl_extend *e, size_t landed, int64_t now_us)
{
    size_t wanted = e->op.early ? e->op.quorum : count_parts(e);
    if (landed >= count_parts(e))
        return 0;
    if (landed < wanted)
        return e->until_us;
    if (e->quorum_us == 0)
        e->quorum_us = now_us;
    return rl_min(e->until_us, e->quorum_us + LANDING_US);
}

static void refuse(rl_part *x, int64_t now_us)
{
    if (x->hold->extra)
        rl_fault_set(&x->fault, RLOCK_EIO, 0, "a renewal does not end");
    else
        rl_fault_set(&x->fault, RLOCK_ENOMEM, 0, "out of memory");
    rl_ask_refuse(&x->ask, now_us);
}

static rl_next ask(rl_extend *e, int64_t now_us)
{
    e->asked = true;
    for (size_t i = 0; i < e->op.n; i++) {
        rl_part *x = e->op.part[i];
        if (!x)
            continue;
        bool landed = x->ok;
        rl_hold_has_landed(&x->core->holds, x->hold, NULL);
        rl_part_extend(x, x->core, x->hold, e->lease_ms, e->until_us, now_us);
        if (e->op.several && e->op.early)
            rl_part_limit(x, e->lease_ms, e->until_us);
        if (!landed || !x->hold->extra)
            refuse(x, now_us);
    }
    return RL_ASK;
}

rl_next rl_extend_resume(rl_op *op, rl_wake why, int64_t now_us)
{
    rl_extend *e = RL_CONTAINER(op, rl_extend, op);
    (void)why;
    if (e->asked) {
        rl_op_leave_late(op);
        return RL_DONE;
    }
    int64_t end_us = patience_end(e, count_landed(e), now_us);
    if (end_us <= now_us)
        return ask(e, now_us);
    op->sleep_us = end_us;
    return RL_SLEEP;
}

void rl_extend_init(rl_extend *e, int64_t lease_ms, int64_t until_us)
{
    e->op.resume = rl_extend_resume;
    e->lease_ms = lease_ms;
    e->until_us = until_us;
    e->quorum_us = 0;
    e->asked = false;
    for (size_t i = 0; i < e->op.n; i++) {
        rl_part *x = e->op.part[i];
        if (x)
            rl_hold_pause_renewal(&x->core->holds, x->hold);
    }
}
