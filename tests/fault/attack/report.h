/*
 * What a person reads: DIR/report.md, with the figures and what to make of
 * them, and DIR/timeline.svg.
 */
#ifndef ATTACK_REPORT_H
#define ATTACK_REPORT_H

#include "judge.h"

typedef struct goals {
    uint64_t grants;
    int faults, kinds;
} goals;

/* So many grants and faults, and so many kinds of faults. */
bool goals_reached(const goals *g, const arena *a);
/* Has all gone well? Says so on stdout, too. */
bool report(const char *dir, const arena *a, const verdict *v, const goals *g);

/* timeline.c */
void timeline(const char *path, const arena *a, const verdict *v);

#endif
