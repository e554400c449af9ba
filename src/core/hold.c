#include "core/hold.h"

#include <stdlib.h>
#include <string.h>

typedef struct key {
    const rl_target *what;
    uint64_t owner;
} key;

static bool same(const rl_map_node *n, const void *wanted)
{
    const rl_hold *h = RL_CONTAINER(n, rl_hold, node);
    const key *k = wanted;
    return h->owner == k->owner && h->scope == k->what->scope &&
           h->name_len == k->what->len &&
           memcmp(h->text, k->what->name, h->name_len) == 0;
}

bool rl_holds_init(rl_holds *t, rl_stats *stats, int64_t renewal_ms,
                   int64_t max_hold_ms, bool wants_reports)
{
    rl_mutex_init(&t->mutex);
    rl_cond_init(&t->watchdog);
    rl_cond_init(&t->notifier);
    rl_cond_init(&t->landed);
    TAILQ_INIT(&t->reports);
    t->watchdog_sleeps_us = t->notifier_sleeps_us = RL_NEVER;
    t->stats = stats;
    t->renewal_ms = renewal_ms;
    t->max_hold_ms = max_hold_ms;
    t->wants_reports = wants_reports;
    return rl_map_init(&t->map, same);
}

static void hold_free(rl_holds *t, rl_hold *h)
{
    rl_heap_unreserve(&t->work);
    rl_heap_unreserve(&t->expiry);
    rl_group_unref(h->group);
    free(h);
}

static void drop(rl_map_node *n, void *arg)
{
    hold_free(arg, RL_CONTAINER(n, rl_hold, node));
}

/* Threads have ended: each hold is in the table or in the work heap. */
void rl_holds_fini(rl_holds *t, bool forked) RL_UNCHECKED
{
    if (t->map.buckets) {
        rl_hold *h;
        while ((h = TAILQ_FIRST(&t->reports)) != NULL) {
            rl_hold_unqueue_locked(t, h);
            rl_hold_unref_locked(t, h);
        }
        rl_heap_node *n;
        while ((n = rl_heap_first(&t->work)) != NULL) {
            h = RL_CONTAINER(n, rl_hold, work);
            rl_heap_remove(&t->work, n);
            if (h->state == RL_UNDOING)
                hold_free(t, h);
        }
        rl_map_each(&t->map, drop, t);
    }
    rl_map_fini(&t->map);
    rl_heap_fini(&t->work);
    rl_heap_fini(&t->expiry);
    if (forked)
        return;
    rl_cond_fini(&t->landed);
    rl_cond_fini(&t->notifier);
    rl_cond_fini(&t->watchdog);
    rl_mutex_fini(&t->mutex);
}

static bool reserve(rl_holds *t)
{
    rl_mutex_lock(&t->mutex);
    bool ok = rl_heap_reserve(&t->work);
    if (ok && !rl_heap_reserve(&t->expiry)) {
        rl_heap_unreserve(&t->work);
        ok = false;
    }
    rl_mutex_unlock(&t->mutex);
    return ok;
}

rl_hold *rl_hold_new(rl_holds *t, const rl_target *what, const char *holder)
{
    size_t holder_size = strlen(holder) + 1, len = what->len;
    rl_hold *h = calloc(1, sizeof *h + len + 1 + holder_size);
    if (!h || !reserve(t)) {
        free(h);
        return NULL;
    }
    memcpy(h->text, what->name, len);
    h->layout = what->layout;
    h->scope = what->scope;
    h->holder = h->text + len + 1;
    memcpy(h->holder, holder, holder_size);
    h->name_len = len;
    h->owner = rl_owner_self();
    h->refs = 1;
    h->cap_ms = RL_NEVER;
    return h;
}

void rl_hold_unref_locked(rl_holds *t, rl_hold *h)
{
    if (--h->refs == 0)
        hold_free(t, h);
}

