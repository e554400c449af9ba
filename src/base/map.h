/*
 * A hash table, intrusive and chained: what is stored embeds an rl_map_node
 * and is compared by a callback. It grows by itself; when there is no memory
 * for that, chains just get longer, so adding fails only while the table has
 * no buckets at all (rl_map_init says so).
 */
#ifndef RL_BASE_MAP_H
#define RL_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h" /* RL_CONTAINER */

typedef struct rl_map_node {
    struct rl_map_node *next;
    uint64_t hash;
} rl_map_node;

typedef bool rl_map_equal(const rl_map_node *n, const void *key);

typedef struct rl_map {
    rl_map_node **buckets;
    size_t size, count; /* size: a power of two */
    rl_map_equal *equal;
} rl_map;

/* equal may be NULL: then none is looked for by its key. */
bool rl_map_init(rl_map *m, rl_map_equal *equal);
void rl_map_fini(rl_map *m);
rl_map_node *rl_map_find(const rl_map *m, uint64_t hash, const void *key);
void rl_map_add(rl_map *m, rl_map_node *n, uint64_t hash);
void rl_map_remove(rl_map *m, rl_map_node *n);

/* Calls fn for every node; fn may remove the node it is given. */
void rl_map_each(rl_map *m, void (*fn)(rl_map_node *n, void *arg), void *arg);

/* The same for the nodes that were added with this hash. */
void rl_map_each_of(rl_map *m, uint64_t hash,
                    void (*fn)(rl_map_node *n, void *arg), void *arg);

#endif
