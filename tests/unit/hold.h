/* What the tests of the hold table share. */
#ifndef UNIT_HOLD_H
#define UNIT_HOLD_H

#include "hold/hold.h"

#include "play.h"

static inline rl_holds *table(play *p)
{
    return &play_core(p, 0)->holds;
}

static inline rl_hold *open_with_hold(play *p, int64_t lease_ms)
{
    play_open(p, 1);
    return play_hold(p, 0, "job", lease_ms);
}

static inline bool is_valid(play *p, rl_hold *h)
{
    rl_mutex_lock(&table(p)->mutex);
    bool valid = rl_hold_is_valid_locked(table(p), h, p->now_us);
    rl_mutex_unlock(&table(p)->mutex);
    return valid;
}

static inline void prolong(play *p, rl_hold *h, int64_t sent_us,
                           int64_t lease_ms)
{
    rl_mutex_lock(&table(p)->mutex);
    rl_hold_prolong_locked(table(p), h, sent_us, lease_ms, p->now_us);
    rl_mutex_unlock(&table(p)->mutex);
}

static inline void set_lease(play *p, rl_hold *h, int64_t sent_us,
                             int64_t lease_ms)
{
    rl_mutex_lock(&table(p)->mutex);
    rl_hold_set_lease_locked(table(p), h, sent_us, lease_ms, p->now_us);
    rl_mutex_unlock(&table(p)->mutex);
}

static inline void expire(play *p)
{
    rl_mutex_lock(&table(p)->mutex);
    rl_holds_expire_locked(table(p), SIZE_MAX, p->now_us);
    rl_mutex_unlock(&table(p)->mutex);
}

static inline void lose(play *p, size_t i, rl_hold *h, rl_loss why)
{
    rl_holds *t = &play_core(p, i)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_lose_locked(t, h, why, p->now_us);
    rl_mutex_unlock(&t->mutex);
}

static inline void end(play *p, rl_hold *h)
{
    rl_mutex_lock(&table(p)->mutex);
    rl_hold_end_locked(table(p), h, p->now_us);
    rl_hold_unref_locked(table(p), h);
    rl_mutex_unlock(&table(p)->mutex);
}

static inline rl_hold *find(play *p, uint64_t owner)
{
    rl_mutex_lock(&table(p)->mutex);
    rl_hold *h = rl_holds_find_locked(table(p), &play_job, owner);
    rl_mutex_unlock(&table(p)->mutex);
    return h;
}

/* The reports that wait for the notifier; they are taken off. */
static inline unsigned take_reports(play *p, size_t i)
{
    rl_holds *t = &play_core(p, i)->holds;
    rl_hold *h;
    unsigned all = 0;
    rl_mutex_lock(&t->mutex);
    while ((h = rl_holds_first_report_locked(t)) != NULL) {
        all |= h->reports;
        h->reports = 0;
    }
    rl_mutex_unlock(&t->mutex);
    return all;
}

#define LOST      (1u << RLOCK_EVENT_LOST)
#define ABANDONED (1u << RLOCK_EVENT_ABANDONED)

/* When the hold's next renewal or undoing is; 0: not at all. */
static inline int64_t due_us(const rl_holds *t, const rl_hold *h)
{
    rl_heap_node *n = rl_heap_first(&t->first.work);
    return n == &h->work ? n->due_us : 0;
}

#endif
