/* What the tests of the wait for a lock share. */
#ifndef UNIT_WAIT_H
#define UNIT_WAIT_H

#include "op/acquire.h"

#include "play.h"

typedef struct wait_for {
    play p;
    rl_acquire a;
    rl_part part; /* that it is lent */
    atomic_uint cancels;
} wait_for;

static inline rl_core *core(wait_for *w)
{
    return play_core(&w->p, 0);
}

static inline rl_acquire acquire_of(wait_for *w, int64_t wait_ms)
{
    rl_acquire a = {.attempt = &rl_attempt_one,
                    .home = core(w),
                    .what = &play_job,
                    .handle = w,
                    .owner = &w->p.owner,
                    .cancel = {.count = &w->cancels},
                    .room = rl_holds_make_room(&core(w)->holds, &w->p.owner),
                    .wait_ms = wait_ms,
                    .lease_ms = LEASE_MS,
                    .listen = play_listen,
                    .op.lent = &w->part};
    return a;
}

static inline void open_wait(wait_for *w, int64_t wait_ms)
{
    play_open(&w->p, 1);
    w->cancels = 0;
    w->part = (rl_part){.heap = false};
    w->a = acquire_of(w, wait_ms);
    rl_acquire_init(&w->a, w->p.now_us);
}

static inline void hear_bell(wait_for *w)
{
    rl_rooms_hear(&core(w)->rooms);
}

static inline rl_next begin(wait_for *w)
{
    return play_begin(&w->p, &w->a.op);
}

static inline rl_next answer(wait_for *w, const char *reply)
{
    return play_answer(&w->p, 0, reply);
}

/* Something wakes it. */
static inline rl_next ring(wait_for *w)
{
    EXPECT(rl_rooms_wake(&core(w)->rooms, "job", 3, RL_WAKE_RUNG));
    return play_wake(&w->p);
}

/* It is over: nothing waits, and nothing is left of the try. */
static inline void close_wait(wait_for *w, rlock_status status)
{
    EXPECT_INT(w->a.status, status);
    EXPECT(!w->a.waiter.room && !w->a.draft);
    EXPECT_INT(core(w)->rooms.map.count, 0);
    EXPECT_INT(core(w)->stats.waiting_now, 0);
    EXPECT_INT(core(w)->holds.map.count, status == RLOCK_OK);
    EXPECT_INT(core(w)->holds.records.count,
               status == RLOCK_OK || core(w)->holds.undoing > 0);
    EXPECT_INT(w->p.owner.holds, status == RLOCK_OK);
    EXPECT(status == RLOCK_OK || w->a.fault.status == status);
    EXPECT(status == RLOCK_OK || *w->a.fault.text);
    EXPECT(w->a.fault.sys_errno == 0 || status == RLOCK_EIO);
    play_close(&w->p);
}

/* One that waits in a room, after its first try was busy. */
static inline void open_waiting(wait_for *w, int64_t wait_ms)
{
    open_wait(w, wait_ms);
    EXPECT_INT(begin(w), RL_ASK);
    EXPECT_INT(answer(w, IS_BUSY), RL_SLEEP);
}

static inline int calls(const wait_for *w)
{
    return w->p.client[0].calls;
}

#endif
