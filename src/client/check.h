/* What is asked of a server before a client relies on it. */
#ifndef RL_CLIENT_CHECK_H
#define RL_CLIENT_CHECK_H

#include "run/engine.h"

/*
 * Checks the server on the connection that the keeper will keep: it has to
 * have one before the first hold. lazy: a server that cannot be reached is
 * checked later. Otherwise the thread's error is set.
 */
rlock_status rl_check_server(rl_engine *e, bool lazy);

/*
 * What a client that goes on wants to know: which rights are missing at this
 * server, in words, "" none; and may its user ring, and listen to, bells? False:
 * it is not told.
 */
bool rl_check_missing(rl_node *n, rl_conn *c, int64_t until_us, char *out,
                      size_t size, bool *rings);
bool rl_check_bell(rl_node *n, rl_conn *c, int64_t until_us, bool *allowed);

/* A new connection. False: it cannot be used. */
bool rl_check_connection(rl_node *n, rl_conn *c, int64_t deadline_us,
                         rl_fault *f);

#endif
