/*
 * Called on the loop alone, so the map needs no mutex; what the
 * rooms say is said under theirs, in which nothing is sent: commands are
 * written to the line, and go out afterwards.
 */
#include "run/channels.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "run/engine.h"
#include "wire/keys.h"

typedef struct channel {
    rl_map_node node;
    size_t name_len;
    rl_key key;
    char name[RLOCK_NAME_MAX];
} channel;

static bool same(const rl_map_node *n, const void *wanted)
{
    const rl_key *a = &RL_CONTAINER(n, channel, node)->key, *b = wanted;
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

bool rl_channels_init(rl_channels *all)
{
    return rl_map_init(&all->map, same);
}

static void drop(rl_map_node *n, void *arg)
{
    rl_map_remove(arg, n);
    free(RL_CONTAINER(n, channel, node));
}

void rl_channels_forget(rl_channels *all)
{
    rl_map_each(&all->map, drop, &all->map);
    all->known = false;
}

void rl_channels_fini(rl_channels *all)
{
    if (all->map.buckets)
        rl_channels_forget(all);
    rl_map_fini(&all->map);
}

static channel *find(rl_channels *all, const rl_key *key)
{
    uint64_t hash = rl_hash(key->text, key->len, 0);
    rl_map_node *n = rl_map_find(&all->map, hash, key);
    return n ? RL_CONTAINER(n, channel, node) : NULL;
}

typedef struct adjustment {
    rl_channels *all;
    rl_conn *conn;
    bool ok;
} adjustment;

static void say(adjustment *a, const char *command, const rl_key *key)
{
    rl_bytes *to = rl_line_begin(&a->conn->line);
    rl_put_array(to, 2);
    rl_put_text(to, command);
    rl_put_bytes(to, key->text, key->len);
    a->ok = rl_line_push(&a->conn->line, NULL) && a->ok;
}

/* Both under the rooms' mutex: no I/O here. */
static void came(const char *name, size_t len, void *arg)
{
    adjustment *a = arg;
    rl_key key = rl_key_redisson(name, len);
    if (find(a->all, &key))
        return;
    channel *ch = calloc(1, sizeof *ch);
    if (!ch)
        return; /* its waiter polls */
    ch->key = key;
    ch->name_len = len;
    memcpy(ch->name, name, len);
    rl_map_add(&a->all->map, &ch->node, rl_hash(key.text, key.len, 0));
    say(a, "SUBSCRIBE", &key);
}

static void went(const char *name, size_t len, void *arg)
{
    adjustment *a = arg;
    rl_key key = rl_key_redisson(name, len);
    channel *ch = find(a->all, &key);
    if (!ch)
        return;
    say(a, "UNSUBSCRIBE", &key);
    drop(&ch->node, &a->all->map);
}

bool rl_channels_adjust(rl_node *node, rl_conn *c)
{
    rl_channels *all = &node->doorbell.channels;
    adjustment a = {all, c, true};
    rl_rooms_news(&node->e->core.rooms, !all->known, came, went, &a);
    all->known = true;
    if (!a.ok)
        rl_conn_time_out(c);
    return a.ok && rl_conn_send(c);
}

bool rl_channels_hear(rl_node *node, const rl_reply *r)
{
    if (!rl_reply_is_array(r, 3) || !r->item[0].str || !r->item[1].str)
        return false;
    const rl_item *kind = &r->item[0], *name = &r->item[1];
    rl_key key = {0};
    if (name->len > sizeof key.text)
        return false;
    key.len = name->len;
    memcpy(key.text, name->str, name->len);
    channel *ch = find(&node->doorbell.channels, &key);
    if (!ch)
        return false;
    if (strcmp(kind->str, "message") == 0)
        rl_rooms_wake(&node->e->core.rooms, ch->name, ch->name_len,
                      RL_WAKE_RUNG);
    else if (strcmp(kind->str, "subscribe") == 0)
        rl_rooms_wake(&node->e->core.rooms, ch->name, ch->name_len,
                      RL_WAKE_LOOK);
    return true;
}
