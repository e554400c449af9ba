/*
 * The scripts of a semaphore called "job", of three permits, by themselves.
 */
#ifndef TEST_SUPPORT_PERMIT_CALLS_H
#define TEST_SUPPORT_PERMIT_CALLS_H

#include "bells.h"

#define A HOLDER_OF("a")
#define B HOLDER_OF("b")
#define C HOLDER_OF("c")

#define PERMITS "{job}:timeout"
#define LINE    "rlock_line:{job}"
#define WANTS   "rlock_wants:{job}"
#define CHANNEL "redisson_sc:{job}"

/* words: lease, how many, how many there are, idle s, and perhaps bell, ticket and
   beat. */
redisReply *permit_acquire(bells *b, const char *holder, const char *words);
bool permit_takes(bells *b, const char *holder, const char *words);
/* With a bell, first or again. */
redisReply *permit_stand(bells *b, const char *holder, const char *n,
                         const char *bell);

long long permit_release(bells *b, const char *holder, const char *n);
long long permit_release_as(bells *b, const char *holder, const char *n,
                            const char *tomb_ms, const char *idle);
/* By renew or extend; words: lease, how many, idle s. */
long long permit_lease(bells *b, rl_script_id script, const char *holder,
                       const char *words);
long long permit_add(bells *b, const char *mark, const char *delta,
                     const char *total);
long long permit_available(bells *b, const char *total);

/* What the counter says; how many the holder has; what is left of the lease of its
   first one, in ms. */
long long permits_free(bells *b);
long long permits_of(bells *b, const char *holder);
long long permits_lease(bells *b, const char *holder);

/* Its lease has run out. */
void permits_die(bells *b, const char *holder, int n);

/* Busy, and so many are before it; is its client new? */
void expect_stands(const redisReply *r, int rank, int anew);
/* Busy, without a bell: so many are free, and wait. */
void expect_busy(const redisReply *r, int free, int waiting);

#endif
