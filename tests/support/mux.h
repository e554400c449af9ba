/*
 * A multiplexing proxy, of the kind of Envoy and twemproxy: all who connect to
 * its Unix socket share one connection to the server, command by command. To
 * the server they are one client, and commands that need a connection of their
 * own are refused.
 */
#ifndef TEST_SUPPORT_MUX_H
#define TEST_SUPPORT_MUX_H

#include "server.h"

typedef struct mux mux;

mux *mux_start(server *sv);
void mux_stop(mux *m); /* before server_stop() */
const char *mux_uri(const mux *m);
/* Commands that were refused so far. */
int mux_refusals(mux *m);

#endif
