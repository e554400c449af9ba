/*
 * Where connections come from. Code above this header does not know whether
 * they lead to one server, or to a master that Sentinels name.
 *
 * Borrowed connections are for a short exchange; there is a limit to how many
 * are out at a time, and who waits for one is served in the order of coming.
 * An opened connection is outside that limit and stays with who opened it: the
 * keeper and the doorbell, which must never wait for others.
 *
 * A connection may be given back while it owes answers to calls that nobody
 * waits for any more. Who borrows it then (only if he says so) reads those
 * first; when nobody does, the keeper takes it.
 */
#ifndef RL_ROUTE_SOURCE_H
#define RL_ROUTE_SOURCE_H

#include <stdatomic.h>

#include "base/os.h"
#include "net/conn.h"

typedef struct rl_source rl_source;

/*
 * A claim to a connection, for who must not wait for one server: he stands in
 * the same line as all others, and is told.
 */
typedef struct rl_claim {
    rl_link link;
    const rl_signal *signal; /* is raised when it is served */
    bool come;               /* guarded by the source */
    rl_conn *conn;           /* that comes with it; NULL: none */
} rl_claim;

/* At most so many connections are borrowed at a time. */
typedef enum rl_places {
    RL_PLACES_FREE,
    RL_PLACES_TAKEN,
    RL_PLACES_WANTED /* and somebody waits for one */
} rl_places;

typedef struct rl_source_ops {
    rlock_status (*borrow)(rl_source *s, int64_t deadline_us, rl_conn **out,
                           rl_fault *f);
    rl_conn *(*borrow_idle)(rl_source *s, const rl_line *behind);
    bool (*line_up)(rl_source *s, rl_claim *t);
    bool (*take_claim)(rl_source *s, rl_claim *t, const rl_line *behind,
                       rl_conn **out);
    void (*leave_line)(rl_source *s, rl_claim *t);
    rl_conn *(*borrow_owing)(rl_source *s, int64_t since_us, int64_t *next_us);
    void (*give_back)(rl_source *s, rl_conn *c);
    rl_places (*places)(rl_source *s);
    void (*leave_place)(rl_source *s);
    rlock_status (*open)(rl_source *s, int64_t deadline_us, rl_conn **out,
                         rl_fault *f);
    void (*close)(rl_source *s, rl_conn *c);
    void (*forsake)(rl_source *s, uint64_t nth);
    void (*free)(rl_source *s, bool forked);
} rl_source_ops;

struct rl_source {
    const rl_source_ops *ops;
    const char *server; /* its name in messages */
    bool exclusive;     /* a connection is for one thread at a time */
    /* Only connections whose server is identified are of use; or NULL. */
    const atomic_bool *identified_only;
    /* Called with every new connection; false: it has failed. */
    bool (*on_open)(void *arg, rl_conn *c, int64_t deadline_us, rl_fault *f);
    /* Called, with no lock held, when a connection replaces a broken one. */
    void (*on_reconnect)(void *arg);
    /* Called, with no lock held, when a connection cannot be made, has broken,
       or leads to a server that says that it is not the one. Or NULL. */
    void (*on_trouble)(void *arg);
    /* Likewise, when a connection begins, or ends, to be made. Or NULL. */
    void (*on_dial)(void *arg, bool begins);
    void *arg;
};

/*
 * It is better made anew: it is outdated, or was made before those that are not
 * identified came to be of no use. Any thread may ask that of one it has.
 */
static inline bool rl_source_is_outdated(const rl_source *s, const rl_conn *c,
                                         int64_t now_us)
{
    const atomic_bool *only = s->identified_only;
    return rl_conn_is_outdated(c, now_us) ||
           (!c->known && only && atomic_load(only));
}

/* One that owes nothing; is opened, if there is none. Blocks. */
static inline rlock_status rl_source_borrow(rl_source *s, int64_t deadline_us,
                                            rl_conn **out, rl_fault *f)
{
    return s->ops->borrow(s, deadline_us, out, f);
}

/*
 * One that is open already; it may owe answers. behind: this one, if it is
 * there. NULL: there is none. Never blocks.
 */
static inline rl_conn *rl_source_borrow_idle(rl_source *s,
                                             const rl_line *behind)
{
    return s->ops->borrow_idle(s, behind);
}

/* False: there is no line, as fewer are out than may be. */
static inline bool rl_source_line_up(rl_source *s, rl_claim *t,
                                     const rl_signal *signal)
{
    *t = (rl_claim){.signal = signal};
    return s->ops->line_up(s, t);
}

/*
 * Has it come? Then it is over, and *out is as from rl_source_borrow_idle(),
 * or NULL: there is room for one more.
 */
static inline bool rl_source_take_claim(rl_source *s, rl_claim *t,
                                        const rl_line *behind, rl_conn **out)
{
    return s->ops->take_claim(s, t, behind, out);
}

/* Whether it has come or not. */
static inline void rl_source_leave_line(rl_source *s, rl_claim *t)
{
    s->ops->leave_line(s, t);
}

/*
 * One that owes answers and has been idle since then, or NULL; *next_us: since
 * when the others that owe some have been, at the earliest.
 */
static inline rl_conn *rl_source_borrow_owing(rl_source *s, int64_t since_us,
                                              int64_t *next_us)
{
    return s->ops->borrow_owing(s, since_us, next_us);
}

/* A broken one is closed. */
static inline void rl_source_give_back(rl_source *s, rl_conn *c)
{
    s->ops->give_back(s, c);
}

static inline rl_places rl_source_places(rl_source *s)
{
    return s->ops->places(s);
}

/* A borrowed connection becomes one that was opened, and is to be closed. */
static inline void rl_source_leave_place(rl_source *s)
{
    s->ops->leave_place(s);
}

static inline rlock_status rl_source_open(rl_source *s, int64_t deadline_us,
                                          rl_conn **out, rl_fault *f)
{
    return s->ops->open(s, deadline_us, out, f);
}

static inline void rl_source_close(rl_source *s, rl_conn *c)
{
    s->ops->close(s, c); /* NULL is accepted */
}

/*
 * The master is elsewhere, for the nth time: connections to those before are
 * shut, whoever uses them, and nothing that comes over them is believed.
 */
static inline void rl_source_forsake(rl_source *s, uint64_t nth)
{
    s->ops->forsake(s, nth);
}

/* forked: in a child that inherited it; descriptors are closed, no more. */
static inline void rl_source_free(rl_source *s, bool forked)
{
    if (s)
        s->ops->free(s, forked);
}

#endif
