/*
 * A way to a TCP port of 127.0.0.1 that lets only so many bytes through, or
 * only one at a time; for what is encrypted, where a proxy has nothing to tell
 * requests by. It runs on a thread of the test's process.
 */
#ifndef TEST_SUPPORT_SLOW_PORT_H
#define TEST_SUPPORT_SLOW_PORT_H

#include "test.h"

typedef struct slow_port slow_port;

enum { SLOW_PORT_ALL = 1 << 30 };

/* All bytes pass, as they come. */
slow_port *slow_port_start(int port);
void slow_port_stop(slow_port *t);
int slow_port_port(const slow_port *t);

/*
 * From now on so many bytes may still come from the server on each new
 * connection; the rest never does, and nothing is closed.
 */
void slow_port_stall_after(slow_port *t, int bytes);
/* What comes from the server arrives one byte at a time. */
void slow_port_one_by_one(slow_port *t);
/* Bytes that have come from the server on the connection made last. */
int slow_port_passed(const slow_port *t);
/* So many connections have been made. */
int slow_port_connections(const slow_port *t);

#endif
