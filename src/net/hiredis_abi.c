/*
 * hiredis' structs are open, and we read and write their members. A program
 * may have a second hiredis built into it, which then serves this library too,
 * whatever headers we were compiled with. Between 0.14 and 1.0 every struct
 * has changed.
 *
 * So hiredis is watched at work before a member is trusted. No probe may touch
 * what another hiredis has not allocated; the order of the three sees to that:
 *
 * 1. A reader is made to parse a reply. It calls our functions, each by its
 *    place in the table, with a task. What we take for the members of a task
 *    lies in its memory in any case: a task of 1.x is longer than one of 0.14,
 *    whose tasks are an array inside the reader. A function that finds
 *    something else than it must answers NULL, which ends the parsing. Parsed,
 *    tasks and the table are ours; and nine tasks fit, so that a reader with
 *    its tasks inside reaches as far as ours does.
 * 2. Hence the reader is one of our kind, and its members can be looked at.
 * 3. So can those of a context, of which we need the first ones only.
 */
#include "net/hiredis_abi.h"

#include <hiredis/hiredis.h>
#include <string.h>

#include "rlock_config.h"

/* As many arrays in each other as any hiredis takes. */
#define DEEP                                                                   \
    "*3\r\n$-1\r\n$1\r\nx\r\n"                                                 \
    "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:7\r\n"
#define FLAT ":7\r\n"

/* Stands for every object that is parsed, and for the private data. */
static char object;

/* How many elements the array of DEEP has that this task is for. */
static size_t size_of(const redisReadTask *array)
{
    return array->parent ? 1 : 3;
}

/* One of DEEP's; idx is its place in the outermost array. */
static void *inner(const redisReadTask *task, int type, int idx)
{
    const redisReadTask *array = task->parent;
    bool fits = task->type == type && array &&
                array->type == REDIS_REPLY_ARRAY && array->obj == &object &&
                array->elements >= 0 &&
                (size_t)array->elements == size_of(array) &&
                task->idx == (array->parent ? 0 : idx);
    return fits ? &object : NULL;
}

static void *on_string(const redisReadTask *task, char *str, size_t len)
{
    return len == 1 && *str == 'x' ? inner(task, REDIS_REPLY_STRING, 1) : NULL;
}

#ifdef RL_HIREDIS_READER_SIZE_T
static void *on_array(const redisReadTask *task, size_t elements)
#else
static void *on_array(const redisReadTask *task, int elements)
#endif
{
    if (task->type != REDIS_REPLY_ARRAY || task->elements != -1)
        return NULL;
    if (task->parent)
        return elements == 1 ? inner(task, REDIS_REPLY_ARRAY, 2) : NULL;
    return elements == 3 && task->idx == -1 ? &object : NULL;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    if (task->type != REDIS_REPLY_INTEGER || value != 7)
        return NULL;
    if (task->parent)
        return inner(task, REDIS_REPLY_INTEGER, 0);
    return task->privdata == &object ? &object : NULL;
}

/* "$-1" is a string until its length is read. */
static void *on_nil(const redisReadTask *task)
{
    return inner(task, REDIS_REPLY_STRING, 0);
}

#ifdef RL_HIREDIS_HAS_DOUBLE
static void *on_double(const redisReadTask *task, double value, char *str,
                       size_t len)
{
    (void)task, (void)value, (void)str, (void)len;
    return NULL;
}

static void *on_bool(const redisReadTask *task, int value)
{
    (void)task, (void)value;
    return NULL;
}
#endif

/* hiredis does not write to it; another one's table may be longer. */
static struct {
    redisReplyObjectFunctions own;
    void (*beyond[4])(void);
} functions = {
    .own =
        {
            .createString = on_string,
            .createArray = on_array,
            .createInteger = on_integer,
            .createNil = on_nil,
#ifdef RL_HIREDIS_HAS_DOUBLE
            .createDouble = on_double,
            .createBool = on_bool,
#endif
        },
};

/* For so short a reply only feeding needs memory. */
static bool parses(redisReader *reader, const char *text, bool *memory)
{
    void *reply = NULL;
    *memory = redisReaderFeed(reader, text, strlen(text)) == REDIS_OK;
    return *memory && redisReaderGetReply(reader, &reply) == REDIS_OK &&
           reply == &object;
}

static const char *check_reader(redisReader *reader, bool *memory)
{
    if (!parses(reader, DEEP, memory))
        return "its parser has other tasks or functions";
    if (reader->fn != &functions.own || reader->privdata ||
        reader->maxbuf != REDIS_READER_MAX_BUF || reader->err)
        return "its redisReader is laid out otherwise";
    reader->privdata = &object;
    if (!parses(reader, FLAT, memory))
        return "its redisReadTask is laid out otherwise";
    return NULL;
}

static const char *check_context(redisContext *ctx, bool *memory)
{
    void *reply = NULL;
    if (ctx->err || ctx->fd != -1 || !(ctx->flags & REDIS_CONNECTED) ||
        !ctx->reader || ctx->reader->maxbuf != REDIS_READER_MAX_BUF)
        return "its redisContext is laid out otherwise";
    ctx->reader->fn = &functions.own;
    ctx->reader->privdata = &object;
    *memory = redisReaderFeed(ctx->reader, FLAT, strlen(FLAT)) == REDIS_OK;
    if (*memory &&
        (redisGetReplyFromReader(ctx, &reply) != REDIS_OK || reply != &object))
        return "its redisContext has its reader elsewhere";
    return NULL;
}

bool rl_hiredis_abi_fits(const char **why)
{
    bool memory = true;
    *why = NULL;
    redisReader *reader = redisReaderCreateWithFunctions(&functions.own);
    if (!reader)
        return false;
    *why = check_reader(reader, &memory);
    redisReaderFree(reader);
    if (*why || !memory) {
        *why = memory ? *why : NULL;
        return false;
    }
    redisContext *ctx = redisConnectFd(-1);
    if (!ctx)
        return false;
    *why = check_context(ctx, &memory);
    redisFree(ctx);
    return !*why && memory;
}
