/*
 * Asks each server what threatens locks there. What one refuses is not told; a
 * connection that breaks makes that server one that could not be asked.
 */
#include <rlock/servers.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/check.h"
#include "client/facts.h"
#include "client/survey.h"
#include "route/sentinel_link.h"
#include "run/client.h"

/* For so long round trips are measured. */
#define TRIPS_US (1000 * 1000)

/* Of a text that a server answers what is beyond is left out. */
#define TEXT_MAX (64 * 1024)

typedef struct asking {
    rlock_client *cl;
    rl_engine *e;
    rl_conn *conn;
    rl_facts *all;
    size_t n, room;
    rl_fault f; /* RLOCK_OK: goes on */
    rl_sink sink;
    size_t len; /* of the latest text */
    char text[TEXT_MAX];
    rl_table table;
} asking;

/* Room for one more; NULL: out of memory. */
static rl_facts *add(asking *a, const char *address)
{
    if (a->n == a->room) {
        size_t wanted = a->room ? a->room * 2 : 8;
        rl_facts *grown = realloc(a->all, wanted * sizeof *grown);
        if (!grown) {
            rl_fault_set(&a->f, RLOCK_ENOMEM, 0, "out of memory");
            return NULL;
        }
        a->all = grown;
        a->room = wanted;
    }
    rl_facts_init(&a->all[a->n], address);
    return &a->all[a->n++];
}

/* That memory lacks here says nothing of the server. */
static void fail(asking *a, rl_facts *x, const rl_fault *why)
{
    if (why->status == RLOCK_ENOMEM)
        a->f = *why;
    rl_facts_fail(x, why);
}

static bool goes_on(asking *a)
{
    if (a->f.status == RLOCK_OK && atomic_load(&a->cl->closing))
        rl_fault_set(&a->f, RLOCK_ECLOSED, 0, "the client is closed");
    return a->f.status == RLOCK_OK;
}

static int64_t step_end(const asking *a)
{
    return rl_command_end(&a->e->core, rl_now_us());
}

/* --- questions ------------------------------------------------------------ */

static bool take_text(rl_sink *s, const rl_cell *c, size_t len)
{
    asking *a = RL_CONTAINER(s, asking, sink);
    if (!c->str)
        return c->type == REDIS_REPLY_NIL;
    size_t kept = len < sizeof a->text ? len : sizeof a->text - 1;
    memcpy(a->text, c->str, kept);
    a->text[kept] = '\0';
    a->len = kept;
    return true;
}

/* NULL: it is not told. */
static const char *ask_text(asking *a, int argc, const char **argv)
{
    rl_reply r;
    rl_fault ignored;
    a->len = 0;
    if (!goes_on(a) || rl_conn_is_broken(a->conn))
        return NULL;
    a->conn->line.reply.sink = &a->sink;
    rlock_status s =
        rl_conn_ask(a->conn, step_end(a), &r, &ignored, argc, argv);
    a->conn->line.reply.sink = NULL;
    return s == RLOCK_OK && a->len > 0 ? a->text : NULL;
}

static bool ask(asking *a, rl_reply *r, int argc, const char **argv)
{
    rl_fault ignored;
    return goes_on(a) && !rl_conn_is_broken(a->conn) &&
           rl_conn_ask(a->conn, step_end(a), r, &ignored, argc, argv) ==
               RLOCK_OK &&
           !rl_reply_is(r, REDIS_REPLY_ERROR);
}

/* One by one: before Redis 7 it takes no more, and rights may differ. */
static void ask_config(asking *a, rl_facts *x)
{
    const char *const options[] = {"appendfsync", "min-replicas-to-write",
                                   a->e->cluster ? "cluster-databases"
                                                 : "databases"};
    rl_reply r;
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (ask(a, &r, 3, (const char *[]){"CONFIG", "GET", options[i]}) &&
            r.count == 2 && r.item[1].str)
            rl_facts_read_config(x, options[i], r.item[1].str);
}

