#include "calls.h"

#include <unistd.h>

#include "locks.h"
#include "loop.h"
#include "queued.h"
#include "worker.h"

enum { NOTABLE_US = 5000, RETRY_US = 1000 };

timer timer_start(note_kind late, int lock, int64_t limit_ms)
{
    return (timer){late, lock, attack_now_us() + limit_ms * 1000, queued_us()};
}

void timer_stop(const timer *t, int64_t over_us)
{
    if (over_us - t->limit_us > NOTABLE_US)
        worker_notice(t->late, t->lock, t->limit_us, over_us,
                      queued_us() - t->queued_us);
}

/* But for an acquire, a Multi lock has that time for each of its clients. */
static int64_t limit_ms(int lock)
{
    return lock_kind_of(lock) == LOCK_MULTI
               ? COMMAND_MS * servers_count(lock_servers(lock))
               : COMMAND_MS;
}

static rlock_status block(const wish *w)
{
    return w->verb == CALL_ACQUIRE
               ? rlock_acquire(w->lk, w->wait_ms, w->lease_ms)
           : w->verb == CALL_UNLOCK ? rlock_unlock(w->lk)
                                    : rlock_extend(w->lk, w->lease_ms);
}

static rlock_status call(const wish *w, const timer *t)
{
    int64_t over_us;
    rlock_status s;
    count_by_events(me.on_loop || lock_kind_of(t->lock) == LOCK_MULTI);
    if (me.on_loop) {
        s = loop_call(w, t->limit_us, &over_us);
    } else {
        s = block(w);
        over_us = attack_now_us();
    }
    timer_stop(t, over_us);
    return s;
}

/* What is not counted by events; see there. */
static void count(_Atomic uint64_t counts[SERVERS], int lock, rlock_status s)
{
    if (s == RLOCK_OK && !me.on_loop && lock_kind_of(lock) != LOCK_MULTI)
        atomic_fetch_add(&counts[lock_home(lock)], 1);
}

rlock_status call_acquire(rlock *lk, const plan *p, bool nested)
{
    int64_t wait_ms = nested ? 0 : p->wait_ms;
    wish w = {CALL_ACQUIRE, lk, wait_ms, p->lease_ms, nested ? 0 : p->leave_us};
    timer t = timer_start(NOTE_LATE_ACQUIRE, p->lock,
                          wait_ms + COMMAND_MS + worker_replicas_ms());
    rlock_status s = call(&w, &t);
    atomic_fetch_add(&me.a->acquired[lock_kind_of(p->lock)][s], 1);
    count(me.acquires, p->lock, s);
    return s;
}

static rlock_status try_to_unlock(rlock *lk, int lock)
{
    wish w = {.verb = CALL_UNLOCK, .lk = lk};
    timer t = timer_start(NOTE_LATE_UNLOCK, lock, limit_ms(lock));
    return call(&w, &t);
}

/* An unlock that could not be started has left the lock held. */
rlock_status call_unlock(rlock *lk, int lock)
{
    rlock_status s;
    while ((s = try_to_unlock(lk, lock)) == RLOCK_ENOMEM)
        pause_us(RETRY_US);
    atomic_fetch_add(&me.a->released[lock_kind_of(lock)][s], 1);
    count(me.releases, lock, s);
    return s;
}

rlock_status call_extend(rlock *lk, const plan *p)
{
    wish w = {.verb = CALL_EXTEND, .lk = lk, .lease_ms = p->extend_ms};
    timer t = timer_start(NOTE_LATE_EXTEND, p->lock,
                          limit_ms(p->lock) + worker_replicas_ms());
    return call(&w, &t);
}

/* With turns it may name this one for another. */
bool call_is_mine(int lock, rlock_holder *who)
{
    if (me.a->turn_ms)
        return false;
    if (me.on_loop)
        return loop_holder_info(me.outer[lock], who) == RLOCK_OK &&
               who->pid == getpid() && loop_is_me(who->owner);
    return rlock_holder_info(me.outer[lock], who, sizeof *who) == RLOCK_OK &&
           who->pid == getpid() && who->tid == gettid();
}
