/*
 * Which master is in office, of what Sentinels say. No I/O, no thread.
 *
 * All that one asking has brought is judged together. The highest epoch counts,
 * and never one lower than that of the master in office. In the middle of a
 * failover the Sentinel that leads it has the new epoch with the old address
 * for a second, and says that the failover is in progress; the others have the
 * new address already. So with the same epoch what such a one says counts only
 * when nobody says anything else, and never against a master in office.
 */
#ifndef RL_ROUTE_OFFICE_H
#define RL_ROUTE_OFFICE_H

#include "net/dial.h"
#include "wire/table.h"

/* What one Sentinel says. */
typedef struct rl_statement {
    rl_place place;
    int64_t epoch;
    bool passing; /* a failover is in progress: it may be another one soon */
} rl_statement;

typedef struct rl_office {
    rl_place master; /* nth 0: none yet */
    int64_t epoch;
} rl_office;

/* True: there is another master than before. */
bool rl_office_judge(rl_office *o, const rl_statement *said, size_t n);

/* The answer to "SENTINEL MASTER name". False: it is none. */
bool rl_office_read(const rl_table *t, rl_statement *s);

/* The list of names and values behind the cell, as a place. */
bool rl_office_read_place(const rl_table *t, size_t list, rl_place *place);

#endif
