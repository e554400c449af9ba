/*
 * rlock: a distributed, re-entrant lock on Redis. This header gives everything.
 *
 *     rlock_client *cl;
 *     rlock *lk;
 *     if (rlock_client_new(NULL, &cl) == RLOCK_OK &&
 *         rlock_new(cl, "orders", &lk) == RLOCK_OK &&
 *         rlock_lock(lk) == RLOCK_OK) {
 *         ...
 *         rlock_unlock(lk);
 *     }
 *
 *   client.h, options.h  clients, and how they reach their servers
 *   lock.h               locks: acquire, nest, extend, unlock, ask
 *   multi.h              several locks as one, and one over several masters
 *   rw.h                 many who read, or one who writes
 *   latch.h              a count that falls, and who waits for zero
 *   semaphore.h          so many permits, with leases
 *   guard.h              writes that only who holds a lock may make
 *   async.h, owner.h     event loops, and owners that are no threads
 *   event.h, waits.h     what happens to locks, and who waits for whom
 *   scan.h, servers.h    which locks there are, and what threatens them
 *   metrics.h            figures, for Prometheus and the like
 *   base.h               statuses, and what went wrong last
 *   rlock.hpp            all this for C++17, and co_await for C++20
 *
 * While rlock_is_held() says so, no other owner holds the lock, if the server
 * keeps its data, its clock does not jump ahead, and nobody frees the lock by
 * force. A process that is paused between that question and its write is
 * stopped only by the resource: give it rlock_token(), or let the lock's server
 * do it: rlock_eval(). What such a lock promises, and cannot, is in
 * promises.md, which is installed with the other documents in share/doc/rlock.
 */
#ifndef RLOCK_RLOCK_H
#define RLOCK_RLOCK_H

#include <rlock/async.h>
#include <rlock/base.h>
#include <rlock/client.h>
#include <rlock/event.h>
#include <rlock/guard.h>
#include <rlock/latch.h>
#include <rlock/lock.h>
#include <rlock/metrics.h>
#include <rlock/multi.h>
#include <rlock/options.h>
#include <rlock/owner.h>
#include <rlock/rw.h>
#include <rlock/scan.h>
#include <rlock/semaphore.h>
#include <rlock/servers.h>
#include <rlock/waits.h>

#endif
