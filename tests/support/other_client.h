/*
 * A rival for a scene's lock: one more client of its server, without a proxy,
 * which stands for another process.
 */
#ifndef TEST_SUPPORT_OTHER_CLIENT_H
#define TEST_SUPPORT_OTHER_CLIENT_H

#include "scene.h"

typedef struct other_client {
    rlock_client *cl;
    rlock *lk;
    waiter *w;
    int64_t asleep_ms; /* when it fell asleep, or a little before */
} other_client;

/* With a handle for SCENE_LOCK; opts NULL for defaults. */
other_client other_client_join(const scene *s, const rlock_options *opts);
void other_client_leave(other_client *r);
/* Has it wait as the last of n clients. */
void other_client_wait(const scene *s, other_client *r, int n, int64_t wait_ms);
/* Its waiter gets the lock, and not because of its fallback poll. */
void expect_woken(other_client *r);

#endif
