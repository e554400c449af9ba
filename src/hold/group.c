#include "hold/group.h"

#include <stdlib.h>

#include "base/clock.h"

rl_group *rl_group_new(rl_home *home, size_t quorum)
{
    rl_group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    atomic_init(&g->refs, 1);
    for (size_t i = 0; i < RLOCK_RED_MAX; i++)
        g->there_us[i] = RL_NEVER;
    rl_mutex_init(&g->mutex, RL_RANK_GROUP);
    g->quorum = quorum;
    g->home = home;
    home->ref(home);
    return g;
}

void rl_group_ref(rl_group *g)
{
    atomic_fetch_add(&g->refs, 1);
}

void rl_group_unref(rl_group *g)
{
    if (!g || atomic_fetch_sub(&g->refs, 1) != 1)
        return;
    if (rl_mutex_retire(&g->mutex))
        rl_alarms_leave(&g->alarms);
    g->home->unref(g->home);
    rl_group_unref(g->whole);
    free(g);
}

bool rl_group_move(rl_group *g, rl_group_state from, rl_group_state to)
{
    int expected = from;
    return atomic_compare_exchange_strong(&g->state, &expected, to);
}

bool rl_group_is_owned(const rl_group *g)
{
    return atomic_load(&g->state) == RL_GROUP_OWNED;
}

bool rl_group_is_forming(const rl_group *g)
{
    const rl_group *whole = g->quorum ? g->whole : g;
    return whole && atomic_load(&whole->state) < RL_GROUP_OWNED;
}

bool rl_group_is_void(const rl_group *g)
{
    return g->quorum > 0 && atomic_load(&g->state) >= RL_GROUP_LOST;
}

void rl_group_join(rl_group *g, unsigned node, int64_t there_us,
                   int64_t until_us)
{
    rl_mutex_lock(&g->mutex);
    g->there_us[node] = there_us;
    g->until_us[node] = until_us;
    rl_mutex_unlock(&g->mutex);
}

void rl_group_set_until(rl_group *g, unsigned node, int64_t until_us)
{
    rl_mutex_lock(&g->mutex);
    g->until_us[node] = until_us;
    rl_mutex_unlock(&g->mutex);
}

/* So many nodes have had it since then, and have it now. */
static size_t there_locked(const rl_group *g, int64_t since_us, int64_t now_us)
    RL_REQUIRES(&g->mutex)
{
    size_t n = 0;
    for (size_t i = 0; i < RLOCK_RED_MAX; i++)
        n += g->there_us[i] != RL_NEVER && g->there_us[i] <= since_us &&
             g->until_us[i] > now_us;
    return n;
}

/* True: nobody has had it. */
static bool spoil(rl_group *g)
{
    return rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_SPOILT) ||
           atomic_load(&g->state) == RL_GROUP_SPOILT;
}

bool rl_group_is_told(rl_group *g)
{
    return !g->whole || !spoil(g->whole);
}

bool rl_group_lose_one(rl_group *g, unsigned node, int64_t gone_us,
                       int64_t now_us)
{
    bool enough = false;
    if (g->quorum) {
        rl_mutex_lock(&g->mutex);
        g->there_us[node] = RL_NEVER;
        enough = there_locked(g, gone_us, now_us) >= g->quorum;
        rl_mutex_unlock(&g->mutex);
    } else if (spoil(g)) {
        return false;
    }
    return !enough && rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_LOST);
}

bool rl_group_expire(rl_group *g, int64_t now_us)
{
    rl_mutex_lock(&g->mutex);
    bool enough = there_locked(g, RL_NEVER, now_us) >= g->quorum;
    rl_mutex_unlock(&g->mutex);
    return !enough && rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_LOST);
}

int64_t rl_group_quorum_end(int64_t *end, size_t n, size_t quorum)
{
    if (n < quorum)
        return 0;
    for (size_t i = 0; i < quorum; i++) {
        for (size_t k = i + 1; k < n; k++) {
            if (end[k] > end[i]) {
                int64_t swapped = end[i];
                end[i] = end[k];
                end[k] = swapped;
            }
        }
    }
    return end[quorum - 1];
}

int64_t rl_group_until(rl_group *g, unsigned nodes)
{
    int64_t end_us[RLOCK_RED_MAX];
    size_t n = 0;
    rl_mutex_lock(&g->mutex);
    for (size_t i = 0; i < RLOCK_RED_MAX; i++)
        if (nodes >> i & 1 && g->there_us[i] != RL_NEVER)
            end_us[n++] = g->until_us[i];
    rl_mutex_unlock(&g->mutex);
    return rl_group_is_owned(g) ? rl_group_quorum_end(end_us, n, g->quorum) : 0;
}

void rl_group_visit_alarms(rl_group *g, rl_alarm_visit *v, const rl_uuid *id)
{
    rl_mutex_lock(&g->mutex);
    v->at(v, &g->alarms, id, !rl_group_is_owned(g));
    rl_mutex_unlock(&g->mutex);
}

void rl_group_raise(rl_group *g)
{
    rl_mutex_lock(&g->mutex);
    rl_alarms_raise(&g->alarms);
    rl_mutex_unlock(&g->mutex);
}

void rl_group_end_alarms(rl_group *g)
{
    rl_mutex_lock(&g->mutex);
    rl_alarms_end(&g->alarms);
    rl_mutex_unlock(&g->mutex);
}

void rl_group_abandon_alarms(rl_group *g)
{
    rl_group_raise(g);
    rl_group_end_alarms(g);
}

void rl_group_keep_alarms(rl_group *g, rl_alarms *in)
{
    rl_mutex_lock(&g->mutex);
    rl_alarms_keep(&g->alarms, in);
    rl_mutex_unlock(&g->mutex);
}

void rl_group_count_loss(rl_group *g, const char *name, size_t len)
{
    rl_stats *s = g->home->stats;
    rl_stats_add(s, &s->lost[RL_LOSS_GROUP], name, len, 1);
}

int rl_group_count(const rl_group *g)
{
    return atomic_load(&g->count);
}

void rl_group_set_count(rl_group *g, int count)
{
    atomic_store(&g->count, count);
}

bool rl_group_is_renewed(const rl_group *g)
{
    return atomic_load(&g->renewed);
}

void rl_group_set_renewed(rl_group *g, bool renewed)
{
    atomic_store(&g->renewed, renewed);
}

bool rl_group_has_on_event(const rl_group *g)
{
    return g->home->has_on_event;
}

bool rl_group_calls_back(const rl_group *g)
{
    return g->home->calls_back;
}

bool rl_group_tell(rl_group *g, const rlock_event *ev)
{
    return g->home->has_on_event && g->home->tell(g->home, ev);
}
