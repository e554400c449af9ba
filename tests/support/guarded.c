#include "guarded.h"

rlock_status eval(rlock *lk, const char *script, redisReply **r)
{
    return rlock_eval(lk, script, 0, 0, NULL, NULL, r);
}

void expect_answer(rlock *lk, const char *script, int type)
{
    redisReply *r;
    EXPECT_STATUS(eval(lk, script, &r), RLOCK_OK);
    EXPECT_INT(r->type, type);
    freeReplyObject(r);
}
