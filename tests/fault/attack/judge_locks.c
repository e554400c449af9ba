#include <stdlib.h>
#include <string.h>

#include "excuse.h"
#include "judging.h"
#include "locks.h"
#include "nemesis.h"

enum {
    SETTLE_US = 1000000, /* events may come so much later */
    NEWS_US = 200000,    /* rather than that, if the process runs */
    BELIEVERS = 16,      /* that say "held" of one lock at a time */
    /* A renewal finds out that the server has lost the lock. */
    FOUND_OUT_US = (LEASE_MS / 3 + COMMAND_MS) * 1000 + 300000 * SLOWER
};

/* --- one lock: the order of its holds --------------------------------------
 */

int64_t earlier(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

int64_t over_us(const arena *a, const entry *e)
{
    return e->r->end == HOLD_OPEN ? a->lives[e->life].ended_us : e->r->over_us;
}

/*
 * What the server has lost since the older hold was granted, that one's next
 * renewal finds out, if nothing keeps it from asking. An explicit lease is not
 * renewed, and believed in to its end.
 */
static void judge_belief(verdict *v, const arena *a, const entry *older,
                         const fault *loss)
{
    int64_t since_us = loss->ended_us;
    if (older->r->lease_ms || loss->began_us < older->r->granted_us ||
        older->r->held_us - since_us -
                harm_us(v, a, older, since_us, older->r->held_us) <
            FOUND_OUT_US)
        return;
    find(v, TOLD_LATE, older, older->r->held_us,
         "%s, and still held %lld us later", nemesis_kinds[loss->kind].name,
         (long long)(older->r->held_us - since_us));
}

/* The older one; or what was passed on when it had been lost already. */
static const entry *lost_of(const arena *a, const entry *older, const entry *e)
{
    bool passed = a->turn_ms && lock_kind_of(e->lock) == LOCK_SINGLE &&
                  e->r->token < older->r->token;
    return passed ? e : older;
}

/*
 * The answer about the one that was lost may be the later one. So it may have
 * been lost at any time since the first of the two was asked for.
 */
void judge_pair(verdict *v, const arena *a, offence what, const entry *older,
                const entry *e)
{
    const fault *loss =
        data_loss(a, e->lock, earlier(older->r->asked_us, e->r->asked_us),
                  e->r->granted_us);
    if (loss) {
        v->excused[what]++;
        v->overlaps_by[loss->kind]++;
        judge_belief(v, a, lost_of(a, older, e), loss);
        return;
    }
    find(v, what, e, e->r->granted_us,
         "token %llu granted, %llu held for %lld us more",
         (unsigned long long)e->r->token, (unsigned long long)older->r->token,
         (long long)(older->r->held_us - e->r->granted_us));
}

/* Each hold with all that are still believed in when it is granted. */
static void judge_overlaps(verdict *v, const arena *a, int lock)
{
    const entry *believed[BELIEVERS];
    int n = 0;
    for (size_t i = 0; i < v->n_holds[lock]; i++) {
        const entry *e = &v->holds[lock][i];
        int kept = 0;
        for (int k = 0; k < n; k++)
            if (e->r->granted_us < believed[k]->r->held_us)
                believed[kept++] = believed[k];
        n = kept;
        if (e->r->late)
            continue;
        for (int k = 0; k < n; k++)
            judge_pair(v, a, OVERLAP, believed[k], e);
        if (n < BELIEVERS)
            believed[n++] = e;
    }
}

static int by_asked(const void *x, const void *y)
{
    const hold *a = ((const entry *)x)->r, *b = ((const entry *)y)->r;
    return (a->asked_us > b->asked_us) - (a->asked_us < b->asked_us);
}

int by_granted(const void *x, const void *y)
{
    const hold *a = ((const entry *)x)->r, *b = ((const entry *)y)->r;
    return (a->granted_us > b->granted_us) - (a->granted_us < b->granted_us);
}

static void judge_token(verdict *v, const arena *a, const entry *e,
                        const hold *largest)
{
    const hold *r = e->r;
    bool may_be_same = lock_kind_of(e->lock) == LOCK_READ;
    if (r->token > largest->token ||
        (may_be_same && r->token == largest->token))
        return;
    if (tokens_may_restart(a, e->lock, largest->granted_us, r->granted_us))
        v->excused[TOKEN_ORDER]++;
    else
        find(v, TOKEN_ORDER, e, r->granted_us, "%llu after %llu",
             (unsigned long long)r->token, (unsigned long long)largest->token);
}

void judge_tokens(verdict *v, const arena *a, const entry *granted, size_t n)
{
    size_t done = 0;
    entry *asked = room_for(n, sizeof *asked);
    memcpy(asked, granted, n * sizeof *asked);
    qsort(asked, n, sizeof *asked, by_asked);
    const hold *largest = NULL;
    for (size_t i = 0; i < n; i++) {
        const hold *r = asked[i].r;
        for (; granted[done].r->granted_us < r->asked_us; done++)
            if (!largest || granted[done].r->token > largest->token)
                largest = granted[done].r;
        if (largest)
            judge_token(v, a, &asked[i], largest);
    }
    free(asked);
}

/* --- one hold --------------------------------------------------------------
 */

static bool is_told(const hold *r)
{
    return r->end == HOLD_LOST || r->end == HOLD_ABANDONED;
}

int least_told(const arena *a, const entry *e)
{
    const life *l = &a->lives[e->life];
    bool was_killed = l->killed && l->ended_us < e->r->over_us + SETTLE_US;
    return is_told(e->r) && !e->r->mixed && !was_killed;
}

int most_told(const entry *e)
{
    const hold *r = e->r;
    return is_told(r) || r->end == HOLD_OPEN || r->end == HOLD_CLOSED ||
           (r->end == HOLD_UNKNOWN && r->shared);
}

static void judge_events(verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    int lost = r->lost_events, abandoned = r->abandoned_events;
    int told = lost + abandoned;
    if (told < least_told(a, e))
        find(v, UNREPORTED, e, r->over_us, "token %llu, end %d",
             (unsigned long long)r->token, r->end);
    if (told > most_told(e) || (abandoned && r->end != HOLD_ABANDONED))
        find(v, REPORTED_TWICE, e, r->over_us,
             "token %llu, end %d: lost %d times, abandoned %d times",
             (unsigned long long)r->token, r->end, lost, abandoned);
}

/*
 * The holder has been told, by is_held or an unlock; the event comes before, or
 * right afterwards. Whoever has had the event is told nothing else.
 */
static void judge_news(verdict *v, const entry *e)
{
    const hold *r = e->r;
    int64_t told_us = r->granted_us + r->told_ms * INT64_C(1000);
    if (!r->told_ms || !r->lost_events)
        return;
    if (r->held_us > told_us)
        find(v, TOLD_LATE, e, r->held_us,
             "reported as lost, and still held %lld us later",
             (long long)(r->held_us - told_us));
    /* The first loss of a mixed one may have been another's to report. */
    if (r->end != HOLD_LOST || r->mixed || told_us < r->over_us + NEWS_US)
        return;
    int64_t late_us = told_us - r->over_us;
    if (late_us - stall_us(v, e->life, r->over_us, told_us) > NEWS_US)
        find(v, REPORTED_LATE, e, told_us, "token %llu, %lld us",
             (unsigned long long)r->token, (long long)late_us);
}

static void judge_end(verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    if (r->end == HOLD_OPEN && !a->lives[e->life].killed)
        find(v, NOT_ENDED, e, r->granted_us, "token %llu",
             (unsigned long long)r->token);
    if (r->end != HOLD_LOST)
        return;
    if (loss_has_cause(v, a, e))
        v->excused[WITHOUT_CAUSE]++;
    else
        find(v, WITHOUT_CAUSE, e, r->over_us, "token %llu, lease %lld ms",
             (unsigned long long)r->token, (long long)r->lease_ms);
}

static void judge_leases(verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    int proc = a->lives[e->life].proc;
    for (int i = 0; i < v->n_outliving; i++) {
        const fault *f = v->outliving[i];
        if (r->granted_us < f->began_us && r->held_us > f->mended_us &&
            concerns(f, proc, e->lock) && lock_needs(e->lock, f->servers))
            find(v, TOLD_LATE, e, r->held_us,
                 "%s, and still held %lld us later",
                 nemesis_kinds[f->kind].name,
                 (long long)(r->held_us - f->mended_us));
    }
}

/* A member of a Multi lock has no end of its own. */
void judge_lock(verdict *v, const arena *a, int lock)
{
    qsort(v->holds[lock], v->n_holds[lock], sizeof(entry), by_granted);
    if (lock_is_shared(lock)) {
        judge_told(v, a, lock);
    } else {
        judge_overlaps(v, a, lock);
        judge_tokens(v, a, v->holds[lock], v->n_holds[lock]);
    }
    for (size_t i = 0; i < v->n_holds[lock]; i++) {
        const entry *e = &v->holds[lock][i];
        v->writes += e->r->writes;
        judge_leases(v, a, e);
        if (e->r->whole)
            continue;
        v->ends[lock_kind_of(lock)][e->r->end]++;
        if (!lock_is_shared(lock))
            judge_events(v, a, e);
        judge_news(v, e);
        judge_end(v, a, e);
    }
}
