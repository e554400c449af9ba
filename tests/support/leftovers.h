/*
 * Which keys a test may leave at a server.
 */
#ifndef TEST_SUPPORT_LEFTOVERS_H
#define TEST_SUPPORT_LEFTOVERS_H

#include "server.h"

/* Nothing is there but token keys, and they go by themselves. */
void expect_nothing_left(server *sv);
/* The same, but there may be tombstones of the last minute. */
void expect_all_undone(server *sv);
/* It is so soon: the client's threads undo what is in doubt in their time. */
void await_all_undone(server *sv);

#endif
