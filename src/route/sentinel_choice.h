/*
 * Which master is in office, of what Sentinels say. No I/O, no thread.
 *
 * All that one asking has brought is judged together. Whom most of them name
 * counts, with the epoch that most of these say; and while they do not agree,
 * the highest epoch. In the middle of a failover the Sentinel that leads it has
 * the new epoch with the old address for a second, and says that the failover
 * is in progress; the others have the new address already. So with the same
 * epoch what such a one says counts only when nobody says anything else, and
 * never against a master in office.
 *
 * Nobody takes office by a lower epoch than that of the master in office, unless
 * most of them give that one a lower epoch by now: who says so may have been cut
 * off. When most of them do, that is a dispute, and a
 * new era may begin (route/era.h). From then on an epoch of an era before is
 * none: only most of them can speak for it.
 */
#ifndef RL_ROUTE_SENTINEL_CHOICE_H
#define RL_ROUTE_SENTINEL_CHOICE_H

#include "net/dial.h"
#include "route/era.h"
#include "wire/table.h"

/* What one Sentinel says. */
typedef struct rl_sentinel_answer {
    rl_place place;
    int64_t epoch;
    int64_t others; /* so many other Sentinels it knows of */
    bool passing;   /* a failover is in progress: it may be another one soon */
} rl_sentinel_answer;

typedef struct rl_sentinel_choice {
    rl_place master; /* nth 0: none yet */
    int64_t epoch;
    int64_t began;  /* epochs before this one are of another era */
    rl_place rival; /* whom most name instead, */
    int64_t rival_epoch;
    unsigned in_row; /* in so many askings, in none of which the master in
                        office was there */
} rl_sentinel_choice;

typedef enum rl_ruling {
    RL_CHOICE_STAYS,
    RL_CHOICE_CHANGES, /* there is another master than before */
    RL_CHOICE_DISPUTED /* it stays, but most name another one:
                          rl_sentinel_choice_look() has to be told whether it
                          is still there */
} rl_ruling;

rl_ruling rl_sentinel_choice_judge(rl_sentinel_choice *o,
                                   const rl_sentinel_answer *said, size_t n);

/*
 * In a dispute: the master in office answers, as a master, or does not. True:
 * that was it, there is another one.
 */
bool rl_sentinel_choice_look(rl_sentinel_choice *o, bool present);

/* Who is settled, and does not name the master in office; NULL: nobody. */
const rl_sentinel_answer *
rl_sentinel_choice_dissenter(const rl_sentinel_choice *o,
                             const rl_sentinel_answer *said, size_t n);

/* The answer to "SENTINEL MASTER name". False: it is none. */
bool rl_sentinel_choice_read(const rl_table *t, rl_sentinel_answer *s);

/* The list of names and values behind the cell, as a place. */
bool rl_sentinel_choice_read_place(const rl_table *t, size_t list,
                                   rl_place *place);

#endif
