/*
 * The slot of a key in a cluster: CRC16 of the key, or of what stands between
 * its first "{" and the next "}", if that is something (Redis Cluster
 * specification, "Hash tags").
 */
#ifndef RL_WIRE_HASH_SLOT_H
#define RL_WIRE_HASH_SLOT_H

#include <stdbool.h>
#include <stddef.h>

#define RL_HASH_SLOTS 16384

unsigned rl_hash_slot(const void *key, size_t len);

/*
 * Do the keys that go with a lock of this name lie in its slot? They carry the
 * name behind "{" (lua/README.md), so "a", "{a}" and "a{b}c" are fine, and
 * "a{b", "a}b", "{}x" are not.
 */
bool rl_hash_slot_fits(const void *name, size_t len);

#endif
