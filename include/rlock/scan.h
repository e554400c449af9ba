/* Which locks there are, over all processes: for people, and for monitoring. */
#ifndef RLOCK_SCAN_H
#define RLOCK_SCAN_H

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A lock, or a semaphore, as its server had it. It and all that it points to
   are valid during the callback only; it grows at its end (base.h). */
typedef struct rlock_lock_info {
    const char *name;            /* NUL-terminated */
    size_t name_len;             /* in bytes, without the NUL */
    rlock_kind kind;             /* of a read-write lock: which side is held */
    rlock_layout layout;         /* of one that is free: RLOCK_LAYOUT_HASH */
    const rlock_holder *holders; /* who has it; NULL: nobody */
    size_t n_holders;            /* how many of them are told */
    int64_t holders_in_all;      /* how many there are, also readers who died
                                    while others go on; 0: it is free */
    int64_t waiting;   /* clients in its queue or line: a process counts once */
    int64_t ttl_ms;    /* what is left of the lease; -1: no expiry; -2: free */
    uint64_t token;    /* the last that was given out; 0: not known */
    int64_t held_ms;   /* for how long by this holder; -1: not known, as of one
                          who reads, or free */
    bool foreign;      /* another program has it: Redisson, redis-py ... */
    int64_t available; /* RLOCK_KIND_PERMIT: so many permits are free */
} rlock_lock_info;

/* False: no more are to be told. */
typedef bool rlock_scan_fn(const rlock_lock_info *l, void *arg);

/* All hashes and strings are looked at, too: locks that no side key of this
   library tells of, such as Redisson's. */
#define RLOCK_SCAN_ALL 1u
/* Also locks that are free, and were held within the last minutes. */
#define RLOCK_SCAN_IDLE 2u

/*
 * Calls back for each lock that is held or waited for, by name: on the calling
 * thread, at the end, with no lock of the library held; the callback may call
 * the library. A snapshot of each lock, while others change.
 *
 * glob   which names: Redis' patterns (? * [a-z] \), of bytes; NULL: all
 * flags  RLOCK_SCAN_ALL | RLOCK_SCAN_IDLE, or 0
 *
 * A lock is found by its queue, line or token's key, which the watchdog keeps
 * as long as it renews the lock. Where no watchdog does, that lives for
 * twice the lease, five minutes at least and an hour at most. Then, as with a
 * holder of an earlier version, a lock that nobody waits for is found only by
 * RLOCK_SCAN_ALL, for which what looks like no holder id of ours or Redisson's
 * is no lock: so of strings only ours are told. A lock whose slot is moving may
 * be missed; so may "{a}" while "a" is held, unless it is waited for. Of a Red
 * lock each node's client tells that node's share.
 *
 * One that is held without a token (no_tokens) is not found so either; what is
 * told as its token, and as held_ms, is then of the last hold that had one.
 *
 * A semaphore is found by the key of who has permits, or by its line, as long
 * as somebody has some, or waits: one holder is told, and how many it has. One
 * whose key of permits the user has no right to is passed over. Latches are not
 * told of.
 *
 * Goes through the keys of the database by SCAN, twice, in a cluster through
 * those of each master, over a connection of its own: 500 keys at a time, a
 * millisecond of the server's processor at most. A step takes
 * command_timeout_ms at most, a connection connect_timeout_ms. Memory: the
 * names, and what is told of them. Needs the rights to SCAN and ZCARD; for
 * RLOCK_SCAN_ALL also to GETRANGE and HRANDFIELD; where somebody stands in
 * line, to ZRANGE and HGET, and to the keys of lines; for semaphores to
 * ZCOUNT and ZRANGE.
 *
 * RLOCK_OK        all were told; perhaps none. With any other status: none
 * RLOCK_EINVAL    also: a flag that is not known
 * RLOCK_ESERVER   also: a right is missing; the message says which
 * RLOCK_ECLOSED   also: the client was freed meanwhile
 * RLOCK_ENOMEM, RLOCK_EIO, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_scan(rlock_client *cl, const char *glob,
                                  unsigned flags, rlock_scan_fn *each,
                                  void *arg);

#ifdef __cplusplus
}
#endif
#endif