static int64_t wall_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* The quickest round trip says best how far the server's clock is ahead. */
static void ask_time(asking *a, rl_facts *x)
{
    int64_t us[RL_TRIPS_MAX], best = RL_NEVER,
                              until_us = rl_now_us() + TRIPS_US;
    size_t n = 0;
    while (n < RL_TRIPS_MAX && rl_now_us() < until_us) {
        rl_reply r;
        int64_t sent_us = rl_now_us();
        int64_t wall = wall_us();
        bool told = ask(a, &r, 1, (const char *[]){"TIME"}) && r.count == 2;
        if (rl_conn_is_broken(a->conn) || !goes_on(a))
            return;
        us[n] = rl_now_us() - sent_us;
        if (told && us[n] < best) {
            best = us[n];
            x->of.clock_ahead_us = rl_item_number(&r.item[0]) * 1000000 +
                                   rl_item_number(&r.item[1]) -
                                   (wall + best / 2);
        }
        n++;
    }
    rl_facts_note_trips(x, us, n);
}

/* --- servers -------------------------------------------------------------- */

static void ask_rights(asking *a, rl_node *n, rl_facts *x)
{
    bool allowed, rings;
    if (!goes_on(a) || rl_conn_is_broken(a->conn))
        return;
    if (rl_check_missing(n, a->conn, step_end(a), x->missing, sizeof x->missing,
                         &rings))
        x->of.missing = ""; /* it is told */
    if (rl_conn_is_broken(a->conn) ||
        !rl_check_bell(n, a->conn, step_end(a), &allowed))
        return;
    x->of.channels = allowed && rings;
}

static const char *scheme(const asking *a)
{
    return a->e->tls ? "rediss" : "redis";
}

/* Behind their master; the text is that one's INFO. */
static void add_replicas(asking *a, const char *info)
{
    rl_facts x;
    for (unsigned i = 0; rl_facts_read_replica(info, i, scheme(a), &x); i++) {
        rl_facts *to = add(a, "");
        if (!to)
            return;
        *to = x;
    }
}

/* What the server calls this connection; 0: it does not tell. */
static int64_t ask_id(asking *a)
{
    rl_reply r;
    bool told = ask(a, &r, 2, (const char *[]){"CLIENT", "ID"});
    return told && rl_reply_is(&r, REDIS_REPLY_INTEGER) ? r.top.integer : 0;
}

/*
 * Something between may spread connections over several servers, or share one
 * among several clients: then a second one tells.
 */
static void ask_second(asking *a, rl_node *n, rl_facts *x)
{
    rl_fault ignored;
    rl_conn *first = a->conn;
    int64_t id = ask_id(a);
    int64_t until_us =
        rl_after_ms(rl_now_us(), a->e->core.set.connect_timeout_ms);
    if (!goes_on(a) ||
        rl_pool_open(n->pool, until_us, &a->conn, &ignored) != RLOCK_OK) {
        a->conn = first;
        return;
    }
    int64_t other = ask_id(a);
    const char *text = ask_text(a, 2, (const char *[]){"INFO", "server"});
    if (text)
        rl_facts_note_second(x, text);
    rl_pool_close(n->pool, a->conn);
    a->conn = first;
    rl_facts_note_ids(x, id, other, ask_id(a));
}

/* Asked last: it may have replicas, which are put behind it. */
static void ask_info(asking *a, rl_node *n, size_t first)
{
    rl_facts *x = &a->all[first];
    const char *text = ask_text(a, 1, (const char *[]){"INFO"});
    if (!text)
        return;
    rl_facts_read_info(x, text);
    if (!n->pool->dialer.connect)
        rl_facts_read_keys(x, text, n->pool->dialer.uri.db);
    add_replicas(a, text); /* x may have moved */
}

static void fail_if_broken(asking *a, size_t first)
{
    rl_fault why = a->conn->line.fault;
    if (!rl_conn_is_broken(a->conn))
        return;
    a->n = first + 1; /* of its replicas nothing is told, either */
    fail(a, &a->all[first], &why);
}

/* Of a cluster that is down each server says so, but to who asks no more. */
static rlock_status open_master(asking *a, rl_node *n, rl_fault *f)
{
    int64_t until_us =
        rl_after_ms(rl_now_us(), a->e->core.set.connect_timeout_ms);
    rlock_status s = rl_pool_open(n->pool, until_us, &a->conn, f);
    if (s != RLOCK_OK && a->e->cluster && strstr(f->text, "CLUSTERDOWN "))
        s = rl_pool_open_unchecked(n->pool, until_us, &a->conn, f);
    return s;
}

static void ask_cluster(asking *a, rl_facts *x)
{
    const char *text = NULL;
    if (a->e->cluster)
        text = ask_text(a, 2, (const char *[]){"CLUSTER", "INFO"});
    if (text)
        rl_facts_read_cluster(x, text);
}

