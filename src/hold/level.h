/*
 * Levels as they are counted here, without the server: by who acts as the
 * hold's owner. These take the table's mutex by themselves.
 */
#ifndef RL_HOLD_LEVEL_H
#define RL_HOLD_LEVEL_H

#include "hold/hold.h"

/*
 * One level more that the server is not told of. False: the hold is not good
 * any more, or has not the lease that this level wants, or its count is at its
 * end; nothing has changed, and the server is to be asked.
 */
bool rl_hold_count_up(rl_holds *t, rl_hold *h, int64_t lease_ms,
                      int64_t now_us);

/* What counting down has found. */
typedef enum rl_counted {
    RL_COUNTED,      /* it is to be released */
    RL_COUNTED_LOST, /* the hold was not good any more */
    RL_COUNTED_OVER  /* somebody else has ended it: its owner was freed */
} rl_counted;

/*
 * Counts down to a level locally. At 0 the hold is out of the table and its
 * reference the caller's, until the end of the release; unless it is over.
 */
rl_counted rl_hold_count_down(rl_holds *t, rl_hold *h, int level,
                              int64_t now_us);

/*
 * The same on a node of a Red lock, which may not have the hold, or not yet, or
 * not any more: what may have come of it, or may yet, is undone then. True: it
 * is to be released there.
 */
bool rl_hold_count_down_node(rl_holds *t, rl_hold *h, int level,
                             int64_t now_us);

#endif
