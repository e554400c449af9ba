/* What the nodes of a cluster know, and how they tell it. */
#include <stdio.h>
#include <string.h>

#include "cluster.h"

map truth, views[NODES_MAX];

static event gossip[NODES_MAX];
static int64_t last_epoch;
static unsigned names;

/* As the specification of clusters has it: CRC16 (XMODEM) of what is in the
   first braces, if there is something, else of all. */
int slot_of(const word *key)
{
    unsigned crc = 0;
    const char *at = key->at, *end = at + key->len;
    const char *open = memchr(at, '{', key->len);
    const char *shut = open ? memchr(open, '}', (size_t)(end - open)) : NULL;
    if (shut && shut > open + 1) {
        at = open + 1;
        end = shut;
    }
    for (; at < end; at++) {
        crc ^= (unsigned)(unsigned char)*at << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc << 1) ^ (crc & 0x8000 ? 0x1021 : 0);
    }
    return (int)(crc & (SLOTS - 1));
}

int64_t map_new_epoch(void)
{
    return ++last_epoch;
}

void map_name_nodes(void)
{
    last_epoch = 0;
    for (int i = 0; i < servers_n; i++) {
        node *n = &truth.node[i];
        snprintf(n->id, sizeof n->id, "%040x", 0xabc000 + ++names);
        n->has_failed = false;
        n->port = servers[i].port;
        n->epoch = n->master < 0 ? map_new_epoch() : 0;
    }
}

void map_begin(void)
{
    for (int k = 0; k < SLOTS; k++)
        truth.owner[k] = (unsigned char)(k * MASTERS / SLOTS);
    for (int i = 0; i < servers_n; i++)
        truth.node[i].master = i < MASTERS ? -1 : i % MASTERS;
    map_name_nodes();
    for (int i = 0; i < servers_n; i++) {
        views[i] = truth;
        if (truth.node[i].master >= 0)
            replica_follow(&servers[i], &servers[truth.node[i].master]);
    }
}

/* --- who knows what ------------------------------------------------------- */

void map_tell(int i)
{
    server *s = &servers[i];
    int master = truth.node[i].master;
    event_clear(&gossip[i]);
    views[i] = truth;
    if (master >= 0 && s->master != &servers[master])
        replica_follow(s, &servers[master]);
    else if (master < 0 && s->master)
        replica_follow(s, NULL);
    cluster_drop_listeners(i);
}

static void hear(event *e)
{
    int i = (int)(e - gossip);
    if (server_is_up(&servers[i]))
        map_tell(i);
    else
        event_set(e, w.now + 100 * MS);
}

void map_gossip(void)
{
    for (int i = 0; i < servers_n; i++) {
        gossip[i].fire = hear;
        if (!gossip[i].pos)
            event_set(&gossip[i],
                      w.now + MS + chance_skewed(&w.dice, cfg.gossip_us * US));
    }
}

/* --- how it is told ------------------------------------------------------- */

static void put_ranges(const map *m, int node, text *out)
{
    for (int k = 0, from; k < SLOTS; k++) {
        if (m->owner[k] != node)
            continue;
        for (from = k; k < SLOTS && m->owner[k] == node; k++)
            ;
        text_print(out, " %d-%d", from, k - 1);
    }
}

static const char *flags_of(const node *n)
{
    if (n->master >= 0)
        return n->has_failed ? "slave,fail" : "slave";
    return n->has_failed ? "master,fail" : "master";
}

void map_put_nodes(int i, text *out)
{
    static text t;
    const map *m = &views[i];
    t.len = 0;
    for (int k = 0; k < servers_n; k++) {
        const node *n = &m->node[k];
        int64_t epoch = n->master < 0 ? n->epoch : m->node[n->master].epoch;
        text_print(&t, "%s %s:%d@%d %s%s %s 0 0 %lld %s", n->id,
                   n->port ? "127.0.0.1" : "", n->port,
                   n->port ? n->port + 10000 : 0, k == i ? "myself," : "",
                   flags_of(n), n->master < 0 ? "-" : m->node[n->master].id,
                   (long long)epoch, n->port ? "connected" : "disconnected");
        if (n->master < 0)
            put_ranges(m, k, &t);
        text_print(&t, "\n");
    }
    text_bulk(out, t.at, t.len);
}

static void put_place(const node *n, text *out)
{
    text_print(out, "*4\r\n");
    text_bulk(out, "127.0.0.1", n->port ? 9 : 0);
    text_number(out, n->port);
    text_bulk(out, n->id, strlen(n->id));
    text_print(out, "*0\r\n");
}

static void put_range(const map *m, int from, int to, text *out)
{
    int owner = m->owner[from], servers_in = 1;
    for (int k = 0; k < servers_n; k++)
        servers_in += m->node[k].master == owner && !m->node[k].has_failed;
    text_print(out, "*%d\r\n", 2 + servers_in);
    text_number(out, from);
    text_number(out, to);
    put_place(&m->node[owner], out);
    for (int k = 0; k < servers_n; k++)
        if (m->node[k].master == owner && !m->node[k].has_failed)
            put_place(&m->node[k], out);
}

void map_put_slots(int i, text *out)
{
    static text t;
    const map *m = &views[i];
    int ranges = 0;
    t.len = 0;
    for (int k = 0, from; k < SLOTS;) {
        for (from = k; k < SLOTS && m->owner[k] == m->owner[from]; k++)
            ;
        if (m->owner[from] == NOBODY)
            continue;
        put_range(m, from, k - 1, &t);
        ranges++;
    }
    text_print(out, "*%d\r\n", ranges);
    text_add(out, t.at, t.len);
}
