/* What is asked of a semaphore: that never more permits are held than there are. */
#include <stdlib.h>

#include "excuse.h"
#include "judging.h"
#include "locks.h"

/* How many are held by those that are still believed in at that time; forgets the
   others. */
static int count_held(const entry **believed, size_t *n, int64_t at_us)
{
    size_t kept = 0;
    int held = 0;
    for (size_t i = 0; i < *n; i++) {
        if (at_us >= believed[i]->r->held_us)
            continue;
        held += believed[i]->r->permits;
        believed[kept++] = believed[i];
    }
    *n = kept;
    return held;
}

/* Those of before a loss of data are still believed in for a while. */
static void judge_held(verdict *v, const arena *a, const entry *e, int held,
                       int64_t since_us)
{
    const fault *loss = data_loss(a, e->lock, since_us, e->r->granted_us);
    if (loss) {
        v->excused[PERMITS_OVER]++;
        v->overlaps_by[loss->kind]++;
        return;
    }
    find(v, PERMITS_OVER, e, e->r->granted_us, "%d held, with %d just granted",
         held, e->r->permits);
}

void judge_permits(verdict *v, const arena *a, int lock)
{
    const entry **believed = room_for(v->n_holds[lock], sizeof *believed);
    size_t believers = 0;
    for (size_t i = 0; i < v->n_holds[lock]; i++) {
        const entry *e = &v->holds[lock][i];
        if (e->r->late)
            continue;
        int64_t since_us = e->r->asked_us;
        int held =
            e->r->permits + count_held(believed, &believers, e->r->granted_us);
        for (size_t k = 0; k < believers; k++)
            since_us = earlier(since_us, believed[k]->r->asked_us);
        if (held > lock_permits(lock))
            judge_held(v, a, e, held, since_us);
        believed[believers++] = e;
    }
    free(believed);
    judge_line(v, a, v->holds[lock], v->n_holds[lock]);
}
