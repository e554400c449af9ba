/* What the tests of verbs share: a client, a hold, a part. */
#ifndef UNIT_DEED_H
#define UNIT_DEED_H

#include "op/op.h"

#include "play.h"

/* One client, one hold, one part. */
typedef struct deed {
    play p;
    rl_op op;
    rl_part *x;
    rl_hold *h;
} deed;

static inline rl_core *core(deed *d)
{
    return play_core(&d->p, 0);
}

static inline void open_deed(deed *d)
{
    play_open(&d->p, 1);
    d->x = rl_part_new();
    EXPECT(d->x);
    d->h = NULL;
}

static inline void open_with_hold(deed *d, int64_t lease_ms)
{
    open_deed(d);
    d->h = play_hold(&d->p, 0, "job", lease_ms);
    d->h->refs++; /* the call's, as rl_holds_pick() gives it */
    EXPECT(rl_hold_make_extra(d->h)); /* as an extend needs it */
}

static inline void open_with_draft(deed *d, int64_t lease_ms)
{
    open_deed(d);
    d->h = play_draft(&d->p, 0, &play_job, lease_ms);
}

static inline rl_next go(deed *d)
{
    play_one(&d->p, &d->op, d->x);
    return play_begin(&d->p, &d->op);
}

static inline rl_next answer(deed *d, const char *reply)
{
    return play_answer(&d->p, 0, reply);
}

/* Time passes for the answer, and it comes. */
static inline void answer_late(deed *d, int64_t us, const char *reply)
{
    play_pass(&d->p, us);
    EXPECT_INT(answer(d, reply), RL_DONE);
}

static inline void close_deed(deed *d)
{
    if (d->x)
        rl_part_let_go(d->x);
    play_close(&d->p);
}

/* ... that has a reference to its hold. */
static inline void close_with_hold(deed *d)
{
    rl_holds_put(&core(d)->holds, d->h);
    close_deed(d);
}

static inline void expect_fault(const deed *d, rlock_status status,
                                const char *text)
{
    EXPECT(!d->x->ok);
    EXPECT_INT(d->x->fault.status, status);
    EXPECT_CONTAINS(d->x->fault.text, text);
}

static inline bool is_due(deed *d, const rl_hold *h)
{
    rl_heap_node *n = rl_heap_first(&core(d)->holds.first.work);
    return n == &h->work;
}

static inline void begin_reentry(deed *d, int64_t lease_ms, int64_t more_ms)
{
    open_with_hold(d, lease_ms);
    play_pass(&d->p, 1000 * MS);
    EXPECT(rl_part_reenter(d->x, core(d), d->h, more_ms, d->p.now_us));
    EXPECT_INT(go(d), RL_ASK);
}

static inline void begin_extend(deed *d, int64_t lease_ms, int64_t new_ms)
{
    open_with_hold(d, lease_ms);
    rl_mutex_lock(&core(d)->holds.mutex);
    rl_hold_pause_renewal_locked(&core(d)->holds, d->h);
    rl_mutex_unlock(&core(d)->holds.mutex);
    play_pass(&d->p, 1000 * MS);
    rl_part_extend(d->x, core(d), d->h, new_ms, RL_NEVER, d->p.now_us);
    EXPECT_INT(go(d), RL_ASK);
}

static inline void begin_undo(deed *d)
{
    open_with_draft(d, LEASE_MS);
    d->h->unknown = true;
    rl_part_undo(d->x, core(d), d->h, d->p.now_us);
    d->x->quiet = true;
    EXPECT_INT(go(d), RL_ASK);
}

#endif
