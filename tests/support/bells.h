/*
 * Scripts by themselves, of those who stand in line: holders by name, a server, and
 * one who hears two clients' bells.
 */
#ifndef TEST_SUPPORT_BELLS_H
#define TEST_SUPPORT_BELLS_H

#include "direct.h"
#include "scene.h"
#include "script_text.h"

#define UUID_OF(n)   "6f1e1e0c-5d07-4f36-9a4e-00000000000" n
#define HOLDER_OF(n) "host:7:8:" UUID_OF(n)
#define BELL_OF(n)   "rlock_bell:" UUID_OF(n)

typedef struct bells {
    server *sv;
    redisContext *ear; /* hears two of them */
} bells;

/* The bells 1 and 2, or two other channels. args: see server_start(). */
bells bells_open(const char *args);
bells bells_open_at(const char *args, const char *one, const char *two);
void bells_close(bells *b);

/* Holder d stands first in job's line, by the bell 1, and wants that, as
   lua/README.md has it. */
void bells_want(bells *b, const char *want);

/* The next message, on whichever bell: "1<what it says"; valid until the next. */
const char *bells_heard(bells *b);

#endif
