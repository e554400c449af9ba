/*
 * The longest lease that was used of late for each name of a Red lock. A node
 * that has restarted may have forgotten a vote for so long.
 *
 * A lease is remembered until twice its length after it was last asked for;
 * then it has run out everywhere, and so have those that others asked for
 * soon after.
 */
#ifndef RL_HOLD_LONGEST_H
#define RL_HOLD_LONGEST_H

#include "base/map.h"
#include "base/thread.h"

typedef struct rl_longest {
    rl_mutex mutex;
    rl_map map;
} rl_longest;

bool rl_longest_init(rl_longest *l);
void rl_longest_fini(rl_longest *l, bool forked);

/* A lease is about to be asked for. False: out of memory. */
bool rl_longest_note(rl_longest *l, const char *name, size_t len,
                     int64_t lease_ms, int64_t now_us);

/* 0: none is remembered. */
int64_t rl_longest_ms(rl_longest *l, const char *name, size_t len,
                      int64_t now_us);

#endif
