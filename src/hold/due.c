/*
 * What is due, and what is held, by server. Called under the hold table's
 * mutex, by whoever schedules a hold, by the loop when slots have moved, and by
 * a keeper whose server is another run of it.
 *
 * What stays true: a hold is in one due queue at most, the one it points to; a
 * HELD one is counted there; and each due queue has room for every hold there
 * is, because a slot may move at any time, and a hold that was granted must
 * never be without its timer.
 *
 * A server that takes the place of another one, or comes back without its data,
 * may not know what was granted before: `since_us` of its due queue says since
 * when that is so. What was confirmed to an earlier call is asked about; and so
 * is what such a call confirms later, because its answer was slow to be read.
 */
#include "hold/due.h"

#include "base/random.h"
#include "wire/hash_slot.h"

/* After a failover all is asked within so much of the lease, and of time. */
#define HASTE_OF_LEASE   12
#define LONGEST_HASTE_US 250000

#define TOLD_US 1000000

/* A slot's renewals come together by so many steps of a round, which is so much
   shorter than the period; see with_its_slot_us(). */
#define STEPS_OF_ROUND   5
#define SPARED_OF_PERIOD 16

static void unreserve_until(rl_holds *t, const rl_due_queue *end)
{
    for (rl_due_queue *l = t->queues; l != end; l = l->next)
        rl_heap_unreserve(&l->work);
}

/* In each due queue: nobody knows where a slot will be when the hold is due. */
bool rl_due_queues_reserve(rl_holds *t)
{
    for (rl_due_queue *l = t->queues; l; l = l->next)
        if (!rl_heap_reserve(&l->work)) {
            unreserve_until(t, l);
            return false;
        }
    if (rl_heap_reserve(&t->expiry))
        return true;
    unreserve_until(t, NULL);
    return false;
}

void rl_due_queues_unreserve(rl_holds *t)
{
    unreserve_until(t, NULL);
    rl_heap_unreserve(&t->expiry);
}

bool rl_holds_add_due_queue(rl_holds *t, rl_due_queue *l)
{
    bool ok = true;
    l->sleeps_us = RL_NEVER;
    rl_mutex_lock(&t->mutex);
    while (ok && l->work.reserved < t->expiry.reserved)
        ok = rl_heap_reserve(&l->work);
    if (ok) {
        l->next = t->queues;
        t->queues = l;
    }
    rl_mutex_unlock(&t->mutex);
    if (!ok)
        rl_heap_fini(&l->work);
    return ok;
}

static rl_due_queue *queue_of_locked(rl_holds *t, const rl_hold *h)
    RL_REQUIRES(&t->mutex)
{
    return t->queue_of ? t->queue_of(t, h) : &t->first;
}

void rl_due_queue_nudge_locked(rl_holds *t, rl_due_queue *l, int64_t due_us)
{
    (void)t;
    if (due_us >= l->sleeps_us)
        return;
    l->sleeps_us = due_us;
    if (l->wake)
        l->wake(l);
}

/* Who is there for what is held first has to be awake, to look after it. */
static void count_in_locked(rl_holds *t, rl_due_queue *l, int64_t look_us)
    RL_REQUIRES(&t->mutex)
{
    if (l->held++ == 0)
        rl_due_queue_nudge_locked(t, l, look_us);
}

static void change_queue_locked(rl_holds *t, rl_hold *h, rl_due_queue *l)
    RL_REQUIRES(&t->mutex)
{
    if (h->queue == l)
        return;
    rl_hold_unschedule_locked(t, h);
    if (h->state == RL_HELD) {
        h->queue->held--;
        count_in_locked(t, l, 0);
    }
    h->queue = l;
}

/* One that has ended just now is looked at no more, but may be followed by
   another: the keeper need not be woken for each. */
void rl_hold_enter_queue_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    rl_due_queue *l = queue_of_locked(t, h);
    if (h->queue != l)
        rl_hold_unschedule_locked(t, h);
    h->queue = l;
    if (l->held == 0 && l->look_us <= now_us)
        l->look_us = now_us + RL_WATCH_US;
    count_in_locked(t, l, l->look_us);
}

void rl_hold_leave_queue_locked(rl_holds *t, const rl_hold *h)
{
    (void)t;
    h->queue->held--;
}

