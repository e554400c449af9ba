#include "op/grant.h"

#include <string.h>

#include "base/clock.h"
#include "wire/keys.h"

#define MOST_DIGITS 18

/* What is left of the text; each reader takes what it reads off its beginning. */
typedef struct rest {
    const char *at, *end;
} rest;

static bool take(rest *r, const char *text)
{
    size_t n = strlen(text);
    if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0)
        return false;
    r->at += n;
    return true;
}

/* In lower case, as it was written; -1: none. */
static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_uuid(rest *r, rl_uuid *out)
{
    for (size_t i = 0; i < sizeof out->bytes; i++) {
        bool dash = i == 4 || i == 6 || i == 8 || i == 10;
        if ((dash && !take(r, "-")) || r->end - r->at < 2)
            return false;
        int high = hex(r->at[0]), low = hex(r->at[1]);
        if (high < 0 || low < 0)
            return false;
        out->bytes[i] = (unsigned char)(high << 4 | low);
        r->at += 2;
    }
    return true;
}

/* Above 0, without leading zeros; with the blank behind it. */
static bool take_number(rest *r, int64_t *out)
{
    int digits = 0;
    *out = 0;
    for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
        if (++digits > MOST_DIGITS)
            return false;
        *out = *out * 10 + (*r->at - '0');
        if (*out == 0)
            return false;
    }
    return digits > 0 && take(r, " ");
}

bool rl_notice_read(rl_notice *n, const char *text, size_t len)
{
    rest r = {text, text + len};
    int64_t token;
    if (!take(&r, RL_GRANT_PREFIX) || !take_uuid(&r, &n->id) ||
        !take(&r, " ") || !take_number(&r, &n->beat_us) ||
        !take_number(&r, &token) || !take_number(&r, &n->claim_ms))
        return false;
    static const rl_uuid none;
    if (memcmp(&n->id, &none, sizeof none) == 0) /* of who has not asked yet */
        return false;
    n->token = (uint64_t)token;
    n->name = r.at;
    n->len = (size_t)(r.end - r.at);
    return n->claim_ms <= RL_CLAIM_MOST_MS && n->len > 0 &&
           n->len <= RLOCK_NAME_MAX;
}

bool rl_grant_hear(rl_rooms *rooms, const rl_item *said)
{
    rl_notice n;
    rest r = {said->str, said->str + said->len};
    if (!take(&r, RL_GRANT_PREFIX))
        return false;
    if (rl_notice_read(&n, said->str, said->len))
        rl_rooms_grant(rooms, &n);
    return true;
}

bool rl_claim_is_good(int64_t beat_us, int64_t claim_ms, int64_t now_us)
{
    int64_t left_us = rl_lease_deadline(beat_us, claim_ms) - now_us;
    return beat_us <= now_us && left_us >= claim_ms * 1000 / 4;
}
