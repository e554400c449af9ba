/*
 * A second hiredis, as far as rlock would use one: with the structs of 1.x, or
 * with SECOND_IS_OLD, of 0.14.
 */
#ifndef SECOND_HIREDIS_H
#define SECOND_HIREDIS_H

#include <stddef.h>
#include <sys/time.h>

#define REDIS_ERR            -1
#define REDIS_OK             0
#define REDIS_REPLY_STRING   1
#define REDIS_REPLY_ARRAY    2
#define REDIS_REPLY_INTEGER  3
#define REDIS_CONNECTED      0x2
#define REDIS_READER_MAX_BUF (1024 * 16)

#ifdef SECOND_IS_OLD
typedef int second_count, second_size;
#else
typedef long long second_count;
typedef size_t second_size;
#endif

typedef struct redisReadTask {
    int type;
    second_count elements;
    int idx;
    void *obj;
    struct redisReadTask *parent;
    void *privdata;
} redisReadTask;

typedef struct redisReplyObjectFunctions {
    void *(*createString)(const redisReadTask *, char *, size_t);
    void *(*createArray)(const redisReadTask *, second_size);
    void *(*createInteger)(const redisReadTask *, long long);
#ifndef SECOND_IS_OLD
    void *(*createDouble)(const redisReadTask *, double, char *, size_t);
#endif
    void *(*createNil)(const redisReadTask *);
#ifndef SECOND_IS_OLD
    void *(*createBool)(const redisReadTask *, int);
#endif
    void (*freeObject)(void *);
} redisReplyObjectFunctions;

typedef struct redisReader {
    int err;
    char errstr[128];
    char *buf;
    size_t pos;
    size_t len;
    size_t maxbuf;
#ifdef SECOND_IS_OLD
    redisReadTask rstack[9];
#else
    long long maxelements;
    redisReadTask **task;
    int tasks;
#endif
    int ridx;
    void *reply;
    redisReplyObjectFunctions *fn;
    void *privdata;
} redisReader;

typedef struct redisContext {
#ifndef SECOND_IS_OLD
    const void *funcs;
#endif
    int err;
    char errstr[128];
    int fd;
    int flags;
    char *obuf;
    redisReader *reader;
    int connection_type;
    struct timeval *timeout;
} redisContext;

redisReader *redisReaderCreateWithFunctions(redisReplyObjectFunctions *fn);
void redisReaderFree(redisReader *r);
int redisReaderFeed(redisReader *r, const char *buf, size_t len);
int redisReaderGetReply(redisReader *r, void **reply);
redisContext *redisConnectFd(int fd);
int redisGetReplyFromReader(redisContext *c, void **reply);
void redisFree(redisContext *c);

#endif