void rl_hold_schedule_locked(rl_holds *t, rl_hold *h, int64_t due_us)
{
    change_queue_locked(t, h, queue_of_locked(t, h));
    rl_heap_set(&h->queue->work, &h->work, due_us);
    rl_due_queue_nudge_locked(t, h->queue, due_us);
}

void rl_hold_unschedule_locked(rl_holds *t, rl_hold *h)
{
    (void)t;
    rl_heap_remove(&h->queue->work, &h->work);
}

/*
 * One that is not renewed is only looked at. Not on a node of a Red lock: if
 * that has restarted, it gives its vote to nobody until the lease is over.
 */
static bool is_asked_about(const rl_hold *h)
{
    return h->renewed || !h->group || !h->group->quorum;
}

/* What is being asked, or extended, says when the next time is. */
static bool is_busy(const rl_hold *h)
{
    return h->in_flight || (h->paused && h->renewed);
}

static rl_hold *held_at(const rl_holds *t, size_t i)
{
    return RL_CONTAINER(t->expiry.nodes[i], rl_hold, expiry);
}

/* From when on it is late. */
static int64_t late_us(const rl_holds *t, const rl_hold *h)
{
    int64_t third_us = h->claimed ? h->lease_ms * 1000 / 3
                                  : rl_hold_renewal_period_us(t, h, RL_NEVER);
    return rl_after_us(h->renewal_us, third_us / 2 + 1);
}

static bool may_be_late(const rl_hold *h)
{
    return h->renewed && !h->late;
}

void rl_hold_warn_if_late_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    if (!t->late_due_us || !may_be_late(h) || now_us < late_us(t, h))
        return;
    h->late = true;
    rl_add(&t->stats->warned[RL_WARNED_RENEWAL], 1);
    rl_hold_report_locked(t, h, RLOCK_EVENT_RENEW_LATE);
}

/* The keeper may be waiting for an answer, or a connection, for longer. */
static void await_lateness_locked(rl_holds *t, const rl_hold *h)
    RL_REQUIRES(&t->mutex)
{
    if (!may_be_late(h))
        return;
    t->late_due_us = rl_min(t->late_due_us, late_us(t, h));
    rl_holds_nudge_locked(t, t->late_due_us);
}

/*
 * As long as all are renewed in time, the first that may be late will be so a
 * sixth of a lease from now: all are looked at no more often than that.
 */
void rl_holds_warn_late_locked(rl_holds *t, int64_t now_us)
{
    if (t->late_due_us == 0 || now_us < t->late_due_us)
        return;
    t->late_due_us = RL_NEVER;
    for (size_t i = 0; i < t->expiry.count; i++) {
        rl_hold_warn_if_late_locked(t, held_at(t, i), now_us);
        await_lateness_locked(t, held_at(t, i));
    }
}

/*
 * In a cluster a call is about one slot, so holds of one slot are to fall due at
 * the same time, by being renewed early. Each slot has an instant in every round
 * for them. A round is shorter than the period by how early a keeper asks
 * (run/batches.c), so what is renewed at its instant falls due at the next one. A
 * hold for which that would be too early goes there by steps of a fifth of a
 * round. With a period of 10 s the earliest is 6.9 s after the call: an instant 8 s
 * after it is taken; for one 4 s after it the hold is due after 7.8 s, and each
 * time 1.9 s nearer, also if the keeper is late by as much as it may be early.
 */
static int64_t with_its_slot_us(const rl_holds *t, const rl_hold *h,
                                int64_t due_us, int64_t period_us)
{
    if (!t->queue_of)
        return due_us;
    int64_t spared_us = period_us / SPARED_OF_PERIOD;
    int64_t round_us = period_us - spared_us;
    int64_t instant_us = round_us * h->slot / RL_HASH_SLOTS;
    int64_t earlier_us = (due_us + round_us - instant_us) % round_us;
    int64_t step_us = round_us / STEPS_OF_ROUND;
    while (earlier_us > step_us + 2 * spared_us)
        earlier_us -= step_us;
    return due_us - earlier_us;
}

