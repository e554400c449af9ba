#include "direct.h"

#include <signal.h>
#include <sys/time.h>

redisContext *ready(redisContext *cx, int limit_ms)
{
    struct timeval limit = {limit_ms / 1000, limit_ms % 1000 * 1000};
    signal(SIGPIPE, SIG_IGN);
    EXPECT(cx && !cx->err);
    EXPECT_INT(redisSetTimeout(cx, limit), REDIS_OK);
    return cx;
}

redisContext *connect_to(const char *path, int limit_ms)
{
    return ready(redisConnectUnix(path), limit_ms);
}

void expect_reply(redisContext *cx, const char *cmd, const char *wanted)
{
    redisReply *reply = redisCommand(cx, cmd);
    if (!wanted) {
        EXPECT(!reply);
        return;
    }
    EXPECT(reply);
    EXPECT_STR(reply->str, wanted);
    freeReplyObject(reply);
}

intptr_t incr_slowly(void *arg)
{
    redisContext *cx = arg;
    redisReply *reply = redisCommand(cx, "INCR n");
    intptr_t n = reply ? (intptr_t)reply->integer : -1;
    if (reply)
        freeReplyObject(reply);
    return n;
}
