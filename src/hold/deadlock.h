/*
 * Who waits for whom, among the owners of one client, and whether they wait in
 * a circle: each for a lock that the next one holds. See deadlock.c.
 */
#ifndef RL_HOLD_DEADLOCK_H
#define RL_HOLD_DEADLOCK_H

#include "hold/hold.h"

/*
 * The owner, which holds something, is about to wait for a lock. False: it
 * would be the last of a circle, *f tells which, and nothing is noted.
 * Otherwise *noted is where it is; NULL: nowhere, as nobody can wait for it
 * here. `what` has to stay until rl_wait_ends().
 */
bool rl_wait_begins(rl_holds *t, const rl_owner *owner, const rl_target *what,
                    int64_t now_us, rl_owner_record **noted, rl_fault *f);
void rl_wait_ends(rl_holds *t, rl_owner_record *noted); /* NULL is accepted */

/*
 * Who reads beside others wants to write, for which this is a draft: it would wait
 * for ever if one of them wanted that, too. *f tells one of them, if it is one of
 * this client.
 */
void rl_wait_is_refused(rl_holds *t, const rl_hold *draft, int64_t now_us,
                        rl_fault *f);

#endif
