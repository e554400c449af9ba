/*
 * Clocks and deadlines. No wall clock anywhere.
 *
 * rl_now_us() is the lease clock: it runs on while the machine sleeps, because
 * the server's TTL does. All deadlines of the library are points on it. Waits
 * on condition variables use another, so a deadline is turned into
 * "that long from now" when the wait begins; see rl_cond_wait_until().
 */
#ifndef RL_BASE_CLOCK_H
#define RL_BASE_CLOCK_H

#include <stdint.h>

#define RL_NEVER INT64_MAX

int64_t rl_now_us(void);

/* Saturating: a huge or endless duration gives RL_NEVER. */
int64_t rl_after_ms(int64_t from_us, int64_t ms);
int64_t rl_after_us(int64_t from_us, int64_t us);

/*
 * The local deadline of a lease whose command was about to be sent at
 * sent_us: what is left after the margin for clock drift that Redlock uses.
 */
int64_t rl_lease_deadline(int64_t sent_us, int64_t lease_ms);

/* Milliseconds until the deadline for poll(2): rounded up, 0 when past. */
int rl_poll_ms(int64_t deadline_us);

static inline int64_t rl_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t rl_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
