/*
 * The lock: re-entrant, distributed, owned by a thread, or by the owner that
 * the thread acts as (owner.h), which "thread" means, too. All handles of one
 * name on one client are the same lock; any number of threads may share one.
 * Lease and hold count belong to the hold. A child of fork() holds nothing.
 *
 * The library believes in a hold until its local deadline: the clock before the
 * last successful acquire, extend or renewal was sent, plus the lease, less one
 * hundredth of it and 2 ms (the margin of the Redlock algorithm for clock
 * drift, Redis documentation). The clock runs on while the machine sleeps. Past
 * its deadline a hold is lost for good, and is not renewed. A loss is reported
 * once, as RLOCK_EVENT_LOST (three are not: promises.md); calls answer
 * RLOCK_LOST until all levels are unlocked.
 *
 * A call that asks the server blocks for at most one command_timeout_ms, unless
 * it says otherwise; the others do not block on I/O. A connect callback cannot
 * be interrupted: a call that needs a new connection takes as long as that
 * does, over this limit and those below.
 *
 * A status without words means what it does in base.h. Locks of several servers
 * or names: multi.h. Why, and all of it: locks.md.
 */
#ifndef RLOCK_LOCK_H
#define RLOCK_LOCK_H

#include <rlock/client.h>
#include <rlock/owner.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlock rlock;

/* Who holds a lock, as the server has it; see rlock_holder_info(). */
typedef struct rlock_holder {
    char host[256];   /* host part of the holder id */
    int64_t pid;      /* process id on that host */
    int64_t tid;      /* thread id there, or of who made the owner (owner.h) */
    char hold_id[37]; /* uuid of this hold, new with each outermost acquire */
    int64_t count;    /* hold count */
    int64_t ttl_ms;   /* what is left of the lease; -1: no expiry */
    char raw[512];    /* the holder id as stored, cut if longer; of another
                         program's only this, count and ttl_ms are filled */
    char owner[64];   /* label of an owner that is no thread; else "" */
} rlock_holder;

/*
 * Makes a handle for the lock called name, a NUL-terminated string, which is
 * copied and is the Redis key. Asks no server, and locks nothing.
 *
 * RLOCK_OK        *out is the handle; free it with rlock_free()
 * RLOCK_EINVAL    also: the name is empty, is longer than RLOCK_NAME_MAX bytes,
 *                 or begins as the library's keys and channels do: rlock_token:
 *                 rlock_queue: rlock_line: rlock_wants: rlock_leases:
 *                 rlock_undone: rlock_bell: rlock_sbell: rlock_grant:
 *                 rlock_probe: redisson_lock__channel: redisson_rwlock:
 *                 redisson_sc:. In a cluster: its braces are empty or left open
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_new(rlock_client *cl, const char *name,
                                 rlock **out);

/* Makes a handle, as rlock_new(), for a name of len bytes, any, also NUL. */
RLOCK_API rlock_status rlock_new_n(rlock_client *cl, const void *name,
                                   size_t len, rlock **out);

/* How a lock is kept in Redis. All who share it use one layout: another type of
   key is RLOCK_EWRONGTYPE. More: sharing.md. Numbers are part of the ABI. */
typedef enum rlock_layout {
    /* A hash, holder id and hold count: the RLock of Redisson (Java). */
    RLOCK_LAYOUT_HASH = 0,
    /* A string, SET key <holder id> NX PX <lease>: redis-py, redsync and most
       others. The server's count is always 1. Who waits for a lock of theirs
       is not woken, and looks four times a second. */
    RLOCK_LAYOUT_STRING = 1,
    /* A string with the unix time at which the lock may be taken over: SETNX
       and GETSET of old programs. As above; leases are rounded up to whole
       seconds, and rlock_holder_info() fills only raw, count and ttl_ms. */
    RLOCK_LAYOUT_TIMESTAMP = 2
} rlock_layout;

typedef struct rlock_lock_options {
    size_t size; /* set by RLOCK_LOCK_OPTIONS_INIT; lets the struct grow */
    rlock_layout layout; /* RLOCK_LAYOUT_HASH */
    /* Counts levels above the first in this process only: a nested call through
       this handle asks the server only for a later end, or for renewal that is
       off; who asks is told 1, or the last level asked for: locks.md. */
    bool local_levels;
    /* So many replicas have to have what moves the deadline (options.h); 0: as
       the client says; -1: none; 16 the most. The handle of the outermost
       acquire decides. */
    int min_replicas;
    /* Who waits gets it in the order of the first tries, whatever client,
       thread or owner that is: locks.md. It is the same lock as by a plain
       handle of the name, which stands in no line. Hash layout only. */
    bool fair;
    /* No fencing tokens, for who hands them to nobody: a pair costs the
       server a quarter less, and rlock_token() is 0. Given up: that a
       resource can refuse who has lost the lock and does not know it; that an
       acquire whose answer is lost is asked again (with wait 0: RLOCK_EIO);
       that rlock_scan() finds it without RLOCK_SCAN_ALL; grants (options.h).
       Hash layout, not fair, one server only: locks.md, Without tokens. The
       handle of the outermost acquire decides. */
    bool no_tokens;
} rlock_lock_options;

