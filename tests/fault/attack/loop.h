/*
 * A worker with one thread: an epoll loop over the descriptors of all clients,
 * and owners by the hundred. Each owner does what a thread of another worker
 * does, on a stack of its own (fiber.h): where that would block, the others go
 * on. What has been started is called back once: the loop looks that it is, and
 * that it comes at all.
 *
 * Now and then it cancels the waits for a lock, frees an owner that waits, or
 * frees all clients with whatever is under way, and makes new ones.
 */
#ifndef ATTACK_LOOP_H
#define ATTACK_LOOP_H

#include "calls.h"
#include "worker.h"

/* Returns when the attack is over, and all owners have come to their end. */
void loop_run(void);

/* --- by the owner that runs ------------------------------------------------
 */

/* Starts it; returns what it was called back with. It was there at over_us at
   the earliest: the loop may have been late to look. */
rlock_status loop_call(const wish *w, int64_t limit_us, int64_t *over_us);

/* As rlock_holder_info(), by another thread; RLOCK_BUSY: that one asks already.
 */
rlock_status loop_holder_info(rlock *lk, rlock_holder *who);
bool loop_is_me(const char *label);

/* Is there one? Others are to sleep by themselves. */
bool loop_owner_runs(void);
void loop_sleep(int64_t us);

/* It abandons what it holds, and goes on as a new one. */
void loop_free_owner(void);

/* Between two holds: it thinks for a while, and no hold is open. */
void loop_rest(int64_t us);

/* --- by the library's threads ----------------------------------------------
 */

/* Who is called so; NULL: nobody, or he was freed meanwhile. */
actor *loop_actor(const char *label);

#endif
