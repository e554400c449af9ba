#include "base/clock.h"

#include <limits.h>
#include <time.h>

#ifdef CLOCK_BOOTTIME
#define LEASE_CLOCK CLOCK_BOOTTIME
#else
#define LEASE_CLOCK CLOCK_MONOTONIC
#endif

int64_t rl_now_us(void)
{
    struct timespec ts;
    clock_gettime(LEASE_CLOCK, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t rl_after_us(int64_t from_us, int64_t us)
{
    return us > RL_NEVER - from_us ? RL_NEVER : from_us + us;
}

int64_t rl_after_ms(int64_t from_us, int64_t ms)
{
    return ms < 0 || ms > RL_NEVER / 1000 ? RL_NEVER
                                          : rl_after_us(from_us, ms * 1000);
}

int64_t rl_lease_deadline(int64_t sent_us, int64_t lease_ms)
{
    return rl_after_us(sent_us, lease_ms * 1000 - (lease_ms * 10 + 2000));
}

int rl_poll_ms(int64_t deadline_us)
{
    int64_t left = deadline_us - rl_now_us();
    if (left <= 0)
        return 0;
    left = left / 1000 + 1;
    return left > INT_MAX ? INT_MAX : (int)left;
}
