/*
 * Who waits for whom, over all processes: what a server, or a cluster, knows of
 * the locks that are waited for. For people, and for programs that watch.
 */
#ifndef RLOCK_WAITS_H
#define RLOCK_WAITS_H

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A client that waits for a lock. Valid during the callback only. */
typedef struct rlock_wait {
    const char *name;           /* of the lock, NUL-terminated */
    size_t name_len;            /* its length in bytes, without the NUL */
    const rlock_holder *holder; /* who has it; NULL: nobody, just then */
    /* The thread that waits; NULL: it is not known. count and ttl_ms are 0. */
    const rlock_holder *waiter;
    const char *client; /* a uuid, of its rlock_client; or another program's
                           name for itself */
    int64_t since_us;   /* since when, by the server's clock: unix time */
    int64_t waited_ms;  /* how long that is */
    unsigned circle;    /* those of one number wait for each other in a circle,
                           as no lock can end; 0: in none that is known */
} rlock_wait;

typedef void rlock_waits_fn(const rlock_wait *w, void *arg);

/*
 * Calls back for each client that stands in the queue of a lock, lock by lock,
 * as they stand there: on the calling thread, at the end, with no lock of the
 * library held; the callback may call the library.
 *
 * It is a snapshot without a guarantee: locks are looked at one after the
 * other, and change meanwhile. Not seen is who waits without a queue: programs
 * that poll, threads behind another one of their client that waits for the same
 * lock (a client has one place in a queue, its first thread's), members of a
 * Multi lock behind the one that is being waited for. Who waits tells its
 * process and thread with the first look that it takes after a second, so about
 * two seconds after it began; before, and of clients before 0.2, only the
 * client is known. With turn_ms the holder is the thread that began the turn.
 * So a circle of which all have waited for two or three seconds is seen, over
 * any number of processes, if one client's server has all of its locks. Of a
 * Red lock each node's client shows what its node knows.
 *
 * It goes through the keys of the database by SCAN, and through the masters of
 * a cluster one after the other, each over a connection of its own; so it takes
 * as long as that takes, each step at most command_timeout_ms
 * (connect_timeout_ms for a connection), and the server does other work in
 * between. A user without all rights needs SCAN and ZRANGE besides.
 *
 * RLOCK_OK       all were told; perhaps none
 * RLOCK_EINVAL   cl or each is NULL
 * RLOCK_EIO, RLOCK_ESERVER
 *                a server did not answer, or refused; nothing was told
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_waits_for(rlock_client *cl, rlock_waits_fn *each,
                                       void *arg);

#ifdef __cplusplus
}
#endif

#endif
