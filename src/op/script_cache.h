/*
 * The SHA1s of the program's latest scripts, behind their guards: to work one
 * out takes longer than to look whether a text is the same. It is bounded: a
 * text takes the place of another one, and long ones are not remembered.
 */
#ifndef RL_OP_SCRIPT_CACHE_H
#define RL_OP_SCRIPT_CACHE_H

#include "base/sha1.h"
#include "base/thread.h"

#define RL_CACHED_SCRIPTS 32
#define RL_CACHED_TEXT    (16 * 1024) /* the longest text that is remembered */

typedef struct rl_cached_script {
    size_t len;
    unsigned guards; /* which are in front, as the caller counts them */
    char sha1[RL_SHA1_LEN + 1];
    char text[];
} rl_cached_script;

typedef struct rl_script_cache {
    rl_mutex mutex;
    rl_cached_script *place[RL_CACHED_SCRIPTS]; /* NULL: empty */
} rl_script_cache;

void rl_script_cache_init(rl_script_cache *s);
void rl_script_cache_fini(rl_script_cache *s, bool forked);

/* False: it is not remembered. */
bool rl_script_cache_find(rl_script_cache *s, const char *text, size_t len,
                          unsigned guards, char sha1[RL_SHA1_LEN + 1]);

/* Remembers it, if there is memory for that. */
void rl_script_cache_note(rl_script_cache *s, const char *text, size_t len,
                          unsigned guards, const char sha1[RL_SHA1_LEN + 1]);

#endif
