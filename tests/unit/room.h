/* What the tests of the waiting rooms share. */
#ifndef UNIT_ROOM_H
#define UNIT_ROOM_H

#include "hold/room.h"

#include "test.h"

#define NOW_US INT64_C(1000000000)

typedef struct guest {
    rl_waiter waiter;
    rl_waker waker;
    int woken;
    rl_wake why; /* the latest */
    unsigned node;
} guest;

static const rl_target job = {.name = "job", .len = 3};
static const rl_target string_job = {
    .name = "job", .len = 3, .scope = RLOCK_LAYOUT_STRING};
static const rl_target red_job = {
    .name = "job", .len = 3, .scope = RL_SINGLE_SCOPES + 7};
static const rl_target other = {.name = "other", .len = 5};

static inline void wake(rl_waker *w, rl_wake why, unsigned node)
{
    guest *g = RL_CONTAINER(w, guest, waker);
    g->woken++;
    g->why = why;
    g->node = node;
}

static inline void enter_as(rl_rooms *r, guest *g, const rl_target *what,
                            const void *handle)
{
    *g = (guest){.waker = {wake}};
    EXPECT(rl_room_enter(r, &g->waiter, what, handle, &g->waker, 0));
}

static inline void enter(rl_rooms *r, guest *g, const rl_target *what)
{
    enter_as(r, g, what, g);
}

static inline bool leave(rl_rooms *r, guest *g, bool acquired)
{
    return rl_room_leave(r, &g->waiter, acquired);
}

static inline void expect_woken(const guest *g, int times, rl_wake why)
{
    EXPECT_INT(g->woken, times);
    EXPECT_INT(g->why, why);
    EXPECT(!g->waiter.waker || g->node == 0); /* it is of no node */
}

/* Rooms with guests of one lock. */
static inline void open_with(rl_rooms *r, guest *g, size_t n)
{
    *r = (rl_rooms){.closed = false};
    EXPECT(rl_rooms_init(r));
    for (size_t i = 0; i < n; i++)
        enter(r, &g[i], &job);
}

static inline void close_with(rl_rooms *r, guest *g, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (g[i].waiter.room)
            leave(r, &g[i], false);
    rl_rooms_fini(r, false);
}

#endif
