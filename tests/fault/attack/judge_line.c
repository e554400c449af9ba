/*
 * Who was served before whom. Of a lock that is granted in the order of the first
 * tries, nobody is granted it who asked for it only when somebody else was told
 * already that he has to wait. Only who waits undisturbed is asked about: a client
 * that is cut off, stopped, or emptied with its server, loses its place.
 */
#include "excuse.h"
#include "judging.h"
#include "locks.h"

enum {
    AFTERMATH_US = 1000000, /* of a fault, until a client hears again */
    STALLED_US = 100000,
    /* That a shorter lease is granted for; it ends before a slow machine tells. */
    LEAST_LEASE_MS = 1000,
    /* Who is granted something by one script need not be told in its order. */
    TOLD_APART_US = 200000 * SLOWER
};

static bool is_disturbed(const verdict *v, const arena *a, const entry *e)
{
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (f->began_us <= e->r->granted_us &&
            f->ended_us + AFTERMATH_US >= e->r->asked_us &&
            concerns(f, a->lives[e->life].proc, e->lock))
            return true;
    }
    return stall_us(v, e->life, e->r->asked_us, e->r->granted_us) > STALLED_US;
}

/* May both have it at a time? */
static bool are_compatible(const entry *x, const entry *y)
{
    return lock_kind_of(x->lock) == LOCK_PERMIT ||
           (lock_is_shared(x->lock) && lock_is_shared(y->lock));
}

/* Has x, which was granted before, passed e, which stood? Who has the other side
   already passes; and readers come in together. */
static bool has_passed(const entry *x, const entry *e)
{
    if (x->r->asked_us <= e->r->stood_us || x->r->joined)
        return false;
    if (lock_kind_of(e->lock) == LOCK_READ && are_compatible(x, e))
        return false;
    return !are_compatible(x, e) ||
           x->r->granted_us + TOLD_APART_US < e->r->granted_us;
}

static bool is_judged(const entry *e)
{
    const hold *r = e->r;
    return r->stood_us && !r->joined &&
           (!r->lease_ms || r->lease_ms >= LEAST_LEASE_MS);
}

/* Those granted between its standing and its grant are right before it. */
static const entry *who_passed(const entry *holds, size_t i)
{
    const entry *e = &holds[i];
    while (i-- > 0 && holds[i].r->granted_us > e->r->stood_us)
        if (has_passed(&holds[i], e))
            return &holds[i];
    return NULL;
}

void judge_line(verdict *v, const arena *a, const entry *holds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const entry *e = &holds[i];
        if (!is_judged(e))
            continue;
        const entry *x = who_passed(holds, i);
        if (is_disturbed(v, a, e)) {
            v->excused[PASSED] += x != NULL;
            continue;
        }
        v->waits_judged++;
        if (x)
            find(v, PASSED, e, x->r->granted_us,
                 "stood for %lld us when another one asked, granted %lld us "
                 "after it",
                 (long long)(x->r->asked_us - e->r->stood_us),
                 (long long)(e->r->granted_us - x->r->granted_us));
    }
}