/* Wakes a sleeper that would look later than something is due. */
static void nudge(rl_cond *sleeper, int64_t *sleeps_us, int64_t due_us)
{
    if (due_us < *sleeps_us) {
        *sleeps_us = due_us;
        rl_cond_wake(sleeper);
    }
}

void rl_hold_schedule_locked(rl_holds *t, rl_hold *h, int64_t due_us)
{
    rl_heap_set(&t->work, &h->work, due_us);
    nudge(&t->watchdog, &t->watchdog_sleeps_us, due_us);
}

void rl_hold_report_locked(rl_holds *t, rl_hold *h, rlock_event_type type)
{
    if (!t->wants_reports && !(h->group && rl_group_has_ear(h->group)))
        return;
    if (!h->queued) {
        h->queued = true;
        TAILQ_INSERT_TAIL(&t->reports, h, report);
        h->refs++;
    }
    h->reports |= 1u << type;
    nudge(&t->notifier, &t->notifier_sleeps_us, 0);
}

void rl_hold_unqueue_locked(rl_holds *t, rl_hold *h)
{
    h->queued = false;
    TAILQ_REMOVE(&t->reports, h, report);
}

void rl_holds_reconnected(rl_holds *t)
{
    rl_mutex_lock(&t->mutex);
    t->reconnected = t->wants_reports;
    nudge(&t->notifier, &t->notifier_sleeps_us, 0);
    rl_mutex_unlock(&t->mutex);
}

static void set_deadline_locked(rl_holds *t, rl_hold *h, int64_t deadline_us)
    RL_REQUIRES(&t->mutex)
{
    h->deadline_us =
        h->renewed ? rl_min(deadline_us, h->limit_us) : deadline_us;
    rl_heap_set(&t->expiry, &h->expiry, h->deadline_us);
    nudge(&t->notifier, &t->notifier_sleeps_us, h->deadline_us);
}

void rl_hold_report_loss_locked(rl_holds *t, rl_hold *h, rl_loss why)
{
    rl_group *g = h->group;
    bool reported = !g || rl_group_lose_one(g);
    h->loss = why;
    if (!g || !g->quorum)
        rl_add(&t->stats->lost, 1);
    else if (reported)
        rl_group_count_loss(g);
    if (reported)
        rl_hold_report_locked(t, h, RLOCK_EVENT_LOST);
}

static void stop_clocks(rl_holds *t, rl_hold *h, int64_t now_us)
{
    h->ended_us = now_us;
    rl_heap_remove(&t->work, &h->work);
    rl_heap_remove(&t->expiry, &h->expiry);
    rl_sub(&t->stats->held_now, 1);
    rl_add(&t->stats->hold_us_total, (uint64_t)(now_us - h->began_us));
}

void rl_hold_lose_locked(rl_holds *t, rl_hold *h, rl_loss why, int64_t now_us)
{
    h->state = RL_LOST;
    stop_clocks(t, h, now_us);
    rl_hold_report_loss_locked(t, h, why);
}

static void expire_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    bool too_long = t->max_hold_ms &&
                    h->deadline_us == rl_after_ms(h->began_us, t->max_hold_ms);
    rl_hold_lose_locked(t, h, too_long ? RL_LOSS_TOO_LONG : RL_LOSS_EXPIRED,
                        now_us);
}

bool rl_hold_is_valid_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    if (h->state == RL_HELD && now_us >= h->deadline_us)
        expire_locked(t, h, now_us);
    return h->state == RL_HELD;
}

void rl_holds_expire_locked(rl_holds *t, int64_t now_us)
{
    rl_heap_node *n;
    while ((n = rl_heap_first(&t->expiry)) != NULL && n->due_us <= now_us)
        expire_locked(t, RL_CONTAINER(n, rl_hold, expiry), now_us);
}

static uint64_t hash_of(const char *name, size_t len, uint64_t scope,
                        uint64_t owner)
{
    return rl_hash(name, len, owner ^ scope << 32);
}

