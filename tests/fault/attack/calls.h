/*
 * The calls that are judged. Each is timed and counted, whether a thread makes
 * it, which blocks, or an owner of an event loop starts it, which lets others
 * go on meanwhile.
 */
#ifndef ATTACK_CALLS_H
#define ATTACK_CALLS_H

#include "holding.h"

typedef enum call_verb {
    CALL_ACQUIRE,
    CALL_UNLOCK,
    CALL_EXTEND,
    CALL_TAKE, /* permits */
    CALL_GIVE_BACK
} call_verb;

/* What the library is asked for. */
typedef struct wish {
    call_verb verb;
    rlock *lk;
    int64_t wait_ms, lease_ms;
    int64_t leave_us; /* see plan */
    rlock_semaphore *semaphore;
    int permits;
    rlock_permit **permit; /* NULL in there: taken none, or given back */
} wish;

/* A call that is being timed. */
typedef struct timer {
    note_kind late; /* what it is when it is late */
    int lock;
    int64_t limit_us;
    uint64_t queued_us;
} timer;

/* The call was over at over_us; notes it when that was past its limit, and how
   long the thread had to wait for a processor. */
timer timer_start(note_kind late, int lock, int64_t limit_ms);
void timer_stop(const timer *t, int64_t over_us);

/* By the plan; who nests does not wait. */
rlock_status call_acquire(rlock *lk, const plan *p, bool nested);
rlock_status call_unlock(rlock *lk, int lock);
/* Of the permits, if there are any; not on a loop. */
rlock_status call_extend(rlock *lk, rlock_permit *permit, const plan *p);
rlock_status call_take(const plan *p, rlock_permit **permit);
rlock_status call_give_back(rlock_permit *permit, int lock);

/* Says the server that the caller holds the lock? */
bool call_is_mine(int lock, rlock_holder *who);

#endif
