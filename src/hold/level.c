/*
 * Only who frees an owner as which another thread unlocks may end the hold
 * meanwhile.
 */
#include "hold/level.h"

#include <limits.h>

#include "base/clock.h"

/* Has it this lease already, or will its renewal see to that? */
static bool has_lease(const rl_hold *h, int64_t lease_ms, int64_t now_us)
{
    if (lease_ms == RLOCK_WATCHDOG)
        return h->renewed;
    return rl_lease_deadline(now_us, lease_ms) <= h->expiry.due_us;
}

bool rl_hold_count_up(rl_holds *t, rl_hold *h, int64_t lease_ms, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    bool counts = rl_hold_is_valid_locked(t, h, now_us) && h->count < INT_MAX &&
                  has_lease(h, lease_ms, now_us);
    if (counts)
        h->count++;
    rl_mutex_unlock(&t->mutex);
    return counts;
}

static rl_counted count_down_locked(rl_holds *t, rl_hold *h, int level,
                                    int64_t now_us) RL_REQUIRES(&t->mutex)
{
    if (rl_hold_has_ended_locked(h))
        return RL_COUNTED_OVER;
    bool valid = rl_hold_is_valid_locked(t, h, now_us);
    h->count = level;
    if (level == 0)
        rl_hold_end_locked(t, h, now_us);
    return valid ? RL_COUNTED : RL_COUNTED_LOST;
}

rl_counted rl_hold_count_down(rl_holds *t, rl_hold *h, int level,
                              int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    rl_counted found = count_down_locked(t, h, level, now_us);
    rl_mutex_unlock(&t->mutex);
    return found;
}

/* --- on a node of a Red lock ---------------------------------------------- */

static void give_up_locked(rl_holds *t, rl_hold *h, int64_t now_us)
    RL_REQUIRES(&t->mutex)
{
    h->unknown = h->unknown || h->state == RL_DRAFT || h->in_flight;
    bool undo = h->unknown || rl_hold_lingers(h);
    rl_hold_end_locked(t, h, now_us);
    rl_hold_drop_locked(t, h, undo, now_us);
}

static bool count_down_node_locked(rl_holds *t, rl_hold *h, int level,
                                   int64_t now_us) RL_REQUIRES(&t->mutex)
{
    if (rl_hold_has_ended_locked(h))
        return false; /* refused meanwhile, or being undone */
    bool held = rl_hold_is_valid_locked(t, h, now_us);
    h->count = level;
    if (level > 0)
        return held;
    if (held)
        rl_hold_end_locked(t, h, now_us);
    else
        give_up_locked(t, h, now_us);
    return held;
}

bool rl_hold_count_down_node(rl_holds *t, rl_hold *h, int level, int64_t now_us)
{
    rl_mutex_lock(&t->mutex);
    bool held = count_down_node_locked(t, h, level, now_us);
    rl_mutex_unlock(&t->mutex);
    return held;
}
