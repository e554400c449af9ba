/*
 * A reply of bounded size and shape: a scalar, or a flat array of a few of
 * them. hiredis' parser builds it in place through callbacks, so a server that
 * announces two billion elements, a huge string or deep nesting costs nothing:
 * the parser is told "no" and the connection is closed.
 */
#ifndef RL_WIRE_REPLY_H
#define RL_WIRE_REPLY_H

#include <stdbool.h>
#include <stddef.h>

#include <hiredis/hiredis.h>

#include "wire/table.h"

#define RL_REPLY_ITEMS 8
#define RL_REPLY_TEXT  1280

typedef struct rl_item {
    int type;          /* REDIS_REPLY_... */
    long long integer; /* an integer's value */
    const char *str;   /* a string's, status' or error's bytes, then a NUL */
    size_t len;
} rl_item;

/*
 * Takes a reply of any size piece by piece, in the order in which it comes, an
 * array before what is in it; nothing is kept.
 */
typedef struct rl_sink {
    /* A text is not ended by a NUL; len is its length. False: the reply is
       refused, and its connection fails. */
    bool (*take)(struct rl_sink *s, const rl_cell *c, size_t len);
} rl_sink;

typedef struct rl_reply {
    rl_item top;  /* the reply, or the array */
    bool push;    /* RESP3 says of it that nobody has asked for it */
    size_t count; /* elements of the array */
    rl_item item[RL_REPLY_ITEMS];
    size_t used;
    char text[RL_REPLY_TEXT]; /* where strings live; error texts are cut */
    /* Gets all that is in an array, which then has no items; NULL: none is
       expected that is larger. The caller's. */
    rl_table *table;
    /* Gets all there is but an error; NULL: nobody is there. The caller's. */
    rl_sink *sink;
} rl_reply;

/* For a reader whose privdata points to the rl_reply to fill. */
extern redisReplyObjectFunctions rl_reply_builder;

/* A copy with its own text. */
void rl_reply_copy(rl_reply *to, const rl_reply *from);

/* Is the reply an array of n elements or more, or a scalar of this type? */
bool rl_reply_is_array(const rl_reply *r, size_t n);

static inline bool rl_reply_is(const rl_reply *r, int type)
{
    return r->top.type == type;
}

/* The types are REDIS_REPLY_..., which are small. */
#define RL_REPLY_BIT(type) (1u << (type))

static inline bool rl_reply_is_of(const rl_reply *r, unsigned types)
{
    return RL_REPLY_BIT(r->top.type) & types;
}

/*
 * What a server tells who listens on channels: a message, or whatever else
 * RESP3 pushes, which never answers anything; and what he listens to from now
 * on, which answers a SUBSCRIBE or an UNSUBSCRIBE and nothing else, and comes
 * unasked, too, when the slot of a sharded channel moves. RESP2 has no mark for
 * either: they are known by their words.
 */
bool rl_reply_is_message(const rl_reply *r);
bool rl_reply_is_subscription(const rl_reply *r);

/* Is this the type of what RESP3 pushes? hiredis before 1.0 knows none. */
static inline bool rl_reply_is_pushed(int type)
{
#ifdef REDIS_REPLY_PUSH
    return type == REDIS_REPLY_PUSH;
#else
    (void)type;
    return false;
#endif
}

static inline bool rl_item_is(const rl_item *i, int type)
{
    return i->type == type;
}

/* An integer, or a string that is one; -1 when it is neither. */
long long rl_item_number(const rl_item *i);

#endif
