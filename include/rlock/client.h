/*
 * The client: a server, the connections to it, and the threads that renew
 * leases, listen for wake-ups and deliver events.
 *
 * One client serves any number of threads and locks. It opens connections as
 * they are needed and starts each of its threads with the first use that needs
 * it; mostly there is one:
 *
 *   rlock-loop       the first acquire, or Red lock (multi.h): the watchdog,
 *                    which renews leases; watches servers while something is
 *                    held there; notices leases that run out; undoes what a
 *                    failed call may have left on the server, and reads
 *                    answers that nobody waits for any more; from the first
 *                    wait on, a subscriber connection to each server that is
 *                    waited at, on which releases of other clients ring; from
 *                    the first start of async.h on, what has been started
 *   rlock-notifier   likewise, if there is an on_event that is not dispatched:
 *                    calls it
 *   rlock-connector  for each server, while a connection to it is made for the
 *                    loop, or for calls of a Red lock, which must not wait for
 *                    one server; and while it is down
 *
 * Besides, while a host name is looked up, there is one rlock-resolve. With
 * Sentinels or a cluster rlock-loop is there from rlock_client_new() on, and
 * asks them; there is an rlock-dial for each of those that it connects to.
 *
 * The library's threads block all signals. Except where it says otherwise,
 * every function may be called from any thread, and a call that is in progress
 * is not a point of thread cancellation (pthread_cancel() takes effect
 * afterwards). Nothing here may be called from a signal handler.
 *
 * After fork() a child must make clients of its own: every call on an
 * inherited handle answers RLOCK_EFORKED, sends nothing, and leaves the
 * parent's locks alone; the handles can be freed in the child, which closes
 * only the child's copies of the descriptors.
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
    uint64_t wakeups;            /* rings that woke a waiter, hand-overs, and
                                    passes */
    uint64_t wakeups_futile;     /* of them, those that found it busy again */
    uint64_t passes;             /* unlocks that passed the lock on: turn_ms */
    uint64_t reconnects;         /* connections opened after one broke */
    uint64_t script_loads;       /* scripts sent whole: the server lacked it */
    uint64_t held_now;           /* gauge: holds, lost ones not counted */
    uint64_t waiting_now;        /* gauge: threads waiting in an acquire */
    uint64_t wait_us_total;      /* time spent waiting in acquires */
    uint64_t hold_us_total;      /* time locks were held, outermost to last
                                    unlock or loss */
    uint64_t failovers;          /* masters that took another one's place */
    uint64_t refreshes;          /* times Sentinels, or servers of a cluster,
                                    were asked who is in office */
    uint64_t redirects;          /* answers of a cluster that a slot is, or for
                                    once is asked for, elsewhere */
    uint64_t nodes;              /* masters of the cluster, at present */
    uint64_t replica_shortfalls; /* grants, renewals and extensions that too few
                                    replicas had: min_replicas */
} rlock_stats;

/*
 * Makes a client and checks the server once, so that a wrong address or
 * password fails here. Blocks for at most connect_timeout_ms plus
 * command_timeout_ms (with a connect callback: for as long as that takes). In
 * that time Sentinels, or servers of a cluster, are asked, too, each over a
 * connection that may take connect_timeout_ms by itself; if none of them
 * answers within that, it is over.
 *
 * opts may be NULL: all defaults. Its strings are copied.
 *
 * RLOCK_OK        *out is the client; free it with rlock_client_free()
 * RLOCK_EINVAL    an option is out of range, uri and connect are both given,
 *                 the URI is malformed (the message says where), or names a
 *                 server of a cluster, or a Sentinel, as if it were a server by
 *                 itself, or the other way round; an option of TLS is set
 *                 without rediss:// or cannot be used (a file that cannot be
 *                 read, a key of another certificate), or the callback's
 *                 context cannot be used (inside MULTI, with unread replies,
 *                 subscribed, non-blocking)
 * RLOCK_ENOTSUP   rediss:// with an rlock that was built without OpenSSL; the
 *                 server is older than Redis 6.2, or lacks WAIT, which
 *                 min_replicas needs; or the program brings a hiredis whose
 *                 structs are not those that this library was compiled for
 * RLOCK_EIO       unknown host, connection refused, no answer in time, what
 *                 answers is no Redis server, TLS failed (the message says what
 *                 is wrong with the server's certificate), no Sentinel names a
 *                 master, or a callback has failed; never with lazy
 * RLOCK_ESERVER   the server refused: wrong password, no such database, a right
 *                 is missing (the message names the command or key), loading,
 *                 read-only replica, too many clients, ...
 * RLOCK_ENOMEM    out of memory
 *
 * *out is NULL unless RLOCK_OK. When the server may evict keys (maxmemory with
 * a policy other than noeviction), or has fewer replicas than min_replicas,
 * on_event gets RLOCK_EVENT_WARNING.
 */
