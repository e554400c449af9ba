/*
 * What is due, by server. Called under the hold table's mutex, by whoever
 * schedules a hold, and by the thread rlock-topology when slots have moved.
 *
 * What stays true: a hold is in one lane at most, the one it points to; and
 * each lane has room for every hold there is, because a slot may move at any
 * time, and a hold that was granted must never be without its timer.
 */
#include "base/random.h"
#include "core/hold.h"

/* After a failover all is asked within so much of the lease, and of time. */
#define HASTE_OF_LEASE   12
#define LONGEST_HASTE_US 1000000

static void unreserve_until(rl_holds *t, const rl_lane *end)
{
    for (rl_lane *l = t->lanes; l != end; l = l->next)
        rl_heap_unreserve(&l->work);
}

/* In each lane: nobody knows where a slot will be when the hold is due. */
bool rl_lanes_reserve(rl_holds *t)
{
    for (rl_lane *l = t->lanes; l; l = l->next)
        if (!rl_heap_reserve(&l->work)) {
            unreserve_until(t, l);
            return false;
        }
    if (rl_heap_reserve(&t->expiry))
        return true;
    unreserve_until(t, NULL);
    return false;
}

void rl_lanes_unreserve(rl_holds *t)
{
    unreserve_until(t, NULL);
    rl_heap_unreserve(&t->expiry);
}

bool rl_holds_add_lane(rl_holds *t, rl_lane *l)
{
    bool ok = true;
    l->sleeps_us = RL_NEVER;
    rl_mutex_lock(&t->mutex);
    while (ok && l->work.reserved < t->expiry.reserved)
        ok = rl_heap_reserve(&l->work);
    if (ok) {
        l->next = t->lanes;
        t->lanes = l;
    }
    rl_mutex_unlock(&t->mutex);
    if (!ok)
        rl_heap_fini(&l->work);
    return ok;
}

static rl_lane *lane_of_locked(rl_holds *t, const rl_hold *h)
    RL_REQUIRES(&t->mutex)
{
    return t->lane_of ? t->lane_of(t, h) : &t->first;
}

void rl_lane_nudge_locked(rl_holds *t, rl_lane *l, int64_t due_us)
{
    (void)t;
    if (due_us >= l->sleeps_us)
        return;
    l->sleeps_us = due_us;
    if (l->wake)
        l->wake(l);
}

void rl_hold_schedule_locked(rl_holds *t, rl_hold *h, int64_t due_us)
{
    rl_lane *l = lane_of_locked(t, h);
    if (h->lane != l)
        rl_hold_unschedule_locked(t, h);
    h->lane = l;
    rl_heap_set(&l->work, &h->work, due_us);
    rl_lane_nudge_locked(t, l, due_us);
}

void rl_hold_unschedule_locked(rl_holds *t, rl_hold *h)
{
    (void)t;
    rl_heap_remove(&h->lane->work, &h->work);
}

static int64_t soon_us(const rl_holds *t, int64_t now_us)
{
    int64_t span_us =
        rl_min(t->renewal_ms * 1000 / HASTE_OF_LEASE, LONGEST_HASTE_US);
    return now_us + rl_random_below(span_us + 1);
}

/* Nodes that are moved up stand where others have been looked at already. */
static void hurry_all_locked(rl_holds *t, int64_t now_us) RL_REQUIRES(&t->mutex)
{
    rl_heap *work = &t->first.work;
    for (size_t i = 0; i < work->count; i++) {
        rl_heap_node *n = work->nodes[i];
        rl_heap_set(work, n, rl_min(n->due_us, soon_us(t, now_us)));
    }
    rl_lane_nudge_locked(t, &t->first, now_us);
}

/* What takes the place of one that has left is looked at next. */
static void hurry_moved_locked(rl_holds *t, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    for (rl_lane *l = t->lanes; l; l = l->next)
        for (size_t i = 0; i < l->work.count;) {
            rl_heap_node *n = l->work.nodes[i];
            rl_hold *h = RL_CONTAINER(n, rl_hold, work);
            if (lane_of_locked(t, h) == l)
                i++;
            else
                rl_hold_schedule_locked(t, h,
                                        rl_min(n->due_us, soon_us(t, now_us)));
        }
}

void rl_holds_failed_over(rl_holds *t, bool told, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    if (t->lane_of)
        hurry_moved_locked(t, now_us);
    else
        hurry_all_locked(t, now_us);
    t->failed_over = t->failed_over || (told && t->wants_reports);
    rl_holds_nudge_locked(t, 0);
    rl_mutex_unlock(&t->mutex);
}
