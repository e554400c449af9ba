#include "op/verb_query.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"

/* Room for who has a lock in a message that has to hold the rest, too. */
#define WHO_SHOWN 120

/* The last colon before this one, or NULL. */
static const char *colon_before(const char *text, const char *end)
{
    while (end > text && *--end != ':')
        ;
    return end > text ? end : NULL;
}

void rl_holder_clean(char *text)
{
    for (char *p = text; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == ':' || *p == 127)
            *p = '_';
}

/* "tid", or "tid/label"; up to the colon at end. */
static bool parse_owner(rlock_holder *out, const char *text, const char *end)
{
    char *rest;
    long long tid = strtoll(text, &rest, 10);
    size_t len = rest < end ? (size_t)(end - rest) - 1 : 0;
    if (rest == text || (rest != end && *rest != '/') ||
        len >= sizeof out->owner)
        return false;
    out->tid = tid;
    memcpy(out->owner, rest + 1, len);
    return true;
}

bool rl_parse_holder(rlock_holder *out)
{
    const char *raw = out->raw, *end = raw + strlen(raw);
    const char *uuid = colon_before(raw, end);
    const char *tid = uuid ? colon_before(raw, uuid) : NULL;
    const char *pid = tid ? colon_before(raw, tid) : NULL;
    if (!pid || end - uuid - 1 != RL_UUID_LEN ||
        (size_t)(pid - raw) >= sizeof out->host)
        return false;
    char *rest;
    long long pid_number = strtoll(pid + 1, &rest, 10);
    if (rest != tid || rest == pid + 1)
        return false;
    if (!parse_owner(out, tid + 1, uuid))
        return false;
    out->pid = pid_number;
    memcpy(out->host, raw, (size_t)(pid - raw));
    memcpy(out->hold_id, uuid + 1, RL_UUID_LEN + 1);
    return true;
}

/* Without the uuid, which tells people nothing; another program's as it is. */
static void write_who(char *out, size_t size, const rl_item *who)
{
    rlock_holder h = {0};
    size_t len = (size_t)rl_min((int64_t)who->len, sizeof h.raw - 1);
    memcpy(h.raw, who->str, len);
    if (rl_parse_holder(&h))
        len -= 1 + RL_UUID_LEN;
    rl_printable(out, size, h.raw, len);
}

void rl_fault_busy(rl_fault *f, const rl_item *who, size_t n)
{
    char name[WHO_SHOWN];
    bool known =
        n == 2 && rl_item_is(&who[0], REDIS_REPLY_STRING) && who[0].len > 0;
    long long ms = known ? rl_item_number(&who[1]) : -1;
    if (known)
        write_who(name, sizeof name, &who[0]);
    if (ms < 0)
        rl_fault_set(f, RLOCK_BUSY, 0, "held by %s", known ? name : "another");
    else
        rl_fault_set(f, RLOCK_BUSY, 0, "held by %s for %lld.%lld s", name,
                     ms / 1000, ms / 100 % 10);
}

rlock_status rl_read_holder(const rl_reply *r, rlock_holder *out, rl_fault *f)
{
    const rl_item *item = r->item;
    if (r->count == 0)
        return RLOCK_NOT_HELD;
    if (r->count != 3 || !item[0].str || item[0].len >= sizeof out->raw)
        return rl_fault_set(f, RLOCK_EIO, 0, "unexpected reply to inspect");
    memcpy(out->raw, item[0].str, item[0].len + 1);
    out->count = rl_item_number(&item[1]);
    out->ttl_ms = rl_item_number(&item[2]);
    rl_parse_holder(out);
    return RLOCK_OK;
}
