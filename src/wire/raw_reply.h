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
#define RL_RAW_REPLY_BYTES ((size_t)64 << 20)
#define RL_RAW_REPLY_ITEMS ((size_t)1 << 20)

typedef struct rl_raw_reply {
    redisReply *reply; /* the latest; the owner's; NULL: none */
    /* hiredis' own, which the builder calls. */
    const redisReplyObjectFunctions *native;
    size_t bytes, items; /* of the reply being built, so far */
    bool refused;        /* it is too large */
} rl_raw_reply;

/* For a reader whose privdata points to the rl_raw_reply to fill. */
extern redisReplyObjectFunctions rl_raw_reply_builder;

/* False: out of memory. */
bool rl_raw_reply_init(rl_raw_reply *o);

/* A reply begins. */
void rl_raw_reply_begin(rl_raw_reply *o);

/* It is whole: the object takes it over, and says in *r what it is. */
void rl_raw_reply_end(rl_raw_reply *o, redisReply *whole, rl_reply *r);

/* Frees what is there. */
void rl_raw_reply_drop(rl_raw_reply *o);

#endif
