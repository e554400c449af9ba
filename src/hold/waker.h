/*
 * Who is woken, and why. A wait itself is the driver's business: a thread that
 * sleeps, an entry of an event loop, a simulator's turn.
 */
#ifndef RL_HOLD_WAKER_H
#define RL_HOLD_WAKER_H

/* The larger ones win. */
typedef enum rl_wake {
    RL_WAKE_NONE,
    RL_WAKE_LOOK,   /* it has become the front; rings may have been missed; it
                       may be in a queue no more; a node's client is closed */
    RL_WAKE_RUNG,   /* a release rang for it */
    RL_WAKE_CANCEL, /* rlock_cancel(), rlock_owner_cancel() */
    RL_WAKE_CLOSE   /* rlock_client_free() */
} rl_wake;

/*
 * wake() may be called from any thread, with mutexes of the core held, and
 * must not call back. node: which node of a Red lock rang; 0 for others.
 */
typedef struct rl_waker {
    void (*wake)(struct rl_waker *w, rl_wake why, unsigned node);
} rl_waker;

#endif
