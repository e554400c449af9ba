/*
 * The functions that hiredis builds replies with are not public, but any of its
 * readers has them; so what is built is a redisReply of the hiredis that the
 * program uses, and freeReplyObject() fits. In between stands the counting.
 */
#include "wire/raw_reply.h"

#include <string.h>

#include "rlock_config.h"

static bool may_take(rl_raw_reply *o, size_t bytes, size_t items)
{
    o->refused = bytes > RL_RAW_REPLY_BYTES - o->bytes ||
                 items > RL_RAW_REPLY_ITEMS - o->items;
    if (o->refused)
        return false;
    o->bytes += bytes;
    o->items += items;
    return true;
}

static void *on_string(const redisReadTask *task, char *str, size_t len)
{
    rl_raw_reply *o = task->privdata;
    return may_take(o, len, 0) ? o->native->createString(task, str, len) : NULL;
}

#ifdef RL_HIREDIS_READER_SIZE_T
static void *on_array(const redisReadTask *task, size_t elements)
#else
static void *on_array(const redisReadTask *task, int elements)
#endif
{
    rl_raw_reply *o = task->privdata;
    return may_take(o, 0, (size_t)elements)
               ? o->native->createArray(task, elements)
               : NULL;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    const rl_raw_reply *o = task->privdata;
    return o->native->createInteger(task, value);
}

static void *on_nil(const redisReadTask *task)
{
    const rl_raw_reply *o = task->privdata;
    return o->native->createNil(task);
}

#ifdef RL_HIREDIS_HAS_DOUBLE
static void *on_double(const redisReadTask *task, double value, char *str,
                       size_t len)
{
    rl_raw_reply *o = task->privdata;
    return may_take(o, len, 0) ? o->native->createDouble(task, value, str, len)
                               : NULL;
}

static void *on_bool(const redisReadTask *task, int value)
{
    const rl_raw_reply *o = task->privdata;
    return o->native->createBool(task, value);
}
#endif

redisReplyObjectFunctions rl_raw_reply_builder = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#ifdef RL_HIREDIS_HAS_DOUBLE
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = freeReplyObject,
};

bool rl_raw_reply_init(rl_raw_reply *o)
{
    redisReader *reader = redisReaderCreate();
    *o = (rl_raw_reply){.native = reader ? reader->fn : NULL};
    if (reader)
        redisReaderFree(reader);
    return o->native != NULL;
}

void rl_raw_reply_begin(rl_raw_reply *o)
{
    o->bytes = o->items = 0;
    o->refused = false;
}

/* Of a text as much as there is room for: an error is to be understood. */
static void show_text(rl_reply *r, const redisReply *whole)
{
    size_t room = sizeof r->text - 1;
    r->top.len = whole->len < room ? whole->len : room;
    memcpy(r->text, whole->str, r->top.len);
    r->text[r->top.len] = '\0';
    r->top.str = r->text;
}

void rl_raw_reply_end(rl_raw_reply *o, redisReply *whole, rl_reply *r)
{
    rl_raw_reply_drop(o);
    o->reply = whole;
    r->push = rl_reply_is_pushed(whole->type);
    r->count = r->used = 0;
    r->top = (rl_item){.type = whole->type, .integer = whole->integer};
    if (whole->type == REDIS_REPLY_ERROR)
        show_text(r, whole);
}

void rl_raw_reply_drop(rl_raw_reply *o)
{
    if (o->reply)
        freeReplyObject(o->reply);
    o->reply = NULL;
}
