#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "nemesis.h"

enum {
    SETTLE_US = 1000000,     /* events may come so much later */
    AFTERMATH_US = 3000000,  /* of a fault: what it began may end so late */
    GRAVE_STALL_US = 300000, /* half a watchdog's period */
    MARGIN_US = 100000
};

const char *const offence_names[OFFENCES] = {
    [OVERLAP_SEEN] = "overlaps while \"held\", seen live",
    [OVERLAP] = "overlaps while \"held\", in the histories",
    [LOST_UPDATE] = "lost updates outside documented windows",
    [STALE_WRITE] = "stale writes accepted by the token check",
    [TOKEN_ORDER] = "tokens out of order",
    [REENTRY] = "re-entries with another token or count",
    [TOLD_LATE] = "holds that outlived every lease",
    [UNREPORTED] = "losses not reported",
    [REPORTED_TWICE] = "losses reported twice, or without being one",
    [WITHOUT_CAUSE] = "losses without cause",
    [OVERRUN] = "calls that overran their deadline by 50 ms",
    [NOT_ENDED] = "holds that never ended",
    [LEFT_BEHIND] = "locks left by who had let go of them",
    [MISCOUNTED] = "counts that differ",
};

/* Ending up in the verdict. */

static void find(verdict *v, offence what, const entry *e, int64_t at_us,
                 const char *fmt, ...)
{
    v->found[what]++;
    if (v->n_kept == FINDINGS_KEPT)
        return;
    finding *f = &v->kept[v->n_kept++];
    *f = (finding){.what = what, .at_us = at_us, .life = e->life};
    f->lock = e->r ? e->r->lock : -1;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
}

/* Faults and what they excuse. */

static bool concerns(const fault *f, int proc, int lock)
{
    return (f->proc < 0 || f->proc == proc) && (f->lock < 0 || f->lock == lock);
}

/* Did the server lose the lock at some time between? */
static bool data_lost(const arena *a, int lock, int64_t from_us, int64_t to_us)
{
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (nemesis_kinds[f->kind].loses_data && concerns(f, -1, lock) &&
            f->began_us <= to_us && f->ended_us >= from_us)
            return true;
    }
    return false;
}

static bool stalled(const verdict *v, int life, int64_t from_us, int64_t to_us)
{
    const history *h = v->histories[life];
    for (uint32_t i = 0; i < h->n_notes; i++) {
        const note *n = &h->notes[i];
        if (n->kind == NOTE_STALL && n->to_us - n->from_us > GRAVE_STALL_US &&
            n->from_us <= to_us && n->to_us >= from_us)
            return true;
    }
    return false;
}

/* May a fault have broken off what a process did with a lock meanwhile? */
static bool disturbed(const verdict *v, const arena *a, int life, int lock,
                      int64_t from_us, int64_t to_us)
{
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (concerns(f, a->lives[life].proc, lock) &&
            !nemesis_kinds[f->kind].harmless && f->began_us <= to_us &&
            f->ended_us + AFTERMATH_US >= from_us)
            return true;
    }
    return stalled(v, life, from_us, to_us);
}

static bool has_cause(const verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    if (r->lease_ms &&
        r->over_us >= r->asked_us + r->lease_ms * 1000 - MARGIN_US)
        return true;
    return disturbed(v, a, e->life, r->lock, r->asked_us, r->over_us);
}

/* One lock: the order of its holds. */

