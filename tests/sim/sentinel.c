/*
 * Sentinels: a master, its replicas, and three who say which of them is the
 * master. Each has a view of its own, which is told what is so after a while,
 * and tells it to who listens. Of the commands the library asks MASTER and
 * SENTINELS; the others are for whoever asks them by hand.
 */
#include "sentinel.h"

#include <string.h>

sentinel_view office, says[SENTINELS];

bool sentinel_is_one(const server *s)
{
    return s->kind == &server_sentinel;
}

server *sentinel_of(int i)
{
    return &servers[servers_n - SENTINELS + i];
}

static int index_of(const server *s)
{
    return s->index - (servers_n - SENTINELS);
}

/* --- what each says ------------------------------------------------------- */

static void put_pair(text *to, const char *name, const char *fmt, long long n)
{
    text value = {0};
    text_print(&value, fmt, n);
    text_bulk(to, name, strlen(name));
    text_bulk(to, value.at, value.len);
    text_free(&value);
}

static void put_word(text *to, const char *name, const char *value)
{
    text_bulk(to, name, strlen(name));
    text_bulk(to, value, strlen(value));
}

static void put_master(const sentinel_view *v, text *out)
{
    text_print(out, "*12\r\n");
    put_word(out, "name", SENTINEL_NAME);
    put_word(out, "ip", "127.0.0.1");
    put_pair(out, "port", "%lld", servers[v->master].port);
    put_word(out, "flags",
             v->is_passing ? "master,failover_in_progress" : "master");
    put_pair(out, "num-other-sentinels", "%lld", SENTINELS - 1);
    put_pair(out, "config-epoch", "%lld", v->epoch);
}

static void put_others(const server *self, text *out)
{
    text_print(out, "*%d\r\n", SENTINELS - 1);
    for (int i = 0; i < SENTINELS; i++) {
        if (sentinel_of(i) == self)
            continue;
        text_print(out, "*6\r\n");
        put_word(out, "name", "sentinel");
        put_word(out, "ip", "127.0.0.1");
        put_pair(out, "port", "%lld", sentinel_of(i)->port);
    }
}

static void put_replicas(const sentinel_view *v, text *out)
{
    int n = 0;
    for (int i = 0; i < servers_n - SENTINELS; i++)
        n += i != v->master;
    text_print(out, "*%d\r\n", n);
    for (int i = 0; i < servers_n - SENTINELS; i++) {
        if (i == v->master)
            continue;
        text_print(out, "*6\r\n");
        put_word(out, "ip", "127.0.0.1");
        put_pair(out, "port", "%lld", servers[i].port);
        put_word(out, "flags", "slave");
    }
}

static void put_address(const sentinel_view *v, text *out)
{
    text_print(out, "*2\r\n");
    text_bulk(out, "127.0.0.1", 9);
    text_bulk_number(out, servers[v->master].port);
}

static void answer(conn *c, const word *argv, size_t n, text *out)
{
    const sentinel_view *v = &says[index_of(c->s)];
    if (n < 3 || !word_is(&argv[2], SENTINEL_NAME))
        text_print(out, "-ERR No such master with that name\r\n");
    else if (word_is(&argv[1], "MASTER"))
        put_master(v, out);
    else if (word_is(&argv[1], "SENTINELS"))
        put_others(c->s, out);
    else if (word_is(&argv[1], "REPLICAS"))
        put_replicas(v, out);
    else if (word_is(&argv[1], "GET-MASTER-ADDR-BY-NAME"))
        put_address(v, out);
    else
        finding("SENTINEL %.*s, which none knows", (int)argv[1].len,
                argv[1].at);
}

static bool execute(conn *c, const word *argv, size_t n, text *out)
{
    if (word_is(&argv[0], "SENTINEL") && n > 1) {
        answer(c, argv, n, out);
    } else if (word_is(&argv[0], "SUBSCRIBE")) {
        for (size_t i = 1; i < n; i++)
            server_subscribe(c, "subscribe", &argv[i], out);
    } else if (word_is(&argv[0], "ROLE")) {
        text_print(out, "*2\r\n$8\r\nsentinel\r\n*1\r\n$%zu\r\n%s\r\n",
                   strlen(SENTINEL_NAME), SENTINEL_NAME);
    } else {
        return false;
    }
    return true;
}

const server_kind server_sentinel = {.name = "sentinel", .execute = execute};

/* --- the servers that they watch ------------------------------------------ */

static server *in_office(const word *key)
{
    (void)key;
    return &servers[office.master];
}

static bool execute_watched(conn *c, const word *argv, size_t n, text *out)
{
    return server_single.execute(c, argv, n, out);
}

const server_kind server_watched = {
    .name = "watched", .execute = execute_watched, .in_office = in_office};

void sentinel_begin(void)
{
    int watched = 1 + (cfg.replicas > 0 ? (int)cfg.replicas : 1);
    servers_n = watched + SENTINELS;
    for (int i = 0; i < watched; i++)
        server_set_up(&servers[i], i, &server_watched);
    for (int i = 1; i < watched; i++)
        replica_follow(&servers[i], &servers[0]);
    office = (sentinel_view){.epoch = 1};
    for (int i = 0; i < SENTINELS; i++) {
        server_set_up(sentinel_of(i), watched + i, &server_sentinel);
        says[i] = office;
    }
}
