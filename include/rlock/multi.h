/*
 * Several locks as one. Both kinds give an ordinary rlock *: every call of
 * lock.h works on it as described there, with the differences below, or
 * answers RLOCK_ENOTSUP.
 */
#ifndef RLOCK_MULTI_H
#define RLOCK_MULTI_H

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most members of a Multi lock, and the most nodes of a Red lock. */
#define RLOCK_MULTI_MAX 64
#define RLOCK_RED_MAX   9

/*
 * Makes one lock of several: all or nothing. Its members may live on different
 * servers and be of any kind; the members of a Multi lock given here count as
 * members themselves. They stay the caller's and must outlive the handle; they
 * can be used by themselves as well, and a thread that holds one already takes
 * one level more of it.
 *
 * Acquire takes the members in one order, that of their names, and for one name
 * that of their servers' run_ids, whatever their order here and however their
 * clients spell the servers: two callers that list the same locks differently
 * cannot block each other for ever. All members are asked at once, those on one
 * client that have one layout by one call, which takes all or none. While it
 * waits for one, it holds those before it in that order, and of the same name
 * no longer than 0.1 s (a server that restarts has a new run_id, so these have
 * no order that lasts). If one cannot be had, nothing stays taken, and what the
 * thread held before is renewed only if it was before; the status and message
 * are those of the member that failed, and the message begins with its position
 * in locks[]. A wait that ends while a server fails answers that failure, and
 * RLOCK_TIMEOUT if somebody has the member.
 *
 * A member that has been taken, and is lost again before all are held (its
 * server's data are gone, or its lease ended in a hang), is one that could not
 * be had: it is tried again until the wait is over, or for a watchdog lease in
 * a row, and then answered RLOCK_EIO. Nobody is told of its loss. RLOCK_LOST is
 * for members that the thread held before. One level more of these is not
 * waited for: if it fails, so does the call, at once.
 *
 * An explicit lease begins when all members are held: those that are held while
 * others are waited for are renewed meanwhile, and have the lease set at the
 * end.
 *
 * Held while every member is held: rlock_is_held() and rlock_valid_ms() are
 * those of the worst member, rlock_hold_count() the smallest. The members are
 * renewed as by themselves. As soon as one is lost, so is the whole, and the
 * client of the first member (if it has no on_event: the lost member's) is
 * told by one RLOCK_EVENT_LOST with the lost member's name, however many
 * members are lost in the end; RLOCK_EVENT_ABANDONED likewise. Members that the
 * thread held before, and, from when all are held, Red locks among the members,
 * report their loss as by themselves. Other events, and the statistics, are the
 * members'.
 *
 * Unlock goes through all members, also when some fail, and answers the worst
 * status, RLOCK_OK being the best: what failed, before RLOCK_LOST, before
 * RLOCK_NOT_HELD. Extend sets the lease of all; when one fails, the others may
 * have the new lease.
 *
 * rlock_token()       the largest of the members' tokens, and so larger than
 *                     that of any earlier hold of this set. A resource that
 *                     is guarded by one member is better given that member's
 * rlock_force_unlock() frees every member, whoever holds it: RLOCK_OK when one
 *                     was held, RLOCK_NOT_HELD when none was, or the failure
 * rlock_is_locked(), rlock_ttl(), rlock_holder_info()
 *                     RLOCK_ENOTSUP: ask the members
 *
 * The limits on blocking are those of lock.h, for the whole: wait_ms plus one
 * command_timeout_ms (the largest of the clients') for acquire, one
 * command_timeout_ms for each client for the others, or for each member when
 * there is no memory to ask them together.
 *
 * RLOCK_OK        *out is the lock; free it with rlock_free(), which leaves
 *                 the members alone. Nothing is sent
 * RLOCK_EINVAL    locks or out is NULL; n is 0 or above RLOCK_MULTI_MAX (nested
 *                 members counted); a member is NULL or belongs to a closed
 *                 client; or the same lock is there twice: one name on one
 *                 server, also through two clients (the server's run_id
 *                 tells; of lazy clients that have not met their servers only
 *                 the addresses can, and a lock that is there twice waits for
 *                 itself). The message names the position, counted from 1
 * RLOCK_ENOMEM    out of memory
 * RLOCK_EFORKED   a member was made before fork()
 *
 * *out is NULL unless RLOCK_OK.
 */
