/*
 * A long way to a server: a Unix socket, or a port, whose bytes arrive some
 * milliseconds later, in both directions, in whatever quantity. A proxy has
 * rules, this has nothing but the way. It runs on a thread of the test's
 * process.
 */
#ifndef TEST_SUPPORT_LAG_H
#define TEST_SUPPORT_LAG_H

#include "server.h"

typedef struct lag lag;

lag *lag_start(server *sv); /* no delay at first */
/* Every other connection is led to the other server. */
lag *lag_start_spread(server *sv, server *other);
/* To a port of 127.0.0.1, from another one; to connect takes there and back. */
lag *lag_start_tcp(int port);
int lag_port(const lag *l);
void lag_stop(lag *l); /* before server_stop() */
const char *lag_uri(const lag *l);
/* From now on each direction takes so long. */
void lag_set(lag *l, int one_way_ms);

#endif
