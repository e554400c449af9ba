/*
 * The lock: re-entrant, distributed, owned by a thread, or by an owner that the
 * thread acts as.
 *
 * Who owns. An owner is a thread of this process, or what the program has made
 * one (owner.h): a request, a job, a coroutine. Where "thread" stands below, it
 * means the owner that the thread acts as. Two handles of one name on one
 * client are the same lock: a function that holds it may call
 * another that makes its own handle and locks again; the hold count goes up,
 * in Redis too. A handle may be shared by any number of threads; the lease and
 * the count belong to the hold, not to the handle. A child of fork() owns
 * nothing.
 *
 * On an event loop (libevent, libuv, coroutines) all requests of one loop
 * thread would be one owner: a second request that locks a name which the first
 * one holds would be told RLOCK_OK, one level more, and the lock exclude
 * nothing between the two. Give each request an owner, and start its calls
 * instead of waiting for them (async.h).
 *
 * What the library believes. Each hold has a local deadline: the clock before
 * the last successful acquire or renewal was sent, plus the lease, less one
 * hundredth of it and 2 ms. (The margin is the one that the Redlock algorithm
 * in the Redis documentation grants for clock drift.) The clock runs on while
 * the machine sleeps. A hold past its deadline is lost for good, whatever the
 * server would say, and no renewal is sent for it. A loss is reported once, as
 * RLOCK_EVENT_LOST; the calls below then answer RLOCK_LOST.
 *
 * Errors. A call that fails leaves its detail in rlock_last_error(). All calls
 * that ask the server can also answer
 *
 *   RLOCK_EIO      the server cannot be reached, the connection broke, or no
 *                  answer came in time
 *   RLOCK_ESERVER  the server answered with an error (its text is in the
 *                  message)
 *   RLOCK_EWRONGTYPE  the key exists and is no lock of this kind; it is left
 *                  as it is
 *   RLOCK_ECLOSED  the client was freed, or is being freed
 *   RLOCK_EFORKED  the handle was made before fork()
 *   RLOCK_EINVAL   the handle or a pointer is NULL
 *   RLOCK_ENOMEM   out of memory
 *
 * and block for at most one command_timeout_ms, unless it says otherwise. A
 * connect callback cannot be interrupted: a call that needs a new connection
 * takes as long as the callback does, over this limit and those below.
 */
#ifndef RLOCK_LOCK_H
#define RLOCK_LOCK_H

#include <rlock/client.h>
#include <rlock/owner.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlock rlock;

/* Who holds a lock, as the server has it; see rlock_holder_info(). Grows: see
   base.h. */
typedef struct rlock_holder {
    char host[256];   /* host part of the holder id */
    int64_t pid;      /* process id on that host */
    int64_t tid;      /* thread id on that host; of an owner that is no thread
                         (owner.h): of the thread that made it */
    char hold_id[37]; /* uuid of this hold, new with each outermost acquire */
    int64_t count;    /* hold count */
    int64_t ttl_ms;   /* what is left of the lease; -1: no expiry */
    char raw[512];    /* the holder id as stored, cut if longer. A field that
                         another program wrote fills only raw, count, ttl_ms */
    char owner[64];   /* label of an owner that is no thread; else "" */
} rlock_holder;

/*
 * Makes a handle for the lock called name, a NUL-terminated string. Asks no
 * server, and does not lock. The name is copied; it is the Redis key.
 *
 * RLOCK_OK       *out is the handle; free it with rlock_free()
 * RLOCK_EINVAL   a NULL pointer, or a name that is empty, longer than
 *                RLOCK_NAME_MAX bytes, or begins as keys and channels of the
 *                library do: with rlock_token:, rlock_queue:, rlock_undone:,
 *                rlock_bell:, rlock_sbell:, rlock_probe: or
 *                redisson_lock__channel:; in a cluster also one with braces
 *                that have nothing in them, or do not close
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 *
 * *out is NULL unless RLOCK_OK.
 */
RLOCK_API rlock_status rlock_new(rlock_client *cl, const char *name,
                                 rlock **out);

/* The same for a name of len bytes, any bytes, also NUL. */
RLOCK_API rlock_status rlock_new_n(rlock_client *cl, const void *name,
                                   size_t len, rlock **out);

