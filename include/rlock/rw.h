/*
 * A read-write lock: any number of owners read at a time, or one writes. Each
 * side is an ordinary lock (lock.h), with all that works on one:
 * rlock_acquire() of the read side, rlock_acquire_start() of the write side,
 * rlock_eval() under either (guard.h), either as a member of a Multi lock
 * (multi.h), and so on. It is the RReadWriteLock of Redisson (Java), and shared
 * with that: sharing.md.
 *
 *     rlock *read, *write;
 *     rlock_rw_new(cl, "prices", &read, &write);
 *     rlock_lock(read);                   others read, too; nobody writes
 *
 * First come, first served, over all processes: whoever waits stands in line by
 * the time of its first try, readers up to the next writer come in together,
 * and nobody passes a writer that waits, so neither side starves. The other
 * side waits for that reader, so a thread must not wait for another thread that
 * is to begin to read while a writer waits: it would wait for ever.
 *
 * An owner may hold both sides:
 *
 *   holds    wants to read            wants to write
 *   read     one level more           at once, before all who wait, if it is
 *                                     the only one to read; else RLOCK_EDEADLK
 *   write    at once                  one level more
 *
 * Who writes, begins to read and then ends its writing goes on reading, and
 * nobody has written in between. Two that read and both want to write would
 * wait for each other: all but the last are told RLOCK_EDEADLK, whatever
 * wait_ms; they hold their read side still. Unlock it, lock the write side, and
 * look again at what you read.
 *
 * Tokens: each writer gets a larger one than all before; those who read beside
 * each other have one, and so has who comes while any of them reads, also years
 * later. So a resource that refuses what is smaller than it has seen takes
 * concurrent readers in any order, and nobody from before the last writer. Who
 * begins to write while it reads has the new one for both.
 *
 * Each reader has a lease of its own: one that dies keeps a writer out for no
 * longer than that, whoever else goes on reading.
 */
#ifndef RLOCK_RW_H
#define RLOCK_RW_H

#include <rlock/lock.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Makes handles for the sides of the lock called name, as rlock_new() does for
 * a lock; either may be NULL: that one is not made. An ordinary lock of that
 * name is none: RLOCK_EWRONGTYPE, both ways.
 *
 * What lock.h says of a lock is true of a side. rlock_is_locked(), rlock_ttl()
 * and rlock_holder_info() are about that side: of several readers about the
 * caller, if it is one, or else about any of them; rlock_hold_info() is about
 * the one that is asked for. rlock_force_unlock() of the read side ends all
 * that read.
 *
 * RLOCK_OK        made; free each with rlock_free()
 * RLOCK_EINVAL    also: a name that rlock_new() does not take, or both are NULL
 * RLOCK_ENOMEM, RLOCK_ECLOSED, RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_rw_new(rlock_client *cl, const char *name,
                                    rlock **read, rlock **write);

/*
 * The same for a name of len bytes, any, also NUL, with options; NULL: all
 * defaults. fair is always so. Not for several servers (rlock_red_new()).
 *
 * RLOCK_EINVAL    also: a member of opts is out of range
 * RLOCK_ENOTSUP   another layout than the hash, or no_tokens
 */
RLOCK_API rlock_status rlock_rw_new_ex(rlock_client *cl, const void *name,
                                       size_t len,
                                       const rlock_lock_options *opts,
                                       rlock **read, rlock **write);

/* How a read-write lock is had. It grows at its end. */
typedef struct rlock_rw_state {
    size_t size;     /* of the struct, by the caller */
    int mode;        /* 0: it is free; 1: read; 2: written */
    int64_t holders; /* how many read; 1 if it is written */
    int64_t waiting; /* how many stand in line, those that have died included */
    int64_t ttl_ms;  /* until the last lease ends; -1: no end; -2: it is free */
} rlock_rw_state;

#if defined(__cplusplus)
static inline rlock_rw_state rlock_rw_state_init_()
{
    rlock_rw_state s = rlock_rw_state();
    s.size = sizeof s;
    return s;
}
#define RLOCK_RW_STATE_INIT rlock_rw_state_init_()
#else
#define RLOCK_RW_STATE_INIT                                                    \
    {                                                                          \
        .size = sizeof(rlock_rw_state)                                         \
    }
#endif

/*
 * Asks the server how the lock is had of which this is a side. Unless RLOCK_OK,
 * *out is all zero behind its size, or, with RLOCK_EINVAL, as it was.
 *
 * RLOCK_OK        *out tells
 * RLOCK_EINVAL    also: no side of a read-write lock, or out->size cannot be
 * RLOCK_ENOMEM, RLOCK_EIO, RLOCK_ESERVER, RLOCK_EWRONGTYPE, RLOCK_ECLOSED,
 * RLOCK_EFORKED
 */
RLOCK_API rlock_status rlock_rw_inspect(rlock *either, rlock_rw_state *out);

#ifdef __cplusplus
}
#endif
#endif
