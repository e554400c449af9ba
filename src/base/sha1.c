#include "base/sha1.h"

#include <string.h>

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

/* The function and the constant of each 20 rounds. */
static uint32_t mix(int t, uint32_t b, uint32_t c, uint32_t d)
{
    if (t < 20)
        return ((b & c) | (~b & d)) + 0x5a827999;
    if (t < 40)
        return (b ^ c ^ d) + 0x6ed9eba1;
    if (t < 60)
        return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    return (b ^ c ^ d) + 0xca62c1d6;
}

static void expand(uint32_t w[80], const unsigned char *block)
{
    for (int t = 0; t < 16; t++, block += 4)
        w[t] = (uint32_t)block[0] << 24 | (uint32_t)block[1] << 16 |
               (uint32_t)block[2] << 8 | block[3];
    for (int t = 16; t < 80; t++)
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
}

static void take(uint32_t state[5], const unsigned char *block)
{
    uint32_t w[80], v[5];
    expand(w, block);
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 80; t++) {
        uint32_t next =
            rotate(v[0], 5) + mix(t, v[1], v[2], v[3]) + v[4] + w[t];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotate(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (int i = 0; i < 5; i++)
        state[i] += v[i];
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