#if defined(__cplusplus)
static inline rlock_lock_options rlock_lock_options_init_()
{
    rlock_lock_options o = rlock_lock_options();
    o.size = sizeof o;
    return o;
}
#define RLOCK_LOCK_OPTIONS_INIT rlock_lock_options_init_()
#else
#define RLOCK_LOCK_OPTIONS_INIT                                                \
    {                                                                          \
        .size = sizeof(rlock_lock_options)                                     \
    }
#endif

/*
 * Makes a handle, as rlock_new_n(), with options; NULL: all defaults.
 *
 * RLOCK_EINVAL    also: a member of opts is out of range
 * RLOCK_ENOTSUP   fair, with another layout than the hash; no_tokens, with that
 *                 or fair, or where another server may take over (a cluster,
 *                 Sentinels, min_replicas), so that two hold it for a moment,
 *                 and no token tells them apart
 */
RLOCK_API rlock_status rlock_new_ex(rlock_client *cl, const void *name,
                                    size_t len, const rlock_lock_options *opts,
                                    rlock **out);

/* Frees the handle; NULL is accepted. Does not unlock; another handle of the
   name can. No other thread may be using this one. */
RLOCK_API void rlock_free(rlock *lk);

/*
 * Locks for the calling thread, and waits while another owner has the lock. A
 * thread that holds it gets one level more: the same token, no wait.
 *
 * wait_ms   how long to wait; 0: one try; RLOCK_FOREVER: no limit
 * lease_ms  RLOCK_WATCHDOG: the client's watchdog lease, renewed every third of
 *           it until the hold ends; RLOCK_LEASE_MIN_MS to RLOCK_LEASE_MAX_MS:
 *           the lock frees itself after that time, and is never renewed
 *
 * Ends within wait_ms plus one command_timeout_ms, I/O included (with
 * min_replicas, plus replica_wait_ms). Tries a server that cannot be reached
 * again until wait_ms is over (not with wait 0, nor for one level more), but no
 * longer than one watchdog lease in a row, also with RLOCK_FOREVER.
 *
 * Threads of one client get the lock in the order in which they came; clients
 * in that of their first tries, but one that asks at the moment of a release
 * may be first. After a release that has woken another client, the next call
 * that may wait is held back for about a round trip, 20 ms at most.
 *
 * One level more never shortens the lease. RLOCK_WATCHDOG turns renewal on
 * until the hold ends; an explicit lease leaves renewal as it is. If it fails,
 * servers that had counted it may have moved the lease, and turned renewal on.
 *
 * RLOCK_OK        owned; rlock_token() is set. Any other: not by this call
 * RLOCK_BUSY      wait 0, and another owner has it: the message says which, as
 *                 host:pid:tid, and for how long, as far as the server knows
 * RLOCK_TIMEOUT   the wait ran out; the message says who has it, if that is
 *                 known
 * RLOCK_CANCELED  rlock_cancel() or rlock_client_cancel() ended the wait, or
 *                 the latter is on and the wait would have begun
 * RLOCK_EDEADLK   the wait would close a circle: who has the lock waits, itself
 *                 or through others of this client, for what this thread holds.
 *                 The message names them all. Unlock, pause for a random time,
 *                 begin again: threads.md. Off: no_deadlock_check (options.h).
 *                 Or this thread has got it meanwhile, in on_event of this call
 * RLOCK_LOST      this thread had it and lost it, and has not unlocked all its
 *                 levels yet; nothing was taken
 * RLOCK_EINVAL    also: wait_ms below -1, lease_ms out of range (1 and 2 are),
 *                 or the hold count would pass 2^31 - 1
 * RLOCK_EIO       no answer, or too late for the lease. What may have been
 *                 granted is undone in the background, until its lease is over
 * RLOCK_EQUORUM   min_replicas: too few replicas have it, until the wait was
 *                 over, or for a watchdog lease in a row. Undone as above
 * RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_acquire(rlock *lk, int64_t wait_ms,
                                     int64_t lease_ms);

/* Locks, as rlock_acquire(lk, RLOCK_FOREVER, RLOCK_WATCHDOG). */
RLOCK_API rlock_status rlock_lock(rlock *lk);

/* Locks if nobody else has it, as rlock_acquire(lk, 0, RLOCK_WATCHDOG). */
RLOCK_API rlock_status rlock_trylock(rlock *lk);

