/* A program with a hiredis of its own, which rlock was not compiled for. */
#include <rlock/rlock.h>

#include <hiredis/hiredis.h>
#include <stdio.h>

int main(void)
{
    rlock_client *cl;
    redisContext *own = redisConnectFd(-1);
    rlock_status s = rlock_client_new(NULL, &cl);
    redisFree(own);
    printf("%s: %s\n", rlock_status_str(s), rlock_last_error()->message);
    return s == RLOCK_ENOTSUP && !cl ? 0 : 1;
}
