/*
 * How old what is held is. Holds are in the order in which they began, in two
 * lists: those of which is told when they get too old (warn_hold_ms), and those
 * of which that was done. So who asks for the oldest, or waits for the next to
 * get too old, looks at one hold.
 *
 * Called under the table's mutex: by who grants, ends or passes on a hold, and
 * by the notifier. The holds of a lock of several get old together: the first of
 * them that is noticed stands for all.
 */
#include "hold/due.h"
#include "hold/hold.h"

static rl_hold *first_of(const rl_list *l)
{
    const rl_link *first = rl_list_first(l);
    return first ? RL_CONTAINER(first, rl_hold, aged) : NULL;
}

/* A node of a Red lock that was granted anew is as old as the whole. */
static int64_t born_us(const rl_hold *h)
{
    return h->group && h->group->quorum ? h->group->began_us : h->began_us;
}

/* Mostly there is none that began later. */
void rl_hold_begin_age_locked(rl_holds *t, rl_hold *h, int64_t began_us)
{
    rl_link *at = &t->held.head;
    rl_list_remove(&h->aged);
    h->began_us = began_us;
    int64_t us = h->group ? born_us(h) : began_us;
    while (at->prev != &t->held.head &&
           born_us(RL_CONTAINER(at->prev, rl_hold, aged)) > us)
        at = at->prev;
    rl_list_add_before(at, &h->aged);
    rl_holds_nudge_locked(t, rl_holds_age_due_locked(t));
}

void rl_hold_end_age_locked(rl_holds *t, rl_hold *h)
{
    (void)t;
    rl_list_remove(&h->aged);
}

int64_t rl_holds_oldest(rl_holds *t)
{
    rl_mutex_lock(&t->mutex);
    const rl_hold *old = first_of(&t->too_old), *young = first_of(&t->held);
    int64_t us = rl_min(old ? born_us(old) : RL_NEVER,
                        young ? born_us(young) : RL_NEVER);
    rl_mutex_unlock(&t->mutex);
    return us;
}

static int64_t too_old_us(const rl_holds *t)
{
    const rl_hold *h = first_of(&t->held);
    return h ? rl_after_us(born_us(h), t->warn_us) : RL_NEVER;
}

int64_t rl_holds_age_due_locked(const rl_holds *t)
{
    int64_t us = t->warn_us ? too_old_us(t) : RL_NEVER;
    return t->late_due_us ? rl_min(us, t->late_due_us) : us;
}

static bool is_told(rl_hold *h)
{
    return h->group && atomic_exchange(&h->group->too_old, true);
}

bool rl_holds_warn_locked(rl_holds *t, size_t most, int64_t now_us)
{
    rl_holds_warn_late_locked(t, now_us);
    while (t->warn_us && too_old_us(t) <= now_us) {
        rl_hold *h = first_of(&t->held);
        if (most-- == 0)
            return true;
        rl_list_remove(&h->aged);
        rl_list_add_last(&t->too_old, &h->aged);
        if (is_told(h))
            continue;
        rl_add(&t->stats->warned[RL_WARNED_HELD], 1);
        rl_hold_report_locked(t, h, RLOCK_EVENT_HELD_LONG);
    }
    return false;
}
