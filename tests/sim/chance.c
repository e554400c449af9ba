/* xoshiro256**, set by splitmix64 (Blackman and Vigna). */
#include "chance.h"

static uint64_t split_mix(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

void chance_init(chance *c, uint64_t seed)
{
    for (int i = 0; i < 4; i++)
        c->state[i] = split_mix(&seed);
}

static uint64_t turned(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

uint64_t chance_next(chance *c)
{
    uint64_t *s = c->state;
    uint64_t result = turned(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = turned(s[3], 45);
    return result;
}

int64_t chance_below(chance *c, int64_t limit)
{
    return (int64_t)((chance_next(c) >> 11) % (uint64_t)limit);
}

int64_t chance_between(chance *c, int64_t from, int64_t to)
{
    return from + chance_below(c, to - from + 1);
}

bool chance_ppm(chance *c, int64_t ppm)
{
    return ppm > 0 && chance_below(c, 1000000) < ppm;
}

int64_t chance_skewed(chance *c, int64_t limit)
{
    int64_t most = limit >> chance_below(c, 8);
    return most > 0 ? chance_below(c, most) : 0;
}