static int64_t earlier(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

/* A killed process says "held" no more. */
static int64_t over_us(const arena *a, const entry *e)
{
    return e->r->end == HOLD_OPEN ? a->lives[e->life].ended_us : e->r->over_us;
}

/*
 * The answer about the one that was lost may be the later one. So it may have
 * been lost at any time since the first of the two was asked for.
 */
static void judge_overlaps(verdict *v, const arena *a, int lock)
{
    const entry *older = NULL;
    for (size_t i = 0; i < v->n_holds[lock]; i++) {
        const entry *e = &v->holds[lock][i];
        if (older && e->r->granted_us < older->r->held_us) {
            if (data_lost(a, lock, earlier(older->r->asked_us, e->r->asked_us),
                          e->r->granted_us))
                v->excused[OVERLAP]++;
            else
                find(v, OVERLAP, e, e->r->granted_us,
                     "token %llu granted, %llu held for %lld us more",
                     (unsigned long long)e->r->token,
                     (unsigned long long)older->r->token,
                     (long long)(older->r->held_us - e->r->granted_us));
        }
        if (!older || e->r->held_us > older->r->held_us)
            older = e;
    }
}

static int by_asked(const void *x, const void *y)
{
    const hold *a = ((const entry *)x)->r, *b = ((const entry *)y)->r;
    return (a->asked_us > b->asked_us) - (a->asked_us < b->asked_us);
}

static int by_granted(const void *x, const void *y)
{
    const hold *a = ((const entry *)x)->r, *b = ((const entry *)y)->r;
    return (a->granted_us > b->granted_us) - (a->granted_us < b->granted_us);
}

static void judge_tokens(verdict *v, int lock)
{
    size_t n = v->n_holds[lock], done = 0;
    const entry *granted = v->holds[lock];
    entry *asked = malloc((n + 1) * sizeof *asked);
    if (!asked)
        attack_die("out of memory");
    memcpy(asked, granted, n * sizeof *asked);
    qsort(asked, n, sizeof *asked, by_asked);
    uint64_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const hold *r = asked[i].r;
        for (; granted[done].r->granted_us < r->asked_us; done++)
            if (granted[done].r->token > largest)
                largest = granted[done].r->token;
        if (r->token <= largest)
            find(v, TOKEN_ORDER, &asked[i], r->granted_us, "%llu after %llu",
                 (unsigned long long)r->token, (unsigned long long)largest);
    }
    free(asked);
}

/* One hold. */

static void judge_events(verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    const life *l = &a->lives[e->life];
    int lost = r->lost_events, abandoned = r->abandoned_events;
    int least = r->end == HOLD_LOST || r->end == HOLD_ABANDONED;
    int most = least || r->end == HOLD_OPEN;
    int told = lost + abandoned;
    v->lost_events += (uint64_t)lost;
    if (l->killed && l->ended_us < r->over_us + SETTLE_US)
        least = 0;
    if (told < least)
        find(v, UNREPORTED, e, r->over_us, "token %llu, end %d",
             (unsigned long long)r->token, r->end);
    if (told > most || (abandoned && r->end != HOLD_ABANDONED))
        find(v, REPORTED_TWICE, e, r->over_us,
             "token %llu, end %d: lost %d times, abandoned %d times",
             (unsigned long long)r->token, r->end, lost, abandoned);
}

static void judge_end(verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    if (r->end == HOLD_OPEN && !a->lives[e->life].killed)
        find(v, NOT_ENDED, e, r->granted_us, "token %llu",
             (unsigned long long)r->token);
    if (r->end == HOLD_LOST && !has_cause(v, a, e))
        find(v, WITHOUT_CAUSE, e, r->over_us, "token %llu, lease %lld ms",
             (unsigned long long)r->token, (long long)r->lease_ms);
}

/* The faults are in the order of time, so only those of its own time. */
static void judge_leases(verdict *v, const arena *a, const entry *e)
{
    const hold *r = e->r;
    int proc = a->lives[e->life].proc;
    for (int i = 0; i < a->n_faults; i++) {
        const fault *f = &a->faults[i];
        if (nemesis_kinds[f->kind].outlives_leases &&
            concerns(f, proc, r->lock) && r->granted_us < f->began_us &&
            r->held_us > f->mended_us)
            find(v, TOLD_LATE, e, r->held_us,
                 "%s, and still held %lld us later",
                 nemesis_kinds[f->kind].name,
                 (long long)(r->held_us - f->mended_us));
    }
}

static void judge_lock(verdict *v, const arena *a, int lock)
{
    judge_overlaps(v, a, lock);
    judge_tokens(v, lock);
    for (size_t i = 0; i < v->n_holds[lock]; i++) {
        const entry *e = &v->holds[lock][i];
        v->ends[e->r->end]++;
        v->writes += e->r->writes;
        judge_events(v, a, e);
        judge_end(v, a, e);
        /* Short holds outlive nothing. */
        if (e->r->held_us - e->r->granted_us > LEASE_MS * 1000)
            judge_leases(v, a, e);
    }
}

