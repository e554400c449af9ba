/*
 * Events: what a client tells its program of. See rlock_options.on_event
 * (client.h) for who is called, and when.
 */
#ifndef RLOCK_EVENT_H
#define RLOCK_EVENT_H

#include <rlock/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What has happened to a lock; see rlock_event. Numbers are part of the ABI. */
typedef enum rlock_event_type {
    /* On the calling thread, before the call returns; of what was started
       (async.h), on a thread that dispatches, before `done`: */
    RLOCK_EVENT_ACQUIRED = 1,  /* every successful acquire, also a re-entry */
    RLOCK_EVENT_RELEASED = 2,  /* every unlock that returns RLOCK_OK */
    RLOCK_EVENT_CONTENDED = 3, /* an acquire is about to wait; once a call */
    /* On the thread rlock-notifier: */
    RLOCK_EVENT_RENEWED = 4,      /* the watchdog prolonged the lease */
    RLOCK_EVENT_RENEW_FAILED = 5, /* a try failed; still held by the clock. Of
                                     each server, one in a second is told, which
                                     stands for all holds there */
    RLOCK_EVENT_LOST = 6,         /* once for each lost hold, no later than
                                     the local deadline of its lease */
    RLOCK_EVENT_ABANDONED = 7,    /* the owner ended while holding */
    RLOCK_EVENT_RECONNECTED = 8,  /* a connection that had broken is back */
    RLOCK_EVENT_FAILOVER = 10,    /* Sentinels, or a cluster, name another
                                     master; told from the first acquire on,
                                     several that come together as one */
    /* On the thread that calls rlock_client_new(); and on rlock-notifier, from
       the first acquire on, when Sentinels contradict each other: */
    RLOCK_EVENT_WARNING = 9 /* the server is set up so that locks can vanish,
                               or cannot be had */
} rlock_event_type;

/* Valid during the callback only; copy what is to be kept. */
typedef struct rlock_event {
    rlock_event_type type;
    const char *name;    /* the lock's name, NUL-terminated; "" if none */
    size_t name_len;     /* its length in bytes, without the NUL */
    uint64_t token;      /* fencing token of the hold, 0 if there is none */
    int count;           /* hold count after the event */
    int64_t elapsed_ms;  /* ACQUIRED: time the call took; RELEASED, LOST,
                            ABANDONED: since the hold began; otherwise 0 */
    rlock_status status; /* RLOCK_OK, or what the event reports */
    const char *message; /* the cause in words, never NULL */
    const char *owner;   /* label of the owner that is no thread (owner.h) whose
                            hold it is; else "" */
} rlock_event;

#ifdef __cplusplus
}
#endif

#endif
