/*
 * Owners that are no threads: a request of an event loop, a job of a thread
 * pool, a coroutine.
 *
 * Without this header the calling thread owns what it locks. A program whose
 * unit of work is not a thread gives each unit an owner, and says, before it
 * calls, whom the thread acts as:
 *
 *     rlock_owner *former = rlock_owner_set(job->owner);
 *     rlock_lock(lk);            the job holds it, not the thread
 *     rlock_owner_set(former);
 *
 * Every function of lock.h and multi.h then means that owner: two jobs that one
 * thread runs exclude each other, a job that locks again goes one level deeper,
 * whichever thread it runs on, and what was locked in one thread can be
 * unlocked in another. (Redisson's users ask for this as lock(threadId); Java
 * and Python tie a lock to its thread.)
 *
 * An owner does one thing at a time, as a thread does. While one thread acts as
 * it, and while an operation that it has started (async.h) is under way, calls
 * of others as this owner answer RLOCK_EINVAL, and nothing is done
 * (rlock_owner_is_busy() tells beforehand). Questions that need no server
 * (rlock_is_held() and the like) are answered all the same.
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
 * Makes an owner, for locks of any client of this process. It holds nothing.
 *
 * label  shows in holder ids, as host:pid:tid/label:uuid (tid is that of the
 *        thread that calls this), in rlock_holder.owner, events and messages.
 *        Blanks, control characters and colons become _. It need not be
 *        unique. NULL or "": a number of its own, such as "owner-17"
 *
 * RLOCK_OK      *out is the owner; free it with rlock_owner_free()
 * RLOCK_EINVAL  out is NULL
 * RLOCK_ENOMEM
 *
 * *out is NULL unless RLOCK_OK.
 */
RLOCK_API rlock_status rlock_owner_new(const char *label, rlock_owner **out);

/*
 * The owner ends; NULL is accepted. What it holds is abandoned, as when a
 * thread ends: the leases run out by themselves, with RLOCK_EVENT_ABANDONED for
 * each. So unlock first, as the owner. A wait that it has started is ended as
 * by rlock_cancel(), its callback is still called, and what is granted all the
 * same is abandoned, too.
 *
 * A thread that acts as the owner does so until it is told otherwise, and its
 * calls answer RLOCK_EINVAL; the calling thread acts as itself from here on.
 * Must not be called twice, nor while another thread may begin to use it.
 * Does not block on I/O.
 */
RLOCK_API void rlock_owner_free(rlock_owner *o);

/*
 * From here on the calling thread acts as this owner; NULL: as itself. Returns
 * whom it acted as until now, NULL for itself.
 *
 * Does not block, and cannot fail: if another thread acts as the owner, calls
 * answer RLOCK_EINVAL until that one has stopped. A thread that ends stops.
 */
RLOCK_API rlock_owner *rlock_owner_set(rlock_owner *o);

/*
 * Is an operation under way that the owner has started (async.h), or does a
 * thread other than the calling one act as it? Then calls as this owner answer
 * RLOCK_EINVAL for now, and an event loop that has more for it to do keeps that
 * until the callback. In the callback of what it has started it is not busy any
 * more, and may start the next; nor is it busy for the thread that acts as it.
 *
 * A snapshot: it can only change from false to true by what the program itself
 * does with the owner, so where one thread works with an owner at a time, false
 * means that the next start is not refused for this reason. false for NULL, for
 * an owner that was made before fork(), and for one on which nothing has been
 * started. Does not block, and asks no server. Must not be called with an owner
 * that has been freed.
 */
RLOCK_API bool rlock_owner_is_busy(const rlock_owner *o);

#ifdef __cplusplus
}
#endif

#endif
