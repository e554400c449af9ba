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

static rlock_status give_back(const wish *w)
{
    rlock_permit *p = *w->permit;
    *w->permit = NULL;
    return rlock_permit_release(p);
}

static rlock_status block(const wish *w)
{
    switch (w->verb) {
    case CALL_ACQUIRE:
        return rlock_acquire(w->lk, w->wait_ms, w->lease_ms);
    case CALL_UNLOCK:
        return rlock_unlock(w->lk);
    case CALL_EXTEND:
        return w->permit ? rlock_permit_extend(*w->permit, w->lease_ms)
                         : rlock_extend(w->lk, w->lease_ms);
    case CALL_TAKE:
        return rlock_semaphore_acquire(w->semaphore, w->permits, w->wait_ms,
                                       w->lease_ms, w->permit);
    default:
        return give_back(w);
    }
}

/* Of permits no event tells whose they are. */
static bool is_counted_by_events(int lock)
{
    lock_kind kind = lock_kind_of(lock);
    return (me.on_loop && kind != LOCK_PERMIT) || kind == LOCK_MULTI;
}

static rlock_status call(const wish *w, const timer *t)
{
    int64_t over_us;
    rlock_status s;
    count_by_events(is_counted_by_events(t->lock));
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
    if (s == RLOCK_OK && !is_counted_by_events(lock))
        atomic_fetch_add(&counts[lock_home(lock)], 1);
}

static rlock_status ask_for(const wish *w, int lock)
{
    timer t = timer_start(NOTE_LATE_ACQUIRE, lock,
                          w->wait_ms + COMMAND_MS + worker_replicas_ms());
    rlock_status s = call(w, &t);
    atomic_fetch_add(&me.a->acquired[lock_kind_of(lock)][s], 1);
    count(me.acquires, lock, s);
    return s;
}

rlock_status call_acquire(rlock *lk, const plan *p, bool nested)
{
    wish w = {.verb = CALL_ACQUIRE, .lk = lk, .lease_ms = p->lease_ms};
    w.wait_ms = nested ? 0 : p->wait_ms;
    w.leave_us = nested ? 0 : p->leave_us;
    return ask_for(&w, p->lock);
}

rlock_status call_take(const plan *p, rlock_permit **permit)
{
    wish w = {
        .verb = CALL_TAKE, .wait_ms = p->wait_ms, .lease_ms = p->lease_ms};
    w.semaphore = me.semaphores[p->lock];
    w.permits = p->permits;
    w.permit = permit;
    *permit = NULL;
    return ask_for(&w, p->lock);
}

static rlock_status try_to_let_go(const wish *w, int lock)
{
    timer t = timer_start(NOTE_LATE_UNLOCK, lock, limit_ms(lock));
    return call(w, &t);
}

/* What could not be started has left the hold as it was. */
static rlock_status let_go(const wish *w, int lock)
{
    rlock_status s;
    while ((s = try_to_let_go(w, lock)) == RLOCK_ENOMEM &&
           (!w->permit || *w->permit))
        pause_us(RETRY_US);
    atomic_fetch_add(&me.a->released[lock_kind_of(lock)][s], 1);
    count(me.releases, lock, s);
    return s;
}

rlock_status call_unlock(rlock *lk, int lock)
{
    wish w = {.verb = CALL_UNLOCK, .lk = lk};
    return let_go(&w, lock);
}

rlock_status call_give_back(rlock_permit *permit, int lock)
{
    wish w = {.verb = CALL_GIVE_BACK, .permit = &permit};
    return let_go(&w, lock);
}

rlock_status call_extend(rlock *lk, rlock_permit *permit, const plan *p)
{
    wish w = {.verb = CALL_EXTEND, .lk = lk, .lease_ms = p->extend_ms};
    w.permit = permit ? &permit : NULL;
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