/*
 * How a lock is kept in Redis. All who share a lock have to use the same
 * layout; a key of another type answers RLOCK_EWRONGTYPE. The calls below work
 * on each of them alike. Numbers are part of the ABI.
 */
typedef enum rlock_layout {
    /*
     * A hash: holder id and hold count. Shared with the RLock of Redisson
     * (Java).
     */
    RLOCK_LAYOUT_HASH = 0,
    /*
     * A string, SET key <holder id> NX PX <lease>: the mutex of redis-py,
     * redsync, node-redlock and most others, and shared with them. Re-entrant
     * all the same; the hold count is known to this client only, and a
     * holder's count is 1 for everybody who asks. The others' releases wake
     * nobody: a wait for a lock that one of them holds looks four times a
     * second.
     */
    RLOCK_LAYOUT_STRING = 1,
    /*
     * A string that holds the unix time at which the lock may be taken over:
     * the SETNX and GETSET lock of old programs, for sharing locks with them
     * while they are being replaced. As above, and with these limits, which are
     * theirs: leases are rounded up to whole seconds (they may read no more
     * than that); they compare with their own clocks, so a clock that is fast
     * takes a lock over too early; their DEL asks nobody, and also deletes
     * a lock that has become ours meanwhile; their GETSET that comes too late
     * overwrites the winner's value. Of the last two this library tells the
     * holder (RLOCK_LOST), but cannot prevent them. Holder ids are not stored:
     * rlock_holder_info() fills only raw, count and ttl_ms. The key itself goes
     * a minute after that time, also one that an old program has left behind
     * and somebody waits for.
     *
     * Our value has a fraction, "1795293984.0259...", by which a holder knows
     * its own. They have to read it by something that takes fractions, as C's
     * atol() does, and Python's int() does not: it throws ValueError. Their
     * values are taken for seconds: one in milliseconds lies so far ahead that
     * the lock never becomes free by its time, and one with more than 13 digits
     * before the point is RLOCK_EWRONGTYPE.
     */
    RLOCK_LAYOUT_TIMESTAMP = 2
} rlock_layout;

