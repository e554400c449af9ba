/* Two keys of one hash, which chance gives once in 2^64 times. */
#ifndef UNIT_COLLIDE_H
#define UNIT_COLLIDE_H

#include "base/hash.h"
#include "base/map.h"

static inline void note_node(rl_map_node *n, void *at)
{
    *(rl_map_node **)at = n;
}

/* The only one in the map has this hash from now on. */
static inline void collide(rl_map *m, uint64_t hash)
{
    rl_map_node *n = NULL;
    rl_map_each(m, note_node, &n);
    rl_map_remove(m, n);
    rl_map_add(m, n, hash);
}

#endif
