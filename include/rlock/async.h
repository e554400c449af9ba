/*
 * Locks on an event loop: nothing here blocks, and the program is called back.
 * (rlock_client_new(), rlock_client_close() and rlock_client_free() do block:
 * call them before the loop begins and after it has ended, or on a thread of
 * their own.)
 *
 *     loop_watch(loop, rlock_client_fd(cl), READABLE, on_readable);
 *
 *     void on_readable(...)          { rlock_client_dispatch(cl); }
 *     void request_begins(request *r)
 *     {
 *         rlock_owner_set(r->owner);
 *         rlock_acquire_start(r->lk, 5000, RLOCK_WATCHDOG, got_it, r);
 *         rlock_owner_set(NULL);
 *     }
 *     void got_it(rlock *lk, rlock_status s, void *arg)   { ... }
 *
 * A start answers at once. The client's thread rlock-loop then does what the
 * blocking call of that name would do, for any number of them at a time, on the
 * connections of the client, and posts what came of it; the descriptor becomes
 * readable, and rlock_client_dispatch() calls back on the thread that calls it.
 * So it goes with any loop: libuv, libevent, GLib, epoll by hand.
 *
 * All requests of a loop run on one thread, which would be one owner: a second
 * request would be told RLOCK_OK, one level more, for what the first one holds.
 * So a start wants an owner (owner.h), one for each request, and an owner does
 * one thing at a time: until `done` is called, other calls as this owner answer
 * RLOCK_EINVAL.
 *
 * The callback. It is called exactly once for each start that returned
 * RLOCK_OK, never before that has returned (unless another thread dispatches
 * meanwhile), never from another thread than those that dispatch or free the
 * client. The thread acts as the owner while it runs, and rlock_last_error()
 * has the detail when the status is not RLOCK_OK. It may do anything but free
 * the client: start the next thing, also on the same lock; free the lock, or
 * the owner; act as another owner, until it returns;
 * call rlock_client_dispatch(), which delivers what is behind it. It must not
 * be left by longjmp(). NULL: nobody wants to know.
 *
 * Which client. A Multi lock belongs to the client of the first lock in its
 * list, a Red lock to the first client in its list: `done` comes by the
 * descriptor and the dispatch of that one. The others need not be dispatched
 * for it.
 *
 * One handle for each request: rlock_cancel() ends the waits of all owners on
 * that handle. To end one wait alone, give that request a handle of its own
 * (handles of one name are the same lock), or free its owner.
 *
 * After fork() the owners of the parent are dead in the child, as its clients
 * are: calls as one of them answer RLOCK_EFORKED, also with a client that the
 * child has made. Make new ones; the old ones can only be freed.
 *
 * Several loops: a client for each, as callbacks come on whichever thread
 * dispatches. That costs a client's threads and connections for each loop.
 *
 * RLOCK_OK says that it was granted, in time for its lease. The callback comes
 * later than that, and in a busy loop, or a process that was stopped, much
 * later: ask rlock_is_held(), or rlock_valid_ms(), before you rely on it, and
 * unlock it also if it is lost.
 *
 * What cannot be delivered waits. A program that does not dispatch keeps its
 * locks: they are renewed, and the owner's deadline is as ever.
 */
#ifndef RLOCK_ASYNC_H
#define RLOCK_ASYNC_H

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A descriptor that is readable while something is to be delivered: watch it
 * for reading, level-triggered or edge-triggered, and call
 * rlock_client_dispatch() then. It is the same each time, belongs to the
 * client, and is closed by rlock_client_free(): stop watching it before that,
 * never read from it, and never close it (a program that did would have its
 * loop told nothing any more, and rlock_client_free() would close whatever has
 * that number by then).
 *
 * It may be readable while rlock_client_dispatch() then calls nothing back.
 * That is no error: a server has answered, and the dispatch went on with what
 * has been started. Nor is it to be counted: one dispatch may deliver many.
 *
 * -1: rlock_last_error() says why: RLOCK_EINVAL, RLOCK_ECLOSED, RLOCK_EFORKED,
 * or RLOCK_ENOMEM when no descriptor is left.
 */
RLOCK_API int rlock_client_fd(rlock_client *cl);

/*
 * Calls back for all that was to be delivered when it was called: `done` of
 * what has been started, and, with the option dispatch_events, on_event. What
 * comes meanwhile is left for the next call, and the descriptor stays readable.
 * May be called at any time, by any thread, by several at a time, and from a
 * callback. Does not block; nothing to do costs less than a microsecond.
 *
 * RLOCK_OK, RLOCK_ECLOSED, RLOCK_EFORKED; RLOCK_EINVAL for NULL.
 */
RLOCK_API rlock_status rlock_client_dispatch(rlock_client *cl);

/* What came of a start; arg is what was given there. */
typedef void rlock_done(rlock *lk, rlock_status s, void *arg);

/*
 * As rlock_acquire(), rlock_unlock() and rlock_extend(), for the owner that the
 * calling thread acts as; for single, Multi and Red locks. What these return,
 * `done` is told.
 *
 * An acquire's wait begins with the start. (A holder that was killed keeps the
 * lock for the rest of its lease; who waits for less may do so in vain.) It is
 * ended by rlock_cancel() of this handle, rlock_client_cancel(),
 * rlock_owner_free() of its owner (all: RLOCK_CANCELED) and rlock_client_free()
 * (RLOCK_ECLOSED). The lock handle may be freed as soon as the start has
 * returned; `done` is given it all the same, for the last time.
 *
 * An acquire of one level more, and an extend, whose owner is freed meanwhile
 * are RLOCK_CANCELED, too. What had been sent may have been done; the hold is
 * abandoned, as all that the owner had.
 *
 * rlock_client_free() waits for what has been started, as for calls that are in
 * progress, and then calls what is still to be called back, on_event for events
 * that were not dispatched yet too, on its own thread.
 * In a child of fork() nothing is called back.
 *
 * Neither blocks, also not for a name look-up or a connection. (A connect
 * callback of the program's runs on rlock-connector.)
 *
 * RLOCK_OK       it has been started, and `done` will be called
 * RLOCK_EINVAL   an argument is out of range; the thread acts as no owner; or
 *                the owner has an operation under way, is used by another
 *                thread, or was freed
 * RLOCK_ENOMEM   out of memory, or the thread could not be started
 * RLOCK_ECLOSED, RLOCK_EFORKED
 *
 * Unless RLOCK_OK, nothing has been done and `done` is not called. An unlock
 * does not fail so for lack of memory if the owner has acquired the lock by a
 * start, as it takes the memory that this has left. Otherwise the lock is still
 * held, and renewed: try again, or free the owner, which abandons it.
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
