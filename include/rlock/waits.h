/* Who waits for whom, over all processes: for people, and for monitoring. */
#ifndef RLOCK_WAITS_H
#define RLOCK_WAITS_H

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A client that waits for a lock or a latch; or a thread that stands in line,
   for a fair lock, a side of a read-write lock, or permits. Valid, with all it
   points to, during the callback only; it grows at its end (base.h). */
typedef struct rlock_wait {
    const char *name;           /* of the lock, NUL-terminated */
    size_t name_len;            /* its length in bytes, without the NUL */
    const rlock_holder *holder; /* who has it, the first of holders; or NULL */
    /* The thread that waits; NULL: it is not known. count and ttl_ms are 0. */
    const rlock_holder *waiter;
    const char *client; /* its rlock_client's uuid, or another program's name */
    int64_t since_us;   /* since when, by the server's clock: unix time */
    int64_t waited_ms;  /* how long that is */
    unsigned circle; /* those of one number wait for each other, in one circle
                           or in several with somebody in common; 0: in none
                           that is known */
    int64_t rank;    /* how many stand before it in line; -1: it stands in
                           none */
    rlock_kind kind; /* what it waits for: RLOCK_KIND_LOCK, in line: a fair
                           one; RLOCK_KIND_LATCH, unless that has just opened */
    /* All who have it, of a read-write lock either side, of a semaphore
       permits: count says how many. NULL: nobody, just then, or a latch. */
    const rlock_holder *holders;
    size_t n_holders; /* how many of them are told: 64 at most */
} rlock_wait;

typedef void rlock_waits_fn(const rlock_wait *w, void *arg);

/*
 * Calls back for each client that stands in the queue of a lock, lock by lock,
 * as they stand there; before these for each thread that stands in its line.
 * Of a line a client is told for some seconds more than it has waited there.
 * On the calling thread, at the end, with no lock of the library held; the
 * callback may call the library. A snapshot, while locks change; who is not
 * seen in it: threads.md, Who waits for whom.
 *
 * Goes through the keys of the database by SCAN, in a cluster through those of
 * each master, over a connection of its own. A step takes command_timeout_ms at
 * most, a connection connect_timeout_ms; the server does other work in between.
 * Needs the rights to SCAN and ZRANGE; where somebody stands in line, also to
 * HGET, and to the keys of lines; for a read-write lock, of its leases and to
 * ZSCORE; for permits, of these.
 *
 * RLOCK_OK        all were told; perhaps none. With any other status: none
 * RLOCK_EINVAL, RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER, RLOCK_ECLOSED,
 * RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_waits_for(rlock_client *cl, rlock_waits_fn *each,
                                       void *arg);

#ifdef __cplusplus
}
#endif
#endif
