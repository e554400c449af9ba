/* One world from begin to end; and the smallest that fails in the same way. */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "world.h"

typedef struct outcome {
    bool failed;
    uint64_t history;
    char failure[512];
    const char *complaint; /* of world.h */
    figures figures;
} outcome;

void run_world(uint64_t dice, const config *set, bool traces, outcome *out);

/* "cut=0,owners=1,world=7". False: it is not understood. */
bool config_set(config *c, uint64_t *dice, const char *list);

/* Tells how to run what it comes to. */
void shrink(uint64_t seed, const config *set);

#endif
