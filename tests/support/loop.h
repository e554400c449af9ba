/*
 * An event loop of a test: it watches the descriptor of one client, and calls
 * back for what has been started. Each request has an owner of its own.
 */
#ifndef TEST_SUPPORT_LOOP_H
#define TEST_SUPPORT_LOOP_H

#include "scene.h"

typedef struct request {
    rlock *lk;
    rlock_owner *owner;
    int told; /* how often it was called back */
    rlock_status status;
    rlock_error error; /* of the last that was no RLOCK_OK */
    int64_t at_ms;
    void (*then)(struct request *r); /* from the callback; or NULL */
    void *arg;
} request;

/* An owner for it, and no lock of its own. */
request request_new(rlock *lk);
void request_free(request *r);

/* What the start answers. */
rlock_status request_acquire(request *r, int64_t wait_ms, int64_t lease_ms);
rlock_status request_unlock(request *r);
rlock_status request_extend(request *r, int64_t lease_ms);
/* By the clock. */
bool request_holds(request *r);

/* Until something is to be delivered: then it is. */
void loop_turn(rlock_client *cl);

/* Until the condition holds. */
#define LOOP_UNTIL(cl, cond)                                                   \
    while (!(cond))                                                            \
    loop_turn(cl)

/* A start, and what it comes to. */
rlock_status loop_acquire(rlock_client *cl, request *r, int64_t wait_ms,
                          int64_t lease_ms);
rlock_status loop_unlock(rlock_client *cl, request *r);
rlock_status loop_extend(rlock_client *cl, request *r, int64_t lease_ms);

#endif
