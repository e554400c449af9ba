/*
 * A mux: a connection that several threads use at a time, multiplexed. Each
 * thread that uses it has a port there, a line of its own; what it asks on that
 * goes out with what the others ask, and its replies come back to it.
 *
 * No thread is there for it: of those that wait for a reply, one leads, reads
 * for all, and hands out; the others sleep. So a server that answers many in
 * one go costs one read, and a thread that is alone needs nobody.
 *
 * Ports stay with the mux, also while it has no connection, because most
 * threads come back soon.
 */
#ifndef RL_NET_MUX_H
#define RL_NET_MUX_H

#include <stdatomic.h>

#include "base/os.h"
#include "base/thread.h"
#include "net/conn.h"

typedef struct rl_mux rl_mux;

typedef enum rl_port_state {
    RL_PORT_IDLE,     /* nothing of it is in the mux */
    RL_PORT_WAITS,    /* a command is */
    RL_PORT_ANSWERED, /* the reply is in `reply` */
    RL_PORT_FAILED    /* it will not come, as `fault` says */
} rl_port_state;

/* A thread's place. One command at a time: the next when it is answered. */
typedef struct rl_port {
    rl_line line;                /* its thread's; what it asks, and is told */
    rl_mux *mux;                 /* fixed */
    rl_link link;                /* in the mux's list of idle ones */
    rl_slot slot;                /* in the mux's line; guarded by the mux */
    bool left;                   /* its thread has gone; guarded by the mux */
    _Atomic rl_port_state state; /* from WAITS to the next by who leads */
    atomic_bool leads;           /* it is to lead; cleared by its thread */
    rl_mutex mutex;              /* for the sleep, */
    rl_cond cond;                /* on this */
    rl_reply reply; /* these three are its thread's, unless it waits */
    rl_fault fault;
    bool whole;           /* failed: the kernel was given all of the command */
    struct rl_port *next; /* of all the mux's */
} rl_port;

/* So many are woken at once; those beyond while the mutex is held. */
#define RL_WAKES 64

struct rl_mux {
    /* Of who lends it out: */
    rl_link link;
    size_t users;
    bool placed;              /* its connection takes a place of the pool's */
    rl_mux *next_left_behind; /* in a forked child */
    rl_list idle;             /* ports that nobody has */
    rl_port *ports;           /* all */
    size_t port_count;        /* how many */
    /* Its own: */
    const atomic_uint *crowd; /* fixed */
    rl_conn *conn;     /* its line is guarded by the mutex, its transport not */
    rl_bytes sending;  /* by who has set `writing` */
    rl_mutex mutex;    /* guards all below */
    bool writing;      /* somebody is */
    bool blocked;      /* the kernel took no more */
    bool cannot_write; /* any more, as `fault` says */
    rl_fault fault;
    rl_port *leader;
    rl_signal signal; /* ends the leader's sleep; perhaps none */
    bool asleep;      /* he sends nothing, until something comes */
    /* Asked no more: somebody could not wait, or it broke. Read by who leaves,
       also without the mutex. */
    atomic_bool spent;
    rl_port *woken[RL_WAKES];
    size_t wakes;
};

/*
 * Without a connection. crowd: how many threads have a port, here or at the
 * muxes beside it; it outlives the mux. NULL: out of memory.
 */
rl_mux *rl_mux_new(const atomic_uint *crowd);

/* Nobody has a port, and it has no connection. */
void rl_mux_free(rl_mux *h);

/* It stays the caller's. */
void rl_mux_attach(rl_mux *h, rl_conn *c);

/*
 * Nobody has a port any more. A connection that is spent owes answers no more
 * either, as it is retired or broken, and is to be closed.
 */
rl_conn *rl_mux_detach(rl_mux *h);

/* A port for the calling thread; NULL: out of memory. One joins or leaves at a
   time. */
rl_port *rl_mux_join(rl_mux *h);

/*
 * The thread goes. If it was not answered, the mux is spent: nobody else is
 * to stand behind a reply that does not come. False: it is spent.
 */
bool rl_port_leave(rl_port *s);

/*
 * Sends what is new on the port's line, and feeds the line what comes, until
 * the reply is there, or will never be, or the time is over. Then the command
 * counts as sent, as nobody can take it back. now_us: of before. Past the
 * deadline nothing is sent.
 */
void rl_port_exchange(rl_port *s, int64_t until_us, int64_t now_us);

/* --- for mux.c, who does what, and mux_port.c, how ports come and go ------ */

static inline bool rl_port_waits(const rl_port *s)
{
    return atomic_load(&s->state) == RL_PORT_WAITS;
}

/* Its slot, in the mux's line. */
void rl_port_answered(rl_slot *slot, const rl_reply *r, int64_t now_us);
void rl_port_failed(rl_slot *slot, bool whole, const rl_fault *why,
                    int64_t now_us);

/* The one that waits longest leads from now on; nobody, if nobody does. */
void rl_mux_pass_lead_locked(rl_mux *h) RL_REQUIRES(&h->mutex);

/* Who is woken first wants the mutex. */
void rl_mux_unlock_and_wake(rl_mux *h) RL_RELEASES(&h->mutex);

#endif
