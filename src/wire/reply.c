/*
 * What hiredis' reader calls instead of building objects: items go into the
 * reply that the reader's privdata points to. A reply that is larger or nested
 * deeper than any of ours is refused, which ends the parsing; so what a server
 * sends takes no memory beyond the bytes of one reply, which have a budget.
 */
#include "wire/reply.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rlock_config.h"

/* The reply that is filled; its first object says of which kind it is. */
static rl_reply *reply_of(const redisReadTask *task)
{
    rl_reply *r = task->privdata;
    if (!task->parent)
        r->push = rl_reply_is_pushed(task->type);
    return r;
}

/* Where the parser's current object goes; NULL: it is nested too deeply. */
static rl_item *slot(const redisReadTask *task, int type)
{
    rl_reply *r = task->privdata;
    if (!task->parent) {
        r->count = r->used = 0;
        r->top = (rl_item){.type = type};
        return &r->top;
    }
    if (task->parent->obj != &r->top || task->idx < 0 ||
        (size_t)task->idx >= r->count)
        return NULL;
    rl_item *item = &r->item[task->idx];
    *item = (rl_item){.type = type};
    return item;
}

/* How deep in arrays the parser's current object lies. */
static int depth_of(const redisReadTask *task)
{
    int depth = 0;
    while ((task = task->parent) != NULL)
        depth++;
    return depth;
}

/* In an array, with a table for what is there. */
static rl_table *table_of(const redisReadTask *task)
{
    const rl_reply *r = task->privdata;
    return task->parent && !r->push ? r->table : NULL;
}

/* What is pushed is not what the sink waits for. */
static bool is_poured(const redisReadTask *task)
{
    const rl_reply *r = reply_of(task);
    return r->sink && !r->push && task->type != REDIS_REPLY_ERROR;
}

/* RESP2 has a nil of the type of what there is not. */
static void *pour(const redisReadTask *task, int type, long long integer,
                  const char *str, size_t len)
{
    rl_reply *r = task->privdata;
    rl_cell c = {type, depth_of(task), integer, str};
    if (!task->parent)
        slot(task, type);
    return r->sink->take(r->sink, &c, len) ? &r->top : NULL;
}

static void *on_string(const redisReadTask *task, char *str, size_t len)
{
    rl_reply *r = task->privdata;
    if (is_poured(task))
        return pour(task, task->type, 0, str, len);
    if (table_of(task))
        return rl_table_add_text(r->table, task->type, depth_of(task), str,
                                 len);
    rl_item *item = slot(task, task->type);
    if (!item)
        return NULL;
    size_t room = sizeof r->text - r->used - 1;
    if (len > room) {
        if (task->type != REDIS_REPLY_ERROR)
            return NULL;
        len = room;
    }
    char *text = r->text + r->used;
    memcpy(text, str, len);
    text[len] = '\0';
    /* The last byte always stays free for a terminating NUL. */
    r->used += len < room ? len + 1 : len;
    item->str = text;
    item->len = len;
    return item;
}

/* An array, which is a cell of its own, also the outermost. */
static void *begin_table(rl_reply *r, const redisReadTask *task,
                         long long elements)
{
    if (!task->parent) {
        r->table->count = r->table->used = 0;
        slot(task, REDIS_REPLY_ARRAY);
    }
    rl_cell *c = rl_table_add(r->table, REDIS_REPLY_ARRAY, depth_of(task));
    if (c)
        c->integer = elements;
    return c;
}

#ifdef RL_HIREDIS_READER_SIZE_T
static void *on_array(const redisReadTask *task, size_t elements)
#else
static void *on_array(const redisReadTask *task, int elements)
#endif
{
    rl_reply *r = task->privdata;
    if (is_poured(task))
        return pour(task, task->type, (long long)elements, NULL, 0);
    if (r->table && !r->push)
        return begin_table(r, task, (long long)elements);
    if (task->parent || elements > RL_REPLY_ITEMS)
        return NULL;
    rl_item *top = slot(task, REDIS_REPLY_ARRAY);
    r->count = (size_t)elements;
    return top;
}

