#include "judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "excuse.h"
#include "judging.h"
#include "locks.h"
#include "nemesis.h"

const char *const offence_names[OFFENCES] = {
    [OVERLAP_SEEN] = "overlaps while \"held\", seen live",
    [OVERLAP] = "overlaps while \"held\", in the histories",
    [LOST_UPDATE] = "lost updates outside documented windows",
    [STALE_WRITE] = "stale writes accepted by the token check",
    [TOKEN_ORDER] = "tokens out of order",
    [REENTRY] = "re-entries with another token or count",
    [LARGEST] = "Multi locks with a token that is not the largest",
    [TOLD_LATE] = "holds that outlived every lease",
    [REPORTED_LATE] = "losses reported late",
    [UNREPORTED] = "losses not reported",
    [REPORTED_TWICE] = "losses reported twice, or without being one",
    [WITHOUT_CAUSE] = "losses without cause",
    [OVERRUN] = "calls that overran their deadline",
    [NOT_ENDED] = "holds that never ended",
    [LEFT_BEHIND] = "locks left by who had let go of them",
    [MISCOUNTED] = "counts that differ",
    [UNHEARD] = "grants that no event told of",
    [TOLD_TWICE] = "starts called back twice, or too early",
    [UNTOLD] = "starts never called back",
    [REFUSED] = "starts refused without cause",
    [REST_LATE] = "losses told late to clients at rest",
    [BESIDE_WRITER] = "readers beside a writer",
    [READERS_APART] = "readers at a time with different tokens",
    [PERMITS_OVER] = "more permits held than there are",
    [PASSED] = "grants to who asked after somebody who stood in line",
};

void *room_for(size_t n, size_t size)
{
    void *room = calloc(n + 1, size);
    if (!room)
        attack_die("out of memory");
    return room;
}

/* Ending up in the verdict. */

void find(verdict *v, offence what, const entry *e, int64_t at_us,
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
}

static bool has_name_of(int lock, const note *end)
{
    return lock == (int)end->lock || lock_twin(lock) == (int)end->lock;
}

/* NULL: the process has not written such a hold down. */
static hold *find_ended(history *h, const note *end)
{
    for (uint32_t k = 0; k < h->n_holds; k++) {
        hold *r = &h->holds[k];
        if (r->token == end->value && has_name_of(r->lock, end))
            return r->whole ? &h->holds[r->whole - 1] : r;
    }
    return NULL;
}

/* While the clients of a loop are being closed. */
#define CLOSING_US 1000000

/* Was it a member's, when the whole could not be had? */
static bool was_taken(const history *h, const note *end)
{
    for (uint32_t i = 0; i < h->n_notes; i++) {
        const note *n = &h->notes[i];
        bool same =
            n->value == end->value ||
            (n->value == 0 && llabs(n->at_us - end->at_us) < CLOSING_US);
        if (n->kind == NOTE_TAKEN && same && has_name_of((int)n->lock, end))
            return true;
    }
    return false;
}

/*
 * What a loop's owner was granted for a while is known by an event, for which
 * there may have been no memory.
 */
static bool may_be_unknown(const arena *a, const entry *e, const note *end)
{
    return may_lack_events(a, e, end->at_us - 2 * LEASE_MS * 1000, end->at_us);
}

static void add_early_end(verdict *v, const arena *a, int life, const note *end)
{
    history *h = v->histories[life];
    const entry e = {NULL, life, (int)end->lock};
    hold *r = find_ended(h, end);
    if (r)
        atomic_fetch_add(end->from_us ? &r->lost_events : &r->abandoned_events,
                         1);
    else if (!was_taken(h, end) && !closed_meanwhile(v, &e, end->at_us) &&
             !may_be_unknown(a, &e, end))
        find(v, REPORTED_TWICE, &e, end->at_us,
             "a hold that never was, token %llu",
             (unsigned long long)end->value);
}

/* Events that were faster than the record of their hold. */
static void add_early_ends(verdict *v, const arena *a, int life)
{
    const history *h = v->histories[life];
    for (uint32_t i = 0; i < h->n_notes; i++)
        if (h->notes[i].kind == NOTE_EARLY_END)
            add_early_end(v, a, life, &h->notes[i]);
}

/* What concerns more than the holds of one owner after the other. */
static void judge_kinds(verdict *v, const arena *a)
{
    for (int lock = FIRST_FAIR; lock < FIRST_RW; lock++)
        judge_line(v, a, v->holds[lock], v->n_holds[lock]);
    for (int lock = FIRST_RW; lock < FIRST_SEMAPHORE; lock += 2)
        judge_rw(v, a, lock);
    for (int lock = FIRST_SEMAPHORE; lock < LOCKS; lock++)
        judge_permits(v, a, lock);
}

verdict *judge(const char *dir, arena *a)
{
    verdict *v = room_for(1, sizeof *v);
    load_histories(v, dir, a);
    list_outliving(v, a);
    for (int i = 0; i < v->n_histories; i++)
        if (v->histories[i])
            add_early_ends(v, a, i);
    list_holds(v);
    for (int lock = 0; lock < LOCKS; lock++)
        judge_lock(v, a, lock);
    judge_kinds(v, a);
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
    return !v->left_over && !v->leaked && !v->died;
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