/*
 * Undoes one acquire of the calling thread. At the last one the lock is free,
 * and one waiter is woken. The level is undone locally whatever comes of the
 * call, so unlocks pair with acquires also when things go wrong.
 *
 * RLOCK_OK        one level undone
 * RLOCK_LOST      undone, but the lock had been lost before; a hold of another
 *                 owner is not touched
 * RLOCK_NOT_HELD  this thread holds nothing; the server was not asked
 * RLOCK_EIO, RLOCK_ESERVER, RLOCK_ENOMEM
 *                 undone locally. Of the last level: renewal has stopped, and
 *                 the release is tried again until the lease has run out
 * RLOCK_EWRONGTYPE  the key is no lock any more: the hold is lost
 * RLOCK_ECLOSED   the client was freed; its holds ended with it
 * RLOCK_EINVAL, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_unlock(rlock *lk);

/*
 * Sets what is left of the lease to lease_ms from now, shorter or longer, if
 * the calling thread still owns the lock. A positive lease stops renewal;
 * RLOCK_WATCHDOG sets the watchdog lease and turns renewal on. If the call
 * fails, renewal is as it was. A renewal that is under way is waited for first:
 * that and the call share one command_timeout_ms.
 *
 * RLOCK_OK        the lease is as told
 * RLOCK_NOT_HELD  this thread holds nothing; the server was not asked
 * RLOCK_LOST      the lease ran out, or the server knows the hold no longer
 * RLOCK_EINVAL    also: lease_ms is out of the range of rlock_acquire()
 * RLOCK_EIO, RLOCK_ESERVER
 *                 the server may have set it, or may do so yet. From then on
 *                 the library relies on no longer lease of this hold: an extend
 *                 to more answers RLOCK_EIO, too, unless it turns renewal on
 * RLOCK_EQUORUM   min_replicas: too few replicas have it. The deadline is no
 *                 later than it was, nor than this lease says
 * RLOCK_ENOMEM, RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_extend(rlock *lk, int64_t lease_ms);

/*
 * Frees the lock, whoever holds it, and wakes a waiter. The holder learns of it
 * when it asks the server next: by a renewal, extend, re-entry or unlock. Where
 * waiters stand in a line of the server's (locks.md), the first one has it at
 * once; for a moment even who is just giving up.
 *
 * RLOCK_OK        it was held, and is free now, or the next one's
 * RLOCK_NOT_HELD  nobody held it
 * RLOCK_EWRONGTYPE  the key is no lock of this layout, or a hash whose field is
 *                 no holder id, and is left alone. (A string may be any lock)
 * RLOCK_EIO       it may have been freed
 * RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_force_unlock(rlock *lk);

/*
 * Frees the lock, as rlock_force_unlock(), if the hold with this holder id has
 * it: rlock_holder.raw, as it was told. A hold that has come meanwhile is not
 * touched. Of a timestamp only those of this library are told apart.
 *
 * RLOCK_OK        that hold had it, with all its levels, and it is free now
 * RLOCK_NOT_HELD  that hold does not have it: another one does, or nobody
 * RLOCK_EINVAL    also: that is no holder id for this layout
 * RLOCK_EWRONGTYPE  the key is no lock of this layout, and is left alone
 * RLOCK_EIO       it may have been freed: no answer, or the first was lost, and
 *                 then that hold did not have it
 * RLOCK_ENOTSUP   a Multi lock: its members have a hold each
 * RLOCK_ENOMEM, RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_force_unlock_hold(rlock *lk,
                                               const char *holder_id);

/*
 * Ends each rlock_acquire() that waits, or is about to wait, on this handle, in
 * any thread, with RLOCK_CANCELED; NULL is accepted. Acquires that are called
 * later go on. To stop a program's threads: rlock_client_cancel().
 */
RLOCK_API void rlock_cancel(rlock *lk);

/* Tells whether the calling thread holds the lock, by the local clock alone; no
   if lk is NULL, or inherited over fork(), or its client is closed. */
RLOCK_API bool rlock_is_held(const rlock *lk);

/* Counts levels that this thread still has to unlock; 0 if it is not held. */
RLOCK_API int rlock_hold_count(const rlock *lk);

/* Tells the milliseconds until the local deadline; 0 if it is not held. Who is
   granted a lease of the watchdog in line, or by the option grants, has up to
   3 s at first, until it is renewed within a second; rlock_extend() gives all
   of it at once. */
RLOCK_API int64_t rlock_valid_ms(const rlock *lk);

/*
 * Tells the fencing token of this thread's hold, the same for all levels,
 * larger than every earlier one of the name; 0 if it is not held, or was
 * acquired with no_tokens, of which later tokens know nothing. Hand it to
 * the resource with each write, and let that refuse a smaller one than it has
 * seen (M. Kleppmann, "How to do distributed locking", 2016). For data in the
 * same Redis: guard.h. Server's clocks that step back: locks.md, Tokens.
 */
