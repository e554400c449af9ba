/*
 * The doorbell of a server, on the loop: one subscriber connection, made with
 * the first wait. It subscribes once, to this client's own channel, and stays
 * subscribed; a release that finds this client first in a lock's queue
 * publishes the lock's name there.
 *
 * A ring may be lost (while a broken connection is replaced, say), so nothing
 * relies on it: waiters look by themselves from time to time, and whenever the
 * doorbell has connected again all of them are woken to look.
 */
#ifndef RL_RUN_DOORBELL_H
#define RL_RUN_DOORBELL_H

#include <stdatomic.h>

#include "run/connector.h"
#include "run/loop.h"
#include "run/subscriptions.h"

struct rl_node;

typedef struct rl_doorbell {
    rl_watcher watcher;
    rl_mutex starting; /* held while it is put on the loop */
    atomic_bool started;
    atomic_bool leaving;            /* it is to leave the loop */
    bool stopped;                   /* for good; guarded by starting */
    atomic_bool hurry;              /* what it pauses for may be over */
    rl_subscriptions subscriptions; /* beside the own bell, which a cluster's
                                       client has not */
    /* The loop's: */
    enum {
        RL_RESTS, /* it has no connection: nobody waits, or it pauses */
        RL_CONNECTS,
        RL_SUBSCRIBES,
        RL_HEARS,
        RL_TAKES_LEAVE /* the same, until the server has said that it ends */
    } state;
    rl_visitor visitor;
    rl_conn *conn;                      /* NULL: it rests, or connects */
    bool subscribed, refused, for_good; /* what was said to that */
    bool gone;                          /* it has been said that it ends */
    int64_t until_us;        /* when the pause, or what is asked for, ends */
    int64_t pause_us;        /* the next one's length */
    int64_t yields_until_us; /* to a keeper that is cut off */
    int64_t began_us;        /* when it began to hear */
    int64_t heard_us;  /* when something has come last, or was asked for */
    unsigned arrivals; /* the connection's, then */
    bool asked;        /* whether it is alive */
} rl_doorbell;

bool rl_doorbell_init(rl_doorbell *d); /* false: out of memory */
void rl_doorbell_fini(rl_doorbell *d, bool forked);

/*
 * Starts it if it is not started. When that fails, waiters poll. The waiters
 * that queue themselves do so only after it has come up, which wakes them.
 */
void rl_doorbell_start(struct rl_node *node);
/* Takes it off the loop, when it has taken leave; it may be started again. */
void rl_doorbell_dismiss(struct rl_node *node);
/* The same, for good; */
void rl_doorbell_quit(struct rl_node *node);
/* and it has left. */
void rl_doorbell_await_end(struct rl_node *node);

/* Starts it, for somebody who waits for this name. */
void rl_doorbell_listen(struct rl_node *node, const rl_target *what);

/* It has its turn soon. Any thread. */
void rl_doorbell_wake(struct rl_node *node);

/* There is another server: a pause ends. */
void rl_doorbell_hurry(struct rl_node *node);

#endif
