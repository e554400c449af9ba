/* What the tests of votes share: three nodes, and one who wants them. */
#ifndef UNIT_ELECTION_H
#define UNIT_ELECTION_H

#include "op/acquire.h"
#include "play.h"

#define NODES 3

typedef struct election {
    play p;
    unsigned dropped; /* nodes: a bit for each */
    rl_acquire a;
    rl_red_attempt b;
    atomic_int_least64_t ahead_us;
    atomic_uint cancels;
} election;

static inline void drop(rl_red_attempt *b, size_t i)
{
    RL_CONTAINER(b, election, b)->dropped |= 1u << i;
}

/* What no loop over the nodes may come to. */
static inline void spoil_behind(rl_red_attempt *b)
{
    for (size_t i = NODES; i < RLOCK_RED_MAX; i++) {
        b->part[i] = (rl_part *)(uintptr_t)i;
        b->node[i] = (rl_core *)(uintptr_t)i;
        b->raise[i] = (rl_part *)(uintptr_t)i;
    }
}

static inline void open_election(election *e, int64_t wait_ms, int64_t lease_ms)
{
    play_open(&e->p, NODES);
    e->ahead_us = 0;
    e->cancels = e->dropped = 0;
    e->b = (rl_red_attempt){.n = NODES,
                            .quorum = NODES / 2 + 1,
                            .drop = drop,
                            .home = &e->p.home,
                            .ahead_us = &e->ahead_us};
    for (size_t i = 0; i < NODES; i++)
        e->b.node[i] = play_core(&e->p, i);
    spoil_behind(&e->b);
    e->a = (rl_acquire){.attempt = &rl_attempt_vote,
                        .home = play_core(&e->p, 0),
                        .what = &play_red,
                        .handle = e,
                        .owner = &e->p.owner,
                        .cancel = {.count = &e->cancels},
                        .wait_ms = wait_ms,
                        .lease_ms = lease_ms,
                        .listen = play_listen,
                        .red = &e->b};
    rl_op_init(&e->a.op, e->b.part);
    rl_acquire_init(&e->a, e->p.now_us);
}

static inline rl_next begin(election *e)
{
    return play_begin(&e->p, &e->a.op);
}

/* One that has been asked, and nobody has answered. */
static inline void open_asked(election *e, int64_t wait_ms, int64_t lease_ms)
{
    open_election(e, wait_ms, lease_ms);
    EXPECT_INT(begin(e), RL_ASK);
}

static inline rl_next answer(election *e, size_t i, const char *reply)
{
    return play_answer(&e->p, i, reply);
}

static inline rl_hold *hold(election *e, size_t i)
{
    rl_holds *t = &play_core(&e->p, i)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold *h = rl_holds_find_locked(t, &play_red, e->p.owner.serial);
    rl_mutex_unlock(&t->mutex);
    return h;
}

static inline void expect_state(election *e, size_t i, rl_state state)
{
    rl_hold *h = hold(e, i);
    EXPECT(h);
    EXPECT_INT(h->state, state);
}

/* The lock is the owner's; what comes later comes to nobody. */
static inline rl_group *own(election *e)
{
    EXPECT_INT(e->a.status, RLOCK_OK);
    EXPECT_INT(e->p.owner.holds, 1);
    rl_group *g = NULL;
    for (size_t i = 0; i < NODES && !g; i++)
        g = hold(e, i) ? hold(e, i)->group : NULL;
    EXPECT(g && rl_group_is_owned(g));
    play_forget(&e->p);
    return g;
}

static inline void close_owned(election *e)
{
    own(e);
    play_close(&e->p);
}

/* Nothing is left of it, in any table, but what the keepers undo. */
static inline void close_failed(election *e, rlock_status status,
                                size_t undoing)
{
    size_t left = 0;
    EXPECT_INT(e->a.status, status);
    EXPECT(e->a.fault.status == status && *e->a.fault.text);
    EXPECT_INT(e->a.fault.sys_errno, 0);
    EXPECT_INT(e->p.owner.holds, 0);
    for (size_t i = 0; i < NODES; i++) {
        rl_core *c = play_core(&e->p, i);
        EXPECT_INT(c->holds.map.count, 0);
        EXPECT(c->rooms.map.count == 0 && c->rooms.listeners.count == 0);
        left += c->holds.undoing;
    }
    EXPECT_INT(left, undoing);
    play_forget(&e->p);
    play_close(&e->p);
}

#endif
