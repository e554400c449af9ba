/*
 * command [URI]: one Redis command that is executed only while we hold the
 * lock.
 *
 * The last visitor's name lies in the same Redis as the lock. rlock_command()
 * writes it, and the server itself looks, in the same step, whether this hold
 * still has the lock: who lost it meanwhile writes nothing, however late he is.
 * The names share their braces, so that in a cluster they lie together.
 */
#define _POSIX_C_SOURCE 200809L
#include "data.h"

static const char name[] = "{example:command}",
                  key[] = "{example:command}:data";

static rlock_status write_name(rlock *lock, const char *who)
{
    redisReply *reply;
    rlock_status s = rlock_command(lock, &reply, "SET %s %s", key, who);
    printf("%s writes: %s\n", who,
           s == RLOCK_OK ? reply->str : rlock_last_error()->message);
    freeReplyObject(reply); /* NULL is fine */
    return s;
}

int main(int argc, char **argv)
{
    const char *uri = argc > 1 ? argv[1] : NULL;
    rlock_client *ada = new_client(uri), *bob = new_client(uri);
    redisContext *reader = data_connect(uri);
    rlock *adas, *bobs;
    print_lines();
    MUST(rlock_new(ada, name, &adas));
    MUST(rlock_new(bob, name, &bobs));

    MUST(rlock_lock(adas));
    bool ok = write_name(adas, "ada") == RLOCK_OK;
    MUST(rlock_force_unlock(bobs)); /* somebody thought that she hangs */
    MUST(rlock_lock(bobs));
    ok = write_name(bobs, "bob") == RLOCK_OK && ok;
    ok = write_name(adas, "ada") == RLOCK_LOST && ok; /* the server refused */

    redisReply *now = redisCommand(reader, "GET %s", key);
    ok = ok && now && now->str && strcmp(now->str, "bob") == 0;
    printf("it says: %s\n", now && now->str ? now->str : "nothing");
    freeReplyObject(now);
    MUST(rlock_unlock(bobs));
    (void)rlock_unlock(adas);
    data_number(reader, "DEL %s", key);
    redisFree(reader);
    rlock_free(adas);
    rlock_free(bobs);
    rlock_client_free(ada);
    rlock_client_free(bob);
    return ok ? 0 : 1;
}
