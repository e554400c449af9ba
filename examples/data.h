/*
 * The examples' own connection for data they keep in Redis: plain hiredis.
 * rlock keeps its connections to itself.
 */
#ifndef DATA_H
#define DATA_H

#include "example.h"
#include <hiredis/hiredis.h>
#include <string.h>

/* uri: NULL, unix:///path or redis://host:port; no password, no database. */
static inline redisContext *data_connect(const char *uri)
{
    char host[256] = "127.0.0.1";
    int port = 6379;
    redisContext *c = NULL;
    if (uri && strncmp(uri, "unix://", 7) == 0)
        c = redisConnectUnix(uri + 7);
    else if (!uri || sscanf(uri, "redis://%255[^:/@]:%d", host, &port) > 0)
        c = redisConnect(host, port);
    if (!c || c->err)
        fail("data connection", c ? c->errstr : "no such kind of URI");
    return c;
}

/* One command whose reply is a number, or text that is one; none is 0. */
static inline long long data_number(redisContext *c, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    redisReply *r = redisvCommand(c, format, ap);
    va_end(ap);
    if (!r || r->type == REDIS_REPLY_ERROR)
        fail(format, r ? r->str : c->errstr);
    long long n = r->str ? strtoll(r->str, NULL, 10) : r->integer;
    freeReplyObject(r);
    return n;
}

#endif
