/* Understands replies that are whole, of arrays, strings and integers. */
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH 9

static redisReadTask *task_at(redisReader *r, int depth)
{
#ifdef SECOND_IS_OLD
    return &r->rstack[depth];
#else
    return r->task[depth];
#endif
}

redisReader *redisReaderCreateWithFunctions(redisReplyObjectFunctions *fn)
{
    redisReader *r = calloc(1, sizeof *r);
#ifndef SECOND_IS_OLD
    r->task = calloc(DEPTH, sizeof *r->task);
    for (; r->tasks < DEPTH; r->tasks++)
        r->task[r->tasks] = calloc(1, sizeof **r->task);
#endif
    r->fn = fn;
    r->maxbuf = REDIS_READER_MAX_BUF;
    return r;
}

void redisReaderFree(redisReader *r)
{
#ifndef SECOND_IS_OLD
    for (int i = 0; i < r->tasks; i++)
        free(r->task[i]);
    free(r->task);
#endif
    free(r->buf);
    free(r);
}

int redisReaderFeed(redisReader *r, const char *buf, size_t len)
{
    r->buf = realloc(r->buf, r->len + len + 1);
    memcpy(r->buf + r->len, buf, len);
    r->len += len;
    r->buf[r->len] = '\0';
    return REDIS_OK;
}

static void *item(redisReader *r, int depth, redisReadTask *parent, int idx);

static void *array(redisReader *r, int depth, redisReadTask *t, long long n)
{
    t->type = REDIS_REPLY_ARRAY;
    void *obj = r->fn->createArray(t, (second_size)n);
    t->elements = (second_count)n;
    t->obj = obj;
    for (int i = 0; obj && i < n; i++) {
        if (!item(r, depth + 1, t, i))
            return NULL;
    }
    return obj;
}

static void *string(redisReader *r, redisReadTask *t, long long n)
{
    char *text = r->buf + r->pos;
    t->type = REDIS_REPLY_STRING;
    if (n < 0)
        return r->fn->createNil(t);
    r->pos += (size_t)n + 2;
    return r->fn->createString(t, text, (size_t)n);
}

static void *item(redisReader *r, int depth, redisReadTask *parent, int idx)
{
    char sign = r->buf[r->pos], *end;
    long long n = strtoll(r->buf + r->pos + 1, &end, 10);
    redisReadTask *t = task_at(r, depth);
    *t = (redisReadTask){.type = -1, .elements = -1, .idx = idx};
    t->parent = parent;
    t->privdata = r->privdata;
    r->pos = (size_t)(end + 2 - r->buf);
    if (sign == '*')
        return array(r, depth, t, n);
    if (sign == '$')
        return string(r, t, n);
    t->type = REDIS_REPLY_INTEGER;
    return r->fn->createInteger(t, n);
}

int redisReaderGetReply(redisReader *r, void **reply)
{
    *reply = item(r, 0, NULL, -1);
    return *reply ? REDIS_OK : REDIS_ERR;
}

redisContext *redisConnectFd(int fd)
{
    redisContext *c = calloc(1, sizeof *c);
    c->fd = fd;
    c->flags = REDIS_CONNECTED;
    c->reader = redisReaderCreateWithFunctions(NULL);
    return c;
}

int redisGetReplyFromReader(redisContext *c, void **reply)
{
    return redisReaderGetReply(c->reader, reply);
}

void redisFree(redisContext *c)
{
    redisReaderFree(c->reader);
    free(c);
}
