/*
 * Several locks as one. Both kinds give an ordinary rlock *: every call of
 * lock.h works on it as described there, with the differences below, or answers
 * RLOCK_ENOTSUP, as those of guard.h do. How they work, and why: several.md.
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
 * Makes one lock of several, all or nothing, on any servers and of any kind;
 * members of a Multi lock count as members. Sends nothing. The Multi lock has
 * handles of its own: those in locks[] stay the caller's, and may be used, or
 * freed, at any time.
 *
 * Acquire takes the members in one order, whatever that of locks[], so callers
 * never block each other for ever; while it waits for one it holds only those
 * before it. If one cannot be had, nothing stays taken. Of a member that is
 * held already it takes one level more, without a wait. An explicit lease
 * begins when all are held.
 *
 * Held while every member is. With the first loss the whole is lost: one
 * RLOCK_EVENT_LOST (or _ABANDONED) with that member's name, to the client of
 * the first member; if it has no on_event, of the lost one. The end of a
 * member that was held before is told by its own client, and by that alone;
 * that of a Red lock among them by its own client, too. A
 * member that is taken once more, by itself or by another Multi lock, stays the
 * first one's: its loss is told as that one's, or, after another loss of that
 * one, not at all. Other events, renewal and statistics are the members'.
 *
 * rlock_acquire()  one member's failure; the message begins with its position
 *                  in locks[]. RLOCK_EIO: also, a member was lost before all
 *                  were held; RLOCK_LOST: one that was held before. Ends within
 *                  wait_ms plus the largest command_timeout_ms of the clients
 * rlock_unlock()   goes through all members, also when some fail; answers the
 *                  worst: what failed, before RLOCK_LOST, before
 *                  RLOCK_NOT_HELD. This and those below take one
 *                  command_timeout_ms for each client at most (for each member,
 *                  if memory is short)
 * rlock_extend()   sets the lease of all; if one fails, others may have it
 * rlock_is_held(), rlock_valid_ms(), rlock_hold_count()
 *                  the worst member's
 * rlock_token()    the largest of the members': larger than that of every
 *                  earlier hold of this set, unless some have none (no_tokens)
 * rlock_lost_fd()  tells of the loss of any member; RLOCK_NOT_HELD: one is not
 *                  held. Closed by the last unlock of any member
 * rlock_force_unlock()
 *                  frees every member: RLOCK_OK if one was held, RLOCK_NOT_HELD
 *                  if none was, or the failure
 * rlock_force_unlock_hold(), rlock_is_locked(), rlock_ttl(),
 * rlock_holder_info(), rlock_hold_info()
 *                  RLOCK_ENOTSUP: ask the members
 *
 * RLOCK_OK        *out is the lock; free it with rlock_free()
 * RLOCK_EINVAL    also: n is 0 or above RLOCK_MULTI_MAX (nested members
 *                 counted); a member is NULL or of a closed client; one name is
 *                 there twice on one server, as run_ids tell (of lazy clients
 *                 addresses). The message names the position, counted from 1
 * RLOCK_ENOMEM, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_multi_new(rlock *const locks[], size_t n,
                                       rlock **out);

/*
 * Makes one lock of one name on n independent servers, by the Redlock algorithm
 * (Redis documentation, "Distributed locks with Redis"): held by who holds it
 * on a majority of them, n / 2 + 1. Sends nothing. Each client is a node;
 * replicas of each other are worth one. Locks of the same clients are one lock.
 *
 * No two owners hold it at once as long as a majority of the nodes keeps what
 * it was told, and clocks run at the same speed within a hundredth. A node that
 * restarted while a client of it was connected, or that a lazy client met
 * later, does not vote until it has been up for the longest lease
 * (rlock_red_options).
 *
 * All nodes are asked at once. A call is over when a majority has answered;
 * without one, each node has a twentieth of the lease for that, at least 5 ms
 * and at most its client's command_timeout_ms. A try that fails is undone on
 * every node before the next one.
 *
 * Held while a majority of the nodes' leases runs; rlock_valid_ms() is what is
 * left of the shortest in the best majority. Each client renews its node's
 * lease; with RLOCK_WATCHDOG it also asks a node anew that lacks the lock.
 * Without a majority the lock is lost: one RLOCK_EVENT_LOST.
 *
 * The first client is the home: its on_event gets the events (but each node's
 * client tells of renewals), its rlock_stats count acquires and releases, and
 * when it is closed, calls answer RLOCK_ECLOSED. Any other that is closed is a
 * failed node, at once.
 *
 * rlock_acquire()  RLOCK_EQUORUM: no majority, because nodes failed; a wait
 *                  goes on as for an unreachable server. RLOCK_BUSY,
 *                  RLOCK_TIMEOUT: others hold it on too many nodes
 * rlock_unlock()   RLOCK_OK: a majority has released it, the others are being
 *                  told. RLOCK_EQUORUM: too few answered; the library goes on
 *                  until the lease has run out
 * rlock_extend()   RLOCK_EQUORUM: too few confirmed; some may have the lease
 * rlock_token()    larger than that of every earlier hold, as long as the
 *                  nodes' clocks are less than five minutes apart
 * rlock_lost_fd()  tells of the loss of the majority
 * rlock_force_unlock()
 *                  frees it on all nodes: RLOCK_OK if a majority answered and
 *                  one had it, RLOCK_NOT_HELD if none had, else RLOCK_EQUORUM.
 *                  A node that hangs frees it when it wakes: several.md
 * rlock_force_unlock_hold()
 *                  the same for that hold, also where it has less than a
 *                  majority; asks who has it first, so it takes twice as long
 * rlock_is_locked(), rlock_ttl(), rlock_holder_info(), rlock_hold_info()
 *                  about who holds it on a majority; RLOCK_EQUORUM: too few
 *                  nodes answered to tell
 *
 * RLOCK_OK        *out is the lock; free it with rlock_free()
 * RLOCK_EINVAL    also: n is 0 or above RLOCK_RED_MAX; a client is NULL,
 *                 closed, listed twice, or leads to the same server as another
 *                 one, as run_ids tell; rlock_new() refuses the name. The
 *                 message names the position, counted from 1
 * RLOCK_ENOTSUP   a server does not tell its run_id: its user needs the right
 *                 to INFO; or a client is one of a cluster
 * RLOCK_ENOMEM, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_red_new(rlock_client *const clients[], size_t n,
                                     const char *name, rlock **out);

typedef struct rlock_red_options {
    size_t size; /* set by RLOCK_RED_OPTIONS_INIT; lets the struct grow */
    /* RLOCK_LAYOUT_HASH; or RLOCK_LAYOUT_STRING, to share the lock with
       redsync, node-redlock and others on the same servers. */
    rlock_layout layout;
    /* The longest lease that anybody uses for this lock. 0: the longest that
       was used for the name with any of the clients (which remember it for
       twice its length), and at least their watchdog_lease_ms. */
    int64_t longest_lease_ms;
    /* A node whose uptime is shorter than that does not vote either. */
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
 * Makes a Red lock, as rlock_red_new(), of a name of len bytes, with options
 * (NULL: all defaults).
 *
 * RLOCK_EINVAL    also: a member of opts is out of range
 * RLOCK_ENOTSUP   also: the layout is RLOCK_LAYOUT_TIMESTAMP
 */
RLOCK_API rlock_status rlock_red_new_ex(rlock_client *const clients[], size_t n,
                                        const void *name, size_t len,
                                        const rlock_red_options *opts,
                                        rlock **out);

#ifdef __cplusplus
}
#endif
#endif