RLOCK_API uint64_t rlock_token(const rlock *lk);

/*
 * Gives a descriptor for poll(), select() or epoll_wait() that becomes readable
 * (POLLIN) at the local deadline of the calling thread's hold, or as soon as
 * the library knows that the hold is lost, and stays so. A hold has one, the
 * same at all levels and through all handles; one that is lost has one, too.
 *
 * Any thread may poll it; never read from it, nor close it. It is closed at the
 * beginning of the last unlock, whatever that answers: let no thread poll it by
 * then, as the number may be another file's at once. The end of the owning
 * thread makes it readable and closes it. So does freeing the client, which
 * closes it with the last handle. A child of fork() must not use its copy.
 *
 * Returns the descriptor, or -1, and rlock_last_error() tells:
 *
 * RLOCK_NOT_HELD  this thread does not hold it
 * RLOCK_ENOMEM    also: no descriptor is left: sys_errno is EMFILE or ENFILE
 * RLOCK_EINVAL, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API int rlock_lost_fd(rlock *lk);

/*
 * Asks the server whether anybody holds the lock now.
 *
 * RLOCK_OK, RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER,
 * RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_is_locked(rlock *lk, bool *out);

/*
 * Asks the server how long the lock will stay if nobody renews it, in
 * milliseconds; -1: it has no expiry; -2: it is not locked.
 *
 * RLOCK_OK, RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER,
 * RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_ttl(rlock *lk, int64_t *out_ms);

/*
 * Asks the server who holds the lock. size is sizeof *out; see base.h. *out is
 * all zero unless RLOCK_OK.
 *
 * RLOCK_OK        *out tells
 * RLOCK_NOT_HELD  nobody does
 * RLOCK_EINVAL    also: a size that no version of the struct has
 * RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER, RLOCK_EWRONGTYPE, RLOCK_ECLOSED,
 * RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_holder_info(rlock *lk, rlock_holder *out,
                                         size_t size);

/*
 * Asks the server about the hold with this holder id: rlock_holder.raw, as it
 * was told, also that of *out; it is one of many, where many read. Does it
 * still have the lock? size is sizeof *out; see base.h. *out is all zero unless
 * RLOCK_OK.
 *
 * RLOCK_OK        it has, and *out tells, as of rlock_holder_info()
 * RLOCK_NOT_HELD  it has not: others have, or nobody
 * RLOCK_EINVAL    also: that is no holder id for this layout, or a size that no
 *                 version of the struct has
 * RLOCK_ENOTSUP   a Multi lock: its members have a hold each; or a timestamp,
 *                 in which a renewal is another id
 * RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER, RLOCK_EWRONGTYPE, RLOCK_ECLOSED,
 * RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_hold_info(rlock *lk, const char *holder_id,
                                       rlock_holder *out, size_t size);

#if defined(__GNUC__)
static inline void rlock_scoped_end_(rlock **lk)
{
    if (*lk)
        (void)rlock_unlock(*lk);
}

#define RLOCK_CONCAT2_(a, b) a##b
#define RLOCK_CONCAT_(a, b)  RLOCK_CONCAT2_(a, b)

static inline rlock *rlock_scoped_lock_(rlock_client *cl, const char *name)
{
    static rlock *none; /* strict C++ wants no NULL here */
    rlock *lk;
    (void)rlock_new(cl, name, &lk);
    if (!lk || rlock_lock(lk) == RLOCK_OK)
        return lk;
    rlock_free(lk);
    return none;
}

static inline void rlock_scoped_unlock_(rlock **lk)
{
    rlock_scoped_end_(lk);
    rlock_free(*lk);
}

/*
 * Declares lk, a handle of its own for the lock called name, locked as by
 * rlock_lock(); or NULL, and rlock_last_error() tells why. Unlocks and frees it
 * when the enclosing scope ends, and drops the status. For GCC and Clang.
 */
#define RLOCK_SCOPED_LOCK(lk, cl, name)                                        \
    rlock *lk __attribute__((cleanup(rlock_scoped_unlock_))) =                 \
        rlock_scoped_lock_(cl, name)

/* Unlocks lk (an rlock *; NULL: nothing) once when the enclosing scope ends. To
   be written after an acquire that succeeded; lk has to outlive the scope. */
#define RLOCK_SCOPED(lk)                                                       \
    rlock *RLOCK_CONCAT_(rlock_scoped_, __LINE__)                              \
        __attribute__((cleanup(rlock_scoped_end_), unused)) = (lk)
#endif

#ifdef __cplusplus
}
#endif
#endif
