/* Plain hiredis, for what must not depend on the library. */
#ifndef TEST_SUPPORT_DIRECT_H
#define TEST_SUPPORT_DIRECT_H

#include <hiredis/hiredis.h>

#include "test.h"

/* With this limit for each answer, and so that a break is an error. */
redisContext *ready(redisContext *cx, int limit_ms);
/* To the socket at this path. */
redisContext *connect_to(const char *path, int limit_ms);
/* Has a command a reply with this text? NULL: it has none. */
void expect_reply(redisContext *cx, const char *cmd, const char *wanted);
/* For test_spawn() with a context: INCR n, and its answer; -1: none. */
intptr_t incr_slowly(void *arg);

#endif
