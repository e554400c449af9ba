/*
 * Locks on an event loop: nothing here blocks, and the program is called back.
 *
 *     void on_readable(...)  { rlock_client_dispatch(cl); }
 *     void got_it(rlock *lk, rlock_status s, void *arg)  { ... }
 *
 *     loop_watch(loop, rlock_client_fd(cl), READABLE, on_readable);
 *     rlock_owner_set(r->owner);
 *     rlock_acquire_start(r->lk, 5000, RLOCK_WATCHDOG, got_it, r);
 *     rlock_owner_set(NULL);
 *
 * A start answers at once. The client does what the blocking call would do, any
 * number at a time; then the descriptor is readable, and
 * rlock_client_dispatch() calls back on the thread that calls it. Give each
 * request an owner (owner.h), or all requests of the loop's thread are one, and
 * a handle, as rlock_cancel() ends all waits on a handle; give each loop a
 * client. A Multi or Red lock is dispatched by the first client of its list.
 *
 * `done` (NULL: nobody wants to know) is called exactly once for each start
 * that returned RLOCK_OK, and after that (unless another thread dispatches
 * meanwhile), by a thread that dispatches or frees the client. This thread acts
 * as the owner then, and rlock_last_error() has the detail, as of its own call.
 * `done` may start the next thing, free lock or owner, act as another owner,
 * dispatch; but not free the client. It may be long after the grant: ask
 * rlock_is_held() before you rely on that, and unlock also what is lost. A
 * program that does not dispatch keeps its locks. More: threads.md.
 */
#ifndef RLOCK_ASYNC_H
#define RLOCK_ASYNC_H

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Gives the descriptor that is readable while something is to be delivered, the
 * same each time: watch it, level- or edge-triggered, and call
 * rlock_client_dispatch(), which may deliver many, or nothing. It belongs to
 * the client, and rlock_client_free() closes it: stop watching it before that;
 * never read from it, nor close it.
 *
 * Returns the descriptor, or -1, and rlock_last_error() tells:
 *
 * RLOCK_ENOMEM    also: no descriptor is left
 * RLOCK_EINVAL, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API int rlock_client_fd(rlock_client *cl);

/*
 * Calls back for all that was to be delivered when it was called: `done`, and,
 * with the option dispatch_events, on_event. What comes meanwhile is left for
 * the next call; the descriptor stays readable. Any thread may call it, several
 * at a time, and callbacks. Nothing to do costs less than a microsecond.
 *
 * RLOCK_OK, RLOCK_EINVAL, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_client_dispatch(rlock_client *cl);

/* Tells what came of a start, and arg, which was given there. */
typedef void rlock_done(rlock *lk, rlock_status s, void *arg);

/*
 * Starts rlock_acquire(), rlock_unlock() or rlock_extend(), of any kind of
 * lock, for the owner that the calling thread acts as; `done` is told what that
 * answers. Does not block, also not for a name look-up or a connection. (A
 * connect callback runs on rlock-connector.) The handle may be freed at once;
 * `done` is given it all the same, for the last time.
 *
 * A wait begins with the start. rlock_cancel() of the handle,
 * rlock_client_cancel(), rlock_owner_cancel() and rlock_owner_free() end it
 * with RLOCK_CANCELED. So end one level more, and an extend, whose owner is
 * freed: what was sent may have been done, and the hold is abandoned.
 * rlock_client_free() ends waits, and acquires that have not begun, with
 * RLOCK_ECLOSED; an unlock, extend or guarded call that was started before is
 * done: of a Multi or Red lock, where the client is open yet, so free its first
 * one first. It calls back on its own thread, also on_event. In a child of
 * fork() nothing is called back.
 *
 * RLOCK_OK        started, and `done` will be called. With any other status
 *                 nothing has been done, and it will not
 * RLOCK_EINVAL    also: the thread acts as no owner, or the owner was freed
 * RLOCK_ENOMEM    of an unlock, what the owner did not acquire by a start is
 *                 still held, and renewed: try again, or free the owner
 * RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_acquire_start(rlock *lk, int64_t wait_ms,
                                           int64_t lease_ms, rlock_done *done,
                                           void *arg);
RLOCK_API rlock_status rlock_unlock_start(rlock *lk, rlock_done *done,
                                          void *arg);
RLOCK_API rlock_status rlock_extend_start(rlock *lk, int64_t lease_ms,
                                          rlock_done *done, void *arg);

#ifdef __cplusplus
}
#endif
#endif
