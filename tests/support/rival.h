/*
 * A rival for a scene's lock: one more client of its server, without a proxy,
 * which stands for another process.
 */
#ifndef TEST_SUPPORT_RIVAL_H
#define TEST_SUPPORT_RIVAL_H

#include "scene.h"

typedef struct rival {
    rlock_client *cl;
    rlock *lk;
    waiter *w;
    int64_t asleep_ms; /* when it fell asleep, or a little before */
} rival;

/* With a handle for SCENE_LOCK; opts NULL for defaults. */
rival rival_join(const scene *s, const rlock_options *opts);
void rival_leave(rival *r);
/* Has it wait as the last of n clients. */
void rival_wait(const scene *s, rival *r, int n, int64_t wait_ms);
/* Its waiter gets the lock, and not because of its fallback poll. */
void expect_woken(rival *r);

#endif
