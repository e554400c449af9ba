#include "wire/keys.h"

#include <string.h>

static void add(rl_key *k, const void *bytes, size_t len)
{
    memcpy(k->text + k->len, bytes, len);
    k->len += len;
}

static void begin(rl_key *k, const char *prefix, const void *name, size_t len)
{
    bool tagged = memchr(name, '{', len) != NULL;
    k->len = 0;
    add(k, prefix, strlen(prefix));
    add(k, tagged ? ":" : ":{", tagged ? 1 : 2);
    add(k, name, len);
    if (!tagged)
        add(k, "}", 1);
}

rl_key rl_key_token(const void *name, size_t len)
{
    rl_key k;
    begin(&k, "rlock_token", name, len);
    return k;
}

rl_key rl_key_queue(const void *name, size_t len)
{
    rl_key k;
    begin(&k, "rlock_queue", name, len);
    return k;
}

rl_key rl_key_redisson(const void *name, size_t len)
{
    rl_key k;
    begin(&k, "redisson_lock__channel", name, len);
    return k;
}

rl_key rl_key_tombstone(const void *name, size_t len, const char *holder)
{
    rl_key k;
    begin(&k, "rlock_undone", name, len);
    add(&k, ":", 1);
    add(&k, holder + strlen(holder) - RL_UUID_LEN, RL_UUID_LEN);
    return k;
}