RLOCK_API rlock_status rlock_client_new(const rlock_options *opts,
                                        rlock_client **out);

/*
 * What the server has of the client's locks is released: for a program that
 * stops tidily, so that who comes next need not wait for its leases.
 */
#define RLOCK_CLOSE_RELEASE_HELD 1u

/*
 * Closes and frees a client; NULL is accepted. Wakes every waiter with
 * RLOCK_ECLOSED (but who waits for a Red lock that has its home elsewhere goes
 * on without this node), waits until the calls now running on the client have
 * returned (each within its command timeout), makes one last attempt, of at
 * most a second, to undo what failed calls may have left on the server, and
 * joins the client's threads.
 *
 * flags  0: locks that are still held are not released, and their leases run
 *        out by themselves
 *        RLOCK_CLOSE_RELEASE_HELD: all that threads and other owners hold with
 *        this client is released, however often they have locked it, and
 *        waiters are woken. From the beginning of this call on no owner is told
 *        any more that it holds one; but see that none is at work. The last
 *        attempt takes up to command_timeout_ms then. Of a Multi or Red lock
 *        what lies at this client's server is released, the rest with the other
 *        clients
 *
 * No further event is delivered for what was held.
 *
 * RLOCK_OK       nothing is left that had to be released or undone
 * RLOCK_EIO, RLOCK_ESERVER, RLOCK_ENOMEM
 *                closed all the same; but so many locks as the message says
 *                were not released, or undone, and their leases run out
 * RLOCK_EFORKED  freed in a child of fork(), where nothing is released
 * RLOCK_EINVAL   flags that there are not; the client is left as it is
 *
 * Lock handles may outlive the client: calls on them answer RLOCK_ECLOSED, or
 * say that nothing is held, and they can be freed. Must not be called from a
 * callback, nor twice, nor while another thread may still start a call with
 * the client itself (a call on a lock handle is safe at any time).
 */
RLOCK_API rlock_status rlock_client_close(rlock_client *cl, unsigned flags);

/* rlock_client_close(cl, 0), whatever that answers. */
RLOCK_API void rlock_client_free(rlock_client *cl);

/*
 * Asks the server for a sign of life. Blocks for at most command_timeout_ms.
 *
 * RLOCK_OK, RLOCK_EIO, RLOCK_ESERVER, RLOCK_ENOMEM, RLOCK_EFORKED; RLOCK_EINVAL
 * for NULL.
 */
RLOCK_API rlock_status rlock_client_ping(rlock_client *cl);

/*
 * While it is on, every wait for a lock of this client, now and later, on any
 * handle and in any thread, ends with RLOCK_CANCELED; so a program that stops
 * sets it before it joins its threads, and no wait can begin behind its back.
 * Acquires with wait 0, re-entries and unlocks are not affected; an acquire
 * with a wait may be canceled without a try. A Red lock follows the client of
 * its first node, a Multi lock those of its members. Does not block on I/O.
 *
 * RLOCK_OK, RLOCK_ECLOSED, RLOCK_EFORKED; RLOCK_EINVAL for NULL.
 */
RLOCK_API rlock_status rlock_client_cancel(rlock_client *cl, bool on);

/*
 * Copies the counters to *out, without I/O. Counters that change together may
 * be seen one apart. size is sizeof *out; see base.h.
 *
 * RLOCK_OK, RLOCK_EFORKED; RLOCK_EINVAL for NULL, and for a size that no
 * version of the struct has.
 */
RLOCK_API rlock_status rlock_client_stats(rlock_client *cl, rlock_stats *out,
                                          size_t size);

#ifdef __cplusplus
}
#endif

#endif
