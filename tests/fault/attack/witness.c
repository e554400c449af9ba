#include "witness.h"

#include "locks.h"

static lock_word *word_of(const visit *v)
{
    return &v->a->locks[v->r->lock];
}

static bool is_held(const visit *v)
{
    return v->permit ? rlock_permit_is_held(v->permit) : rlock_is_held(v->lk);
}

static bool is_shared(const visit *v)
{
    return lock_is_shared(v->r->lock);
}

/* Who writes while the visitor reads; 0: nobody. */
static uint64_t writer_of(const visit *v)
{
    bool reads = lock_kind_of(v->r->lock) == LOCK_READ;
    return reads ? atomic_load(&v->a->locks[v->r->lock + 1].inside) : 0;
}

/* Has anybody come in who must not? */
static bool is_disturbed(const visit *v)
{
    if (!is_shared(v))
        return atomic_load(&word_of(v)->inside) != v->me;
    uint64_t writer = writer_of(v);
    return writer && writer != v->beside;
}

static void notice(const visit *v, note_kind kind, int64_t from_us,
                   int64_t to_us, uint64_t value)
{
    note n = {attack_now_us(), from_us, to_us, value, kind, v->r->lock};
    history_note(v->h, &n);
}

/*
 * Whoever is still inside may have been killed, or not know yet that its
 * lease is over: it judges that by itself, with its next check. A counter that
 * differs tells of two that wrote at a time; it is set right, so that each
 * lost update is noticed once.
 *
 * Who is told of the grant when its lease is over (its process was stopped, or
 * the loop was busy) does not go in, and never believed in it.
 */
void witness_enter(visit *v)
{
    lock_word *w = word_of(v);
    witness_prolong(v);
    v->r->late = !is_held(v);
    if (v->r->late)
        return;
    if (is_shared(v)) {
        v->beside = writer_of(v);
        v->r->entered_us = attack_now_us();
        return;
    }
    atomic_store(&w->inside, v->me);
    uint64_t counter = atomic_load(&w->counter);
    uint64_t updates = atomic_load(&w->updates);
    if (counter != updates) {
        atomic_store(&w->counter, updates);
        notice(v, NOTE_MISMATCH, 0, 0, updates - counter);
    }
    v->counter = updates;
    v->r->entered_us = attack_now_us();
}

void witness_prolong(visit *v)
{
    v->limit_us = v->r->lease_ms > 0 ? attack_now_us() + v->r->lease_ms * 1000
                                     : INT64_MAX;
}

/*
 * Of an extend without an answer nobody knows whether it has been executed, nor
 * whether it will be: the hold may have the shorter of the two leases.
 */
void witness_extended(visit *v, int64_t lease_ms, bool answered)
{
    hold *r = v->r;
    int64_t before_ms = r->lease_ms;
    bool shorter = lease_ms > 0 && (!before_ms || lease_ms < before_ms);
    if (answered || shorter)
        r->lease_ms = lease_ms;
    if (answered)
        witness_prolong(v);
    else if (!lease_ms || !before_ms)
        v->limit_us = INT64_MAX;
}

/* In this order: whatever came in before, "held" is said afterwards. */
bool witness_check(visit *v)
{
    bool disturbed = is_disturbed(v);
    int64_t now_us = attack_now_us();
    if (!is_held(v)) {
        if (!v->lost)
            v->r->over_us = attack_now_us();
        v->lost = true;
        return false;
    }
    v->r->held_us = now_us;
    if (disturbed)
        notice(v, NOTE_OVERLAP, v->r->asked_us, now_us, v->me);
    if (v->lost)
        notice(v, NOTE_REVIVED, 0, 0, 0);
    if (now_us > v->limit_us)
        notice(v, NOTE_OVERTIME, v->limit_us, now_us, 0);
    return true;
}

void witness_join(visit *reading, const visit *writing)
{
    reading->beside = writing->me;
}

void witness_update(visit *v)
{
    if (is_shared(v))
        return;
    lock_word *w = word_of(v);
    atomic_store(&w->counter, ++v->counter);
    atomic_fetch_add(&w->updates, 1);
    v->r->writes++;
    witness_write(v);
}

static void raise_to(_Atomic int64_t *least, int64_t to)
{
    int64_t was = atomic_load(least);
    while (was < to && !atomic_compare_exchange_weak(least, &was, to))
        ;
}

/*
 * Younger than another hold is one whose acquire began after the other's had
 * returned. If such a one has written before this write begins, its token,
 * which the resource has seen, has to be larger than ours.
 */
void witness_write(visit *v)
{
    if (is_shared(v))
        return;
    lock_word *w = word_of(v);
    uint64_t token = atomic_load(&v->r->token);
    int64_t asked_us = atomic_load(&w->asked_us);
    uint64_t seen = atomic_load(&w->token);
    do {
        if (seen > token) {
            atomic_fetch_add(&v->a->writes_refused, 1);
            return;
        }
    } while (!atomic_compare_exchange_weak(&w->token, &seen, token));
    if (asked_us > v->r->granted_us)
        notice(v, NOTE_STALE, v->r->granted_us, asked_us, seen);
    raise_to(&w->asked_us, v->r->asked_us);
}

void witness_leave(visit *v)
{
    if (is_shared(v))
        return;
    uint64_t me = v->me;
    atomic_compare_exchange_strong(&word_of(v)->inside, &me, 0);
}
