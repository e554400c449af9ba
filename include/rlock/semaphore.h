/*
 * A semaphore whose permits have leases: of so many permits in Redis, any
 * number of processes take some, and give them back. What a process holds that
 * dies, or is cut off, is free again when its lease is over. It is shared with
 * Redisson (Java), as its RPermitExpirableSemaphore, and with its RSemaphore.
 *
 *     rlock_semaphore_new(cl, "downloads", 10, &s);
 *     rlock_semaphore_acquire(s, 1, 5000, RLOCK_WATCHDOG, &p);
 *     ...
 *     rlock_permit_release(p);
 *
 * A permit is no lock: it belongs to no thread, and is not re-entrant. Who
 * acquires twice has two, and any thread gives them back. In all else it is a
 * hold as of lock.h: renewed, or with a lease of its own; believed in until its
 * local deadline, lost for good past that, and reported once, as
 * RLOCK_EVENT_LOST. Its events have the kind RLOCK_KIND_PERMIT, and no token.
 * While rlock_permit_is_held() says so, there are never more held than there
 * are permits, if none are taken away, and on the conditions of rlock.h.
 *
 * The first acquire says how many there are, or who adds some before; from then
 * on the server knows. One that has lost its data is told again.
 *
 * Who waits stands in a line of the server's (locks.md, Semaphores): all
 * clients, threads and event loops in the order of their first tries, however
 * many they want. So who wants many is not passed by those who want one, and
 * some may be free while he waits. Nobody passes who waits, not with wait 0
 * either. A Java program's release is seen four times a second, or at once with
 * redisson_channel (options.h).
 *
 * Circles of owners that wait for each other (RLOCK_EDEADLK) are not looked for
 * here. Permits have no fencing token and no guarded calls, and are no members
 * of Multi or Red locks. Calls block for as long as lock.h says.
 */
#ifndef RLOCK_SEMAPHORE_H
#define RLOCK_SEMAPHORE_H

#include <rlock/client.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlock_semaphore rlock_semaphore;
typedef struct rlock_permit rlock_permit;

/* The most permits that one acquire takes, and the most there are (2^52). */
#define RLOCK_PERMITS_MAX   1000
#define RLOCK_SEMAPHORE_MAX ((int64_t)4503599627370496)

typedef struct rlock_semaphore_options {
    size_t size; /* set by RLOCK_SEMAPHORE_OPTIONS_INIT; lets the struct grow */
    /* So many there are if nobody has said yet, up to RLOCK_SEMAPHORE_MAX; what
       is there already wins. 0: who acquires waits until somebody says so. */
    int64_t permits;
    /* The keys live so long, rounded up to seconds, after the last acquire,
       renewal, release or add, and never shorter than the longest lease: for
       names that are made up. Then all is forgotten, and what was added, too.
       0: for ever, unless another handle says how long. At most 2^41. */
    int64_t idle_ms;
    /* As of rlock_lock_options. */
    int min_replicas;
} rlock_semaphore_options;

#if defined(__cplusplus)
static inline rlock_semaphore_options rlock_semaphore_options_init_()
{
    rlock_semaphore_options o = rlock_semaphore_options();
    o.size = sizeof o;
    return o;
}
#define RLOCK_SEMAPHORE_OPTIONS_INIT rlock_semaphore_options_init_()
#else
#define RLOCK_SEMAPHORE_OPTIONS_INIT                                           \
    {                                                                          \
        .size = sizeof(rlock_semaphore_options)                                \
    }
#endif

/*
 * Makes a handle for the semaphore called name, as rlock_new() does for a lock,
 * of so many permits if nobody has said yet: asks no server, and takes none.
 * All who share a name say the same number, or 0. Semaphores, latches and locks
 * of one name exclude each other: RLOCK_EWRONGTYPE. But semaphore and latch
 * take each other's number for theirs; a lock that is a string (lock.h) takes
 * it for a lock of another program, a timestamp for one that it may take over.
 *
 * RLOCK_OK        *out is the handle; free it with rlock_semaphore_free()
 * RLOCK_EINVAL    also: a name that rlock_new() does not take, or in braces as
 *                 a whole, as "{a}", whose permits would be those of "a";
 *                 permits below 0, or above RLOCK_SEMAPHORE_MAX
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_semaphore_new(rlock_client *cl, const char *name,
                                           int64_t permits,
                                           rlock_semaphore **out);

/*
 * Makes a handle, as rlock_semaphore_new(), with options, for a name of len
 * bytes, any, also NUL. opts NULL: all are 0.
 *
 * RLOCK_EINVAL    also: a member of opts is out of range
 */
RLOCK_API rlock_status rlock_semaphore_new_ex(
    rlock_client *cl, const void *name, size_t len,
    const rlock_semaphore_options *opts, rlock_semaphore **out);

/* Frees the handle; NULL is accepted. Permits that were taken by it go on. No
   other thread may be using the handle. */
RLOCK_API void rlock_semaphore_free(rlock_semaphore *s);

