/* The judges: what has to be true, seen from all sides at once. */
#ifndef SIM_JUDGE_H
#define SIM_JUDGE_H

#include "owner.h"
#include "world.h"

/* A server has executed a script of the connection's client. */
void judge_call(conn *c, int script, size_t keys, const word *argv, size_t n,
                const char *reply, size_t len);

/* An owner has been told that it holds it, and what the verb came to. */
void judge_grant(owner *o, size_t name);
void judge_told(owner *o, rlock_status status);

/* The last unlock has been confirmed. */
void judge_release(owner *o, size_t name);

/* The owner's last unlock is about to be, or has been. */
void judge_end_of_hold(owner *o, size_t name);

/* The program is told that a hold is lost. */
void judge_loss(client *c, const rl_hold *h);

void judge_abandoned(client *c, const rl_hold *h); /* likewise */
void judge_untold(client *c, const rl_hold *h);    /* nobody is */

void judge_step(world *w); /* after each */

/* judge_handed.c: an owner has been handed a lock; is it told? */
void judge_handing_over(owner *o, size_t name, const word *holder);
void judge_handed(owner *o, size_t name);

/* judge_rest.c: progress, and what remains. */
void judge_progress(world *w, size_t name);
void judge_freeing(world *w, size_t name); /* a release was executed */
void judge_client(client *c);              /* about to be closed, all quiet */
void judge_end(world *w);                  /* when nothing happens any more */
void judge_accounts(owner *o);             /* about to be closed */

/* judge_watch.c: is it noticed that a server has lost its data? */
void judge_watch(world *w);

/* ending.c */
void ending_leaves(client *c, size_t name, const rl_hold *h);
void judge_leftovers(world *w);
void judge_abandons(const owner *o, const account *x, bool was_lost);

/* judge_multi.c */
void judge_lost(const owner *o, rlock_status status); /* of an acquire */
void judge_union(owner *o, const handle *m);
void judge_nothing_taken(owner *o, const handle *m); /* a try has failed */
void judge_view(owner *o, const handle *m, int count);
void judge_holder(owner *o, const rlock_holder *holder);
void judge_circles(world *w, const owner *from);

/* --- between the judges --------------------------------------------------- */

const char *judge_name_of(const world *w, size_t name);
/* NAMES_MAX: none. */
size_t judge_find_name(const world *w, const server *s, const word *name);

account *judge_account(owner *o, const rl_hold *h); /* NULL: none */

/* May it have been lost through nobody's fault since it was granted? */
bool judge_excuses(const owner *o, size_t name);
unsigned judge_harm(const world *w, size_t name);
bool judge_excuses_tokens(const world *w, size_t name);

/* judge_drift.c */
void judge_note_lease(world *w, server *s, size_t name);
bool judge_excuses_drift(const owner *o, size_t name);
owner *judge_owner_of(world *w, const word *holder); /* NULL: none */

/* Is the owner told, now, that it holds it? */
bool judge_believes(owner *o, size_t name);

/* A thread that is due runs within this, if its process does; and has it? */
int64_t judge_latency_us(const world *w);
bool judge_has_run_since(const owner *o, int64_t true_us);

/* What the server counts for a hold in the hash layout; -1: nothing. */
long long judge_counted(world *w, size_t name, const rl_hold *h);
bool judge_is_hash(const world *w, size_t name);

#endif
