/*
 * An asking of a cluster for its map, a step at a time: who denied what the
 * client believes, or who was asked last, or one after the other until somebody
 * has answered; and, when he does not know all who are in office, the others
 * (census.h). The loop's; nothing here blocks.
 */
#ifndef RL_ROUTE_CANVASS_H
#define RL_ROUTE_CANVASS_H

#include "route/slotmap.h"

void rl_canvass_init(rl_cluster *c);

/* Begins one. Out of memory: c->said is NULL, and it is over. */
void rl_canvass_begin(rl_cluster *c);

/* Goes on as far as it goes now. True: it is over; c->answered: *c->said is the
   latest answer, and the census is to be ended. */
bool rl_canvass_is_over(rl_cluster *c);

/* When to do so again, if nothing comes before. */
int64_t rl_canvass_due_us(rl_cluster *c);

/* Who was asked is asked no more. */
void rl_canvass_hang_up(rl_cluster *c);

#endif
