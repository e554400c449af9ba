/*
 * Where most locks are: at one server; at a master with a replica, which three
 * Sentinels watch; or in a cluster of three masters with a replica each. What
 * depends on which of these it is, is here. No function returns an error: what
 * cannot be done ends the attack.
 */
#ifndef ATTACK_HOME_H
#define ATTACK_HOME_H

#include "attack.h"
#include "server.h"

enum { MASTERS_MAX = 3 };

typedef struct home home;

home *home_start(home_kind kind);
void home_stop(home *h);
const char *home_uri(const home *h);

/*
 * Until one more master can go: all agree on who is one, and each has a replica
 * with all its data. Whose the masters are is known from then on.
 */
void home_await_health(home *h);

/* As of then: those that grant, and how many. */
int home_masters(const home *h, server *masters[MASTERS_MAX]);
/* Is another number when a master has taken the place of another one. */
int64_t home_term(home *h);

/* Who is to follow this master. */
server *home_heir(home *h, const server *master);
/* Until all agree that it is a master. */
void home_await_master(home *h, server *sv);

/* One of them, as server_kill() and its kin do it. */
void home_kill(home *h, server *sv);
void home_restart(home *h, server *sv);
void home_pause(home *h, server *sv);
void home_resume(home *h, server *sv);

/* Has the heir take the place of a master that is well; in a cluster, by
   agreement, or without asking anybody. */
void home_fail_over(home *h, server *heir);
void home_take_over(home *h, server *heir);
/* Sentinels forget their master, and hear of the same one as of a new one: their
   epochs begin anew. A cluster ends, and another one begins at its addresses,
   without its data. */
void home_make_anew(home *h);
/* In a cluster: the slot of a key moves to another master, in three steps that
   are so far apart. */
void home_move_slot(home *h, const char *key, int64_t ms, uint64_t *rng);

#endif
