/*
 * What servers say of waiting clients (lua/waits.lua), put together: who waits
 * for whom, and in which circles. Whoever asks pours the replies in; it is that
 * thread's alone.
 */
#ifndef RL_CLIENT_WAITS_GRAPH_H
#define RL_CLIENT_WAITS_GRAPH_H

#include <rlock/waits.h>

#include "client/names.h"

typedef struct rl_wait {
    rl_text name, holder, client, waiter;
    size_t name_len;
    int64_t count, ttl_ms, clock_us, since_us, rank;
    unsigned circle;
    unsigned visit; /* while circles are looked for: by whom it was met */
} rl_wait;

typedef struct rl_waits {
    rl_names names; /* of locks that may be waited for */
    rl_sink reply;  /* takes a reply of waits.lua, about one of them */
    size_t item;    /* which of it is next */
    rl_wait next;
    rl_wait *wait;
    size_t n, room;
} rl_waits;

void rl_waits_init(rl_waits *w);
void rl_waits_fini(rl_waits *w);

/* A reply about this lock is next. */
void rl_waits_begin(rl_waits *w, rl_name lock);

/* All have been asked: each circle gets a number. False: out of memory. */
bool rl_waits_find_circles(rl_waits *w);

/* Fills *out, and the holder and the waiter that it points to. */
void rl_waits_tell(const rl_waits *w, size_t i, rlock_wait *out,
                   rlock_holder *holder, rlock_holder *waiter);

#endif
