/*
 * What servers say of waiting clients (lua/waits.lua), put together: who waits
 * for whom, and in which circles. Whoever asks pours the replies in; it is that
 * thread's alone.
 */
#ifndef RL_CLIENT_WAITS_GRAPH_H
#define RL_CLIENT_WAITS_GRAPH_H

#include <rlock/waits.h>

#include "client/names.h"

/* So many of those who have a lock are told. */
#define RL_WAITS_TOLD 64

/* One who has a lock. */
typedef struct rl_has {
    rl_text id;
    int64_t count, ttl_ms;
    size_t ahead; /* the wait of that thread, counted from 1; 0: it waits not */
} rl_has;

typedef struct rl_wait {
    rl_text name, client, waiter;
    size_t name_len;
    rlock_kind kind;
    size_t has, n_has; /* those who have it: the first, how many they are */
    int64_t clock_us, since_us, rank;
    unsigned circle;
    /* While circles are looked for, all counted from 1: when it was met, and the
       first met of those it leads to; of whom it is the next, on the way to it
       and among those met, where it is until it is known to lead back to none. */
    size_t met, low, behind, below;
    size_t tried; /* so many of those who have it */
    bool open, itself;
} rl_wait;

typedef struct rl_waits {
    rl_names names; /* of locks that may be waited for */
    rl_sink reply;  /* takes a reply of waits.lua, about one of them */
    rl_name lock;
    size_t item; /* which of the reply is next */
    rl_wait next;
    rl_wait *wait;
    size_t n, room;
    rl_has *has; /* of all these locks */
    size_t n_has, room_has;
} rl_waits;

void rl_waits_init(rl_waits *w);
void rl_waits_fini(rl_waits *w);

/* A reply about this lock is next. It may be that it has to be asked about again,
   with a key that depends on what is waited for: then it is added to the names. */
void rl_waits_begin(rl_waits *w, rl_name lock);

/* All have been asked: each circle gets a number. False: out of memory. */
bool rl_waits_find_circles(rl_waits *w);

/* Fills *out, and the waiter and the holders, RL_WAITS_TOLD at most, that it
   points to. */
void rl_waits_tell(const rl_waits *w, size_t i, rlock_wait *out,
                   rlock_holder *waiter, rlock_holder *holders);

#endif
