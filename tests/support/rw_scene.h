/* A read-write lock, SCENE_LOCK, that two clients share, each with both sides. */
#ifndef TEST_SUPPORT_RW_SCENE_H
#define TEST_SUPPORT_RW_SCENE_H

#include <rlock/rw.h>

#include "other_client.h"

#define RW_LINE   "rlock_line:{" SCENE_LOCK "}"
#define RW_WANTS  "rlock_wants:{" SCENE_LOCK "}"
#define RW_LEASES "rlock_leases:{" SCENE_LOCK "}"

typedef struct sides {
    rlock *read, *write;
} sides;

sides sides_of(rlock_client *cl, const char *name);
void sides_free(sides *s);

typedef struct rw_scene {
    scene s;
    other_client o;
    sides mine, theirs;
} rw_scene;

/* Watchdog lease of both; 0: the default. */
rw_scene rw_scene_start(int64_t lease_ms);
/* Nothing is left but what goes with its time. */
void rw_scene_stop(rw_scene *r);

/* How many stand in line. */
long long rw_in_line(server *sv);
/* How the lock is had: 0 free, 1 read, 2 written. */
int rw_mode(rlock *either);
/* One waits, as the n-th in line. */
waiter *rw_stand(rw_scene *r, rlock *lk, int64_t wait_ms, int n);

#endif
