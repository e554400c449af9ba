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
#include <time.h>

#define RL_NEVER INT64_MAX

#ifdef CLOCK_BOOTTIME
#define RL_LEASE_CLOCK CLOCK_BOOTTIME
#else
#define RL_LEASE_CLOCK CLOCK_MONOTONIC
#endif

static inline int64_t rl_now_us(void)
{
    struct timespec ts;
    clock_gettime(RL_LEASE_CLOCK, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* Saturating: a huge or endless duration gives RL_NEVER. */
static inline int64_t rl_after_us(int64_t from_us, int64_t us)
{
    return us > RL_NEVER - from_us ? RL_NEVER : from_us + us;
}

static inline int64_t rl_after_ms(int64_t from_us, int64_t ms)
{
    return ms < 0 || ms > RL_NEVER / 1000 ? RL_NEVER
                                          : rl_after_us(from_us, ms * 1000);
}

/*
 * The local deadline of a lease whose command was about to be sent at
 * sent_us: what is left after the margin for clock drift that Redlock uses.
 */
static inline int64_t rl_lease_deadline(int64_t sent_us, int64_t lease_ms)
{
    return rl_after_us(sent_us, lease_ms * 1000 - (lease_ms * 10 + 2000));
}

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
