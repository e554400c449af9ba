/* What the tests of hand-overs share: who unlocks, and who waits. */
#ifndef UNIT_PAIR_H
#define UNIT_PAIR_H

#include "hold/level.h"
#include "op/handover.h"

#include "play.h"

#define HANDED(token) GRANTED(token)
#define FREED         "*1\r\n:1\r\n"
#define FREED_RUNG    "*1\r\n:2\r\n"
#define FREED_GRANTED "*1\r\n:4\r\n"
#define NOT_HELD      "*1\r\n:0\r\n"

/* Of the call: ARGV. */
enum {
    NEXT_ARG = 2,
    HAND_LEASE_ARG,
    PATIENCE_ARG,
    HAND_CHANNEL_ARG,
    HAND_BELL,
    KEEP_ARG
};

/* One thread holds the lock, and one waits for it. */
typedef struct pair {
    play p;
    rl_hold *h; /* referenced */
    rl_op op;
    rl_part x;
    rl_part lent[4]; /* to who waits */
    size_t waiting;
    rl_acquire a;
    rl_hold *next; /* the waiter's draft, as it was offered */
    atomic_uint cancels;
} pair;

static inline rl_core *core(pair *t)
{
    return play_core(&t->p, 0);
}

static inline rl_rooms *rooms(pair *t)
{
    return &core(t)->rooms;
}

/* The operation that the play goes on with. */
static inline void switch_to(pair *t, rl_op *op, rl_next next)
{
    t->p.op = op;
    t->p.next = next;
}

/* An acquire of this owner's; handle: whose cancel ends it. */
static inline void make_acquire(pair *t, rl_acquire *a, rl_owner *owner,
                                const void *handle, atomic_uint *cancels,
                                const rl_target *what, int64_t wait_ms,
                                int64_t lease_ms)
{
    rl_core *c = core(t);
    *cancels = 0;
    *a = (rl_acquire){.attempt = &rl_attempt_one,
                      .home = c,
                      .what = what,
                      .handle = handle,
                      .owner = owner,
                      .cancel = {.count = cancels},
                      .room = rl_holds_make_room(&c->holds, owner),
                      .wait_ms = wait_ms,
                      .lease_ms = lease_ms,
                      .listen = play_listen,
                      .op.lent = &t->lent[t->waiting++]};
    rl_acquire_init(a, t->p.now_us);
}

/* It asks. */
static inline void begin_acquire(pair *t, rl_acquire *a, rl_owner *owner,
                                 const void *handle, atomic_uint *cancels,
                                 const rl_target *what, int64_t wait_ms,
                                 int64_t lease_ms)
{
    make_acquire(t, a, owner, handle, cancels, what, wait_ms, lease_ms);
    EXPECT_INT(play_begin(&t->p, &a->op), RL_ASK);
}

static inline void wait_behind_hold(pair *t, const rl_target *what,
                                    int64_t wait_ms, int64_t lease_ms)
{
    t->waiting = 0;
    memset(t->lent, 0, sizeof t->lent);
    t->h = play_hold(&t->p, 0, "job", RLOCK_WATCHDOG);
    t->h->refs++;
    begin_acquire(t, &t->a, &t->p.rival, t, &t->cancels, what, wait_ms,
                  lease_ms);
    EXPECT_INT(play_answer(&t->p, 0, IS_BUSY), RL_SLEEP);
    t->next = t->a.draft;
}

static inline void open_pair_of(pair *t, const rl_target *what, int64_t wait_ms)
{
    play_open(&t->p, 1);
    wait_behind_hold(t, what, wait_ms, LEASE_MS);
}

static inline void open_pair(pair *t)
{
    open_pair_of(t, &play_job, 60000);
}

/* The waiter's client stands in the server's queue. */
static inline void open_queued_pair(pair *t)
{
    open_pair(t);
    rl_rooms_hear(rooms(t));
    EXPECT_INT(play_wake(&t->p), RL_ASK);
    EXPECT_INT(play_answer(&t->p, 0, IS_BUSY), RL_SLEEP);
}

/* The last unlock begins; false: nobody is offered the lock. */
static inline bool unlock(pair *t)
{
    EXPECT_INT(rl_hold_count_down(&core(t)->holds, t->h, 0, t->p.now_us),
               RL_COUNTED);
    if (!rl_part_hand_over(&t->x, core(t), t->h, t->p.now_us))
        return false;
    t->p.why = RL_WAKE_NONE;
    t->x.heap = false;
    play_one(&t->p, &t->op, &t->x);
    EXPECT_INT(play_begin(&t->p, &t->op), RL_ASK);
    return true;
}

/* It ends, and the waiter is woken: what that wants next. */
static inline rl_next answer(pair *t, const char *reply)
{
    EXPECT_INT(play_answer(&t->p, 0, reply), RL_DONE);
    switch_to(t, &t->a.op, RL_SLEEP);
    EXPECT(t->p.why != RL_WAKE_NONE);
    return play_wake(&t->p);
}

static inline void close_pair(pair *t, rlock_status status)
{
    EXPECT_INT(t->a.status, status);
    EXPECT(!t->a.waiter.room && !t->a.draft);
    EXPECT_INT(rooms(t)->map.count, 0);
    EXPECT_INT(core(t)->stats.waiting_now, 0);
    rl_holds_put(&core(t)->holds, t->h);
    play_close(&t->p);
}

/* It ends without a call. */
static inline void forget_hold(pair *t)
{
    rl_holds *table = &core(t)->holds;
    rl_mutex_lock(&table->mutex);
    rl_hold_end_locked(table, t->h, t->p.now_us);
    rl_hold_unref_locked(table, t->h);
    rl_mutex_unlock(&table->mutex);
}

static inline void end_wait(pair *t)
{
    switch_to(t, &t->a.op, RL_SLEEP);
    rl_rooms_cancel(rooms(t), t->a.what, t);
    EXPECT_INT(play_wake(&t->p), RL_DONE);
}

#endif
