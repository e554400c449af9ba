/*
 * A connection that several threads use at a time: a share. Each thread has a
 * seat there, which is a line of its own; what it asks on that goes out with
 * what the others ask, and its replies come back to it.
 *
 * No thread is there for it: of those that wait for a reply, one leads, reads
 * for all, and hands out; the others sleep. So a server that answers many in
 * one go costs one read, and a thread that is alone needs nobody.
 *
 * Seats stay with the share, also while it has no connection, because most
 * threads come back soon.
 */
#ifndef RL_NET_MUX_H
#define RL_NET_MUX_H

#include <stdatomic.h>

#include "base/os.h"
#include "base/thread.h"
#include "net/conn.h"

typedef struct rl_share rl_share;

typedef enum rl_seat_state {
    RL_SEAT_IDLE,     /* nothing of it is in the share */
    RL_SEAT_WAITS,    /* a command is */
    RL_SEAT_ANSWERED, /* the reply is in `reply` */
    RL_SEAT_FAILED    /* it will not come, as `fault` says */
} rl_seat_state;

/* A thread's place. One command at a time: the next when it is answered. */
typedef struct rl_seat {
    rl_line line;                /* its thread's; what it asks, and is told */
    rl_share *share;             /* fixed */
    rl_link link;                /* in the share's list of free ones */
    rl_slot slot;                /* in the share's line; guarded by the share */
    bool left;                   /* its thread has gone; guarded by the share */
    _Atomic rl_seat_state state; /* from WAITS to the next by who leads */
    atomic_bool leads;           /* it is to lead; cleared by its thread */
    rl_mutex mutex;              /* for the sleep, */
    rl_cond cond;                /* on this */
    rl_reply reply; /* these three are its thread's, unless it waits */
    rl_fault fault;
    bool whole;           /* failed: the kernel was given all of the command */
    struct rl_seat *next; /* of all the share's */
} rl_seat;

/* So many are woken at once; those beyond while the mutex is held. */
#define RL_WAKES 64

struct rl_share {
    /* Of who lends it out: */
    rl_link link;
    size_t users;
    bool placed; /* its connection takes a place of the source's */
    rl_share *next_left_behind; /* in a forked child */
    /* Its own: */
    const atomic_uint *crowd; /* fixed */
    rl_conn *conn;     /* its line is guarded by the mutex, its transport not */
    rl_bytes sending;  /* by who has set `writing` */
    rl_mutex mutex;    /* guards all below */
    bool writing;      /* somebody is */
    bool blocked;      /* the kernel took no more */
    bool cannot_write; /* any more, as `fault` says */
    rl_fault fault;
    rl_seat *leader;
    rl_signal signal; /* ends the leader's sleep; perhaps none */
    bool asleep;      /* he sends nothing, until something comes */
    bool spent;       /* asked no more: somebody could not wait, or it broke */
    rl_list idle;     /* seats that nobody has */
    rl_seat *seats;   /* all */
    size_t seated;    /* how many */
    rl_seat *woken[RL_WAKES];
    size_t wakes;
};

/*
 * Without a connection. crowd: how many threads sit here and at the shares
 * beside it; it outlives the share. NULL: out of memory.
 */
rl_share *rl_share_new(const atomic_uint *crowd);

/* Nobody sits there, and it has no connection. */
void rl_share_free(rl_share *h);

/* It stays the caller's. */
void rl_share_attach(rl_share *h, rl_conn *c);

/*
 * Nobody sits there any more. A connection that is spent owes answers no more
 * either, as it is retired or broken, and is to be closed.
 */
rl_conn *rl_share_detach(rl_share *h);

/* A seat for the calling thread; NULL: out of memory. */
rl_seat *rl_share_sit(rl_share *h);

/*
 * The thread goes. If it was not answered, the share is spent: nobody else is
 * to stand behind a reply that does not come. False: it is spent.
 */
bool rl_seat_leave(rl_seat *s);

/*
 * Sends what is new on the seat's line, and feeds the line what comes, until
 * the reply is there, or will never be, or the time is over. Then the command
 * counts as sent, as nobody can take it back.
 */
void rl_seat_exchange(rl_seat *s, int64_t until_us);

/* --- by one thread that has all the seats and waits at none ----------------
 */

/* What is new on the seat's line goes into the share's. */
void rl_seat_post(rl_seat *s);

/*
 * Sends what the kernel takes, and, if something has come, reads it: what the
 * seats were waiting for is there, or will never be. May be called when there
 * is nothing to do.
 */
void rl_share_serve(rl_share *h, bool has_come);

/* What that thread has to poll for. */
short rl_share_events(const rl_share *h);

/*
 * Of the seats that nobody has, no more stay than that there are so many in
 * all; nor does a large buffer that is empty. Whoever else wakes a seat may
 * still have it in hand, so this is for a thread that has all of them.
 */
void rl_share_trim(rl_share *h, size_t kept);

/*
 * The seat's line is fed what has come. in_time: otherwise nobody waits any
 * more, as at the end of rl_seat_exchange(). True: something has.
 */
bool rl_seat_settle(rl_seat *s, bool in_time);

#endif
