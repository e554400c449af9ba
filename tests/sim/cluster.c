/*
 * What a node of a cluster answers: as getNodeByQuery() of Redis does, by what
 * the node believes (cluster_map.c).
 */
#include "cluster.h"

#include <string.h>

static int64_t refuses_until[NODES_MAX];

void cluster_refuse_until(int i, int64_t until)
{
    if (until > refuses_until[i])
        refuses_until[i] = until;
}

/* --- may it be done here? ------------------------------------------------- */

static void say_place(const char *what, int slot, int port, text *out)
{
    if (port)
        text_print(out, "-%s %d 127.0.0.1:%d\r\n", what, slot, port);
    else /* it has lost sight of it */
        text_print(out, "-%s %d :0\r\n", what, slot);
}

static size_t count_missing(server *s, const word *keys, size_t n)
{
    size_t missing = 0;
    for (size_t i = 0; i < n; i++)
        missing += store_find(&s->store, &keys[i]) == NULL;
    return missing;
}

static bool try_again(text *out)
{
    text_print(out, "-TRYAGAIN Multiple keys request during rehashing of "
                    "slot\r\n");
    return false;
}

static bool is_moving(const server *s, int slot, int at)
{
    return moving.slot == slot && s->index == at;
}

/* By what has moved already. */
static bool admits_moving(const conn *c, const word *keys, size_t n, text *out)
{
    size_t missing = count_missing(c->s, keys, n);
    if (missing == 0)
        return true;
    if (missing < n)
        return try_again(out);
    say_place("ASK", moving.slot, views[c->s->index].node[moving.to].port, out);
    return false;
}

static bool is_asked_for(const conn *c, int slot)
{
    return c->is_asking && is_moving(c->s, slot, moving.to);
}

static int common_slot(const word *keys, size_t n)
{
    int slot = slot_of(&keys[0]);
    for (size_t i = 1; i < n; i++)
        if (slot_of(&keys[i]) != slot)
            finding("keys of two slots in one command");
    return slot;
}

static bool admits(conn *c, const word *keys, size_t n, text *out)
{
    server *s = c->s;
    const map *view = &views[s->index];
    if (n == 0)
        return true;
    int slot = common_slot(keys, n), owner = view->owner[slot];
    if (w.now < refuses_until[s->index])
        text_print(out, "-CLUSTERDOWN The cluster is down\r\n");
    else if (owner == NOBODY)
        text_print(out, "-CLUSTERDOWN Hash slot not served\r\n");
    else if (owner == s->index && is_moving(s, slot, moving.from))
        return admits_moving(c, keys, n, out);
    else if (owner == s->index)
        return true;
    else if (is_asked_for(c, slot))
        return n == 1 || count_missing(s, keys, n) == 0 || try_again(out);
    else
        say_place("MOVED", slot, view->node[owner].port, out);
    trace("  server %d, connection %u, of %.*s: %.*s", s->index, c->number,
          (int)keys[0].len, keys[0].at, (int)out->len, out->at);
    return false;
}

/* --- sharded channels ----------------------------------------------------- */

/* A replica serves those of its master. */
static bool serves_channel(int i, int slot)
{
    int owner = views[i].owner[slot];
    return owner == i || owner == views[i].node[i].master;
}

void cluster_drop_listeners(int i)
{
    static text out;
    server *s = &servers[i];
    for (conn *c = conns; c; c = c->next) {
        if (c->s != s || c->server_closed || c->run != s->run)
            continue;
        for (size_t k = c->channels; k > 0; k--) {
            word name = {c->channel[k - 1].at, c->channel[k - 1].len};
            if (!c->is_sharded[k - 1] || serves_channel(i, slot_of(&name)))
                continue;
            out.len = 0;
            server_unsubscribe(c, "sunsubscribe", &name, &out);
            conn_reply(c, &out);
        }
    }
}

