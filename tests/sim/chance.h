/*
 * Where all chance comes from: one generator for the world, and one for the
 * library's own, which chance.c gives the core instead of base/random.c. Both
 * are set by the seed, so that a seed is a history.
 */
#ifndef SIM_CHANCE_H
#define SIM_CHANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct chance {
    uint64_t state[4];
} chance;

void chance_init(chance *c, uint64_t seed);
uint64_t chance_next(chance *c);

/* From 0 to limit - 1; and from..to, both included. */
int64_t chance_below(chance *c, int64_t limit);
int64_t chance_between(chance *c, int64_t from, int64_t to);

/* True in so many of a million times. */
bool chance_ppm(chance *c, int64_t ppm);

/* Mostly small ones, now and then one near the limit. */
int64_t chance_skewed(chance *c, int64_t limit);

/* The library's. */
void chance_seed_library(uint64_t seed);

#endif
