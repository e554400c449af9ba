/*
 * Where connections come from. Code above this header does not know whether
 * they lead to one server through a pool, or (one day) to a master that a
 * Sentinel names.
 *
 * Borrowed connections are for a short exchange; there is a limit to how many
 * are out at a time. An opened connection is outside that limit and stays with
 * who opened it: the watchdog and the doorbell, which must never wait for
 * others.
 */
#ifndef RL_ROUTE_SOURCE_H
#define RL_ROUTE_SOURCE_H

#include "net/conn.h"

typedef struct rl_source rl_source;

typedef struct rl_source_ops {
    rlock_status (*borrow)(rl_source *s, int64_t deadline_us, rl_conn **out,
                           rl_fault *f);
    /* An idle one whose server is identified, or NULL; never blocks */
    rl_conn *(*borrow_known)(rl_source *s);
    void (*give_back)(rl_source *s, rl_conn *c); /* a broken one is closed */
    rlock_status (*open)(rl_source *s, int64_t deadline_us, rl_conn **out,
                         rl_fault *f);
    void (*close)(rl_source *s, rl_conn *c); /* NULL is accepted */
    /* forked: in a child that inherited it; descriptors are closed, no more */
    void (*free)(rl_source *s, bool forked);
} rl_source_ops;

struct rl_source {
    const rl_source_ops *ops;
    const char *server; /* its name in messages */
    /* Called with every new connection; false: it has failed. */
    bool (*on_open)(void *arg, rl_conn *c, int64_t deadline_us, rl_fault *f);
    /* Called, with no lock held, when a connection replaces a broken one. */
    void (*on_reconnect)(void *arg);
    void *arg;
};

/* A borrowed connection is good only for what begins right away. */
static inline rlock_status rl_source_borrow(rl_source *s, int64_t deadline_us,
                                            rl_conn **out, rl_fault *f)
{
    return s->ops->borrow(s, deadline_us, out, f);
}

static inline rl_conn *rl_source_borrow_known(rl_source *s)
{
    return s->ops->borrow_known(s);
}

static inline void rl_source_give_back(rl_source *s, rl_conn *c)
{
    s->ops->give_back(s, c);
}

static inline rlock_status rl_source_open(rl_source *s, int64_t deadline_us,
                                          rl_conn **out, rl_fault *f)
{
    return s->ops->open(s, deadline_us, out, f);
}

static inline void rl_source_close(rl_source *s, rl_conn *c)
{
    s->ops->close(s, c);
}

static inline void rl_source_free(rl_source *s, bool forked)
{
    if (s)
        s->ops->free(s, forked);
}

#endif
