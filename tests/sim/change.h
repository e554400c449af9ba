/*
 * A change of masters, which goes on in steps: one that dies, is noticed, is
 * replaced and comes back, say. Of a cluster, or where Sentinels watch; only one
 * is under way at a time.
 */
#ifndef SIM_CHANGE_H
#define SIM_CHANGE_H

#include "world.h"

typedef struct master_change {
    bool is_on;
    int old, heir; /* servers */
    int64_t began;
    event next;
} master_change;

extern master_change change;

/* It begins, with these two; and goes on with that, after so long. */
void change_begin(int old, int heir);
void change_then(void (*fire)(event *e), int64_t ns);

/* The last step: another one may come. */
void change_settled(event *e);

#endif
