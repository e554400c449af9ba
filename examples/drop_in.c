/*
 * drop_in [URI]: rlock in a program that uses hiredis already.
 *
 * shop_connect() and shop_order() are the program as it was: its own way to
 * reach Redis (here would be its TLS, AUTH, SELECT, Sentinel), and its own
 * connection for data. New is main() from "rlock" on: rlock gets the program's
 * connect function instead of a URI, and the lock is held around the order.
 * You see it called once for the program, and then by rlock for its own.
 */
#include <hiredis/hiredis.h>
#include <rlock/rlock.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static atomic_int connections;

/* A new, ready connection or NULL. rlock calls it from several threads at a
   time and frees what it returns: it must be thread-safe, and keep nothing. */
static redisContext *shop_connect(void *uri)
{
    struct timeval limit = {1, 0};
    char host[256] = "127.0.0.1";
    int port = 6379;
    redisContext *c;
    if (uri && strncmp(uri, "unix://", 7) == 0) {
        c = redisConnectUnixWithTimeout((char *)uri + 7, limit);
    } else {
        if (uri)
            sscanf(uri, "redis://%255[^:/]:%d", host, &port);
        c = redisConnectWithTimeout(host, port, limit);
    }
    if (c && c->err) {
        fprintf(stderr, "shop: %s\n", c->errstr);
        redisFree(c);
        return NULL;
    }
    printf("shop_connect() makes connection %d\n", ++connections);
    return c;
}

static int shop_order(redisContext *c)
{
    redisReply *r = redisCommand(c, "SETEX example:drop_in:order 60 tea");
    int ok = r && r->type == REDIS_REPLY_STATUS;
    printf("the order is%s stored\n", ok ? "" : " not");
    freeReplyObject(r);
    return ok;
}

int main(int argc, char **argv)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *client = NULL;
    rlock *lock = NULL;
    char *uri = argc > 1 ? argv[1] : NULL;
    redisContext *data = shop_connect(uri);
    int ok = 0;
    if (!data)
        return 1;

    /* rlock */
    opts.connect = shop_connect;
    opts.connect_arg = uri;
    if (data && rlock_client_new(&opts, &client) == RLOCK_OK &&
        rlock_new(client, "example:drop_in", &lock) == RLOCK_OK &&
        rlock_lock(lock) == RLOCK_OK) {
        ok = shop_order(data);
        ok = rlock_unlock(lock) == RLOCK_OK && ok;
    }
    if (!ok)
        fprintf(stderr, "drop_in: %s\n", rlock_last_error()->message);

    rlock_free(lock);
    rlock_client_free(client);
    redisFree(data);
    return ok ? 0 : 1;
}
