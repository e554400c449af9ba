/*
 * Key and channel names of one lock. Side names follow Redisson's rule:
 * prefix:{name}, or prefix:name when the name has a { already, so that all
 * share the name's cluster slot. See lua/README.md.
 */
#ifndef RL_WIRE_KEYS_H
#define RL_WIRE_KEYS_H

#include <rlock/base.h>

#include "base/random.h"

#define RL_BELL_PREFIX "rlock_bell:"
#define RL_BELL_LEN    (sizeof RL_BELL_PREFIX - 1 + RL_UUID_LEN)

typedef struct rl_key {
    size_t len;
    char text[RLOCK_NAME_MAX + 80];
} rl_key;

rl_key rl_key_token(const void *name, size_t len);
rl_key rl_key_queue(const void *name, size_t len);
rl_key rl_key_redisson(const void *name, size_t len);
/* holder ends in the hold's uuid */
rl_key rl_key_tombstone(const void *name, size_t len, const char *holder);

#endif
