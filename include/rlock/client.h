/*
 * The client: a server, or those of Sentinels or of a cluster; the connections
 * to it; and threads that renew leases, listen for wake-ups and tell events.
 * One client serves any number of threads and locks. It opens connections and
 * starts threads as they are needed; mostly there is one thread, rlock-loop,
 * from the first acquire on. All of them, which block all signals: threads.md.
 *
 * For all headers, except where they say otherwise: every function may be
 * called from any thread, and is no point of cancellation (pthread_cancel()
 * takes effect afterwards). longjmp() must leave neither a call nor a callback.
 * Nothing may be called from a signal handler.
 *
 * A child of fork() makes clients of its own. There every call on an inherited
 * handle answers RLOCK_EFORKED, sends nothing, and leaves the parent's locks
 * alone; to free handles closes only the child's copies of the descriptors.
 */
#ifndef RLOCK_CLIENT_H
#define RLOCK_CLIENT_H

#include <rlock/options.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rlock_client rlock_client;

/* Counters since the client was made; gauges are marked. Grows: see base.h. */
typedef struct rlock_stats {
    uint64_t acquires;           /* calls that returned RLOCK_OK */
    uint64_t acquires_contended; /* of all calls, those that had to wait */
    uint64_t acquires_failed;    /* calls that returned anything else */
    uint64_t releases;           /* unlocks that returned RLOCK_OK */
    uint64_t renewals;           /* leases prolonged by the watchdog */
    uint64_t renew_failures;     /* renewals that failed once; retried */
    uint64_t lost;               /* holds lost */
    uint64_t wakeups;            /* of waiters: rung, or given the lock */
    uint64_t wakeups_futile;     /* of them, those that found it busy again */
    uint64_t passes;             /* unlocks that passed the lock on: turn_ms */
    uint64_t reconnects;         /* connections opened after one broke */
    uint64_t script_loads;       /* scripts sent whole: the server lacked it */
    uint64_t held_now;           /* gauge: holds, lost ones not counted */
    uint64_t waiting_now;        /* gauge: threads waiting in an acquire */
    uint64_t wait_us_total;      /* time spent waiting in acquires */
    uint64_t hold_us_total;      /* time locks were held, to unlock or loss */
    uint64_t failovers;          /* masters that took another one's place */
    uint64_t refreshes;          /* times Sentinels, or a cluster, were asked */
    uint64_t redirects;          /* a cluster's answers MOVED and ASK */
    uint64_t nodes;              /* gauge: masters of the cluster */
    uint64_t replica_shortfalls; /* answers that too few replicas had */
} rlock_stats;

/*
 * Makes a client, and checks the server once, so that a wrong address or
 * password fails here. opts may be NULL: all defaults; its strings are copied.
 * Blocks for at most connect_timeout_ms plus command_timeout_ms (for as long as
 * a connect callback takes), also to ask a cluster's servers, or Sentinels
 * until the master that they name is there. Tells on_event, by
 * RLOCK_EVENT_WARNING, of a server that may evict keys, has too few replicas,
 * or lets waiters only poll.
 *
 * RLOCK_OK        *out is the client; free it with rlock_client_free()
 * RLOCK_EINVAL    also: an option is out of range, or excludes another one; the
 *                 URI is malformed, or names a server of a cluster, or a
 *                 Sentinel, as if it were a server by itself, or the other way
 *                 round; an option of TLS is set without rediss://, or cannot
 *                 be used; the callback's context cannot be used (inside MULTI,
 *                 with unread replies, subscribed, non-blocking)
 * RLOCK_ENOTSUP   rediss://, and this library was built without OpenSSL; the
 *                 server is older than Redis 6.2, or lacks WAIT, which
 *                 min_replicas needs; or the program's hiredis has other
 *                 structs than the one this library was compiled for
 * RLOCK_EIO       unknown host, connection refused, no answer in time, no Redis
 *                 server, TLS failed, no Sentinel names a master, or a callback
 *                 has failed; never with lazy
 * RLOCK_ESERVER   the server refused: wrong password, no such database, a right
 *                 is missing (the message names command or key), loading,
 *                 read-only replica, too many clients, ...
 * RLOCK_ENOMEM
 */
RLOCK_API rlock_status rlock_client_new(const rlock_options *opts,
                                        rlock_client **out);

/* Of rlock_client_close(): release what is held, for who comes next. */
#define RLOCK_CLOSE_RELEASE_HELD 1u

/*
 * Closes and frees a client; NULL is accepted. Wakes its waiters with
 * RLOCK_ECLOSED (of a Red lock, if the client is its home), waits until running
 * calls have returned (each within its command timeout), takes leave of servers
 * at which it has waited (250 ms at most), tries for at most a second to undo
 * what failed calls may have left there, and joins the client's threads; one
 * that is connecting has a command timeout for that. No event is told of what
 * was held. Must not be called in a callback (but those of metrics.h) or twice,
 * nor while another thread may start a call with the client itself. Handles of
 * locks may outlive it: calls answer RLOCK_ECLOSED, or that nothing is held.
 *
 * flags  0: what is held is not released; its leases run out by themselves
 *        RLOCK_CLOSE_RELEASE_HELD: all that is held with this client is
 *        released, by any owner, at any level, and waiters are woken; of Multi
 *        and Red locks what lies at its server. From the beginning on no owner
 *        is told that it holds one: see that none is at work. The undoing may
 *        take command_timeout_ms
 *
 * RLOCK_OK        nothing is left that had to be released or undone
 * RLOCK_EIO, RLOCK_ESERVER, RLOCK_ENOMEM
 *                 closed all the same; so many locks as the message says were
 *                 not released, or undone, and their leases run out
 * RLOCK_EFORKED   freed in a child of fork(), where nothing is released
 * RLOCK_EINVAL    flags that there are not; the client is left as it is
 */
RLOCK_API rlock_status rlock_client_close(rlock_client *cl, unsigned flags);

/* Closes and frees a client, as rlock_client_close(cl, 0). */
RLOCK_API void rlock_client_free(rlock_client *cl);

/*
 * Asks the server for a sign of life, within one command_timeout_ms.
 *
 * RLOCK_OK, RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER,
 * RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_client_ping(rlock_client *cl);

/*
 * Turns canceling on or off. While it is on, every wait for a lock of this
 * client, now and later, on any handle and in any thread, ends with
 * RLOCK_CANCELED: set it before you join threads that are to stop. An acquire
 * with a wait may be canceled without a try; wait 0, one level more and unlock
 * are not affected. A Red lock follows the client of its first node, a Multi
 * lock those of its members. Does not block on I/O.
 *
 * RLOCK_OK, RLOCK_EINVAL, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_client_cancel(rlock_client *cl, bool on);

/*
 * Copies the counters to *out, without I/O. size is sizeof *out; see base.h.
 * Counters that change together may be seen one apart.
 *
 * RLOCK_OK        *out has them
 * RLOCK_EINVAL    also: a size that no version of the struct has
 * RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_client_stats(rlock_client *cl, rlock_stats *out,
                                          size_t size);

#ifdef __cplusplus
}
#endif
#endif
