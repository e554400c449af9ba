/*
 * What the peer understands of a request, and what it answers: agreeably, or
 * otherwise, as the input says.
 */
#ifndef FUZZ_ANSWER_H
#define FUZZ_ANSWER_H

#include "fuzz.h"

#define ANSWER_MAX 2048

typedef struct bytes {
    size_t len;
    char at[ANSWER_MAX];
} bytes;

typedef enum ask {
    ASK_ACQUIRE,
    ASK_HAND_OVER,
    ASK_TAKE_MANY, /* tokens */
    ASK_OF_MANY,   /* a letter for each */
    ASK_INSPECT,
    ASK_IDENTIFY,
    ASK_PROBE,
    ASK_COUNT, /* the scripts that answer with an integer */
    ASK_EVAL,
    ASK_PING,
    ASK_SUBSCRIBE,
    ASK_UNSUBSCRIBE,
    ASK_OTHER
} ask;

/* A request that has arrived whole. */
typedef struct request {
    const char *at;
    size_t len;
    ask what;
    unsigned door;   /* which client's */
    bool subscribed; /* its connection, before */
} request;

/* What it is, by its bytes. */
ask request_asks(const request *r);
/* Comes before a client is used, or before a connection is. */
bool request_is_greeting(const request *r);

/* An answer of this kind: one of 0 to 15, most of which are agreeable. token is
   the last that was granted. */
void make_answer(bytes *b, feed *in, unsigned kind, const request *r,
                 uint64_t *token);
/* How many locks at most it may be taken to grant; to whomever it comes. */
unsigned answer_grants(unsigned kind, const request *r);
/* A message, as to who has subscribed. */
void make_message(bytes *b, const char *text);

#endif