static void listen_to(conn *c, const word *argv, bool in, text *out)
{
    int i = c->s->index, slot = slot_of(&argv[1]);
    if (w.now < refuses_until[i])
        text_print(out, "-CLUSTERDOWN The cluster is down\r\n");
    else if (!serves_channel(i, slot) && views[i].owner[slot] == NOBODY)
        text_print(out, "-CLUSTERDOWN Hash slot not served\r\n");
    else if (!serves_channel(i, slot))
        say_place("MOVED", slot, views[i].node[views[i].owner[slot]].port, out);
    else if (in)
        server_subscribe(c, "ssubscribe", &argv[1], out);
    else
        server_unsubscribe(c, "sunsubscribe", &argv[1], out);
}

/* --- commands ------------------------------------------------------------- */

static void put_info(int i, text *out)
{
    static text t;
    t.len = 0;
    text_print(&t,
               "cluster_enabled:1\r\ncluster_state:%s\r\n"
               "cluster_known_nodes:%d\r\ncluster_size:%d\r\n",
               w.now < refuses_until[i] ? "fail" : "ok", servers_n, MASTERS);
    text_bulk(out, t.at, t.len);
}

static void tell_of_cluster(conn *c, const word *what, text *out)
{
    int i = c->s->index;
    const char *id = views[i].node[i].id;
    if (word_is(what, "NODES"))
        map_put_nodes(i, out);
    else if (word_is(what, "SLOTS"))
        map_put_slots(i, out);
    else if (word_is(what, "MYID"))
        text_bulk(out, id, strlen(id));
    else if (word_is(what, "INFO"))
        put_info(i, out);
    else
        finding("CLUSTER %.*s, which no node knows", (int)what->len, what->at);
}

static bool has_key(const word *name)
{
    return word_is(name, "PEXPIRE") || word_is(name, "EXISTS") ||
           word_is(name, "GET") || word_is(name, "DEL") ||
           word_is(name, "HEXISTS") || word_is(name, "PTTL");
}

static bool execute(conn *c, const word *argv, size_t n, text *out)
{
    if (word_is(&argv[0], "CLUSTER") && n > 1) {
        tell_of_cluster(c, &argv[1], out);
    } else if (word_is(&argv[0], "ASKING")) {
        c->is_asking = true;
        text_print(out, "+OK\r\n");
    } else if (word_is(&argv[0], "SSUBSCRIBE")) {
        listen_to(c, argv, true, out);
    } else if (word_is(&argv[0], "SUNSUBSCRIBE") && n == 1) {
        server_unsubscribe_all(c, "sunsubscribe", out);
    } else if (word_is(&argv[0], "SUNSUBSCRIBE")) {
        listen_to(c, argv, false, out);
    } else if (word_is(&argv[0], "ROLE")) {
        server_put_role(c->s, out);
    } else if (word_is(&argv[0], "WAIT")) {
        replicas_wait(c, argv, out);
    } else {
        return has_key(&argv[0]) && !admits(c, argv + 1, 1, out);
    }
    return true;
}

/* While the slot moves, whoever has the key already. */
static server *in_office(const word *key)
{
    int slot = slot_of(key);
    server *s = &servers[truth.owner[slot]];
    if (moving.slot != slot)
        return s;
    /* An old copy may lie at whoever gets the slot, of a failover to him. */
    server *to = &servers[moving.to];
    server_set_clock(s);
    server_set_clock(to);
    return !store_find(&s->store, key) && store_find(&to->store, key) ? to : s;
}

static bool is_coming(const server *s, const word *key)
{
    return moving.slot == slot_of(key) && moving.to == s->index;
}

const server_kind server_cluster = {.name = "cluster",
                                    .execute = execute,
                                    .admits = admits,
                                    .in_office = in_office,
                                    .is_coming = is_coming};

void cluster_begin(void)
{
    servers_n = MASTERS + (cfg.replicas > 0 ? MASTERS : 0);
    for (int i = 0; i < servers_n; i++)
        server_set_up(&servers[i], i, &server_cluster);
    map_begin();
}
