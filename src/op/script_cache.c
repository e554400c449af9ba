#include "op/script_cache.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 16

void rl_script_cache_init(rl_script_cache *s)
{
    memset(s->place, 0, sizeof s->place);
    rl_mutex_init(&s->mutex, RL_RANK_ALONE);
}

/* A child's copy is whole also if a thread was about to change a place. */
void rl_script_cache_fini(rl_script_cache *s, bool forked)
{
    for (size_t i = 0; i < RL_CACHED_SCRIPTS; i++)
        free(s->place[i]);
    if (!forked)
        rl_mutex_fini(&s->mutex);
}

/* By a few of its bytes: only the whole text decides. */
static rl_cached_script **place_of(rl_script_cache *s, const char *text,
                                   size_t len, unsigned guards)
{
    size_t mixed = len * 31 + guards, step = len / SAMPLES + 1;
    for (size_t i = 0; i < len; i += step)
        mixed = mixed * 31 + (unsigned char)text[i];
    return &s->place[mixed % RL_CACHED_SCRIPTS];
}

bool rl_script_cache_find(rl_script_cache *s, const char *text, size_t len,
                          unsigned guards, char sha1[RL_SHA1_LEN + 1])
{
    rl_cached_script **place = place_of(s, text, len, guards);
    rl_mutex_lock(&s->mutex);
    const rl_cached_script *x = *place;
    bool found = x && x->len == len && x->guards == guards &&
                 memcmp(x->text, text, len) == 0;
    if (found)
        memcpy(sha1, x->sha1, sizeof x->sha1);
    rl_mutex_unlock(&s->mutex);
    return found;
}

void rl_script_cache_note(rl_script_cache *s, const char *text, size_t len,
                          unsigned guards, const char sha1[RL_SHA1_LEN + 1])
{
    rl_cached_script *x =
        len <= RL_CACHED_TEXT ? malloc(sizeof *x + len) : NULL;
    if (!x)
        return;
    x->len = len;
    x->guards = guards;
    memcpy(x->sha1, sha1, sizeof x->sha1);
    memcpy(x->text, text, len);
    rl_cached_script **place = place_of(s, text, len, guards);
    rl_mutex_lock(&s->mutex);
    rl_cached_script *before = *place;
    *place = x;
    rl_mutex_unlock(&s->mutex);
    free(before);
}
