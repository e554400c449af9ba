/*
 * Many requests of one loop at a time, each with a lock of its own, or all with
 * the same.
 */
#ifndef TEST_SUPPORT_STORM_H
#define TEST_SUPPORT_STORM_H

#include "loop.h"

typedef struct storm {
    rlock_client *cl;
    request *r;
    size_t n;
    bool own_locks; /* each has its own */
} storm;

/* Locks of their own: "storm:0", "storm:1", ... */
storm storm_new(rlock_client *cl, size_t n);
/* All for this lock. */
storm storm_for(rlock_client *cl, rlock *lk, size_t n);
/* Owners and locks, also of a client that was freed. */
void storm_free(storm *st);

/* Each is started, and the start answers RLOCK_OK. */
void storm_acquire(storm *st, int64_t wait_ms, int64_t lease_ms);
void storm_unlock(storm *st);
/* Dispatches until each was told so often, and sees that none was more. */
void storm_settle(storm *st, int told);
/* How many were told this the last time. */
size_t storm_told(const storm *st, rlock_status status);
/* Expects that all of them were, and between these ms after began_ms. */
void storm_expect(const storm *st, rlock_status status);
void storm_expect_between(const storm *st, int64_t began_ms, int64_t from_ms,
                          int64_t to_ms);
/* By the clock, how many have it. */
size_t storm_holding(storm *st);
/* Each takes its lock and gives it back, as without any fault, and has been
   told twice then. */
void storm_undisturbed(storm *st);

#endif
