/*
 * xoshiro256**, set by splitmix64 (Blackman and Vigna). Below it stand the
 * functions of base/random.h: what they promise, without the kernel and the
 * clock, which would make each run another one.
 */
#include "chance.h"

#include <stdio.h>
#include <string.h>

#include "base/random.h"

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

/* --- the library's -------------------------------------------------------- */

static chance library;

void chance_seed_library(uint64_t seed)
{
    chance_init(&library, seed);
}

bool rl_uuid_new(rl_uuid *out)
{
    uint64_t bits[2] = {chance_next(&library), chance_next(&library)};
    memcpy(out->bytes, bits, sizeof bits);
    return true;
}

void rl_uuid_write(const rl_uuid *id, char out[RL_UUID_LEN + 1])
{
    for (size_t i = 0; i < sizeof id->bytes; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = "0123456789abcdef"[id->bytes[i] >> 4];
        *out++ = "0123456789abcdef"[id->bytes[i] & 15];
    }
    *out = '\0';
}

int64_t rl_random_below(int64_t limit)
{
    return chance_below(&library, limit);
}

int64_t rl_jitter(int64_t value)
{
    int64_t span = value / 4;
    return span > 0 ? value - span + rl_random_below(2 * span + 1) : value;
}
