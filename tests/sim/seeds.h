/* Seeds, one after the other, each in a process of its own. */
#ifndef SIM_SEEDS_H
#define SIM_SEEDS_H

#include "outcome.h"
#include "world.h"

typedef struct options {
    uint64_t from, seeds;
    int traces;
    bool twice, first, verbose, shrinks;
    const char *set;
} options;

/* The exit status. */
int seeds_run(const options *o);

/* False: it was interrupted. What came of it is in `outcome`. */
bool seeds_run_one(const config *c, int traces);

bool seeds_failed(void);

/* The smallest world of the seed that fails in the same way is told. */
void shrink(const options *o, uint64_t seed);

#endif
