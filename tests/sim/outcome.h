/* What came of a seed: the child that ran it leaves it in shared memory. */
#ifndef SIM_OUTCOME_H
#define SIM_OUTCOME_H

#include <stdbool.h>
#include <stdint.h>

typedef struct outcome {
    bool is_complete; /* it came to its end */
    uint64_t hash;
    unsigned long calls, switches, scripts, faults, threads;
    unsigned long acquires, losses;
    int64_t simulated_ns;
    char finding[1200];
    char complaint[300]; /* the same without what differs from run to run */
    char where[80];
} run_outcome;

extern run_outcome *outcome;

#endif
