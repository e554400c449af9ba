/*
 * The scripts of a read-write lock called "job", by themselves: of each side.
 */
#ifndef TEST_SUPPORT_RW_CALLS_H
#define TEST_SUPPORT_RW_CALLS_H

#include "bells.h"

#define A HOLDER_OF("a")
#define B HOLDER_OF("b")
#define C HOLDER_OF("c")
#define D HOLDER_OF("d")

#define LINE    "rlock_line:{job}"
#define WANTS   "rlock_wants:{job}"
#define LEASES  "rlock_leases:{job}"
#define TOKEN   "rlock_token:{job}"
#define MARK(h) "{job}:" h ":rwlock_timeout:1"
#define CHANNEL "redisson_rwlock:{job}"

/* A side's scripts, and whether it has a mark. */
typedef struct side {
    const rl_layout *l;
    bool marked;
} side;

extern const side side_reads, side_writes;

/* Who hears the bell 1 and Redisson's channel. */
bells rw_bells_open(void);
/* The next message, on either; valid until the next. */
const char *rw_heard(bells *p);

/* The keys of acquire and release; valid until the next. */
const char *side_keys(const side *x, const char *holder);
/* words: those behind the holder. */
redisReply *side_run(bells *p, rl_script_id script, const char *keys,
                     const char *holder, const char *words);

redisReply *side_try(bells *p, const side *x, const char *holder,
                     const char *words);
/* It is free for it; returns its token. */
uint64_t side_take(bells *p, const side *x, const char *holder);
/* By the side's own words, for who has the other one as that field. */
redisReply *side_take_too(bells *p, const side *x, const char *holder,
                          const char *other);
/* In line, as the one behind so many. */
void side_stand(bells *p, const side *x, const char *holder, int rank);
long long side_release(bells *p, const side *x, const char *holder);

/* Busy, without a bell. */
void expect_side_busy(const redisReply *r);
/* Refused: -1 lost, -2 given up, -3 others read it, too. */
void expect_side_code(const redisReply *r, int code);

/* "read", "write" or "free". */
const char *job_mode(bells *p);
bool job_has(bells *p, const char *field);
/* With its leases, and with the marks of A and B. */
void expect_job_gone(bells *p);

#endif