/*
 * Takes n permits, all or none, and waits while there are not so many.
 *
 * n         1 to RLOCK_PERMITS_MAX; more than there are at all: it waits
 * wait_ms   how long to wait; 0: one try; RLOCK_FOREVER: no limit
 * lease_ms  as of rlock_acquire()
 *
 * Ends within wait_ms plus one command_timeout_ms, as rlock_acquire() does, and
 * tries a server that cannot be reached again as that does.
 *
 * RLOCK_OK        *out has them: one handle for all n. Give it to
 *                 rlock_permit_release() or rlock_permit_release_start()
 * RLOCK_BUSY      wait 0, and not so many are free, or others wait: the message
 *                 says how many
 * RLOCK_TIMEOUT   the wait ran out
 * RLOCK_CANCELED  rlock_semaphore_cancel() or rlock_client_cancel() ended the
 *                 wait, or the latter is on and the wait would have begun
 * RLOCK_EINVAL    also: n, wait_ms or lease_ms is out of range
 * RLOCK_EWRONGTYPE  a key is no semaphore's, and is left alone
 * RLOCK_EIO       no answer; what may have been taken is given back in the
 *                 background
 * RLOCK_EQUORUM   min_replicas: too few replicas have it. Given back as above
 * RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_semaphore_acquire(rlock_semaphore *s, int n,
                                               int64_t wait_ms,
                                               int64_t lease_ms,
                                               rlock_permit **out);

/*
 * Makes delta more permits, or, below 0, fewer, for good, once however often an
 * answer is lost. If fewer are free than it takes away, the others are missing
 * when they are given back.
 *
 * delta  -RLOCK_SEMAPHORE_MAX to RLOCK_SEMAPHORE_MAX
 *
 * RLOCK_OK        done; who waits has been granted what there is now
 * RLOCK_EINVAL    also: delta is out of range, or there would be more than
 *                 RLOCK_SEMAPHORE_MAX, or fewer than minus that
 * RLOCK_EIO       it may have been done, or may be yet, once
 * RLOCK_EWRONGTYPE  the key is no semaphore's, and is left alone
 * RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_semaphore_add(rlock_semaphore *s, int64_t delta);

/*
 * Asks the server how many permits are free: those that are held by nobody,
 * also if somebody waits for more. Below 0: so many have to be given back
 * before one is. Until the first acquire of all, the server knows no number:
 * each handle answers its own.
 *
 * RLOCK_OK, RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER,
 * RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_semaphore_available(rlock_semaphore *s,
                                                 int64_t *out);

/* Ends each wait on this handle, in any thread, also started ones, with
   RLOCK_CANCELED; NULL is accepted. Later ones go on. */
RLOCK_API void rlock_semaphore_cancel(rlock_semaphore *s);

/*
 * Gives all n permits back, by any thread, and frees p, whatever the answer,
 * also when the client is closed: p is not to be used again, by no thread.
 *
 * RLOCK_OK        given back; who waited first has been granted his
 * RLOCK_LOST      some were not held any more: the lease had run out, or
 *                 somebody else took them away. What was left is given back,
 *                 perhaps in the background
 * RLOCK_EIO, RLOCK_ESERVER, RLOCK_ENOMEM
 *                 not given back so far; the client goes on in the background
 *                 until it has been, or the lease is over
 * RLOCK_EWRONGTYPE  a key is no semaphore's any more: they are lost
 * RLOCK_EINVAL    p is NULL
 * RLOCK_ECLOSED   they end with their lease
 * RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_permit_release(rlock_permit *p);

/*
 * Makes the lease of all n permits end lease_ms from now on, or has it renewed,
 * as rlock_extend() does. One thread at a time may do so with one p.
 *
 * RLOCK_OK, RLOCK_LOST, RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EIO, RLOCK_EQUORUM,
 * RLOCK_ESERVER, RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_permit_extend(rlock_permit *p, int64_t lease_ms);

/* Are all n held, by the clock? Asks no server. NULL: false. */
RLOCK_API bool rlock_permit_is_held(const rlock_permit *p);

/* For how many ms they still are, by the clock; 0: lost. Asks no server. */
RLOCK_API int64_t rlock_permit_valid_ms(const rlock_permit *p);

/* The descriptor that is readable once they are lost, as rlock_lost_fd() gives
   it; the release closes it, or, if the client was closed before, the end of
   its last handle. -1: rlock_last_error() tells. */
RLOCK_API int rlock_permit_lost_fd(rlock_permit *p);

/*
 * Tells what came of a start, and arg, which was given there. p: the permits,
 * of an acquire that answers RLOCK_OK; else NULL.
 */
typedef void rlock_permit_done(rlock_permit *p, rlock_status s, void *arg);

/*
 * Starts rlock_semaphore_acquire(), as rlock_acquire_start() (async.h) does an
 * acquire, but for no owner: any thread may start any number, also of one
 * handle, which may be freed at once. `done` is told what it answers, by who
 * dispatches.
 *
 * RLOCK_OK        started, and `done` will be called. With any other status it
 *                 will not
 * RLOCK_EINVAL    also: done is NULL
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_semaphore_acquire_start(rlock_semaphore *s, int n,
                                                     int64_t wait_ms,
                                                     int64_t lease_ms,
                                                     rlock_permit_done *done,
                                                     void *arg);

/*
 * Starts rlock_permit_release(). `done` (NULL: nobody wants to know) is told
 * what it answers.
 *
 * RLOCK_OK        started: p is not to be used again. With any other status
 *                 nothing has been done, and p is as it was
 * RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_permit_release_start(rlock_permit *p,
                                                  rlock_permit_done *done,
                                                  void *arg);

#ifdef __cplusplus
}
#endif
#endif
