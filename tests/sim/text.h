/* Bytes that grow at the end: replies, and what is under way. */
#ifndef SIM_TEXT_H
#define SIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

typedef struct text {
    char *at;
    size_t len, room;
} text;

void text_add(text *t, const void *bytes, size_t len);
void text_print(text *t, const char *fmt, ...) RL_PRINTF(2, 3);
void text_cut(text *t, size_t n); /* the first n bytes away */
void text_free(text *t);

/* Replies in Redis' protocol. */
void text_number(text *t, long long n);
void text_bulk(text *t, const void *bytes, size_t len);
void text_bulk_number(text *t, long long n);

/* A word of a command. */
typedef struct word {
    const char *at;
    size_t len;
} word;

#define WORDS_MAX 128

bool word_is(const word *w, const char *name); /* whatever its case */
bool word_equal(const word *a, const word *b);
bool word_number(const word *w, long long *n); /* decimal, all of it */

/* Of a program that cannot go on. */
_Noreturn void die(const char *fmt, ...) RL_PRINTF(1, 2);
/* > 0: the world asks for it, and gets it. A compiler thinks that calloc()
   reads no variable. */
extern volatile int memory_for_world;
void *need_memory(size_t size);
void *need_more(void *p, size_t size); /* zeroed */

#endif
