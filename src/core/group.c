#include "core/group.h"

#include <stdlib.h>

#include "drive/handle.h"

rl_group *rl_group_new(rlock_client *home, int needed, bool quorum)
{
    rl_group *g = calloc(1, sizeof *g);
    if (!g)
        return NULL;
    atomic_init(&g->refs, 1);
    g->needed = needed;
    g->quorum = quorum;
    g->home = home;
    rl_client_ref(home);
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
    rl_client_unref(g->home);
    free(g);
}

bool rl_group_move(rl_group *g, rl_group_state from, rl_group_state to)
{
    int expected = from;
    return atomic_compare_exchange_strong(&g->state, &expected, to);
}

bool rl_group_lose_one(rl_group *g)
{
    return atomic_fetch_sub(&g->left, 1) - 1 < g->needed &&
           rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_LOST);
}

void rl_group_count_loss(rl_group *g)
{
    rl_add(&g->home->engine.stats.lost, 1);
}

bool rl_group_is_void(const rl_group *g)
{
    return g->quorum && atomic_load(&g->state) >= RL_GROUP_LOST;
}

bool rl_group_has_ear(const rl_group *g)
{
    return g->home->engine.set.on_event != NULL;
}

bool rl_group_tell(rl_group *g, const rlock_event *ev)
{
    int cancel;
    if (!rl_group_has_ear(g) || rl_client_enter(g->home, &cancel) != RLOCK_OK)
        return false;
    rl_emit(&g->home->engine, ev);
    rl_client_leave(g->home, cancel);
    return true;
}
