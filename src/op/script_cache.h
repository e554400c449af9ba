/*
 * The SHA1s of the program's latest scripts, behind their guards: to work one
 * out takes longer than to look whether a text is the same. It is bounded: a
 * text takes the place of another one, and long ones are not remembered.
 */
#ifndef RL_OP_SCRIPT_CACHE_H
#define RL_OP_SCRIPT_CACHE_H

#include "base/sha1.h"
#include "base/thread.h"

#define RL_SUMS     32
#define RL_SUM_TEXT (16 * 1024) /* the longest text that is remembered */

typedef struct rl_sum {
    size_t len;
    unsigned guards; /* which are in front, as the caller counts them */
    char sha1[RL_SHA1_LEN + 1];
    char text[];
} rl_sum;

typedef struct rl_sums {
    rl_mutex mutex;
    rl_sum *place[RL_SUMS]; /* NULL: empty */
} rl_sums;

void rl_sums_init(rl_sums *s);
void rl_sums_fini(rl_sums *s, bool forked);

/* False: it is not remembered. */
bool rl_sums_find(rl_sums *s, const char *text, size_t len, unsigned guards,
                  char sha1[RL_SHA1_LEN + 1]);

/* Remembers it, if there is memory for that. */
void rl_sums_note(rl_sums *s, const char *text, size_t len, unsigned guards,
                  const char sha1[RL_SHA1_LEN + 1]);

#endif
