/*
 * Owners that are no threads: a request of an event loop, a job of a thread
 * pool, a coroutine. Without one the calling thread owns what it locks. No call
 * of this file blocks on I/O.
 *
 *     rlock_owner *former = rlock_owner_set(job->owner);
 *     rlock_lock(lk);            the job holds it, not the thread
 *     rlock_owner_set(former);
 *
 * Every call on a lock then means that owner: two jobs that one thread runs
 * exclude each other, and a job may lock on one thread and unlock on another.
 *
 * An owner does one thing at a time. While one thread acts as it, or what it
 * has started (async.h) is under way, calls of others as this owner answer
 * RLOCK_EINVAL; but questions, and rlock_force_unlock(), are answered. In a
 * child of fork() calls as one of the parent's answer RLOCK_EFORKED.
 */
#ifndef RLOCK_OWNER_H
#define RLOCK_OWNER_H

#include <rlock/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlock_owner rlock_owner;

/* The longest label of an owner, in bytes; what is longer is cut. */
#define RLOCK_LABEL_MAX 63

/*
 * Makes an owner, for locks of any client of this process.
 *
 * label  shows in holder ids, as host:pid:tid/label:uuid (tid is that of the
 *        thread that calls this), in rlock_holder.owner, events and messages.
 *        Blanks, control characters and colons become _. Need not be unique.
 *        NULL or "": a number of its own, such as "owner-17"
 *
 * RLOCK_OK        *out is the owner; free it with rlock_owner_free()
 * RLOCK_EINVAL, RLOCK_ENOMEM
 */
RLOCK_API rlock_status rlock_owner_new(const char *label, rlock_owner **out);

/*
 * Ends and frees the owner; NULL is accepted. What it holds is abandoned, as
 * when a thread ends: leases run out, with RLOCK_EVENT_ABANDONED for each. So
 * unlock first, as the owner. A wait that is under way ends as by
 * rlock_cancel(): one that was started at once, that of a thread when it looks
 * next, as a rule within 3 s; what is granted all the same is abandoned, too.
 * An unlock that it has started is done before that.
 *
 * The calling thread acts as itself from here on (but in `done`, if it has
 * dispatched as this owner: then, like another one, behind that); calls of
 * another one that acts as the owner answer RLOCK_EINVAL. Must not be called
 * twice, nor while another thread may begin to use the owner.
 */
RLOCK_API void rlock_owner_free(rlock_owner *o);

/*
 * Ends the wait for a lock that the owner has started (async.h), and no other
 * owner's, with RLOCK_CANCELED; NULL is accepted. What is under way and waits
 * for no lock goes on, and so does what is started later. Any thread may call
 * it, also one that acts as another owner. The owner must not have been freed.
 */
RLOCK_API void rlock_owner_cancel(rlock_owner *o);

/*
 * Makes the calling thread act as this owner from here on; NULL: as itself.
 * Returns whom it acted as, NULL for itself. Cannot fail: if another thread
 * acts as the owner, calls answer RLOCK_EINVAL until that stops, or ends.
 */
RLOCK_API rlock_owner *rlock_owner_set(rlock_owner *o);

/*
 * Tells whether calls as this owner would answer RLOCK_EINVAL now: what it has
 * started is under way (not any more in its callback), or a thread other than
 * the calling one acts as it. Only what the program does makes it busy. false
 * for NULL, and for one from before fork(). The owner must not have been freed.
 */
RLOCK_API bool rlock_owner_is_busy(const rlock_owner *o);

#ifdef __cplusplus
}
#endif
#endif