typedef struct rlock_lock_options {
    size_t size; /* set by RLOCK_LOCK_OPTIONS_INIT; lets the struct grow */
    rlock_layout layout; /* RLOCK_LAYOUT_HASH */
    /*
     * Levels above the first are counted in this process only: a nested call
     * costs no round trip, and everybody who asks the server is told 1 (or the
     * latest level that was asked for there). Off by default, because a count
     * that everybody can see is what the lock is known for. It belongs to the
     * handle, not to the hold: through a handle without it levels are asked for
     * and given back at the server as always, and both pair with each other.
     *
     * The server is asked all the same when the nested call wants more than the
     * hold has: an explicit lease that ends later, or RLOCK_WATCHDOG for a hold
     * that is not renewed. What a nested call does not ask, it is not told:
     * that somebody freed the lock by force is noticed by the next renewal,
     * extend or unlock of the last level, not by the nested lock. One whose
     * lease ran out by the clock is RLOCK_LOST at once, as ever. A lock that
     * rlock_multi_new() makes of such handles asks the server.
     */
    bool local_levels;
    /*
     * How many replicas have to have what moves the hold's deadline; see
     * rlock_options (options.h). 0: as many as the client says; -1: none; 16
     * the most. The outermost acquire's handle decides for its hold.
     */
    int min_replicas;
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
 * The same with options; opts may be NULL: all defaults.
 *
 * RLOCK_EINVAL   also: opts->size, opts->layout or opts->min_replicas is out of
 *                range
 */
RLOCK_API rlock_status rlock_new_ex(rlock_client *cl, const void *name,
                                    size_t len, const rlock_lock_options *opts,
                                    rlock **out);

/*
 * Frees the handle; NULL is accepted. It does not unlock: a hold taken through
 * it goes on and can be released through another handle of the name. Must not
 * be called while another thread uses this handle.
 */
RLOCK_API void rlock_free(rlock *lk);

/*
 * Locks for the calling thread.
 *
 * wait_ms   0: one try; RLOCK_FOREVER: no limit; otherwise how long to wait
 *           while another owner has it
 * lease_ms  RLOCK_WATCHDOG: the client's watchdog lease, renewed every third
 *           of it until the hold ends; RLOCK_LEASE_MIN_MS to
 *           RLOCK_LEASE_MAX_MS: the lock frees itself after that time and is
 *           never renewed
 *
 * When the thread holds the lock already, this is one level more: one atomic
 * increment on the server (mostly none with local_levels), the same token, no
 * wait. It never shortens the lease of the hold; a nested RLOCK_WATCHDOG turns
 * renewal on until the hold ends, and a nested explicit lease leaves a renewal
 * that is on as it is. A nested call that fails may have moved the lease, and
 * turned renewal on, on servers that had counted it.
 *
 * Threads of one client that wait for a name get it in the order in which they
 * came. Between clients the order is that of their first tries, but a client
 * that asks at the moment of a release may be first. The client whose release
 * has woken another one makes way: its next call that may wait is held back for
 * about a round trip, 20 ms at most.
 *
 * The whole call, I/O included, ends within wait_ms plus one
 * command_timeout_ms. A server that cannot be reached is tried again until
 * wait_ms is over, but no longer than one watchdog lease in a row, also with
 * RLOCK_FOREVER; with wait 0, and for one level more, it is reported at once.
 *
 * A wait that would close a circle is not begun: when another thread holds the
 * lock that itself waits, directly or through others, for one that this thread
 * holds, all of that with one client, the call that would be the last of the
 * circle is answered RLOCK_EDEADLK. The others wait on, until this thread
 * unlocks what it holds, as it should now; then it may start again, best after
 * a pause of random length, lest the same ones meet again. Who starts again is
 * behind all others, and may be told many times in a row: let the pauses grow
 * until they are as long as what the others do. Each wait counts, whatever its
 * limit, and each hold, whatever its lease, so one may be told of a circle that
 * would have come apart by itself. Not seen are circles of which a part is
 * another process or client; of a Red lock, what the client of its first node
 * knows is seen. Who holds nothing, or finds the lock free, pays nothing for
 * it. To switch it off: no_deadlock_check (options.h).
 *
 * RLOCK_OK        owned; rlock_token() is set. Any other status: not owned by
 *                 this call
 * RLOCK_BUSY      wait 0, and another owner holds it: the message says which,
 *                 as host:pid:tid, and for how long, as far as the server knows
 * RLOCK_TIMEOUT   the wait ran out; the message says who holds it then, unless
 *                 other threads of this client wait on behind this one
 * RLOCK_CANCELED  rlock_cancel() or rlock_client_cancel() ended the wait, or
 *                 the latter is on and it would have begun
 * RLOCK_EDEADLK   it would wait for itself; the message names each thread of
 *                 the circle, and what it waits for
 * RLOCK_LOST      this thread had it and lost it, and has not unlocked all its
 *                 levels yet; nothing was taken
 * RLOCK_EINVAL    wait_ms below -1, lease_ms out of range (1 and 2 are), or the
 *                 hold count would pass 2^31 - 1
 * RLOCK_EIO       as above. The server may have granted it: the library undoes
 *                 that in the background, until the lease has run out. Also
 *                 when the grant came too late to leave anything of the lease
 * RLOCK_EQUORUM   min_replicas: too few replicas have it, until the wait was
 *                 over, or for a watchdog lease in a row. It is undone as
 *                 above; of a nested call no level was taken
 * RLOCK_ENOMEM    also: the watchdog thread could not be started
 * RLOCK_ESERVER, RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_acquire(rlock *lk, int64_t wait_ms,
                                     int64_t lease_ms);

/* rlock_acquire(lk, RLOCK_FOREVER, RLOCK_WATCHDOG) */
RLOCK_API rlock_status rlock_lock(rlock *lk);

/* rlock_acquire(lk, 0, RLOCK_WATCHDOG) */
RLOCK_API rlock_status rlock_trylock(rlock *lk);

/*
 * Undoes one acquire of the calling thread. At the last one the lock is free
 * and one waiter is woken. Whatever the answer (but RLOCK_NOT_HELD and the
 * argument errors), the level is undone locally, so that unlocks pair with
 * acquires also when things go wrong.
 *
 * RLOCK_OK        one level undone
 * RLOCK_LOST      the level is undone, but the lock had been lost before; a
 *                 hold of another owner is not touched
 * RLOCK_NOT_HELD  this thread holds nothing; the server was not asked
 * RLOCK_EIO, RLOCK_ESERVER
 *                 the level is undone locally. Was it the last one, then
 *                 renewal has stopped, and the library goes on trying to
 *                 release it until the lease has run out
 * RLOCK_EWRONGTYPE  the key is no lock any more: the hold is lost
 * RLOCK_EINVAL, RLOCK_EFORKED
 * RLOCK_ECLOSED   the client was freed; its holds ended with it
 */
RLOCK_API rlock_status rlock_unlock(rlock *lk);

/*
 * Sets what is left of the lease to lease_ms from now, shorter or longer, if
 * the calling thread still owns the lock. A positive lease stops renewal;
 * RLOCK_WATCHDOG sets the watchdog lease and turns renewal on. If it fails,
 * renewal is as it was. A renewal that is under way is waited for first; that
 * and the call share one command_timeout_ms.
 *
 * RLOCK_OK        the lease is as told
 * RLOCK_NOT_HELD  this thread holds nothing; the server was not asked
 * RLOCK_LOST      the hold was lost: its lease ran out, or the server no
 *                 longer knows it
 * RLOCK_EINVAL    lease_ms is neither RLOCK_WATCHDOG nor from
 *                 RLOCK_LEASE_MIN_MS to RLOCK_LEASE_MAX_MS
 * RLOCK_EIO, RLOCK_ESERVER
 *                 the server may have set it, or may do so yet. From then on
 *                 the library relies on no lease of this hold that is longer
 *                 than this one; an extend to more that succeeds answers
 *                 RLOCK_EIO as well, unless it turns renewal on
 * RLOCK_EQUORUM   min_replicas: the server has set it, and too few replicas
 *                 have it. The deadline is no later than it was, nor than this
 *                 lease says
 * RLOCK_EWRONGTYPE, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_extend(rlock *lk, int64_t lease_ms);

/*
 * Frees the lock, whoever holds it, and wakes a waiter. The holder learns of
 * it at its next renewal, extend, re-entry or unlock (with local_levels: at the
 * next of those that asks the server).
 *
 * RLOCK_OK        it was held and is free now
 * RLOCK_NOT_HELD  nobody held it
 * RLOCK_EWRONGTYPE  the key is no lock of this layout, and is left alone; so is
 *                 a hash whose one field is not a holder id, ours or
 *                 Redisson's. (A string may be anybody's lock, and is freed)
 * RLOCK_EIO       it may have been freed
 * RLOCK_ESERVER, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_force_unlock(rlock *lk);

/*
 * Ends every rlock_acquire() that is waiting, or about to wait, on this handle,
 * in any thread, with RLOCK_CANCELED. Waits on other handles of the name go on.
 * It is no state: a cancel has no effect on an acquire that is called after it,
 * so a thread that was told to stop may still begin to wait behind it. A
 * program that stops its threads uses rlock_client_cancel(). Does not block on
 * I/O; NULL is accepted.
 */
RLOCK_API void rlock_cancel(rlock *lk);

/*
 * What the calling thread may rely on, by the local clock alone: no I/O. On a
 * handle that is NULL, closed or inherited over fork() they answer as for a
 * lock that is not held.
 */
RLOCK_API bool rlock_is_held(const rlock *lk);

/* Levels that this thread still has to unlock; 0 when not held or lost. */
RLOCK_API int rlock_hold_count(const rlock *lk);

/* Milliseconds left until the local deadline; 0 when not held or lost. */
RLOCK_API int64_t rlock_valid_ms(const rlock *lk);

/*
 * Fencing token of this thread's hold: larger than every earlier token of this
 * name, the same for all levels; 0 when not held or lost. Hand it to the
 * resource with each write, and let the resource refuse a smaller token than
 * it has seen. (M. Kleppmann, "How to do distributed locking", 2016.) Tokens
 * come from the server's clock. They grow when it steps back, too, by less than
 * five minutes (the last token is kept for twice the lease, at least for five
 * minutes and at most for an hour), but not when it steps back while the server
 * loses its data. For data in the same Redis see guard.h.
 */
RLOCK_API uint64_t rlock_token(const rlock *lk);

/*
 * A descriptor that tells of a loss, for a thread that waits in poll(),
 * select() or epoll_wait() for something else. It becomes readable (POLLIN) at
 * the local deadline, or as soon as the library knows that the hold of the
 * calling thread is lost, whichever is first and whatever the cause; of a Multi
 * lock, with the loss of any member, of a Red lock, with that of the majority.
 * Then it stays readable. That is when RLOCK_EVENT_LOST is due, but needs no
 * on_event. (One that blocks, though, delays it, unless a call of this file
 * finds the loss.)
 *
 * There is one for each hold: this thread is given the same number at all
 * levels, through all handles of the lock, and in whatever order a Multi lock
 * lists its members. A hold that is lost, and has levels still to be unlocked,
 * has one, too, which is readable.
 *
 * It is the library's: poll it in any thread, but never read from it, which
 * would take back what it tells, nor close it. (Who closes it is not told of
 * the loss; a file that has got the number since is let alone, as far as the
 * two can be told apart: not if it is an eventfd, too, on Linux.) It is closed
 *
 *   - by the last unlock, at its beginning, whatever that answers: so no thread
 *     may be polling it by then, as the number may be another file's at once.
 *     Of a Multi lock, by the last unlock of any member
 *   - when the owning thread ends: it becomes readable first
 *   - when the client is freed, it becomes readable, and is closed with the
 *     last handle of the client (of a Red lock: of one of its clients): so a
 *     thread that has its handle still polls what it believes to. rlock_free()
 *     on a client that is open closes nothing
 *
 * In a child of fork() it must not be used; its copy is closed when the child
 * frees the client, unless another thread was inside of that at the fork.
 * exec() closes it.
 *
 * Does not ask the server, nor block on I/O. The first call for a hold takes
 * one descriptor (two where there is no eventfd), the others none.
 *
 * The number, or -1, and rlock_last_error() tells:
 *
 * RLOCK_NOT_HELD  this thread does not hold it; of a Multi lock, a member
 * RLOCK_ENOMEM    out of memory; or no descriptor can be had: sys_errno is
 *                 EMFILE or ENFILE
 * RLOCK_EINVAL, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API int rlock_lost_fd(rlock *lk);

/*
 * Asks whether anybody holds the lock now.
 *
 * RLOCK_OK (*out is set), or one of the errors at the top of this file.
 */
RLOCK_API rlock_status rlock_is_locked(rlock *lk, bool *out);

/*
 * Asks how long the lock will stay if nobody renews it: *out_ms is
 * milliseconds, -2 when it is not locked, -1 when it has no expiry.
 *
 * RLOCK_OK, or one of the errors at the top of this file.
 */
RLOCK_API rlock_status rlock_ttl(rlock *lk, int64_t *out_ms);

/*
 * Asks who holds the lock. size is sizeof *out; see base.h.
 *
 * RLOCK_OK        *out tells
 * RLOCK_NOT_HELD  nobody does; *out is all zero
 * RLOCK_EINVAL    also: a size that no version of the struct has
 *
 * or one of the errors at the top of this file.
 */
RLOCK_API rlock_status rlock_holder_info(rlock *lk, rlock_holder *out,
                                         size_t size);

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
 * rlock_lock(); or NULL, and rlock_last_error() tells why. When the enclosing
 * scope ends, it is unlocked and freed. The whole of a function that locks:
 *
 *     RLOCK_SCOPED_LOCK(lk, client, "account:7");
 *     if (!lk)
 *         return false;
 *     ...
 *
 * The status of the unlock is dropped. For GCC and Clang.
 */
#define RLOCK_SCOPED_LOCK(lk, cl, name)                                        \
    rlock *lk __attribute__((cleanup(rlock_scoped_unlock_))) =                 \
        rlock_scoped_lock_(cl, name)

/*
 * The same for a handle that there is: takes nothing, and unlocks lk (an
 * rlock *, or NULL for nothing) once when the enclosing scope ends. Write it
 * after an acquire that succeeded. The handle has to live longer than the
 * scope: one that is freed at the end of it is gone when it is to be unlocked.
 */
#define RLOCK_SCOPED(lk)                                                       \
    rlock *RLOCK_CONCAT_(rlock_scoped_, __LINE__)                              \
        __attribute__((cleanup(rlock_scoped_end_), unused)) = (lk)
#endif

#ifdef __cplusplus
}
#endif

#endif
