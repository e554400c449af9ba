/*
 * SHA-1 (FIPS 180-4), by which Redis names scripts. Whoever can make two texts
 * of one sum may as well send the other text: nothing here is a secret.
 */
#ifndef RL_BASE_SHA1_H
#define RL_BASE_SHA1_H

#include <stddef.h>
#include <stdint.h>

/* Of the sum as Redis writes it, without the NUL. */
#define RL_SHA1_LEN 40

typedef struct rl_sha1 {
    uint32_t state[5];
    uint64_t len; /* bytes so far */
    unsigned char block[64];
} rl_sha1;

void rl_sha1_begin(rl_sha1 *s);
void rl_sha1_add(rl_sha1 *s, const void *bytes, size_t len);
void rl_sha1_end(rl_sha1 *s, char sum[RL_SHA1_LEN + 1]);

#endif
