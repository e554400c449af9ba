/*
 * Who waits for whom, among the owners of one client, and whether they wait in
 * a circle: each for a lock that the next one holds. See deadlock.c.
 */
#ifndef RL_HOLD_DEADLOCK_H
#define RL_HOLD_DEADLOCK_H

#include "hold/hold.h"

/* What an owner waits for; of who waits, under the table's mutex. */
typedef struct rl_awaited {
    rl_owner_record *record; /* whose; counted, and only written by who waits.
                                NULL: it is not noted */
    const rl_target *what;
    struct rl_awaited *ahead, *next; /* while circles are looked for */
    uint64_t walk;                   /* the latest search that has met it */
} rl_awaited;

/*
 * The owner, which holds something, is about to wait for a lock. False: it
 * would be the last of a circle, *f tells which, and nothing is noted.
 * Otherwise it is noted, unless nobody can wait for it here; *w and `what` have
 * to stay until rl_wait_ends().
 */
bool rl_wait_begins(rl_holds *t, const rl_owner *owner, const rl_target *what,
                    int64_t now_us, rl_awaited *w, rl_fault *f);
void rl_wait_ends(rl_holds *t,
                  rl_awaited *w); /* no effect if it is not noted */

/*
 * Who reads beside others wants to write, for which this is a draft: it would wait
 * for ever if one of them wanted that, too. *f tells one of them, if it is one of
 * this client.
 */
void rl_wait_is_refused(rl_holds *t, const rl_hold *draft, int64_t now_us,
                        rl_fault *f);

#endif
