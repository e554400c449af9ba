/*
 * Whether those who have slots are still there: asked of one server, and if
 * that does not know them all, of the others, too. A server of another cluster
 * may have the address of one of ours, and knows nobody; the same is said by
 * all when ours was made anew. So it is counted who knows whom.
 *
 * Called by the cluster's thread.
 */
#ifndef RL_ROUTE_CENSUS_H
#define RL_ROUTE_CENSUS_H

#include "route/slotmap.h"

/*
 * *said: an answer, and then the one that is to be judged: a map of ours, or a
 * stranger's if nobody of ours was found. ask() asks who is there, and may
 * fail. True: somebody was not found, and is to be looked for again.
 */
bool rl_census_take(rl_cluster *c, rl_slotmap_reply **said,
                    bool (*ask)(rl_cluster *c, rl_slotmap_reply *into,
                                const rl_place *at));

/* Whom to ask when all masters that are known have gone: their replicas, as a
   map of ours has them. */
void rl_census_note_replicas(rl_cluster *c, const rl_slotmap_reply *said);

#endif
