/*
 * What servers say of waiting clients (lua/waits.lua), put together: who waits
 * for whom, and in which circles. Whoever asks pours the replies in; it is that
 * thread's alone.
 */
#ifndef RL_CLIENT_WAITS_GRAPH_H
#define RL_CLIENT_WAITS_GRAPH_H

#include <rlock/waits.h>

#include "wire/bytes.h"
#include "wire/reply.h"

/* A text among those of rl_waits; it ends in a NUL. */
typedef size_t rl_text;

typedef struct rl_wait {
    rl_text name, holder, client, waiter;
    size_t name_len;
    int64_t count, ttl_ms, clock_us, since_us;
    unsigned circle;
    unsigned visit; /* while circles are looked for: by whom it was met */
} rl_wait;

typedef struct rl_name {
    rl_text text;
    size_t len;
} rl_name;

typedef struct rl_waits {
    rl_sink names; /* takes a reply of SCAN, */
    rl_sink reply; /* and one of waits.lua, about `about` */
    rl_text cursor;
    rl_name about;
    size_t item; /* which of the reply is next */
    rl_wait next;
    rl_wait *wait;
    size_t n, room;
    rl_name *name; /* of locks that may be waited for; may be there twice */
    size_t n_names, names_room;
    rl_bytes text;
    bool lacking; /* memory */
} rl_waits;

void rl_waits_init(rl_waits *w);
void rl_waits_fini(rl_waits *w);

static inline const char *rl_waits_text(const rl_waits *w, rl_text t)
{
    return w->text.at + t;
}

/* SCAN begins; is it over? The names that came, each once. */
void rl_waits_begin_scan(rl_waits *w);
bool rl_waits_is_scanned(const rl_waits *w);
void rl_waits_sort_names(rl_waits *w);

/* A reply about this lock is next. */
void rl_waits_begin(rl_waits *w, rl_name lock);

/* All have been asked: each circle gets a number. False: out of memory. */
bool rl_waits_find_circles(rl_waits *w);

/* Fills *out, and the holder and the waiter that it points to. */
void rl_waits_tell(const rl_waits *w, size_t i, rlock_wait *out,
                   rlock_holder *holder, rlock_holder *waiter);

#endif
