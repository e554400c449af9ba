#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "excuse.h"
#include "nemesis.h"

enum {
    AFTERMATH_US = 3000000, /* tries come at intervals */
    HARM_US = 100000,       /* enough for one to fail */
    SETTLE_US = 1000000,    /* events may come so much later */
    NEWS_US = 200000,       /* rather than that, if the process runs */
    BELIEVERS = 16,         /* that say "held" of one lock at a time */
    /* A renewal finds out that the server has lost the lock. */
    FOUND_OUT_US = (LEASE_MS / 3 + COMMAND_MS) * 1000 + 300000
};

const char *const offence_names[OFFENCES] = {
    [OVERLAP_SEEN] = "overlaps while \"held\", seen live",
    [OVERLAP] = "overlaps while \"held\", in the histories",
    [LOST_UPDATE] = "lost updates outside documented windows",
    [STALE_WRITE] = "stale writes accepted by the token check",
    [TOKEN_ORDER] = "tokens out of order",
    [REENTRY] = "re-entries with another token or count",
    [TOLD_LATE] = "holds that outlived every lease",
    [REPORTED_LATE] = "losses reported late",
    [UNREPORTED] = "losses not reported",
    [REPORTED_TWICE] = "losses reported twice, or without being one",
    [WITHOUT_CAUSE] = "losses without cause",
    [OVERRUN] = "calls that overran their deadline by 50 ms",
    [NOT_ENDED] = "holds that never ended",
    [LEFT_BEHIND] = "locks left by who had let go of them",
    [MISCOUNTED] = "counts that differ",
};

/* All zero; ends the process if there is none. */
static void *room_for(size_t n, size_t size)
{
    void *room = calloc(n + 1, size);
    if (!room)
        attack_die("out of memory");
    return room;
}

/* Ending up in the verdict. */

