/*
 * A keeper, whose turns the test has, and what it keeps. The test makes its
 * connections, and is its server.
 */
#ifndef UNIT_WARD_H
#define UNIT_WARD_H

#include "outpost.h"
#include "run/keeper.h"

#define RENEW rl_scripts[RL_SCRIPT_HASH_RENEW].sha1

/* What a turn may take here. */
#define LONG_TURN_US (300 * MS)

typedef struct ward {
    play p;
    outpost o;
    rl_hold *h;
    int64_t ahead_ms;
    int64_t before_us, now_us; /* around the latest turn */
} ward;

static inline rl_keeper *keeper(ward *w)
{
    return &outpost_node(&w->o)->keeper;
}

static inline void open_ward(ward *w)
{
    memset(w, 0, sizeof *w);
    play_open(&w->p, 1);
    outpost_open(&w->o, &w->p, 1, 3);
}

static inline void close_ward(ward *w)
{
    outpost_close(&w->o);
    play_close(&w->p);
}

static inline void pass(ward *w, int64_t ms)
{
    outpost_pass(&w->ahead_ms, ms);
}

/* As the loop has it: what it answers. */
static inline int64_t take_turn(ward *w)
{
    struct pollfd p[65];
    rl_watcher *k = &keeper(w)->watcher;
    k->n = k->look(k, p, 65);
    k->polled = p;
    poll(p, k->n, 0);
    w->before_us = rl_now_us();
    int64_t us = k->turn(k, w->before_us);
    w->now_us = rl_now_us();
    k->n = 0;
    return us;
}

static inline rl_visitor *visitor(ward *w)
{
    return outpost_visitor(&w->o);
}

static inline void open_connected(ward *w)
{
    open_ward(w);
    take_turn(w);
    EXPECT(outpost_give(&w->o));
    take_turn(w);
    EXPECT(keeper(w)->conn);
}

/* What was sent just now is granted. */
static inline void hold(ward *w, int64_t lease_ms)
{
    rl_uuid id;
    rl_core *c = &w->o.e.core;
    int64_t now_us = rl_now_us();
    EXPECT(rl_uuid_new(&id));
    rl_owner_record *room = rl_holds_make_room(&c->holds, &w->p.owner);
    w->h = rl_draft(c, room, &play_job, &id, lease_ms);
    EXPECT(w->h);
    rl_mutex_lock(&c->holds.mutex);
    rl_hold_grant_locked(&c->holds, w->h, 100, now_us,
                         lease_ms == RLOCK_WATCHDOG, now_us);
    rl_mutex_unlock(&c->holds.mutex);
}

static inline uint64_t count(atomic_uint_fast64_t *n)
{
    return atomic_load(n);
}

#endif