void rl_hold_ask_next_locked(rl_holds *t, rl_hold *h, int64_t sent_us)
{
    int64_t period_us = rl_hold_renewal_period_us(t, h, sent_us);
    if (h->state != RL_HELD || is_busy(h))
        return;
    if (h->renewed)
        h->renewal_us = sent_us + period_us;
    h->late = false;
    if (t->late_due_us)
        await_lateness_locked(t, h);
    if (h->confirmed_us < h->queue->since_us && is_asked_about(h))
        rl_hold_schedule_locked(t, h, h->queue->since_us);
    else if (h->renewed)
        rl_hold_schedule_locked(
            t, h, with_its_slot_us(t, h, h->renewal_us, period_us));
}

/* Who extends in vain again and again leaves the keeper no time to notice. */
void rl_hold_resume_renewal_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    h->paused = false;
    if (!rl_hold_renews_locked(t, h, now_us))
        return;
    rl_hold_warn_if_late_locked(t, h, now_us);
    if (!is_busy(h))
        rl_hold_schedule_locked(t, h, now_us);
}

bool rl_due_queue_tells_locked(rl_holds *t, rl_due_queue *l, int64_t now_us)
{
    (void)t;
    if (l->told_us && now_us - l->told_us < TOLD_US)
        return false;
    l->told_us = now_us;
    return true;
}

/* --- another server, or another run of it --------------------------------- */

static int64_t soon_us(const rl_holds *t, int64_t now_us)
{
    int64_t span_us =
        rl_min(t->renewal_ms * 1000 / HASTE_OF_LEASE, LONGEST_HASTE_US);
    return now_us + rl_random_below(span_us + 1);
}

/* It is asked about by then; where its slot is now. */
static void hurry_locked(rl_holds *t, rl_hold *h, int64_t due_us)
    RL_REQUIRES(&t->mutex)
{
    if (h->work.at)
        due_us = rl_min(due_us, h->work.due_us);
    if (is_busy(h) || !is_asked_about(h))
        change_queue_locked(t, h, queue_of_locked(t, h));
    else
        rl_hold_schedule_locked(t, h, due_us);
}

/* Nodes that are moved up stand where others have been looked at already. */
static void hurry_all_locked(rl_holds *t, int64_t now_us) RL_REQUIRES(&t->mutex)
{
    rl_heap *work = &t->first.work;
    t->first.since_us = now_us;
    for (size_t i = 0; i < work->count; i++) {
        rl_heap_node *n = work->nodes[i];
        rl_heap_set(work, n, rl_min(n->due_us, soon_us(t, now_us)));
    }
    rl_due_queue_nudge_locked(t, &t->first, now_us);
    for (size_t i = 0; i < t->expiry.count; i++)
        if (!held_at(t, i)->work.at)
            hurry_locked(t, held_at(t, i), soon_us(t, now_us));
}

/* What takes the place of one that has left is looked at next. */
static void hurry_moved_locked(rl_holds *t, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    for (rl_due_queue *l = t->queues; l; l = l->next) {
        l->since_us = now_us;
        for (size_t i = 0; i < l->work.count;) {
            rl_heap_node *n = l->work.nodes[i];
            rl_hold *h = RL_CONTAINER(n, rl_hold, work);
            if (queue_of_locked(t, h) == l)
                i++;
            else
                rl_hold_schedule_locked(t, h,
                                        rl_min(n->due_us, soon_us(t, now_us)));
        }
    }
    for (size_t i = 0; i < t->expiry.count; i++)
        if (queue_of_locked(t, held_at(t, i)) != held_at(t, i)->queue)
            hurry_locked(t, held_at(t, i), soon_us(t, now_us));
}

void rl_holds_doubt(rl_holds *t, rl_due_queue *l, int64_t since_us)
{
    rl_mutex_lock(&t->mutex);
    l->since_us = since_us;
    for (size_t i = 0; i < t->expiry.count; i++)
        if (held_at(t, i)->queue == l && held_at(t, i)->confirmed_us < since_us)
            hurry_locked(t, held_at(t, i), since_us);
    rl_mutex_unlock(&t->mutex);
}

void rl_holds_failed_over(rl_holds *t, bool told, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    if (t->queue_of)
        hurry_moved_locked(t, now_us);
    else
        hurry_all_locked(t, now_us);
    t->failed_over = t->failed_over || (told && t->wants_reports);
    rl_holds_nudge_locked(t, 0);
    rl_mutex_unlock(&t->mutex);
}
