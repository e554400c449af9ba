/* The judges: what has to be true, seen from all sides at once. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "owner.h"
#include "world.h"

/* A server has executed a script of the connection's client. */
void judge_call(conn *c, int script, const word *argv, size_t n,
                const char *reply, size_t len);

/* An owner has been told that it holds it, and what the verb came to. */
void judge_grant(owner *o, size_t name);
void judge_told(owner *o, rlock_status status);

/* The owner's last unlock is about to be, or has been. */
void judge_end_of_hold(owner *o, size_t name);

/* The program is told that a hold is lost. */
void judge_loss(client *c, const rl_hold *h);

void judge_step(world *w); /* after each */

/* judge_rest.c: progress, and what remains. */
void judge_progress(world *w, size_t name);
void judge_freeing(world *w, size_t name); /* a release was executed */
void judge_client(client *c);              /* about to be closed, all quiet */
void judge_end(world *w);                  /* when nothing happens any more */
void judge_accounts(owner *o);             /* about to be closed */

#endif
