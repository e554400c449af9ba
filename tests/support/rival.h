/*
 * A rival for a scene's lock: one more client of its server, without a proxy,
 * which stands for another process.
 */
#ifndef TEST_SUPPORT_RIVAL_H
#define TEST_SUPPORT_RIVAL_H

#include "scene.h"

/*
 * A waiter looks by itself after 1.5 to 2.5 s, and when it waits for another
 * program's lock, after 0.19 to 0.31 s. What happens within this time after it
 * fell asleep is due to a ring, or to that program.
 */
#define WELL_BEFORE_POLL_MS 1300

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
