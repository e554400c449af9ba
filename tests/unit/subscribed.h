/*
 * What the tests of subscriptions share: a server that writes down what is said
 * to it, and of which the test says what it says.
 */
#ifndef UNIT_SUBSCRIBED_H
#define UNIT_SUBSCRIBED_H

#include "run/subscriptions.h"

#include "engine.h"
#include "room.h"
#include "route/slotmap.h"

#define KEPT_US (5 * 1000 * MS)

#define BELL    "rlock_sbell:{job}:" ID
#define ID      "6f1e1e0c-5d07-4f36-9a4e-f123456789ab"
#define CHANNEL "redisson_lock__channel:{job}"

/* A server, and what has been said to it. */
typedef struct house {
    play p;
    rl_engine e;
    rl_conn *conn;
    char said[400];
    bool broken; /* nothing can be said any more */
} house;

static house *at; /* whose connection is written to */

static inline ssize_t write_down(rl_transport *t, const char *bytes, size_t n,
                                 rl_fault *f)
{
    (void)t;
    if (at->broken) {
        rl_fault_set(f, RLOCK_EIO, 0, "broken");
        return -1;
    }
    size_t used = strlen(at->said);
    snprintf(at->said + used, sizeof at->said - used, "%.*s", (int)n, bytes);
    return (ssize_t)n;
}

static inline ssize_t read_nothing(rl_transport *t, char *bytes, size_t room,
                                   rl_fault *f)
{
    (void)t, (void)bytes, (void)room;
    rl_fault_set(f, RLOCK_EIO, 0, "broken");
    return -1;
}

static int nudges;

static inline void nudge(void *arg)
{
    (void)arg;
    nudges++;
}

/* Of a cluster, or not; with Redisson's channels, or without. */
static inline void open_house(house *h, bool cluster, bool foreign)
{
    static const rl_uri nowhere;
    static const rl_transport_ops ops = {.write = write_down,
                                         .read = read_nothing,
                                         .close = engine_close_nothing};
    memset(h, 0, sizeof *h);
    at = h;
    engine_open(&h->e, &h->p);
    h->conn = rl_conn_new((rl_transport){.ops = &ops, .fd = -1});
    EXPECT(h->conn && rl_subscriptions_init(&h->e.node.doorbell.subscriptions));
    h->e.core.set.redisson_channel = foreign;
    snprintf(h->e.core.bell, sizeof h->e.core.bell, "%s",
             cluster ? RL_SBELL_PREFIX ID : RL_BELL_PREFIX ID);
    if (cluster)
        h->e.cluster = rl_cluster_new(
            &(rl_cluster_options){.uri = &nowhere, .nudge = nudge});
    EXPECT(!cluster || h->e.cluster);
    rl_rooms_hear(&h->e.core.rooms);
}

static inline rl_subscriptions *all(house *h)
{
    return &h->e.node.doorbell.subscriptions;
}

static inline void close_house(house *h)
{
    rl_subscriptions_fini(all(h), false);
    rl_conn_free(h->conn);
    if (h->e.cluster)
        rl_cluster_free(h->e.cluster, false);
    engine_close(&h->e, h->p.now_us);
    play_close_core(&h->e.core);
    play_close(&h->p);
}

static inline bool is_nudged(house *h)
{
    return atomic_exchange(&h->e.node.doorbell.watcher.nudged, false);
}

/* Wants it, now; is the doorbell woken? */
static inline bool want(house *h, const rl_target *what)
{
    rl_subscriptions_want(&h->e.node, what);
    return is_nudged(h);
}

/* What is said when the doorbell looks: in words, each with a blank behind. */
static const char *adjust(house *h, int64_t now_us)
{
    static char words[400];
    h->said[0] = words[0] = '\0';
    EXPECT(rl_subscriptions_adjust(&h->e.node, h->conn, now_us));
    char *rest = h->said;
    for (char *w; (w = strtok_r(rest, "\r\n", &rest)) != NULL;)
        if (*w != '*' && *w != '$')
            snprintf(words + strlen(words), sizeof words - strlen(words), "%s ",
                     w);
    return words;
}

static inline rl_item text_item(const char *text)
{
    return (rl_item){.type = REDIS_REPLY_STRING,
                     .str = text,
                     .len = text ? strlen(text) : 0};
}

/* The server says so; what is not wanted here, or NULL. False: not ours. */
static inline bool hear(house *h, const char *kind, const char *channel,
                        const char *text, const char **unwanted)
{
    rl_item name = text_item("rubbish");
    rl_reply r = {.top.type = REDIS_REPLY_ARRAY, .count = 3};
    r.item[0] = text_item(kind);
    r.item[1] = text_item(channel);
    r.item[2] = text_item(text);
    bool ours = rl_subscriptions_take(&h->e.node, &r, &name);
    *unwanted = name.str;
    return ours;
}

static inline void expect_heard(house *h, const char *kind, const char *channel,
                                const char *text)
{
    const char *unwanted;
    EXPECT(hear(h, kind, channel, text, &unwanted));
    EXPECT(!unwanted);
}

/* Somebody waits for the name, and its channels have been asked for. */
static inline void open_waiting(house *h, guest *g, bool cluster, bool foreign)
{
    open_house(h, cluster, foreign);
    enter(&h->e.core.rooms, g, &job);
    want(h, &job);
    adjust(h, rl_now_us());
    g->woken = 0;
}

static inline void close_waiting(house *h, guest *g)
{
    leave(&h->e.core.rooms, g, false);
    close_house(h);
}

#endif
