/*
 * A reply of any shape, as hiredis builds it for programs: what a script of the
 * program answers is the program's, whole. It is bounded all the same. A reply
 * that is larger, or nested deeper than the installed hiredis reads, is
 * refused, and its connection fails.
 */
#ifndef RL_WIRE_RAW_REPLY_H
#define RL_WIRE_RAW_REPLY_H

#include "wire/reply.h"

/* All texts of a reply together, and all that its arrays hold. */
#define RL_OBJECT_BYTES ((size_t)64 << 20)
#define RL_OBJECT_ITEMS ((size_t)1 << 20)

typedef struct rl_object {
    redisReply *reply; /* the latest; the owner's; NULL: none */
    /* hiredis' own, which the builder calls. */
    const redisReplyObjectFunctions *native;
    size_t bytes, items; /* of the reply being built, so far */
    bool refused;        /* it is too large */
} rl_object;

/* For a reader whose privdata points to the rl_object to fill. */
extern redisReplyObjectFunctions rl_object_builder;

/* False: out of memory. */
bool rl_object_init(rl_object *o);

/* A reply begins. */
void rl_object_begin(rl_object *o);

/* It is whole: the object takes it over, and says in *r what it is. */
void rl_object_end(rl_object *o, redisReply *whole, rl_reply *r);

/* Frees what is there. */
void rl_object_drop(rl_object *o);

#endif
