#include "op/script_cache.h"

#include <stdlib.h>
#include <string.h>

#define SAMPLES 16

void rl_sums_init(rl_sums *s)
{
    memset(s->place, 0, sizeof s->place);
    rl_mutex_init(&s->mutex);
}

/* A child's copy is whole also if a thread was about to change a place. */
void rl_sums_fini(rl_sums *s, bool forked)
{
    for (size_t i = 0; i < RL_SUMS; i++)
        free(s->place[i]);
    if (!forked)
        rl_mutex_fini(&s->mutex);
}

/* By a few of its bytes: only the whole text decides. */
static rl_sum **place_of(rl_sums *s, const char *text, size_t len,
                         unsigned guards)
{
    size_t mixed = len * 31 + guards, step = len / SAMPLES + 1;
    for (size_t i = 0; i < len; i += step)
        mixed = mixed * 31 + (unsigned char)text[i];
    return &s->place[mixed % RL_SUMS];
}

bool rl_sums_find(rl_sums *s, const char *text, size_t len, unsigned guards,
                  char sha1[RL_SHA1_LEN + 1])
{
    rl_sum **place = place_of(s, text, len, guards);
    rl_mutex_lock(&s->mutex);
    const rl_sum *x = *place;
    bool found = x && x->len == len && x->guards == guards &&
                 memcmp(x->text, text, len) == 0;
    if (found)
        memcpy(sha1, x->sha1, sizeof x->sha1);
    rl_mutex_unlock(&s->mutex);
    return found;
}

void rl_sums_note(rl_sums *s, const char *text, size_t len, unsigned guards,
                  const char sha1[RL_SHA1_LEN + 1])
{
    rl_sum *x = len <= RL_SUM_TEXT ? malloc(sizeof *x + len) : NULL;
    if (!x)
        return;
    x->len = len;
    x->guards = guards;
    memcpy(x->sha1, sha1, sizeof x->sha1);
    memcpy(x->text, text, len);
    rl_sum **place = place_of(s, text, len, guards);
    rl_mutex_lock(&s->mutex);
    rl_sum *before = *place;
    *place = x;
    rl_mutex_unlock(&s->mutex);
    free(before);
}
