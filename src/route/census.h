/*
 * Whether those who have slots are still there: asked of one server, and if
 * that does not know them all, of the others, too. A server of another cluster
 * may have the address of one of ours, and knows nobody; the same is said by
 * all when ours was made anew. So it is counted who knows whom.
 *
 * The loop's. What is asked of whom, the cluster's asking does (canvass.c).
 */
#ifndef RL_ROUTE_CENSUS_H
#define RL_ROUTE_CENSUS_H

#include "route/slotmap.h"

/* Begins with the first answer, which has come into *said; that one, or another
   that there is memory for, takes the next; NULL: there is none. */
void rl_census_begin(rl_cluster *c, rl_slotmap_reply **said);

/* Whom to ask next. False: nobody, or there is no memory for what he says. */
bool rl_census_next(rl_cluster *c, const rl_slotmap_reply *said, rl_place *at);

/* He has answered; *said as for rl_census_begin(). */
void rl_census_take(rl_cluster *c, rl_slotmap_reply **said);

/*
 * *said becomes the answer that is to be judged: a map of ours, or a stranger's
 * if nobody of ours was found. True: somebody was not found, and is to be
 * looked for again.
 */
bool rl_census_end(rl_cluster *c, rl_slotmap_reply **said);

/* Ends it with nothing. */
void rl_census_drop(rl_cluster *c);

/* Whom to ask when all masters that are known have gone: their replicas, as a
   map of ours has them. */
void rl_census_note_replicas(rl_cluster *c, const rl_slotmap_reply *said);

#endif