/* What the first judge noticed. */

/* The same as for the second judge; who the other one was is not known. */
static bool overlap_excused(const verdict *v, const arena *a, const note *n)
{
    int64_t from_us = n->from_us;
    for (size_t i = 0; i < v->n_holds[n->lock]; i++) {
        const entry *e = &v->holds[n->lock][i];
        if (e->r->granted_us <= n->at_us && over_us(a, e) >= n->from_us)
            from_us = earlier(from_us, e->r->asked_us);
    }
    return data_lost(a, (int)n->lock, from_us, n->at_us);
}

/*
 * Somebody who was lost, killed or without the server's protection may have
 * written since the holder before this one looked.
 */
static bool update_excused(const verdict *v, const arena *a, const note *n)
{
    int64_t before_us = 0;
    const entry *holds = v->holds[n->lock];
    for (size_t i = 0; i < v->n_holds[n->lock]; i++) {
        int64_t entered_us = holds[i].r->entered_us;
        if (entered_us < n->at_us && entered_us > before_us)
            before_us = entered_us;
    }
    for (size_t i = 0; i < v->n_holds[n->lock]; i++) {
        const entry *e = &holds[i];
        int end = e->r->end;
        if (e->r->granted_us > n->at_us || over_us(a, e) < before_us)
            continue;
        if (end == HOLD_LOST || end == HOLD_OPEN || end == HOLD_ABANDONED ||
            data_lost(a, (int)n->lock, e->r->asked_us, over_us(a, e)))
            return true;
    }
    return false;
}

/* How much of from..to the process had no processor. */
static int64_t stall_us(const history *h, int64_t from_us, int64_t to_us)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < h->n_notes; i++) {
        const note *n = &h->notes[i];
        if (n->kind != NOTE_STALL || n->to_us < from_us || n->from_us > to_us)
            continue;
        sum += (n->to_us < to_us ? n->to_us : to_us) -
               (n->from_us > from_us ? n->from_us : from_us);
    }
    return sum;
}

static void judge_late_call(verdict *v, const entry *e, const note *n)
{
    int64_t stalled_us = stall_us(v->histories[e->life], n->from_us, n->to_us);
    int64_t queued_us = (int64_t)n->value;
    int64_t late_us = n->to_us - n->from_us -
                      (stalled_us > queued_us ? stalled_us : queued_us);
    if (late_us > v->longest_overrun_us)
        v->longest_overrun_us = late_us;
    if (late_us > OVERRUN_MS * 1000)
        find(v, OVERRUN, e, n->to_us, "lock %u: by %lld us", n->lock,
             (long long)late_us);
}

static void judge_note(verdict *v, const arena *a, int life, const note *n)
{
    const entry e = {NULL, life};
    switch ((note_kind)n->kind) {
    case NOTE_OVERLAP:
        if (overlap_excused(v, a, n))
            v->excused[OVERLAP_SEEN]++;
        else
            find(v, OVERLAP_SEEN, &e, n->at_us, "lock %u", n->lock);
        break;
    case NOTE_MISMATCH:
        if (update_excused(v, a, n))
            v->excused[LOST_UPDATE]++;
        else
            find(v, LOST_UPDATE, &e, n->at_us, "lock %u: %lld", n->lock,
                 (long long)n->value);
        break;
    case NOTE_STALE:
        find(v, STALE_WRITE, &e, n->at_us, "lock %u: the resource had %llu",
             n->lock, (unsigned long long)n->value);
        break;
    case NOTE_REENTRY:
        find(v, REENTRY, &e, n->at_us, "lock %u: token %lld, count %llu",
             n->lock, (long long)n->to_us, (unsigned long long)n->value);
        break;
    case NOTE_OVERTIME:
    case NOTE_REVIVED:
        find(v, TOLD_LATE, &e, n->at_us, "lock %u: %s", n->lock,
             n->kind == NOTE_REVIVED ? "held again" : "past its lease");
        break;
    case NOTE_COUNT:
        find(v, MISCOUNTED, &e, n->at_us, "%lld acquires, in fact %lld",
             (long long)n->from_us, (long long)n->to_us);
        break;
    case NOTE_LEFT:
        if (disturbed(v, a, life, (int)n->lock, n->from_us, n->to_us))
            v->excused[LEFT_BEHIND]++;
        else
            find(v, LEFT_BEHIND, &e, n->at_us, "lock %u, for %lld us", n->lock,
                 (long long)(n->to_us - n->from_us));
        break;
    case NOTE_SLOW_END:
    case NOTE_LATE:
        judge_late_call(v, &e, n);
        break;
    case NOTE_STALL:
    case NOTE_EARLY_END:
    case NOTE_KINDS:
        break;
    }
}