static void *on_integer(const redisReadTask *task, long long value)
{
    if (is_poured(task))
        return pour(task, task->type, value, NULL, 0);
    if (table_of(task)) {
        rl_cell *c =
            rl_table_add(table_of(task), REDIS_REPLY_INTEGER, depth_of(task));
        if (c)
            c->integer = value;
        return c;
    }
    rl_item *item = slot(task, REDIS_REPLY_INTEGER);
    if (item)
        item->integer = value;
    return item;
}

static void *on_nil(const redisReadTask *task)
{
    if (is_poured(task))
        return pour(task, REDIS_REPLY_NIL, 0, NULL, 0);
    return table_of(task) ? (void *)rl_table_add(
                                table_of(task), REDIS_REPLY_NIL, depth_of(task))
                          : (void *)slot(task, REDIS_REPLY_NIL);
}

#ifdef RL_HIREDIS_HAS_DOUBLE
static void *on_double(const redisReadTask *task, double value, char *str,
                       size_t len)
{
    (void)value;
    return on_string(task, str, len);
}

static void *on_bool(const redisReadTask *task, int value)
{
    return on_integer(task, value);
}
#endif

static void on_free(void *object)
{
    (void)object; /* everything lives in the rl_reply */
}

redisReplyObjectFunctions rl_reply_builder = {
    .createString = on_string,
    .createArray = on_array,
    .createInteger = on_integer,
    .createNil = on_nil,
#ifdef RL_HIREDIS_HAS_DOUBLE
    .createDouble = on_double,
    .createBool = on_bool,
#endif
    .freeObject = on_free,
};

static void move_text(rl_item *i, const rl_reply *from, const rl_reply *to)
{
    if (i->str)
        i->str = to->text + (i->str - from->text);
}

void rl_reply_copy(rl_reply *to, const rl_reply *from)
{
    *to = *from;
    move_text(&to->top, from, to);
    for (size_t i = 0; i < to->count; i++)
        move_text(&to->item[i], from, to);
}

bool rl_reply_is_array(const rl_reply *r, size_t n)
{
    return r->top.type == REDIS_REPLY_ARRAY && r->count >= n;
}

/* Is it a list of a word out of these, a channel, and one thing more? */
static bool begins_with(const rl_reply *r, const char *const *words, size_t n)
{
    if (!rl_reply_is_array(r, 3) ||
        !rl_item_is(&r->item[0], REDIS_REPLY_STRING))
        return false;
    while (n > 0 && strcmp(r->item[0].str, words[n - 1]) != 0)
        n--;
    return n > 0;
}

bool rl_reply_is_subscription(const rl_reply *r)
{
    static const char *const words[] = {"subscribe",  "unsubscribe",
                                        "ssubscribe", "sunsubscribe",
                                        "psubscribe", "punsubscribe"};
    return r->count == 3 && rl_item_is(&r->item[2], REDIS_REPLY_INTEGER) &&
           begins_with(r, words, sizeof words / sizeof *words);
}

bool rl_reply_is_message(const rl_reply *r)
{
    static const char *const words[] = {"message", "smessage", "pmessage"};
    if (r->push)
        return !rl_reply_is_subscription(r);
    return begins_with(r, words, sizeof words / sizeof *words) &&
           rl_item_is(&r->item[r->count - 1], REDIS_REPLY_STRING);
}

long long rl_item_number(const rl_item *i)
{
    if (i->type == REDIS_REPLY_INTEGER)
        return i->integer;
    if (i->type != REDIS_REPLY_STRING || i->len == 0)
        return -1;
    char *end;
    errno = 0;
    long long n = strtoll(i->str, &end, 10);
    return *end || errno == ERANGE ? -1 : n;
}
