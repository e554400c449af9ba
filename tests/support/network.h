/*
 * A network of the test's own, for faults below TCP: two network namespaces
 * with a link between them. The test's process is on the near side, a server
 * on the far one. To be made before the test has any thread; needs root and
 * ip(8), and skips the test where these, or namespaces, are missing. It goes
 * with the test's process.
 */
#ifndef TEST_SUPPORT_NETWORK_H
#define TEST_SUPPORT_NETWORK_H

#include "server.h"

/* Where network_server() listens, and where packets vanish without a word. */
#define NETWORK_SERVER     "redis://10.99.0.2:6379"
#define NETWORK_BLACK_HOLE "redis://10.99.0.3:6379"

typedef struct network network;

network *network_new(void);
void network_free(network *n);

/* A server on the far side; the test's own commands go by its Unix socket,
   whatever becomes of the link. */
server *network_server(network *n);

/* Pulls the cable out, without a word to either side's connections, or puts it
   in again. */
void network_link(network *n, bool up);

#endif