/* From the files to the lists. */

static void load_histories(verdict *v, const char *dir, const arena *a)
{
    v->n_histories = a->n_lives;
    v->histories = calloc((size_t)a->n_lives + 1, sizeof *v->histories);
    if (!v->histories)
        attack_die("out of memory");
    for (int i = 0; i < a->n_lives; i++)
        if (history_exists(dir, i))
            v->histories[i] = history_map(dir, i, false);
}

/* token 0: it was killed while it wrote the record. */
static void list_holds(verdict *v)
{
    size_t room[LOCKS] = {0};
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < v->n_histories; i++) {
            history *h = v->histories[i];
            for (uint32_t k = 0; h && k < h->n_holds; k++) {
                hold *r = &h->holds[k];
                if (!r->token)
                    continue;
                if (pass == 0)
                    room[r->lock]++;
                else
                    v->holds[r->lock][v->n_holds[r->lock]++] =
                        (entry){.r = r, .life = i};
            }
        }
        for (int lock = 0; pass == 0 && lock < LOCKS; lock++)
            if (!(v->holds[lock] = malloc((room[lock] + 1) * sizeof(entry))))
                attack_die("out of memory");
    }
    for (int lock = 0; lock < LOCKS; lock++)
        qsort(v->holds[lock], v->n_holds[lock], sizeof(entry), by_granted);
}

/* Events that were faster than the record of their hold. */
static void add_early_ends(verdict *v, int life)
{
    history *h = v->histories[life];
    for (uint32_t i = 0; i < h->n_notes; i++) {
        const note *n = &h->notes[i];
        hold *found = NULL;
        if (n->kind != NOTE_EARLY_END)
            continue;
        for (uint32_t k = 0; k < h->n_holds && !found; k++)
            if (h->holds[k].token == n->value && h->holds[k].lock == n->lock)
                found = &h->holds[k];
        if (!found)
            find(v, REPORTED_TWICE, &(entry){NULL, life}, n->at_us,
                 "lock %u: a hold that never was, token %llu", n->lock,
                 (unsigned long long)n->value);
        else if (n->from_us)
            found->lost_events++;
        else
            found->abandoned_events++;
    }
}

verdict *judge(const char *dir, arena *a)
{
    verdict *v = calloc(1, sizeof *v);
    if (!v)
        attack_die("out of memory");
    load_histories(v, dir, a);
    for (int i = 0; i < v->n_histories; i++)
        if (v->histories[i])
            add_early_ends(v, i);
    list_holds(v);
    for (int lock = 0; lock < LOCKS; lock++)
        judge_lock(v, a, lock);
    for (int i = 0; i < v->n_histories; i++) {
        const history *h = v->histories[i];
        for (uint32_t k = 0; h && k < h->n_notes; k++)
            judge_note(v, a, i, &h->notes[k]);
    }
    return v;
}

bool verdict_is_clean(const verdict *v)
{
    for (int i = 0; i < OFFENCES; i++)
        if (v->found[i])
            return false;
    return !v->left_over && !v->died;
}

void verdict_free(verdict *v)
{
    for (int i = 0; i < v->n_histories; i++)
        if (v->histories[i])
            history_unmap(v->histories[i]);
    for (int lock = 0; lock < LOCKS; lock++)
        free(v->holds[lock]);
    free(v->histories);
    free(v);
}
