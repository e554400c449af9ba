#include "base/clock.h"

#include <limits.h>

int rl_poll_ms(int64_t deadline_us)
{
    int64_t left = deadline_us - rl_now_us();
    if (left <= 0)
        return 0;
    left = left / 1000 + 1;
    return left > INT_MAX ? INT_MAX : (int)left;
}
