#include "base/hash.h"

#include <pthread.h>
#include <string.h>

#include "base/os.h"

/* Written once, before any thread has a client. */
static uint64_t our_key[2];

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void draw(void)
{
    uint64_t drawn[2];
    if (rl_os_random(drawn, sizeof drawn))
        memcpy(our_key, drawn, sizeof our_key);
}

void rl_hash_draw_key(void)
{
    pthread_once(&once, draw);
}

static uint64_t turn(uint64_t x, unsigned bits)
{
    return x << bits | x >> (64 - bits);
}

static void round_of(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = turn(v[1], 13) ^ v[0];
    v[0] = turn(v[0], 32);
    v[2] += v[3];
    v[3] = turn(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = turn(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = turn(v[1], 17) ^ v[2];
    v[2] = turn(v[2], 32);
}

static void take_in(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    round_of(v);
    round_of(v);
    v[0] ^= word;
}

/* Little-endian on every machine, so that all give the published values. */
static uint64_t word_of(const unsigned char *p, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

uint64_t rl_hash_keyed(const uint64_t key[2], const void *bytes, size_t len,
                       uint64_t salt)
{
    const unsigned char *p = bytes;
    uint64_t v[4] = {key[0] ^ UINT64_C(0x736f6d6570736575),
                     key[1] ^ UINT64_C(0x646f72616e646f6d),
                     key[0] ^ UINT64_C(0x6c7967656e657261),
                     key[1] ^ UINT64_C(0x7465646279746573)};
    size_t left = len;
    if (salt)
        take_in(v, salt);
    for (; left >= 8; left -= 8, p += 8)
        take_in(v, word_of(p, 8));
    take_in(v, (uint64_t)len << 56 | word_of(p, left));
    v[2] ^= 0xff;
    for (int i = 0; i < 4; i++)
        round_of(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t rl_hash(const void *bytes, size_t len, uint64_t salt)
{
    return rl_hash_keyed(our_key, bytes, len, salt);
}
