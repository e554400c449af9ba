/*
 * Who waits wants a channel, on any thread; the doorbell, on the loop,
 * subscribes to it, hears it, and gives it up when nobody has wanted it for a
 * while. What it says is written under the mutex to its own line, and sent
 * afterwards.
 *
 * What stays true: a channel counts as heard only after the server has said so,
 * and whoever has begun to wait before that is woken to look once more. When
 * the slot moves the server ends the subscription, and they are woken, too:
 * they ask at the slot's new server, and want the channel there. A bell may
 * ring until the server has seen that it was given up: that ring is passed on.
 */
#include "run/subscriptions.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "op/grant.h"
#include "run/engine.h"
#include "wire/error.h"

/* Longer than it takes from one look of a waiter to the next. */
#define KEPT_US (5 * 1000 * 1000)

/* What was refused is asked for again then, if it is still wanted. */
#define REFUSED_US (2 * 1000 * 1000)
#define MOST       1024

/* In a cluster they are sharded. */
typedef struct words {
    const char *subscribe, *unsubscribe, *subscribed, *unsubscribed, *message;
} words;

static const words plain = {"SUBSCRIBE", "UNSUBSCRIBE", "subscribe",
                            "unsubscribe", "message"};
static const words sharded = {"SSUBSCRIBE", "SUNSUBSCRIBE", "ssubscribe",
                              "sunsubscribe", "smessage"};

typedef struct subscription {
    rl_map_node node;
    rl_key channel;
    bool asked, heard;
    int64_t until_us; /* when it is given up, unless it is wanted again */
    unsigned slot;
    size_t name_len;
    char name[]; /* fixed */
} subscription;

