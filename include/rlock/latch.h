/*
 * A countdown latch: a count in Redis that falls, for any number of processes.
 * At zero it is open, and all who wait go on: a start gun, or "when these ten
 * are done". It is the RCountDownLatch of Redisson (Java), shared with that.
 *
 *     rlock_latch_set(l, 10, 0);          once, by whoever begins
 *     rlock_latch_count_down(l, 1);       by each of ten, when it is done
 *     rlock_latch_wait(l, 5000);          by any number, in any process
 *
 * A latch has no owners, no leases, no events, and no figures in rlock_stats;
 * what lock.h says of handles, threads, fork() and clients, and for how long
 * calls block, is true of it. What is not set is open: so is one that was never
 * set, was deleted, whose ttl_ms is over, or whose server has lost its data.
 * Set it before anybody waits.
 *
 * It can be set again once it is open. Do that when all who waited have gone
 * on, and all count-downs have been answered: who looks late would wait for the
 * next round, and what arrives late would be counted in it. min_replicas has no
 * effect: what a failover loses is lost.
 *
 * Who waits is rung when the latch opens, as who waits for a lock is: not where
 * the server has no pub/sub, nor by a Java program's countDown() unless the
 * client has redisson_channel (options.h), nor in a cluster if the name has
 * braces. He looks by himself every 2 s, if nobody can ring him four times a
 * second. All who wait with one client ask as one.
 */
#ifndef RLOCK_LATCH_H
#define RLOCK_LATCH_H

#include <rlock/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlock_latch rlock_latch;

/* The largest count, and the largest number to count down by (2^52). */
#define RLOCK_COUNT_MAX ((int64_t)4503599627370496)

/*
 * Makes a handle for the latch called name, as rlock_new() does for a lock:
 * asks no server, and sets nothing. Locks and latches of one name exclude each
 * other: RLOCK_EWRONGTYPE, or a lock of another program.
 *
 * RLOCK_OK        *out is the handle; free it with rlock_latch_free()
 * RLOCK_EINVAL    also: a name that rlock_new() does not take
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_latch_new(rlock_client *cl, const char *name,
                                       rlock_latch **out);

/* Makes a handle, as rlock_latch_new(), for a name of len bytes, also NUL. */
RLOCK_API rlock_status rlock_latch_new_n(rlock_client *cl, const void *name,
                                         size_t len, rlock_latch **out);

/* Frees the handle; NULL is accepted. The latch stays as it is. No other thread
   may be using the handle. */
RLOCK_API void rlock_latch_free(rlock_latch *l);

/*
 * Sets the latch to count, if it is open.
 *
 * count   1 to RLOCK_COUNT_MAX
 * ttl_ms  so long it lives, then it is open; 0: until it has been counted down
 *
 * RLOCK_OK        it is set
 * RLOCK_BUSY      it was set, and is not at zero; nothing has changed
 * RLOCK_EINVAL    also: count or ttl_ms is out of range
 * RLOCK_EIO       it may have been set, or may be yet
 * RLOCK_EWRONGTYPE  the key is no count, and is left alone
 * RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_latch_set(rlock_latch *l, int64_t count,
                                       int64_t ttl_ms);

/*
 * Counts down by n, 1 to RLOCK_COUNT_MAX, once, however often an answer is
 * lost. At zero, or below, the latch opens, and all who wait are woken.
 *
 * RLOCK_OK        counted; also if it was open, and stays so
 * RLOCK_EIO       not answered so far. The client goes on in the background,
 *                 for a minute from the call on, until it is answered: do not
 *                 call again for this count. It is counted, once, unless the
 *                 server is away or refuses it for that long, or the client is
 *                 freed before: that tries for at most a second more, and
 *                 rlock_client_close() tells if it was in vain
 * RLOCK_EWRONGTYPE  the key is no count, and is left alone
 * RLOCK_ESERVER   refused, and not counted; if an answer was lost before that,
 *                 it may have been
 * RLOCK_EINVAL    also: n is out of range
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 *                 not counted
 */
RLOCK_API rlock_status rlock_latch_count_down(rlock_latch *l, int64_t n);

/*
 * Waits until the latch is open.
 *
 * wait_ms  how long to wait; 0: one look; RLOCK_FOREVER: no limit
 *
 * Ends within wait_ms plus one command_timeout_ms. A server that cannot be
 * reached is asked again as by rlock_acquire().
 *
 * RLOCK_OK        it is open, or was since the call began
 * RLOCK_BUSY      wait 0, and it is not open: the message says what is left
 * RLOCK_TIMEOUT   the wait ran out; the message says what is left, if that is
 *                 known
 * RLOCK_CANCELED  rlock_latch_cancel() or rlock_client_cancel() ended the wait,
 *                 or the latter is on and the wait would have begun
 * RLOCK_EINVAL    also: wait_ms below -1
 * RLOCK_EWRONGTYPE  the key is no count
 * RLOCK_EIO, RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_latch_wait(rlock_latch *l, int64_t wait_ms);

/* Tells what came of a wait, and arg, which was given there. */
typedef void rlock_latch_done(rlock_latch *l, rlock_status s, void *arg);

/*
 * Starts rlock_latch_wait(), as rlock_acquire_start() (async.h) does an
 * acquire, but for no owner: any thread may start any number, also of one
 * handle. `done` is told what the wait answers, by who dispatches.
 *
 * RLOCK_OK        started, and `done` will be called. With any other status it
 *                 will not
 * RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_latch_wait_start(rlock_latch *l, int64_t wait_ms,
                                              rlock_latch_done *done,
                                              void *arg);

/*
 * Asks the server what is left to count down; 0: it is open.
 *
 * RLOCK_OK, RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER,
 * RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_latch_count(rlock_latch *l, int64_t *out);

/*
 * Opens the latch, whatever is left, and wakes all who wait.
 *
 * RLOCK_OK        it was set, and is open now
 * RLOCK_NOT_HELD  it was open: never set, counted down, or deleted before
 * RLOCK_EIO       it may have been opened; it is not asked twice, as it could
 *                 have been set again meanwhile
 * RLOCK_EWRONGTYPE  the key is no count, and is left alone
 * RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_latch_delete(rlock_latch *l);

/* Ends each wait on this handle, in any thread, also started ones, with
   RLOCK_CANCELED; NULL is accepted. Later ones go on. */
RLOCK_API void rlock_latch_cancel(rlock_latch *l);

#ifdef __cplusplus
}
#endif
#endif
