/*
 * Semaphores in a scene, and threads that want permits of them.
 */
#ifndef TEST_SUPPORT_PERMITS_H
#define TEST_SUPPORT_PERMITS_H

#include "scene.h"

/* The name of a scene's semaphore, and its keys. */
#define POOL         "pool"
#define POOL_PERMITS "{pool}:timeout"
#define POOL_LINE    "rlock_line:{pool}"

/* A handle; fails the test. */
rlock_semaphore *test_semaphore(rlock_client *cl, const char *name,
                                int64_t permits);

/* So many at once, which have to be free; for an int64_t lease. */
rlock_permit *take(rlock_semaphore *s, int n, int64_t lease_ms);
/* Gives them back. */
void give_back(rlock_permit *p);

/* How many are free, and held, as the server has it; and who stands in line. */
int64_t free_of(rlock_semaphore *s);
long long held_at(server *sv);
long long standing_at(server *sv);

/* A thread that wants so many. */
typedef struct taker taker;
taker *taker_start(rlock_semaphore *s, int n, int64_t wait_ms,
                   int64_t lease_ms);
/* The same, as the rank-th in line. */
taker *taker_stand(server *sv, rlock_semaphore *s, int n, int rank);
bool taker_returned(taker *t);
/* Joins it: what it was answered, *p: what it has (or NULL: it is given back),
   *at_ms: when (test_now_ms; or NULL). */
rlock_status taker_end(taker *t, rlock_permit **p, int64_t *at_ms);

/* Nothing is left but the counter, tombstones and marks. */
void expect_pool_left(server *sv, long long free);

#endif
