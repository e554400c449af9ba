#include "drive/ears.h"

#include <stdlib.h>
#include <string.h>

#include "drive/engine.h"

typedef struct channel {
    rl_map_node node;
    bool wanted;
    size_t name_len;
    rl_key key;
    char name[RLOCK_NAME_MAX];
} channel;

static bool same(const rl_map_node *n, const void *wanted)
{
    const rl_key *a = &RL_CONTAINER(n, channel, node)->key, *b = wanted;
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

bool rl_ears_init(rl_ears *ears)
{
    return rl_map_init(&ears->channels, same);
}

static void drop(rl_map_node *n, void *arg)
{
    rl_map_remove(arg, n);
    free(RL_CONTAINER(n, channel, node));
}

void rl_ears_forget(rl_ears *ears)
{
    rl_map_each(&ears->channels, drop, &ears->channels);
}

void rl_ears_fini(rl_ears *ears)
{
    if (ears->channels.buckets)
        rl_ears_forget(ears);
    rl_map_fini(&ears->channels);
}

static channel *find(rl_ears *ears, const rl_key *key)
{
    uint64_t hash = rl_hash(key->text, key->len, 0);
    rl_map_node *n = rl_map_find(&ears->channels, hash, key);
    return n ? RL_CONTAINER(n, channel, node) : NULL;
}

typedef struct adjustment {
    rl_ears *ears;
    rl_conn *conn;
    bool ok;
} adjustment;

static void send(adjustment *a, const char *command, const rl_key *key)
{
    const char *argv[] = {command, key->text};
    size_t lens[] = {strlen(command), key->len};
    a->ok = rl_conn_append(a->conn, 2, argv, lens) && a->ok;
}

/* For each waiting room, under the rooms' mutex: no I/O here. */
static void want(const char *name, size_t len, void *arg)
{
    adjustment *a = arg;
    rl_key key = rl_key_redisson(name, len);
    channel *ch = find(a->ears, &key);
    if (!ch) {
        ch = calloc(1, sizeof *ch);
        if (!ch)
            return; /* its waiter polls */
        ch->key = key;
        ch->name_len = len;
        memcpy(ch->name, name, len);
        rl_map_add(&a->ears->channels, &ch->node,
                   rl_hash(key.text, key.len, 0));
        send(a, "SUBSCRIBE", &key);
    }
    ch->wanted = true;
}

static void unsubscribe_unwanted(rl_map_node *n, void *arg)
{
    adjustment *a = arg;
    channel *ch = RL_CONTAINER(n, channel, node);
    if (ch->wanted) {
        ch->wanted = false;
        return;
    }
    send(a, "UNSUBSCRIBE", &ch->key);
    drop(n, &a->ears->channels);
}

bool rl_ears_adjust(rl_engine *e, rl_conn *c)
{
    rl_fault f;
    adjustment a = {&e->doorbell.ears, c, true};
    rl_rooms_listen(&e->rooms, want, &a);
    rl_map_each(&a.ears->channels, unsubscribe_unwanted, &a);
    if (a.ok && rl_conn_flush(c, rl_command_deadline(e), &f) == RLOCK_OK)
        return true;
    c->broken = true;
    return false;
}

bool rl_ears_hear(rl_engine *e, const rl_reply *r)
{
    if (!rl_reply_is_array(r, 3) || !r->item[0].str || !r->item[1].str)
        return false;
    const rl_item *kind = &r->item[0], *name = &r->item[1];
    rl_key key = {0};
    if (name->len > sizeof key.text)
        return false;
    key.len = name->len;
    memcpy(key.text, name->str, name->len);
    channel *ch = find(&e->doorbell.ears, &key);
    if (!ch)
        return false;
    if (strcmp(kind->str, "message") == 0)
        rl_rooms_wake(&e->rooms, ch->name, ch->name_len, RL_WAKE_RUNG);
    else if (strcmp(kind->str, "subscribe") == 0)
        rl_rooms_wake(&e->rooms, ch->name, ch->name_len, RL_WAKE_LOOK);
    return true;
}
