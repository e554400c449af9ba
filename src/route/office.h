/*
 * Which master is in office, of what Sentinels have said so far. No I/O, no
 * thread.
 *
 * The highest epoch counts, and never one lower than that of the master in
 * office. In the middle of a failover the Sentinel that leads it tells the new
 * epoch with the old address for a second, while the others have the new one;
 * so with the same epoch another address counts too, but not one that has been
 * left.
 */
#ifndef RL_ROUTE_OFFICE_H
#define RL_ROUTE_OFFICE_H

#include "net/dial.h"
#include "wire/table.h"

typedef struct rl_office {
    rl_place master; /* nth 0: none yet */
    rl_place left;   /* the one before */
    int64_t epoch;
} rl_office;

/*
 * A Sentinel says that it is this one, by that epoch. True: it is another one
 * than before, and *now gets it.
 */
bool rl_office_hear(rl_office *o, const rl_place *said, int64_t epoch,
                    rl_place *now);

/*
 * Reads the list of names and values behind the cell: a place, and, unless
 * epoch is NULL, its epoch. False: it is none.
 */
bool rl_office_read(const rl_table *t, size_t list, rl_place *place,
                    int64_t *epoch);

#endif