static void ask_master(asking *a, rl_node *n)
{
    rl_fault f;
    size_t first = a->n;
    rl_facts *x = add(a, n->name ? n->name : atomic_load(&a->e->core.node));
    if (!x)
        return;
    if (open_master(a, n, &f) != RLOCK_OK) {
        fail(a, x, &f);
        return;
    }
    ask_time(a, x);
    ask_cluster(a, x);
    bool down = x->of.cluster_ok == 0;
    if (!down)
        ask_rights(a, n, x);
    ask_config(a, x);
    ask_info(a, n, first);
    if (!down)
        ask_second(a, n, &a->all[first]);
    fail_if_broken(a, first);
    rl_pool_close(n->pool, a->conn);
}

/* --- Sentinels ------------------------------------------------------------ */

static void ask_sentinel(asking *a, const rl_sentinel_link *n, rl_facts *x)
{
    rl_reply r;
    ask_time(a, x);
    const char *text = ask_text(a, 1, (const char *[]){"INFO"});
    if (text)
        rl_facts_read_info(x, text);
    x->of.role = RLOCK_SERVER_SENTINEL;
    a->table.count = 0;
    a->conn->line.reply.table = &a->table;
    if (ask(a, &r, 3, (const char *[]){"SENTINEL", "MASTER", n->master}))
        rl_facts_read_sentinel(x, &a->table);
    a->conn->line.reply.table = NULL;
    fail_if_broken(a, (size_t)(x - a->all));
}

static void dial_sentinel(asking *a, const rl_sentinel_link *n)
{
    rl_dialer d;
    rl_fault f;
    char address[RL_PLACE_HOST + 40];
    snprintf(address, sizeof address, "%s-sentinel://%s:%d", scheme(a), n->host,
             n->port);
    rl_facts *x = add(a, address);
    if (!x)
        return;
    x->of.role = RLOCK_SERVER_SENTINEL;
    rl_dialer_init(&d);
    rl_sentinel_link_copy_dialer(n, &d);
    int64_t until_us = rl_after_ms(rl_now_us(), d.connect_timeout_ms);
    if (rl_dial(&d, until_us, &a->conn, &f) == RLOCK_OK) {
        ask_sentinel(a, n, x);
        rl_conn_free(a->conn);
    } else {
        fail(a, x, &f);
    }
    rl_dialer_fini(&d);
}

/* --- all of them ---------------------------------------------------------- */

static rlock_status ask_all(asking *a)
{
    rl_node *master[RL_SERVERS];
    const rl_sentinel_link *link;
    size_t n = rl_survey_masters(a->e, master, &a->f);
    for (size_t i = 0; i < n && goes_on(a); i++)
        ask_master(a, master[i]);
    for (size_t i = 0; a->e->sentinels && goes_on(a) &&
                       (link = rl_sentinels_link(a->e->sentinels, i)) != NULL;
         i++)
        dial_sentinel(a, link);
    return goes_on(a) ? RLOCK_OK
                      : rl_error_set(a->f.status, a->f.sys_errno, "%s: %s",
                                     atomic_load(&a->e->core.node), a->f.text);
}

/* The facts are the caller's to free. */
static rlock_status collect(rlock_client *cl, rl_facts **all, size_t *n)
{
    int cancel;
    rlock_status s = rl_client_begin(cl, &cancel);
    if (s != RLOCK_OK)
        return s;
    asking *a = calloc(1, sizeof *a);
    if (a) {
        a->cl = cl;
        a->e = &cl->engine;
        a->sink.take = take_text;
        s = ask_all(a);
        *all = a->all;
        *n = a->n;
    } else {
        s = rl_error_set(RLOCK_ENOMEM, 0, "out of memory");
    }
    free(a);
    rl_client_leave(cl, cancel);
    return s;
}

rlock_status rlock_servers(rlock_client *cl, rlock_servers_fn *each, void *arg)
{
    rl_facts *all = NULL;
    size_t n = 0;
    bool more = true;
    if (!cl || !each)
        return rl_error_set(RLOCK_EINVAL, 0, "%s is NULL",
                            cl ? "the callback" : "the client");
    rlock_status s = collect(cl, &all, &n);
    for (size_t i = 0; s == RLOCK_OK && more && i < n; i++) {
        rlock_server_info told = rl_facts_tell(&all[i]);
        more = each(&told, arg);
    }
    free(all);
    return s;
}
