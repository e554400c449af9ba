/*
 * The examples' own connection for data they keep in Redis: plain hiredis.
 * rlock keeps its connections to itself.
 */
#ifndef DATA_H
#define DATA_H

#include "example.h"
#include <hiredis/async.h>
#include <hiredis/hiredis.h>
#include <string.h>

/* uri: NULL, unix:///path or redis://host:port; no password, no database.
   The path of a socket, or NULL: then host and port are set. */
static inline const char *data_address(const char *uri, char host[256],
                                       int *port)
{
    strcpy(host, "127.0.0.1");
    *port = 6379;
    if (uri && strncmp(uri, "unix://", 7) == 0)
        return uri + 7;
    if (uri && sscanf(uri, "redis://%255[^:/@]:%d", host, port) < 1)
        fail("data connection", "no such kind of URI");
    return NULL;
}

static inline redisContext *data_connect(const char *uri)
{
    char host[256];
    int port;
    const char *path = data_address(uri, host, &port);
    redisContext *c = path ? redisConnectUnix(path) : redisConnect(host, port);
    if (!c || c->err)
        fail("data connection", c ? c->errstr : "out of memory");
    return c;
}

/* The same for a program's own event loop. */
static inline redisAsyncContext *data_connect_async(const char *uri)
{
    char host[256];
    int port;
    const char *path = data_address(uri, host, &port);
    redisAsyncContext *c =
        path ? redisAsyncConnectUnix(path) : redisAsyncConnect(host, port);
    if (!c || c->err)
        fail("data connection", c ? c->errstr : "out of memory");
    return c;
}

/* What a reply is as a number, or as text that is one; none is 0. */
static inline long long data_reply(const redisReply *r, const char *error)
{
    if (!r || r->type == REDIS_REPLY_ERROR)
        fail("data connection", r ? r->str : error);
    return r->str ? strtoll(r->str, NULL, 10) : r->integer;
}

/* One command whose reply is a number. */
static inline long long data_number(redisContext *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    redisReply *r = redisvCommand(c, format, ap);
    va_end(ap);
    long long n = data_reply(r, c->errstr);
    freeReplyObject(r);
    return n;
}

#endif
