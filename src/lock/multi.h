/*
 * What the files of Multi locks share: the handle (multi_new.c) and the verbs
 * (multi.c).
 */
#ifndef RL_LOCK_MULTI_H
#define RL_LOCK_MULTI_H

#include "lock/lock.h"

typedef struct rl_member {
    rlock *lk;       /* a handle of our own, so that cancels are ours */
    size_t position; /* in the caller's list, from 1 */
} rl_member;

typedef struct rl_multi {
    rlock base;
    size_t n;
    rl_member member[RLOCK_MULTI_MAX]; /* in the global order */
} rl_multi;

extern const rl_lock_kind rl_multi_kind;

void rl_multi_free(rlock *lk);

/* Are they locks of one name? They may be on different servers. */
bool rl_multi_same_name(const rlock *a, const rlock *b);

#endif
