/* Where all chance comes from: a seed is a history. */
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

#endif
