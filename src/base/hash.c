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

static void rounds(uint64_t v[4], int n)
{
    uint64_t a = v[0], b = v[1], c = v[2], d = v[3];
    for (int i = 0; i < n; i++) {
        a += b;
        b = turn(b, 13) ^ a;
        a = turn(a, 32);
        c += d;
        d = turn(d, 16) ^ c;
        a += d;
        d = turn(d, 21) ^ a;
        c += b;
        b = turn(b, 17) ^ c;
        c = turn(c, 32);
    }
    v[0] = a;
    v[1] = b;
    v[2] = c;
    v[3] = d;
}

static void take_in(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    rounds(v, 2);
    v[0] ^= word;
}

/* Little-endian on every machine, so that all give the published values. */
static uint64_t last_word(const unsigned char *p, size_t len)
{
    uint64_t word = 0;
    for (size_t i = 0; i < len; i++)
        word |= (uint64_t)p[i] << 8 * i;
    return word;
}

/* The same of eight bytes; compilers make one load of this. */
static uint64_t whole_word(const unsigned char *p)
{
    return (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 |
           (uint64_t)p[3] << 24 | (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 |
           (uint64_t)p[6] << 48 | (uint64_t)p[7] << 56;
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
        take_in(v, whole_word(p));
    take_in(v, (uint64_t)len << 56 | last_word(p, left));
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t rl_hash(const void *bytes, size_t len, uint64_t salt)
{
    return rl_hash_keyed(our_key, bytes, len, salt);
}