static bool same(const rl_map_node *n, const void *wanted)
{
    const rl_key *a = &RL_CONTAINER(n, subscription, node)->channel,
                 *b = wanted;
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

bool rl_subscriptions_init(rl_subscriptions *b)
{
    rl_mutex_init(&b->mutex, RL_RANK_SUBSCRIPTIONS);
    b->until_us = b->again_us = RL_NEVER;
    return rl_map_init(&b->map, same);
}

static void drop(rl_subscriptions *b, subscription *x)
{
    rl_map_remove(&b->map, &x->node);
    b->count--;
    free(x);
}

static void drop_one(rl_map_node *n, void *arg)
{
    drop(arg, RL_CONTAINER(n, subscription, node));
}

void rl_subscriptions_fini(rl_subscriptions *b, bool forked)
{
    if (forked && !rl_mutex_was_free(&b->mutex))
        return;
    if (b->map.buckets)
        rl_map_each(&b->map, drop_one, b);
    rl_map_fini(&b->map);
    if (!forked)
        rl_mutex_fini(&b->mutex);
}

static uint64_t hash_of(const rl_key *channel)
{
    return rl_hash(channel->text, channel->len, 0);
}

static subscription *find_locked(rl_subscriptions *b, const rl_key *channel)
    RL_REQUIRES(&b->mutex)
{
    rl_map_node *n = rl_map_find(&b->map, hash_of(channel), channel);
    return n ? RL_CONTAINER(n, subscription, node) : NULL;
}

/*
 * "x" and "{x}" have the same channels. What is said there, but for a ring,
 * does not tell which of them is meant.
 */
static void wake_both(rl_rooms *rooms, const char *name, size_t len,
                      rl_wake why)
{
    char braced[RLOCK_NAME_MAX + 2];
    rl_rooms_wake(rooms, name, len, why);
    if (!memchr(name, '{', len)) {
        braced[0] = '{';
        memcpy(braced + 1, name, len);
        braced[len + 1] = '}';
        rl_rooms_wake(rooms, braced, len + 2, why);
    } else if (name[0] == '{' && name[len - 1] == '}' &&
               !memchr(name + 1, '{', len - 1)) {
        rl_rooms_wake(rooms, name + 1, len - 2, why);
    }
}

/* --- any thread ----------------------------------------------------------- */

/* Without memory, or with too many, its waiter polls. */
static void want_locked(rl_subscriptions *b, const rl_key *channel,
                        const rl_target *what, int64_t now_us)
    RL_REQUIRES(&b->mutex)
{
    subscription *x = find_locked(b, channel);
    if (!x && b->count < MOST &&
        (x = calloc(1, sizeof *x + what->len)) != NULL) {
        x->channel = *channel;
        x->slot = what->slot;
        x->name_len = what->len;
        memcpy(x->name, what->name, what->len);
        rl_map_add(&b->map, &x->node, hash_of(channel));
        b->count++;
        b->news = true;
    }
    if (!x)
        return;
    x->until_us = now_us + KEPT_US;
    b->until_us = rl_min(b->until_us, x->until_us);
}

/* That of a latch may lie in another slot than its name. */
static bool has_channel(const rl_target *what)
{
    return what->scope != RL_LATCH_SCOPE || !what->sharded ||
           !memchr(what->name, '{', what->len);
}

static rl_key key_of_redisson(const rl_target *what)
{
    if (what->scope == RL_LATCH_SCOPE)
        return rl_key_redisson_latch(what->name, what->len);
    if (what->scope == RL_LAYOUT_PERMIT)
        return rl_key_redisson_semaphore(what->name, what->len);
    return rl_scope_is_side(what->scope)
               ? rl_key_redisson_rw(what->name, what->len)
               : rl_key_redisson(what->name, what->len);
}

void rl_subscriptions_want(rl_node *node, const rl_target *what)
{
    rl_subscriptions *b = &node->doorbell.subscriptions;
    const rl_core *c = &node->e->core;
    bool foreign = c->set.redisson_channel && has_channel(what);
    if (!node->e->cluster && !foreign)
        return;
    int64_t now_us = rl_now_us();
    rl_key bell = rl_key_bell(what->name, what->len, c->bell);
    rl_key theirs = key_of_redisson(what);
    rl_mutex_lock(&b->mutex);
    if (node->e->cluster)
        want_locked(b, &bell, what, now_us);
    if (foreign)
        want_locked(b, &theirs, what, now_us);
    bool news = b->news;
    rl_mutex_unlock(&b->mutex);
    if (news)
        rl_doorbell_wake(node);
}

bool rl_subscriptions_hear(rl_node *node, const rl_target *what)
{
    rl_subscriptions *b = &node->doorbell.subscriptions;
    rl_key channel = rl_key_bell(what->name, what->len, node->e->core.bell);
    rl_mutex_lock(&b->mutex);
    const subscription *x = b->count ? find_locked(b, &channel) : NULL;
    bool heard = x && x->heard;
    rl_mutex_unlock(&b->mutex);
    return heard;
}

/* --- the doorbell ---------------------------------------------------------- */

bool rl_subscriptions_are_wanted(rl_subscriptions *b)
{
    rl_mutex_lock(&b->mutex);
    bool wanted = b->count > 0;
    rl_mutex_unlock(&b->mutex);
    return wanted;
}

int64_t rl_subscriptions_until(rl_subscriptions *b)
{
    rl_mutex_lock(&b->mutex);
    int64_t until_us = b->until_us;
    rl_mutex_unlock(&b->mutex);
    return until_us;
}

static const words *words_of(const rl_node *node)
{
    return node->e->cluster ? &sharded : &plain;
}

typedef struct adjustment {
    rl_subscriptions *b;
    rl_conn *conn;
    const words *words;
    int64_t now_us;
    bool ok;
    bool again; /* what was asked for, and is not heard */
} adjustment;

static void say(adjustment *a, const char *command, const rl_key *channel)
{
    rl_bytes *to = rl_line_begin(&a->conn->line);
    rl_put_array(to, 2);
    rl_put_text(to, command);
    rl_put_bytes(to, channel->text, channel->len);
    a->ok = rl_line_push(&a->conn->line, NULL) && a->ok;
}

static void adjust_one(rl_map_node *n, void *arg)
{
    adjustment *a = arg;
    subscription *x = RL_CONTAINER(n, subscription, node);
    if (x->until_us <= a->now_us) {
        if (x->asked)
            say(a, a->words->unsubscribe, &x->channel);
        drop(a->b, x);
        return;
    }
    if (!x->asked || (a->again && !x->heard))
        say(a, a->words->subscribe, &x->channel);
    x->asked = true;
    a->b->until_us = rl_min(a->b->until_us, x->until_us);
}

bool rl_subscriptions_adjust(rl_node *node, rl_conn *c, int64_t now_us)
{
    rl_subscriptions *b = &node->doorbell.subscriptions;
    adjustment a = {b, c, words_of(node), now_us, true, false};
    rl_mutex_lock(&b->mutex);
    if (b->news || b->until_us <= now_us) {
        b->news = false;
        a.again = b->again_us <= now_us;
        if (a.again)
            b->again_us = RL_NEVER;
        b->until_us = b->again_us;
        rl_map_each(&b->map, adjust_one, &a);
    }
    rl_mutex_unlock(&b->mutex);
    if (!a.ok)
        rl_conn_time_out(c);
    return a.ok && rl_conn_send(c);
}

static bool is(const rl_item *i, const char *text)
{
    return i->str && strcmp(i->str, text) == 0;
}

/* What has been said of a channel. False: it is not wanted any more. */
static bool hear_channel(rl_node *node, const rl_item *kind,
                         const rl_item *channel, char *name, size_t *len)
{
    rl_subscriptions *b = &node->doorbell.subscriptions;
    rl_key key = {.len = channel->len};
    if (!channel->str || channel->len > sizeof key.text)
        return false;
    memcpy(key.text, channel->str, key.len);
    rl_mutex_lock(&b->mutex);
    subscription *x = find_locked(b, &key);
    if (x) {
        *len = x->name_len;
        memcpy(name, x->name, x->name_len);
        x->heard = is(kind, words_of(node)->subscribed) || x->heard;
        if (is(kind, words_of(node)->unsubscribed))
            drop(b, x);
    }
    rl_mutex_unlock(&b->mutex);
    return x != NULL;
}

/* "MOVED 3999 ...": those of a slot that this server does not have. */
typedef struct losing {
    rl_subscriptions *b;
    rl_rooms *rooms;
    long slot; /* -1: of all slots */
} losing;

static void lose_one(rl_map_node *n, void *arg)
{
    losing *l = arg;
    subscription *x = RL_CONTAINER(n, subscription, node);
    if (l->slot >= 0 && (unsigned)l->slot != x->slot)
        return;
    wake_both(l->rooms, x->name, x->name_len, RL_WAKE_LOOK);
    drop(l->b, x);
}

static void lose(rl_node *node, long slot)
{
    rl_subscriptions *b = &node->doorbell.subscriptions;
    losing l = {b, &node->e->core.rooms, slot};
    rl_mutex_lock(&b->mutex);
    rl_map_each(&b->map, lose_one, &l);
    rl_mutex_unlock(&b->mutex);
}

void rl_subscriptions_lose_all(rl_node *node)
{
    lose(node, -1);
}

/* Which one it was is not told. A server that is busy, or a cluster that is down,
   has time before long; one that knows no such command never has. */
static void be_refused(rl_subscriptions *b, const rl_reply *r)
{
    rl_fault f;
    rl_error_reply(r, &f);
    rl_mutex_lock(&b->mutex);
    if (f.transient && b->again_us == RL_NEVER) {
        b->again_us = rl_now_us() + REFUSED_US;
        b->until_us = rl_min(b->until_us, b->again_us);
    }
    rl_mutex_unlock(&b->mutex);
}

/* Who is rung by name, and by whom it is not wanted. */
static void hear_ring(rl_node *node, const rl_item *said, rl_item *name)
{
    rl_rooms *rooms = &node->e->core.rooms;
    if (said->str && rl_grant_hear(rooms, said))
        return;
    if (said->str && said->len > 0 && said->len <= RLOCK_NAME_MAX &&
        !rl_rooms_wake(rooms, said->str, said->len, RL_WAKE_RUNG))
        *name = *said;
}

/* A bell; and not Redisson's. */
static bool is_own(const rl_node *node, const rl_item *channel)
{
    return node->e->cluster && channel->str &&
           strncmp(channel->str, RL_SBELL_PREFIX, strlen(RL_SBELL_PREFIX)) == 0;
}

bool rl_subscriptions_take(rl_node *node, const rl_reply *r, rl_item *name)
{
    size_t len = 0;
    char text[RLOCK_NAME_MAX];
    name->str = NULL;
    if (node->e->cluster && rl_reply_is(r, REDIS_REPLY_ERROR) &&
        strncmp(r->top.str, "MOVED ", 6) == 0) {
        rl_cluster_suspect(node->e->cluster, NULL);
        lose(node, strtol(r->top.str + 6, NULL, 10));
        return true;
    }
    if (rl_reply_is(r, REDIS_REPLY_ERROR))
        be_refused(&node->doorbell.subscriptions, r);
    if (!rl_reply_is_array(r, 3))
        return false;
    bool wanted = hear_channel(node, &r->item[0], &r->item[1], text, &len);
    bool rings = is(&r->item[0], words_of(node)->message);
    if (rings && is_own(node, &r->item[1])) {
        hear_ring(node, &r->item[2], name);
        return true;
    }
    if (wanted)
        wake_both(&node->e->core.rooms, text, len,
                  rings ? RL_WAKE_RUNG : RL_WAKE_LOOK);
    return wanted;
}