static void find(verdict *v, offence what, const entry *e, int64_t at_us,
                 const char *fmt, ...)
{
    v->found[what]++;
    if (v->n_kept == FINDINGS_KEPT)
        return;
    finding *f = &v->kept[v->n_kept++];
    *f = (finding){
        .what = what, .at_us = at_us, .life = e->life, .lock = e->lock};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(f->text, sizeof f->text, fmt, ap);
    va_end(ap);
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

/*
 * The answer about the one that was lost may be the later one. So it may have
 * been lost at any time since the first of the two was asked for.
 */
static void judge_pair(verdict *v, const arena *a, const entry *older,
                       const entry *e)
{
    const fault *loss =
        data_loss(a, e->lock, earlier(older->r->asked_us, e->r->asked_us),
                  e->r->granted_us);
    if (loss) {
        v->excused[OVERLAP]++;
        judge_belief(v, a, older, loss);
        return;
    }
    find(v, OVERLAP, e, e->r->granted_us,
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
        for (int k = 0; k < n; k++)
            judge_pair(v, a, believed[k], e);
        if (n < BELIEVERS)
            believed[n++] = e;
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
    entry *asked = room_for(n, sizeof *asked);
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

/* The holder has been told, by is_held or an unlock; the event comes before,
   or right afterwards. */
static void judge_news(verdict *v, const entry *e)
{
    const hold *r = e->r;
    int64_t told_us = r->granted_us + r->told_ms * INT64_C(1000);
    if (r->end != HOLD_LOST || !r->told_ms || told_us < r->over_us + NEWS_US)
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
            concerns(f, proc, e->lock))
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
        judge_news(v, e);
        judge_end(v, a, e);
        judge_leases(v, a, e);
    }
}

/* What the first judge noticed. */

/* The same as for the second judge; who the other one was is not known. */
static bool overlap_excused(const verdict *v, const arena *a, const entry *e,
                            const note *n)
{
    int64_t from_us = n->from_us;
    for (size_t i = 0; i < v->n_holds[e->lock]; i++) {
        const entry *x = &v->holds[e->lock][i];
        if (x->r->granted_us <= n->at_us && over_us(a, x) >= n->from_us)
            from_us = earlier(from_us, x->r->asked_us);
    }
    return data_loss(a, e->lock, from_us, n->at_us);
}

/* May it have written while the lock was no longer its own? */
static bool may_write_late(const arena *a, const entry *e)
{
    if (e->r->end == HOLD_OPEN) /* or half of it */
        return true;
    return e->r->writes > 0 &&
           (e->r->end == HOLD_LOST ||
            data_loss(a, e->lock, e->r->asked_us, over_us(a, e)));
}

/*
 * Somebody who was lost, killed or without the server's protection may have
 * written since the holder before this one looked.
 */
static bool update_excused(const verdict *v, const arena *a, const entry *e,
                           const note *n)
{
    int64_t before_us = 0;
    const entry *holds = v->holds[e->lock];
    for (size_t i = 0; i < v->n_holds[e->lock]; i++) {
        int64_t entered_us = holds[i].r->entered_us;
        if (entered_us < n->at_us && entered_us > before_us)
            before_us = entered_us;
    }
    for (size_t i = 0; i < v->n_holds[e->lock]; i++)
        if (holds[i].r->granted_us <= n->at_us &&
            over_us(a, &holds[i]) >= before_us && may_write_late(a, &holds[i]))
            return true;
    return false;
}

/* Something kept the library from undoing it, or had just done so. */
static bool leaving_excused(const verdict *v, const arena *a, const entry *e,
                            const note *n)
{
    return harm_us(v, a, e, n->from_us - AFTERMATH_US, n->to_us) > HARM_US;
}

static void judge_late_call(verdict *v, const entry *e, const note *n)
{
    int64_t stalled_us = stall_us(v, e->life, n->from_us, n->to_us);
    int64_t queued_us = (int64_t)n->value;
    int64_t late_us = n->to_us - n->from_us -
                      (stalled_us > queued_us ? stalled_us : queued_us);
    if (late_us > v->longest_overrun_us)
        v->longest_overrun_us = late_us;
    if (late_us > OVERRUN_MS * 1000)
        find(v, OVERRUN, e, n->to_us, "by %lld us", (long long)late_us);
    else if (n->to_us - n->from_us > OVERRUN_MS * 1000)
        v->excused[OVERRUN]++;
}

/* What the other notes mean, if nothing excuses them. */
static const struct meaning {
    bool guilty;
    offence what;
    bool (*excused)(const verdict *v, const arena *a, const entry *e,
                    const note *n);
} meanings[NOTE_KINDS] = {
    [NOTE_OVERLAP] = {true, OVERLAP_SEEN, overlap_excused},
    [NOTE_MISMATCH] = {true, LOST_UPDATE, update_excused},
    [NOTE_STALE] = {true, STALE_WRITE, NULL},
    [NOTE_REENTRY] = {true, REENTRY, NULL},
    [NOTE_OVERTIME] = {true, TOLD_LATE, NULL},
    [NOTE_REVIVED] = {true, TOLD_LATE, NULL},
    [NOTE_COUNT] = {true, MISCOUNTED, NULL},
    [NOTE_LEFT] = {true, LEFT_BEHIND, leaving_excused},
};

static void judge_note(verdict *v, const arena *a, int life, const note *n)
{
    const entry e = {NULL, life, (int)n->lock};
    const struct meaning *m = &meanings[n->kind];
    if (n->kind == NOTE_STALL && n->to_us - n->from_us > v->longest_stall_us)
        v->longest_stall_us = n->to_us - n->from_us;
    if (n->kind == NOTE_LATE || n->kind == NOTE_SLOW_END)
        judge_late_call(v, &e, n);
    else if (m->guilty && m->excused && m->excused(v, a, &e, n))
        v->excused[m->what]++;
    else if (m->guilty)
        find(v, m->what, &e, n->at_us, "from %lld to %lld, %llu",
             (long long)n->from_us, (long long)n->to_us,
             (unsigned long long)n->value);
}

/* From the files to the lists. */

static void load_histories(verdict *v, const char *dir, const arena *a)
{
    v->n_histories = a->n_lives;
    v->histories = room_for((size_t)a->n_lives, sizeof *v->histories);
    for (int i = 0; i < a->n_lives; i++)
        if (history_exists(dir, i))
            v->histories[i] = history_map(dir, i, false);
    if (history_exists(dir, MACHINE))
        v->machine = history_map(dir, MACHINE, false);
}

static void list_outliving(verdict *v, const arena *a)
{
    for (int i = 0; i < a->n_faults; i++)
        if (nemesis_kinds[a->faults[i].kind].outlives_leases)
            v->outliving[v->n_outliving++] = &a->faults[i];
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
                        (entry){r, i, r->lock};
            }
        }
        for (int lock = 0; pass == 0 && lock < LOCKS; lock++)
            v->holds[lock] = room_for(room[lock], sizeof(entry));
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
            find(v, REPORTED_TWICE, &(entry){NULL, life, (int)n->lock},
                 n->at_us, "a hold that never was, token %llu",
                 (unsigned long long)n->value);
        else if (n->from_us)
            found->lost_events++;
        else
            found->abandoned_events++;
    }
}

verdict *judge(const char *dir, arena *a)
{
    verdict *v = room_for(1, sizeof *v);
    load_histories(v, dir, a);
    list_outliving(v, a);
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
    if (v->machine)
        history_unmap(v->machine);
    for (int lock = 0; lock < LOCKS; lock++)
        free(v->holds[lock]);
    free(v->histories);
    free(v);
}
