/*
 * An era: as long as epochs can be compared. A failover gives the new master a
 * higher one than any before, so the highest counts, and who says less has been
 * cut off. But when Sentinels are told to watch another master, or a cluster is
 * made anew at its addresses, epochs begin anew, too, and who went by them
 * alone would believe for ever in a master that is gone.
 *
 * So a new era begins when in so many askings in a row whoever is in office was
 * not there, and more than half of those who answered named somebody else. It
 * takes some, as one may come in the middle of a restart.
 */
#ifndef RL_ROUTE_ERA_H
#define RL_ROUTE_ERA_H

#define RL_ERA_ASKINGS 3

#endif
