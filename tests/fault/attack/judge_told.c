/*
 * Whether the ends of holds of a lock that is shared were told. No event says which
 * of them it is about, so they are counted, of each process.
 */
#include "judging.h"

static int count(const history *h, note_kind kind, int lock)
{
    int n = 0;
    for (uint32_t i = 0; i < h->n_notes; i++)
        n += h->notes[i].kind == kind && (int)h->notes[i].lock == lock;
    return n;
}

static void judge_life(verdict *v, const arena *a, int lock, int life)
{
    const entry of = {NULL, life, lock};
    int told = count(v->histories[life], NOTE_TOLD, lock);
    /* What was granted to an owner that was freed meanwhile, or let go of. */
    int least = 0, most = count(v->histories[life], NOTE_TAKEN, lock);
    for (size_t i = 0; i < v->n_holds[lock]; i++) {
        const entry *e = &v->holds[lock][i];
        if (e->life != life)
            continue;
        least += least_told(a, e);
        most += most_told(e);
    }
    if (told < least)
        find(v, UNREPORTED, &of, a->lives[life].ended_us, "%d of %d", told,
             least);
    /* One that was killed may have been told of what it had not written down. */
    if (told > most && !a->lives[life].killed)
        find(v, REPORTED_TWICE, &of, a->lives[life].ended_us,
             "%d losses and ends told, of %d", told, most);
}

void judge_told(verdict *v, const arena *a, int lock)
{
    for (int life = 0; life < v->n_histories; life++)
        if (v->histories[life])
            judge_life(v, a, lock, life);
}
