/* Guarded scripts without keys and arguments, and what they answer. */
#ifndef TEST_SUPPORT_GUARDED_H
#define TEST_SUPPORT_GUARDED_H

#include <hiredis/hiredis.h>

#include "scene.h"

/* The reply is the caller's. */
rlock_status eval(rlock *lk, const char *script, redisReply **r);
/* It is executed, and its reply is of this type of hiredis. */
void expect_answer(rlock *lk, const char *script, int type);

#endif
