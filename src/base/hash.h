/*
 * SipHash-2-4 (Aumasson and Bernstein, 2012): names come from outside, and who
 * does not know the key cannot choose names that collide and so make every
 * look-up of a table long.
 */
#ifndef RL_BASE_HASH_H
#define RL_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Once for the process, before the first hash: draws the key. Without it, or
 * without randomness, the key is 0.
 */
void rl_hash_draw_key(void);

/* The salt keeps apart what has the same bytes; 0: none. */
uint64_t rl_hash(const void *bytes, size_t len, uint64_t salt);

/* The same with a key of the caller's. */
uint64_t rl_hash_keyed(const uint64_t key[2], const void *bytes, size_t len,
                       uint64_t salt);

#endif
