#include "op/rtt.h"

#include "base/clock.h"

#define SHORTEST_LIMIT_US 5000

/* A server that shares its processor may pause for some round trips. */
#define PATIENCE 4

void rl_rtt_note(rl_rtt *p, int64_t round_trip_us)
{
    int64_t smoothed_us = atomic_load(&p->smoothed_us);
    int64_t deviation_us = atomic_load(&p->deviation_us);
    int64_t off_us = round_trip_us - smoothed_us;
    if (smoothed_us == 0) {
        smoothed_us = round_trip_us;
        deviation_us = round_trip_us / 2;
    } else {
        smoothed_us += off_us / 8;
        deviation_us += ((off_us < 0 ? -off_us : off_us) - deviation_us) / 4;
    }
    atomic_store(&p->smoothed_us, rl_max(smoothed_us, 1));
    atomic_store(&p->deviation_us, deviation_us);
}

int64_t rl_rtt_limit_us(const rl_rtt *p, int64_t most_us)
{
    int64_t smoothed_us = atomic_load(&p->smoothed_us);
    int64_t us = PATIENCE * (smoothed_us + 4 * atomic_load(&p->deviation_us));
    most_us = rl_max(most_us, SHORTEST_LIMIT_US);
    return smoothed_us ? rl_min(rl_max(us, SHORTEST_LIMIT_US), most_us)
                       : most_us;
}

int64_t rl_rtt_odd_us(const rl_rtt *p, int64_t least_us)
{
    return rl_max(PATIENCE * atomic_load(&p->smoothed_us), least_us);
}
