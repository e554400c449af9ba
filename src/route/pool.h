/*
 * The connections to one server. Code above this header does not know whether
 * that is one server, or a master that Sentinels name.
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
#ifndef RL_ROUTE_POOL_H
#define RL_ROUTE_POOL_H

#include <stdatomic.h>

#include "base/os.h"
#include "base/thread.h"
#include "net/conn.h"
#include "net/dial.h"

typedef struct rl_pool {
    rl_dialer dialer;
    unsigned limit;
    /* Fixed, all up to the mutex, by who has made it: */
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
    /* Called, with no lock held, when somebody wants a connection and none is
       idle: those who keep one at hand give it back. Or NULL. */
    void (*on_want)(void *keeps);
    void *keeps;
    rl_mutex mutex;      /* guards all below */
    rl_list idle;        /* of rl_conn, the one used last first */
    rl_list open;        /* of rl_conn: idle, borrowed and opened */
    rl_list line;        /* of rl_claim, who came first first; */
    atomic_uint in_line; /* how many; not guarded */
    unsigned places;     /* of the limit that are taken */
    unsigned broken;     /* closed in trouble and not replaced yet */
    atomic_int_least64_t last_trouble_us; /* not guarded */
    /* Then a server knew a connection no more: nor has it those that were made
       before, unless something has come there since. Not guarded. */
    atomic_int_least64_t last_reset_us;
    uint64_t nth; /* connections to a master before are of no use */
    struct rl_pool *next_left_behind; /* in a forked child */
} rl_pool;

/*
 * A claim to a connection: a place in line for one. Who must not wait for one
 * server gives a signal, and is told; who may, sleeps.
 */
typedef struct rl_claim {
    rl_link link;
    const rl_signal *signal; /* is raised when it is served; or NULL: */
    rl_cond *cond;           /* who sleeps on this is woken */
    bool come;               /* guarded by the pool */
    rl_conn *conn;           /* that comes with it; NULL: none */
} rl_claim;

/*
 * Opens nothing yet. The pool takes over *dialer (its URI), also when it
 * fails. limit: most connections borrowed at a time. NULL: out of memory.
 */
rl_pool *rl_pool_new(rl_dialer *dialer, unsigned limit);

/* forked: in a child that inherited it; descriptors are closed, no more. NULL
   is accepted. */
void rl_pool_free(rl_pool *p, bool forked);

/*
 * It is of no use any more: outdated, or made before those that are not
 * identified came to be of none. Any thread may ask that, and what follows, of
 * one it has.
 */
static inline bool rl_pool_is_outdated(const rl_pool *p, const rl_conn *c,
                                       int64_t now_us)
{
    const atomic_bool *only = p->identified_only;
    return rl_conn_is_outdated(c, now_us) ||
           (!c->known && only && atomic_load(only));
}

/* Its server knew another one no more, and nothing has come here since. */
static inline bool rl_pool_may_have_lost(const rl_pool *p, const rl_conn *c)
{
    int64_t reset_us = atomic_load(&p->last_reset_us);
    return c->line.pending == 0 && c->heard_us < reset_us &&
           c->made_us < reset_us;
}

/* It is better made anew, by who has time for that. */
static inline bool rl_pool_is_doubtful(const rl_pool *p, const rl_conn *c,
                                       int64_t now_us)
{
    return rl_pool_may_have_lost(p, c) || rl_pool_is_outdated(p, c, now_us);
}

/*
 * Asks for a sign of life, and once more where the first one went over a
 * connection that had rested, and was lost meanwhile. That there is none in time
 * is not asked about again.
 */
rlock_status rl_pool_ping(rl_pool *p, int64_t deadline_us, rl_fault *f);

/* Is it as it was when something last came? Else the server may have closed it
   meanwhile, or lost it, and it is to be looked at first. No system call. */
bool rl_pool_trusts(const rl_pool *p, const rl_conn *c, int64_t now_us);

/* Does somebody wait for one? */
static inline bool rl_pool_is_wanted(rl_pool *p)
{
    return atomic_load(&p->in_line) > 0;
}

/* One that owes nothing; is opened, if there is none. Blocks. */
rlock_status rl_pool_borrow(rl_pool *p, int64_t deadline_us, rl_conn **out,
                            rl_fault *f);

/*
 * One that is open already; it may owe answers. behind: this one, if it is
 * there. NULL: there is none. Never blocks.
 */
rl_conn *rl_pool_borrow_idle(rl_pool *p, const rl_line *behind);

/* False: there is no line, as fewer are out than may be. */
bool rl_pool_line_up(rl_pool *p, rl_claim *t, const rl_signal *signal);

/*
 * Has it come? Then it is over, and *out is as from rl_pool_borrow_idle(),
 * or NULL: there is room for one more.
 */
bool rl_pool_take_claim(rl_pool *p, rl_claim *t, const rl_line *behind,
                        rl_conn **out);

/* Whether it has come or not. */
void rl_pool_leave_line(rl_pool *p, rl_claim *t);

/*
 * One that owes answers and has been idle since then, or NULL; *next_us: since
 * when the others that owe some have been, at the earliest.
 */
rl_conn *rl_pool_borrow_owing(rl_pool *p, int64_t since_us, int64_t *next_us);

/* A broken one is closed. */
void rl_pool_give_back(rl_pool *p, rl_conn *c);

/* May one more be borrowed? */
bool rl_pool_has_room(rl_pool *p);

/* A borrowed connection becomes one that was opened, and is to be closed. */
void rl_pool_leave_place(rl_pool *p);

/* --- which there are (pool_open.c) ---------------------------------------- */

rlock_status rl_pool_open(rl_pool *p, int64_t deadline_us, rl_conn **out,
                          rl_fault *f);
/* The same without on_open: for who wants to know what is wrong there. */
rlock_status rl_pool_open_unchecked(rl_pool *p, int64_t deadline_us,
                                    rl_conn **out, rl_fault *f);
void rl_pool_close(rl_pool *p, rl_conn *c); /* NULL is accepted */

/*
 * The master is elsewhere, for the nth time: connections to those before are
 * shut, whoever uses them, and nothing that comes over them is believed.
 */
void rl_pool_forsake(rl_pool *p, uint64_t nth);

/* Its dialer tells it of every connection. For pool.c. */
void rl_pool_watch(rl_pool *p);

#endif
