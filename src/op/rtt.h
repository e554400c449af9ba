/*
 * How quick a server is: its round trips, smoothed as TCP smooths its own (RFC
 * 6298), and how long a node of several is waited for before the others decide
 * without it. Changed by any thread; a measurement that gets lost does no harm.
 */
#ifndef RL_OP_RTT_H
#define RL_OP_RTT_H

#include <stdatomic.h>
#include <stdint.h>

typedef struct rl_rtt {
    atomic_int_least64_t smoothed_us, deviation_us; /* 0: not measured yet */
} rl_rtt;

void rl_rtt_note(rl_rtt *p, int64_t round_trip_us);

/* At least 5 ms, at most the given time, which also serves unmeasured. */
int64_t rl_rtt_limit_us(const rl_rtt *p, int64_t most_us);

/* When no answer is odd: some round trips, at least the given time. */
int64_t rl_rtt_odd_us(const rl_rtt *p, int64_t least_us);

#endif
