#include "rules.h"

#include <time.h>

#include "resp.h"
#include "wire/script.h"

enum { WAYS = 0xf };

void rules_init(rules *rs)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&rs->settled, &attr);
    pthread_condattr_destroy(&attr);
}

void rules_forget(rules *rs)
{
    for (size_t i = 0; i < rs->log_len; i++)
        free(rs->log[i].data);
    rs->log_len = 0;
}

void rules_fini(rules *rs)
{
    rules_forget(rs);
    free(rs->log);
    free(rs->needle);
    free(rs->answer);
    pthread_cond_destroy(&rs->settled);
}

static char *copy(const char *text)
{
    char *c = text ? strdup(text) : NULL;
    EXPECT(!text || c);
    return c;
}

void rules_set(rules *rs, const char *needle, int nth, proxy_action action,
               const char *answer)
{
    free(rs->needle);
    free(rs->answer);
    rs->needle = copy(needle);
    rs->answer = copy(answer);
    rs->left = nth;
    rs->action = action;
    rs->bytes = HALF;
    rs->id++;
    rs->fired = false;
}

proxy_action rules_point(int action)
{
    return (proxy_action)(action & ~WAYS);
}

proxy_action rules_way(int action)
{
    return (proxy_action)(action & WAYS);
}

/* Does this EVAL carry the script with that SHA1? */
static bool is_eval_of(const char *p, size_t len, const char *sha1)
{
    const char *body;
    size_t n;
    if (!resp_word_is(p, len, 0, "EVAL") || !resp_word(p, len, 1, &body, &n))
        return false;
    for (int i = 0; i < RL_SCRIPT_COUNT; i++) {
        const rl_script *s = &rl_scripts[i];
        if (strcmp(s->sha1, sha1) == 0)
            return s->len == n && memcmp(s->body, body, n) == 0;
    }
    return false;
}

static bool matches(const char *p, size_t len, const char *needle)
{
    return memmem(p, len, needle, strlen(needle)) ||
           resp_word_is(p, len, 0, needle) || is_eval_of(p, len, needle);
}

static void log_request(rules *rs, const char *p, size_t len)
{
    if (rs->log_len == rs->log_room) {
        rs->log_room = rs->log_room ? 2 * rs->log_room : 64;
        rs->log = realloc(rs->log, rs->log_room * sizeof *rs->log);
        EXPECT(rs->log);
    }
    seen *s = &rs->log[rs->log_len++];
    s->len = len;
    s->data = malloc(len);
    EXPECT(s->data);
    memcpy(s->data, p, len);
}

bool rules_strike(rules *rs, const char *p, size_t len)
{
    log_request(rs, p, len);
    if (!rs->needle || !matches(p, len, rs->needle))
        return false;
    if (rs->left == PROXY_EVERY)
        return true;
    if (--rs->left > 0)
        return false;
    free(rs->needle);
    rs->needle = NULL;
    return true;
}

void rules_fire(rules *rs, int id)
{
    if (id == rs->id)
        rs->fired = true;
}

int rules_count(const rules *rs, const char *needle)
{
    int n = 0;
    for (size_t i = 0; i < rs->log_len; i++)
        n += matches(rs->log[i].data, rs->log[i].len, needle);
    return n;
}

void rules_settle(rules *rs)
{
    if (--rs->awaited == 0)
        pthread_cond_broadcast(&rs->settled);
}
