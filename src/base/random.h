/* Randomness: ids that must never repeat, and jitter that may. */
#ifndef RL_BASE_RANDOM_H
#define RL_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#define RL_UUID_LEN 36

typedef struct rl_uuid {
    unsigned char bytes[16];
} rl_uuid;

/*
 * A random (version 4) uuid. The kernel is asked every time: no pool
 * that a fork or a cloned machine would hand out twice. False: the kernel gave
 * no randomness.
 */
bool rl_uuid_new(rl_uuid *out);

/* In lower case. */
void rl_uuid_write(const rl_uuid *id, char out[RL_UUID_LEN + 1]);

/* Anything from 0 up to limit - 1. Each thread, and each process, has a series
   of its own, whose beginning is the kernel's. */
int64_t rl_random_below(int64_t limit);

/* value plus or minus up to a quarter, so that clients do not march in step. */
int64_t rl_jitter(int64_t value);

#endif
