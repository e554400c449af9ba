/*
 * A master with its replica, and Sentinels that watch them: real processes,
 * quick to notice and to fail over. The Sentinels are killed by the kernel when
 * the test's process dies.
 */
#ifndef TEST_SUPPORT_SENTINELS_H
#define TEST_SUPPORT_SENTINELS_H

#include "secure.h"
#include "server.h"

/* What the Sentinels call the master. */
#define SENTINELS_MASTER "main"

typedef struct sentinels sentinels;

/* A replica of the master that has all its data. */
server *replica_start(server *master);
/* The same over TLS, by these ports; *port becomes the replica's. */
server *replica_start_secure(server *master, int master_port,
                             const authority *a, int *port);

/* Has a replica what is written now? */
bool replica_follows(server *master);

/*
 * n of them (at most 5), who know each other and a replica.
 */
sentinels *sentinels_start(server *master, int n);
/* The same for a master that is reached by another port of 127.0.0.1. */
sentinels *sentinels_start_at(int master_port, int n);
/* The same for several masters (at most 3), each with a replica. What names no
   master below is about the first one. */
sentinels *sentinels_start_several(server *const master[], int masters, int n);
/* For one master; they want a password. */
sentinels *sentinels_start_guarded(server *master, int n, const char *password);
/* One that speaks TLS with all, and listens for it on a port of its own. */
sentinels *sentinels_start_secure(int master_port, const authority *a);
void sentinels_stop(sentinels *s);
/* All of them, as a URI; valid until the stop. */
const char *sentinels_uri(const sentinels *s);
const char *sentinels_uri_of(const sentinels *s, int i);
int sentinels_port(const sentinels *s, int i);
int sentinels_secure_port(const sentinels *s); /* of one that speaks TLS */

/* A command, whose words are those between blanks; fails the test. */
void sentinels_say(sentinels *s, int i, const char *command);
void sentinels_kill(sentinels *s, int i);  /* SIGKILL */
void sentinels_pause(sentinels *s, int i); /* SIGSTOP */

/* One of them forgets the master, if it has not; and is told to watch this
   server, as the first that it ever heard of: its epoch begins anew. Another
   one that knows it would tell it what it remembers. */
void sentinels_forget(sentinels *s, int i);
void sentinels_monitor(sentinels *s, int i, const server *master);

/* How many of them name this server as the master. */
int sentinels_naming(sentinels *s, const server *master);
/* Do all of them, and see that it is well, and a replica that could follow? */
bool sentinels_agree(sentinels *s, const server *master);
/* The highest number that a failover has been given. */
long long sentinels_epoch(sentinels *s);
/* Until so many of them name the server as the master. */
void sentinels_await(sentinels *s, const server *master, int n);
/* Until so many of them have a subscriber that is none of them. */
void sentinels_await_client(sentinels *s, int n);
/*
 * Has the first one begin a failover now, and again should it be refused or
 * given up, as it is when it takes them too long; until one of them names the
 * heir. False: none has, within limit_ms.
 */
bool sentinels_fail_over(sentinels *s, const server *heir, int limit_ms);
/* So long an election may take that fails a few times: they begin again after
   four seconds, and more. */
#define ELECTED_SOON 45000

#endif