rl_hold *rl_holds_mine_locked(rl_holds *t, const rl_target *what)
{
    key k = {what, rl_owner_self()};
    rl_map_node *n = rl_map_find(
        &t->map, hash_of(what->name, what->len, what->scope, k.owner), &k);
    if (!n)
        return NULL;
    rl_hold *h = RL_CONTAINER(n, rl_hold, node);
    rl_hold_is_valid_locked(t, h, rl_now_us());
    return h;
}

static void limit_renewal(const rl_holds *t, rl_hold *h)
{
    h->renewed = true;
    h->limit_us =
        t->max_hold_ms ? rl_after_ms(h->began_us, t->max_hold_ms) : RL_NEVER;
}

void rl_hold_list_locked(rl_holds *t, rl_hold *h)
{
    if (h->listed)
        return;
    h->listed = true;
    rl_map_add(&t->map, &h->node,
               hash_of(h->text, h->name_len, h->scope, h->owner));
}

void rl_hold_grant_locked(rl_holds *t, rl_hold *h, uint64_t token,
                          int64_t sent_us, bool renewed)
{
    h->state = RL_HELD;
    h->token = token;
    h->count = 1;
    h->began_us = sent_us;
    if (h->listed) /* it comes late to its group */
        atomic_fetch_add(&h->group->left, 1);
    rl_hold_list_locked(t, h);
    rl_add(&t->stats->held_now, 1);
    if (renewed)
        limit_renewal(t, h);
    set_deadline_locked(t, h, rl_lease_deadline(sent_us, h->lease_ms));
    if (renewed)
        rl_hold_start_renewal_locked(t, h, sent_us);
}

void rl_hold_expect(rl_hold *h, int64_t now_us, int64_t lease_ms)
{
    h->gone_us = rl_max(h->gone_us, rl_after_ms(now_us, lease_ms));
}

void rl_hold_set_lease_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                              int64_t lease_ms)
{
    if (!rl_hold_is_valid_locked(t, h, rl_now_us()))
        return;
    lease_ms = rl_min(lease_ms, h->cap_ms);
    set_deadline_locked(t, h, rl_lease_deadline(sent_us, lease_ms));
}

void rl_hold_prolong_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                            int64_t lease_ms)
{
    lease_ms = rl_min(lease_ms, h->cap_ms);
    if (rl_lease_deadline(sent_us, lease_ms) > h->deadline_us)
        rl_hold_set_lease_locked(t, h, sent_us, lease_ms);
}

/*
 * Why a cap on leases is enough: whenever the extend arrives, at T, the server
 * keeps the hold until T + cap. A deadline from a command sent before T is at
 * most that command's time + cap; one sent later makes the TTL long enough
 * again by itself.
 */
void rl_hold_cap_locked(rl_holds *t, rl_hold *h, int64_t sent_us,
                        int64_t lease_ms)
{
    h->cap_ms = rl_min(h->cap_ms, lease_ms);
    int64_t deadline_us = rl_lease_deadline(sent_us, lease_ms);
    if (h->state == RL_HELD && deadline_us < h->deadline_us)
        set_deadline_locked(t, h, deadline_us);
}

int64_t rl_hold_renewal_ms(const rl_holds *t, const rl_hold *h)
{
    return rl_min(t->renewal_ms, h->cap_ms);
}

int64_t rl_hold_renewal_period_us(const rl_holds *t, const rl_hold *h)
{
    return rl_hold_renewal_ms(t, h) * 1000 / 3;
}

void rl_hold_start_renewal_locked(rl_holds *t, rl_hold *h, int64_t sent_us)
{
    if (!rl_hold_is_valid_locked(t, h, rl_now_us()))
        return;
    if (!h->renewed) {
        limit_renewal(t, h);
        h->limit_us = rl_max(h->limit_us, h->deadline_us);
    }
    h->paused = false;
    rl_hold_schedule_locked(t, h, sent_us + rl_hold_renewal_period_us(t, h));
}

