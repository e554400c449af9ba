#include "base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

static void expand(uint32_t w[80], const unsigned char *block)
{
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
               (uint32_t)block[2] << 8 | block[3];
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
}

/* 20 rounds; MIXED is made of b, c and d. */
#define ROUNDS(MIXED)                                                          \
    for (int end = t + 20; t < end; t++) {                                     \
        uint32_t next = rotate(a, 5) + (MIXED) + e + w[t];                     \
        e = d;                                                                 \
        d = c;                                                                 \
        c = rotate(b, 30);                                                     \
        b = a;                                                                 \
        a = next;                                                              \
    }

static void take(uint32_t state[5], const unsigned char *block)
{
    uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3],
                    e = state[4];
    int t = 0;
    expand(w, block);
    ROUNDS(((b & (c ^ d)) ^ d) + 0x5a827999)
    ROUNDS((b ^ c ^ d) + 0x6ed9eba1)
    ROUNDS(((b & c) | (d & (b | c))) + 0x8f1bbcdc)
    ROUNDS((b ^ c ^ d) + 0xca62c1d6)
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

void rl_sha1_begin(rl_sha1 *s)
{
    static const uint32_t first[5] = {0x67452301, 0xefcdab89, 0x98badcfe,
                                      0x10325476, 0xc3d2e1f0};
    memcpy(s->state, first, sizeof first);
    s->len = 0;
}

void rl_sha1_add(rl_sha1 *s, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    size_t filled = s->len % sizeof s->block;
    s->len += len;
    while (filled + len >= sizeof s->block) {
        size_t n = sizeof s->block - filled;
        memcpy(s->block + filled, at, n);
        take(s->state, s->block);
        at += n;
        len -= n;
        filled = 0;
    }
    if (len > 0)
        memcpy(s->block + filled, at, len);
}

void rl_sha1_end(rl_sha1 *s, char sum[RL_SHA1_LEN + 1])
{
    static const char digits[] = "0123456789abcdef";
    static const unsigned char padding[64] = {0x80};
    unsigned char bits[8];
    for (int i = 0; i < 8; i++)
        bits[i] = (unsigned char)(s->len * 8 >> (56 - 8 * i));
    size_t filled = s->len % sizeof s->block;
    rl_sha1_add(s, padding, (filled < 56 ? 56 : 120) - filled);
    rl_sha1_add(s, bits, sizeof bits);
    for (int i = 0; i < RL_SHA1_LEN; i++)
        sum[i] = digits[s->state[i / 8] >> (28 - 4 * (i % 8)) & 15];
    sum[RL_SHA1_LEN] = '\0';
}
