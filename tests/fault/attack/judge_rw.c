/*
 * What is asked of both sides of a read-write lock together. Who has one side and
 * takes the other one as well is in nobody's way by that.
 */
#include <stdlib.h>
#include <string.h>

#include "excuse.h"
#include "judging.h"
#include "locks.h"

static bool is_same_owner(const entry *x, const entry *y)
{
    return x->life == y->life && x->r->thread == y->r->thread;
}

static bool writes(const entry *e)
{
    return lock_kind_of(e->lock) == LOCK_WRITE;
}

/* Between two writers all readers have one token. But who has written while he
   read has that one, which is written down with his writing. */
static void judge_readers(verdict *v, const arena *a, const entry *older,
                          const entry *e)
{
    if (older->r->token == e->r->token || older->r->joined || e->r->joined ||
        !older->r->token || !e->r->token)
        return;
    if (tokens_may_restart(a, e->lock, older->r->asked_us, e->r->granted_us) ||
        data_loss(a, e->lock, older->r->asked_us, e->r->granted_us))
        v->excused[READERS_APART]++;
    else
        find(v, READERS_APART, e, e->r->granted_us, "%llu beside %llu",
             (unsigned long long)e->r->token,
             (unsigned long long)older->r->token);
}

/* Two that are believed in at a time. Writers beside each other are judged as
   of any lock. */
static void judge_two(verdict *v, const arena *a, const entry *older,
                      const entry *e)
{
    if (is_same_owner(older, e))
        return;
    if (writes(older) != writes(e))
        judge_pair(v, a, BESIDE_WRITER, older, e);
    else if (!writes(e))
        judge_readers(v, a, older, e);
}

/* Each hold with all that are still believed in when it is granted. */
static void judge_beside(verdict *v, const arena *a, const entry *holds,
                         size_t n)
{
    const entry **believed = room_for(n, sizeof *believed);
    size_t believers = 0;
    for (size_t i = 0; i < n; i++) {
        const entry *e = &holds[i];
        size_t kept = 0;
        for (size_t k = 0; k < believers; k++)
            if (e->r->granted_us < believed[k]->r->held_us)
                believed[kept++] = believed[k];
        believers = kept;
        if (e->r->late)
            continue;
        for (size_t k = 0; k < believers; k++)
            judge_two(v, a, believed[k], e);
        believed[believers++] = e;
    }
    free(believed);
}

/* Of both sides, by granted_us. */
static entry *both_sides(const verdict *v, int read, size_t *n)
{
    size_t reads = v->n_holds[read];
    *n = reads + v->n_holds[read + 1];
    entry *all = room_for(*n, sizeof *all);
    memcpy(all, v->holds[read], reads * sizeof *all);
    memcpy(all + reads, v->holds[read + 1], (*n - reads) * sizeof *all);
    qsort(all, *n, sizeof *all, by_granted);
    return all;
}

void judge_rw(verdict *v, const arena *a, int read)
{
    size_t n;
    entry *all = both_sides(v, read, &n);
    judge_beside(v, a, all, n);
    judge_tokens(v, a, all, n);
    judge_line(v, a, all, n);
    free(all);
}
