/* Events: what a client tells its program by on_event (options.h). */
#ifndef RLOCK_EVENT_H
#define RLOCK_EVENT_H

#include <rlock/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What has happened, and on which thread that is told: on one that dispatches,
   with dispatch_events; else as follows. Numbers are part of the ABI. */
typedef enum rlock_event_type {
    /* On the calling thread, before the call returns; of what was started
       (async.h), on a thread that dispatches, before `done`: */
    RLOCK_EVENT_ACQUIRED = 1,  /* every successful acquire, also a re-entry */
    RLOCK_EVENT_RELEASED = 2,  /* every unlock that returns RLOCK_OK */
    RLOCK_EVENT_CONTENDED = 3, /* an acquire is about to wait; once a call */
    RLOCK_EVENT_WAITED_LONG = 12, /* warn_wait_ms: it still waits; once a call.
                                     The message says who has the lock, if the
                                     call is its client's first to get it */
    /* On the thread rlock-notifier: */
    RLOCK_EVENT_RENEWED = 4,      /* the watchdog prolonged the lease */
    RLOCK_EVENT_RENEW_FAILED = 5, /* a try failed; still held by the clock. One
                                     in a second stands for a server's holds */
    RLOCK_EVENT_LOST = 6,        /* once for each, no later than its deadline */
    RLOCK_EVENT_ABANDONED = 7,   /* the owner ended while holding */
    RLOCK_EVENT_RECONNECTED = 8, /* a connection that had broken is back */
    RLOCK_EVENT_HELD_LONG = 11,  /* warn_hold_ms: once a hold, of a Multi or Red
                                    lock once for all */
    RLOCK_EVENT_RENEW_LATE = 13, /* warn_renew_late: half of the lease was over
                                    and it was not renewed; once, until it is */
    RLOCK_EVENT_FAILOVER = 10,   /* another master is named, from the first
                                     acquire on; several at once are one */
    /* On the thread that makes the client; of a lazy one, its first connection;
       on rlock-notifier when Sentinels contradict each other: */
    RLOCK_EVENT_WARNING = 9 /* locks can vanish, or cannot be had: options.md */
} rlock_event_type;

/* Valid during the callback only; copy what is to be kept. */
typedef struct rlock_event {
    rlock_event_type type;
    const char *name;    /* the lock's name, NUL-terminated; "" if none */
    size_t name_len;     /* its length in bytes, without the NUL */
    uint64_t token;      /* fencing token of the hold, 0 if there is none */
    int count;           /* hold count after the event */
    int64_t elapsed_ms;  /* ACQUIRED: time the call took; WAITED_LONG: has
                            taken; RELEASED, LOST, ABANDONED, HELD_LONG: since
                            the hold began; otherwise 0 */
    rlock_status status; /* RLOCK_OK, or what the event reports */
    const char *message; /* the cause in words, never NULL */
    const char *owner;   /* its label, if it is no thread (owner.h); else "" */
    rlock_kind kind;     /* of the lock, if there is one */
} rlock_event;

#ifdef __cplusplus
}
#endif
#endif
