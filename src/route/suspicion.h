/*
 * The reasons to ask a cluster for its map: what somebody has complained of, a
 * server that is slow to connect to, or a minute without any.
 */
#ifndef RL_ROUTE_SUSPICION_H
#define RL_ROUTE_SUSPICION_H

#include "route/slotmap.h"

/* After so long without a complaint the trouble is over. */
#define RL_CALM_US (3 * 1000 * 1000)

/* Takes the reason there is, if it is time to ask. */
bool rl_suspicion_is_due(rl_cluster *c, int64_t now_us);

/* When that may be. */
int64_t rl_suspicion_next_us(rl_cluster *c);

/* What somebody who complained waits for has not happened yet. */
bool rl_suspicion_lasts_locked(const rl_cluster *c, int64_t now_us)
    RL_REQUIRES(&c->mutex);

#endif