void rl_hold_pause_renewal_locked(rl_holds *t, rl_hold *h)
{
    h->paused = true;
    rl_heap_remove(&t->work, &h->work);
}

void rl_hold_stop_renewal_locked(rl_holds *t, rl_hold *h)
{
    rl_hold_pause_renewal_locked(t, h);
    h->renewed = h->paused = false;
}

void rl_hold_end_locked(rl_holds *t, rl_hold *h, int64_t now_us)
{
    if (h->state == RL_HELD)
        stop_clocks(t, h, now_us);
    h->state = RL_OVER;
    if (h->listed)
        rl_map_remove(&t->map, &h->node);
    h->listed = false;
    h->reports &= 1u << RLOCK_EVENT_LOST; /* renewals are of no interest now */
}

void rl_hold_undo_locked(rl_holds *t, rl_hold *h, int64_t due_us)
{
    h->state = RL_UNDOING;
    t->undoing++;
    if (h->doubtful) /* a server that was stopped may execute it yet */
        h->gone_us = rl_max(h->gone_us, rl_after_ms(due_us, RL_DOUBT_MS));
    rl_hold_schedule_locked(t, h, due_us);
}

void rl_hold_undone_locked(rl_holds *t, rl_hold *h)
{
    h->state = RL_OVER;
    t->undoing--;
    rl_hold_unref_locked(t, h);
}

typedef struct closing {
    rl_holds *holds;
    const struct rlock_client *client;
} closing;

typedef struct abandonment {
    rl_holds *holds;
    uint64_t owner;
} abandonment;

static void abandon(rl_map_node *n, void *arg) RL_UNCHECKED
{
    abandonment *a = arg;
    rl_hold *h = RL_CONTAINER(n, rl_hold, node);
    if (h->owner != a->owner)
        return;
    int64_t now_us = rl_now_us();
    bool held = rl_hold_is_valid_locked(a->holds, h, now_us);
    h->doubtful = h->doubtful || h->state == RL_DRAFT;
    rl_hold_end_locked(a->holds, h, now_us);
    /* The holds of a group are one lock, and are reported as one. */
    if (held &&
        (!h->group || rl_group_move(h->group, RL_GROUP_OWNED, RL_GROUP_OVER)))
        rl_hold_report_locked(a->holds, h, RLOCK_EVENT_ABANDONED);
    /* Its lease runs out by itself; then an acquire that is late is buried. */
    if (h->doubtful)
        rl_hold_undo_locked(a->holds, h, h->gone_us);
    else
        rl_hold_unref_locked(a->holds, h);
}

void rl_holds_abandon(rl_holds *t, uint64_t owner)
{
    abandonment a = {t, owner};
    rl_mutex_lock(&t->mutex);
    rl_map_each(&t->map, abandon, &a);
    rl_mutex_unlock(&t->mutex);
}

static void close_hold(rl_map_node *n, void *arg) RL_UNCHECKED
{
    const closing *c = arg;
    rl_hold *h = RL_CONTAINER(n, rl_hold, node);
    if (!h->group || h->state != RL_HELD)
        return;
    if (h->group->home == c->client) {
        /* A Red lock ends with its home; of a Multi lock, others may tell. */
        if (h->group->quorum)
            rl_group_move(h->group, RL_GROUP_OWNED, RL_GROUP_OVER);
        return;
    }
    rl_hold_lose_locked(c->holds, h, RL_LOSS_CLOSED, rl_now_us());
}

void rl_holds_close(rl_holds *t, const struct rlock_client *client)
{
    closing c = {t, client};
    rl_mutex_lock(&t->mutex);
    rl_map_each(&t->map, close_hold, &c);
    rl_mutex_unlock(&t->mutex);
}

void rl_holds_stop(rl_holds *t)
{
    rl_mutex_lock(&t->mutex);
    t->stopping = true;
    rl_cond_wake(&t->watchdog);
    rl_cond_wake(&t->notifier);
    rl_mutex_unlock(&t->mutex);
}
