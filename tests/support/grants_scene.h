/*
 * Two clients of one server, which stand for processes and may have the option
 * grants, and who waits for SCENE_LOCK there.
 */
#ifndef TEST_SUPPORT_GRANTS_SCENE_H
#define TEST_SUPPORT_GRANTS_SCENE_H

#include "other_client.h"

/* The lock's queue, and what those in it want. */
#define GRANTS_QUEUE "rlock_queue:{" SCENE_LOCK "}"
#define GRANTS_WHO   "rlock_undone:{" SCENE_LOCK "}:who"

typedef struct grants_scene {
    scene s;
    other_client o;
} grants_scene;

/* Which of them have the option; or both, the other client with these besides. */
grants_scene grants_scene_start(bool first, bool second);
grants_scene grants_scene_with(rlock_options other);
/* Both end; nothing but tombstones is left. */
void grants_scene_stop(grants_scene *p);

/* Of one of the two clients: the only one in the queue, whose client hears its bell.
   It sleeps: a grant that comes before it has read that the lock is held would make
   it ask once more. */
waiter *grants_queue_up(grants_scene *p, rlock *lk, int64_t lease_ms);

/*
 * The first client has the lock, and has waited for it: so its release grants. The
 * waiter that is answered has it.
 */
waiter *grants_have_waited(grants_scene *p);

/* Who has waited once hears its bell from then on, and asks once to stand there:
   the other client has. */
void grants_hear_bells(grants_scene *p);

#endif