RLOCK_API rlock_status rlock_multi_new(rlock *const locks[], size_t n,
                                       rlock **out);

/*
 * Makes one lock of one name on n independent servers, by the Redlock
 * algorithm (Redis documentation, "Distributed locks with Redis"): held by who
 * holds it on a majority of them, n / 2 + 1. It survives the loss of the
 * others, with whatever they knew.
 *
 * What it can promise: as long as a majority of the nodes keeps what it was
 * told, and clocks run at the same speed within a hundredth, no two owners
 * hold it at once. What it cannot: a node that restarts without its data
 * forgets its vote. A node that restarted while a client of it was connected
 * (its run_id has changed), or that a lazy client met only later, does not
 * vote until it has been up for the longest lease; a client that is made after
 * the restart can know of it only from the node's uptime, if check_uptime is
 * on. The longest lease is the one that was used for that name with any of the
 * lock's clients (they remember it for twice its length, whatever handles there
 * are), and at least the clients' watchdog_lease_ms; what other clients and
 * processes use has to be said by longest_lease_ms. A process that was paused,
 * or whose clocks jumped, may still write after its lease: as with every lock,
 * only the resource can prevent that, by the token. (M. Kleppmann, "How to do
 * distributed locking", 2016; S. Sanfilippo, "Is Redlock safe?", 2016.)
 *
 * The servers have to be independent: replicas of each other are worth one.
 *
 * Acquire asks all nodes at the same time and is decided as soon as a majority
 * has granted it, or cannot any more; grants that come later join. It is owned
 * when
 *
 *     valid = lease - elapsed - (lease / 100 + 2 ms)
 *
 * is positive, where elapsed counts from before the first command was sent. A
 * try that fails is undone on every node, grants that come late included,
 * before the next one.
 *
 * How long a node is waited for. A nested acquire, an extend and an unlock,
 * too, are over as soon as a majority has answered, so a slow minority delays
 * nobody. Where no majority is reached without it, a node has a twentieth of
 * the lease to answer, at least 5 ms and at most its client's
 * command_timeout_ms. What is said to all nodes (a try that is undone, a forced
 * unlock, a question) waits for each as long as its round trips so far suggest:
 * 4 x (their mean + 4 x their deviation), at least 5 ms, or as above if there
 * is no connection to it yet. A node that did not answer in time, or cannot be
 * reached, is left out until it is back, unless no majority is left without it.
 *
 * Waiting. Who waits stands in the queue of each node, and is woken by the
 * releases there: it tries at once when a majority has rung, about 3 ms after
 * the first ring when fewer do, and every 0.3 to 0.5 s without any. Contenders
 * that split the votes try again after random pauses of up to a quarter of a
 * second. Threads of one process are served in the order in which they came.
 *
 * The clients are the nodes. Each node's lease is renewed by its own client.
 * While the lock is renewed (RLOCK_WATCHDOG) and a majority holds it, a node
 * that did not grant it, or lost it since, is asked for it again with each
 * renewal: nodes that fail one after the other and come back do not wear a lock
 * out. With an explicit lease they are not asked again.
 *
 * Held while a majority of the nodes' leases runs; rlock_valid_ms() is what is
 * left of the shortest in the best majority. Nested acquires, extends and
 * unlocks need a majority as well. As soon as a majority is gone, the lock is
 * lost: one RLOCK_EVENT_LOST, and no node is renewed any more.
 *
 * The first client is the lock's home: its on_event gets the lock's events
 * (renewals go to each node's client), its rlock_stats count acquires and
 * releases, and when it is closed, calls answer RLOCK_ECLOSED. Any other that
 * is closed counts as a failed node, also for those who are waiting then. A
 * lock made twice from the same clients is one lock, as with rlock_new().
 *
 * rlock_token()       the largest that the granting nodes gave out, written
 *                     back to a majority before acquire returns: larger than
 *                     that of every earlier hold, as long as the nodes' clocks
 *                     are less than five minutes apart. (A node keeps its last
 *                     token for twice the lease, at least five minutes and at
 *                     most an hour.) If a majority loses its data, and those
 *                     nodes' clocks are behind, tokens may go back
 * rlock_acquire()     RLOCK_EQUORUM: no majority, because nodes failed; a
 *                     wait goes on as for an unreachable server.
 *                     RLOCK_BUSY, RLOCK_TIMEOUT: held by others, on so
 *                     many nodes that no majority was left
 * rlock_unlock()      RLOCK_OK: a majority has released it, the others are
 *                     being told. RLOCK_EQUORUM: too few answered; the library
 *                     goes on until the lease has run out
 * rlock_extend()      RLOCK_EQUORUM: too few nodes confirmed; some may have
 *                     the new lease
 * rlock_is_locked(), rlock_ttl(), rlock_holder_info()
 *                     about who holds it on a majority; RLOCK_EQUORUM when too
 *                     few nodes answered to tell
 * rlock_force_unlock() frees it on all nodes: RLOCK_OK when a majority
 *                     answered and one had it, RLOCK_NOT_HELD when none had.
 *                     A node that hangs frees it when it wakes, and may then
 *                     free the vote of a later owner, who learns of it with
 *                     the next renewal and asks that node again, or is told
 *                     that the lock is lost if it was one vote too many. It may
 *                     also free votes of an acquire under way, before a
 *                     majority knows its token: then the next token need not be
 *                     larger
 *
 * The message in rlock_last_error() says what each node answered, by its
 * position, as far as there is room.
 *
 * RLOCK_OK        *out is the lock; free it with rlock_free(). Nothing is sent.
 *                 A lazy client that has not met its server yet is accepted;
 *                 should that be the server of another one, it has one vote
 * RLOCK_EINVAL    clients, name or out is NULL; n is 0 or above RLOCK_RED_MAX;
 *                 a client is NULL or closed, is listed twice, or leads to
 *                 the same server as another one (the server's run_id tells);
 *                 the name is one that rlock_new() refuses. The message names
 *                 the client's position, counted from 1
 * RLOCK_ENOTSUP   a server does not tell its run_id: its user needs the
 *                 right to INFO; a client is one of a cluster, where a name is
 *                 on one server; or the layout is RLOCK_LAYOUT_TIMESTAMP
 * RLOCK_ENOMEM    out of memory, or a client's threads could not be started
 * RLOCK_EFORKED
 *
 * *out is NULL unless RLOCK_OK.
 */
