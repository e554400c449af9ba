/* What a client counts of one name: some of what it counts of all (stats.h). */
#ifndef RL_HOLD_NAME_STATS_H
#define RL_HOLD_NAME_STATS_H

#include "base/histogram.h"
#include "hold/stats.h"

/* The bytes of a name in rl_stats.named. */
typedef struct rl_name_stats {
    rl_counter counted[RL_NAMED_COUNTERS]; /* as rl_stats begins */
    rl_histogram times[RL_NAMED_TIMES];
} rl_name_stats;

#endif
