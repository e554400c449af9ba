#include "leftovers.h"

#include <stdlib.h>
#include <string.h>

#include "test.h"

static bool ends_with(const char *key, const char *end)
{
    size_t n = strlen(key), most = strlen(end);
    return n >= most && strcmp(key + n - most, end) == 0;
}

static bool may_be_left(server *sv, const char *key, bool tombstones)
{
    int64_t ttl_ms = 3600000;
    if (tombstones && strncmp(key, "rlock_undone:", 13) == 0)
        ttl_ms = 60000;
    else if (ends_with(key, ":who"))
        ttl_ms = 6000; /* somebody had waited for long */
    else if (strncmp(key, "rlock_token:", 12) != 0)
        return false;
    int64_t left_ms = server_int(sv, "PTTL %s", key);
    return left_ms > 0 && left_ms <= ttl_ms;
}

/* A key that should not be there; the caller frees it. NULL: there is none. */
static char *left_behind(server *sv, bool tombstones)
{
    redisReply *r = server_cmd(sv, "KEYS *");
    size_t n = r->elements;
    char *bad = NULL, *key[n + 1];
    for (size_t i = 0; i < n; i++)
        key[i] = strdup(r->element[i]->str);
    for (size_t i = 0; i < n; i++)
        if (!bad && !may_be_left(sv, key[i], tombstones))
            bad = key[i];
        else
            free(key[i]);
    return bad;
}

static void expect_none(server *sv, bool tombstones)
{
    char *key = left_behind(sv, tombstones);
    if (key)
        FAIL("key %s is left behind, with a PTTL of %lld", key,
             server_int(sv, "PTTL %s", key));
}

void expect_nothing_left(server *sv)
{
    expect_none(sv, false);
}

void expect_all_undone(server *sv)
{
    expect_none(sv, true);
}

void await_all_undone(server *sv)
{
    int64_t until_ms = test_now_ms() + SOON;
    char *key;
    while ((key = left_behind(sv, true)) && test_now_ms() < until_ms) {
        free(key);
        test_pause_ms(1);
    }
    free(key);
    expect_all_undone(sv);
}
