/*
 * A way to a TCP port of 127.0.0.1 that lets only so many bytes through, or
 * only one at a time; for what is encrypted, where a proxy has nothing to tell
 * requests by. It runs on a thread of the test's process.
 */
#ifndef TEST_SUPPORT_TRICKLE_H
#define TEST_SUPPORT_TRICKLE_H

#include "test.h"

typedef struct trickle trickle;

enum { TRICKLE_ALL = 1 << 30 };

/* All bytes pass, as they come. */
trickle *trickle_start(int port);
void trickle_stop(trickle *t);
int trickle_port(const trickle *t);

/*
 * From now on so many bytes may still come from the server on each new
 * connection; the rest never does, and nothing is closed.
 */
void trickle_stall_after(trickle *t, int bytes);
/* What comes from the server arrives one byte at a time. */
void trickle_one_by_one(trickle *t);
/* Bytes that have come from the server on the connection made last. */
int trickle_passed(const trickle *t);
/* So many connections have been made. */
int trickle_connections(const trickle *t);

#endif