RLOCK_API rlock_status rlock_red_new(rlock_client *const clients[], size_t n,
                                     const char *name, rlock **out);

typedef struct rlock_red_options {
    size_t size; /* set by RLOCK_RED_OPTIONS_INIT; lets the struct grow */
    /*
     * RLOCK_LAYOUT_HASH, or RLOCK_LAYOUT_STRING to share the lock with
     * redsync, node-redlock and others on the same servers.
     */
    rlock_layout layout;
    /*
     * The longest lease that anybody uses for this lock: for so long a node
     * does not vote after a restart. 0: the longest that was used for the name
     * with any of the clients (which remember it for twice its length), and at
     * least their watchdog_lease_ms.
     */
    int64_t longest_lease_ms;
    /* Nor does a node vote whose uptime is shorter than that. */
    bool check_uptime;
} rlock_red_options;

#if defined(__cplusplus)
static inline rlock_red_options rlock_red_options_init_()
{
    rlock_red_options o = rlock_red_options();
    o.size = sizeof o;
    return o;
}
#define RLOCK_RED_OPTIONS_INIT rlock_red_options_init_()
#else
#define RLOCK_RED_OPTIONS_INIT                                                 \
    {                                                                          \
        .size = sizeof(rlock_red_options)                                      \
    }
#endif

/*
 * The same with options (NULL: all defaults), and for a name of len bytes.
 *
 * RLOCK_EINVAL   also: a member of opts is out of range
 */
RLOCK_API rlock_status rlock_red_new_ex(rlock_client *const clients[], size_t n,
                                        const void *name, size_t len,
                                        const rlock_red_options *opts,
                                        rlock **out);

#ifdef __cplusplus
}
#endif

#endif
