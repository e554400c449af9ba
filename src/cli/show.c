/* The verb `show`: all that is known about one lock. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "look.h"

typedef struct showing {
    const cli_options *o;
    const char *name, *server;
    look_lock x;
    bool held, begun; /* the JSON object is */
    bool lacking;     /* a server did not tell, which was said */
    int64_t held_ms, waiting, in_all, available;
    uint64_t token;
    cli_json json;
    cli_table queue;
} showing;

static const cli_option options[] = {{0}};

/* --- What side keys tell -------------------------------------------------- */

/* Of several servers the one that knows the most. */
static bool note(const rlock_lock_info *k, void *arg)
{
    showing *w = arg;
    if (k->waiting > w->waiting)
        w->waiting = k->waiting;
    if (k->token > w->token)
        w->token = k->token;
    if (k->holders_in_all > w->in_all)
        w->in_all = k->holders_in_all;
    w->available = k->available;
    if (w->held && k->n_holders &&
        look_is_same_hold(k->holders, &w->x.holder, w->x.layout))
        w->held_ms = k->held_ms;
    return true;
}

static int note_side_keys(rlock_client *cl, const char *server, void *arg)
{
    look_glob glob;
    showing *w = arg;
    (void)server;
    if (rlock_scan(cl, look_glob_of(&glob, w->name), RLOCK_SCAN_IDLE, note,
                   w) == RLOCK_OK)
        return 0;
    w->lacking = true;
    return look_failed();
}

static bool is_permits(const showing *w)
{
    return w->held && w->x.kind == RLOCK_KIND_PERMIT;
}

/* --- For programs --------------------------------------------------------- */

static void begin_json(showing *w)
{
    cli_json *j = &w->json;
    const rlock_holder *h = &w->x.holder;
    w->begun = true;
    cli_json_open(j, NULL, '{');
    cli_json_text(j, "name", w->name);
    cli_json_bool(j, "held", w->held);
    cli_json_text(j, "layout",
                  w->held ? look_kind(w->x.kind, w->x.layout) : NULL);
    look_json_holder(j, "holder", w->held ? h : NULL);
    cli_json_number(j, "count", w->held ? h->count : 0, true);
    cli_json_number(j, "held_ms", w->held_ms, w->held_ms >= 0);
    cli_json_number(j, "ttl_ms", h->ttl_ms, w->held && h->ttl_ms >= 0);
    cli_json_number(j, "waiting", w->waiting, true);
    cli_json_number(j, "token", (int64_t)w->token, w->token > 0);
    cli_json_number(j, "in_all", w->held ? w->in_all : 0, true);
    cli_json_number(j, "available", w->available, is_permits(w));
    cli_json_open(j, "queue", '[');
}

static void put_json(showing *w, const rlock_wait *who)
{
    if (!w->begun)
        begin_json(w);
    cli_json_open(&w->json, NULL, '{');
    if (w->server)
        cli_json_text(&w->json, "server", w->server);
    look_json_waiter(&w->json, who);
    cli_json_shut(&w->json, '}');
}

/* --- For people ----------------------------------------------------------- */

static void put_row(showing *w, const rlock_wait *who)
{
    look_text shown;
    char time[30];
    cli_table *t = &w->queue;
    if (w->server)
        cli_table_put(t, w->server);
    cli_table_put(t, look_waiter(&shown, who));
    cli_table_put(t, cli_duration(time, sizeof time, who->waited_ms));
    if (who->circle)
        cli_table_putf(t, "circle %u", who->circle);
    else
        cli_table_put(t, "-");
}

static void put_fact(cli_table *t, const char *what, const char *is)
{
    cli_table_put(t, what);
    cli_table_put(t, is);
}

static void put_number(cli_table *t, const char *what, int64_t is)
{
    cli_table_put(t, what);
    cli_table_putf(t, "%lld", (long long)is);
}

static void put_holder(cli_table *t, const showing *w)
{
    look_text shown;
    char time[30];
    const rlock_holder *h = &w->x.holder;
    put_fact(t, "holder", look_holders(&shown, h, w->in_all));
    if (h->hold_id[0])
        put_fact(t, "hold", h->hold_id);
    put_fact(t, "kind", look_kind(w->x.kind, w->x.layout));
    put_number(t, "count", h->count);
    if (is_permits(w))
        put_number(t, "available", w->available);
    put_fact(t, "held", cli_duration(time, sizeof time, w->held_ms));
    put_fact(t, "lease", look_ttl(time, sizeof time, h->ttl_ms));
}

static bool print_facts(const showing *w)
{
    look_text name;
    const char *heads[] = {"lock",
                           cli_printable(name.text, sizeof name.text, w->name)};
    cli_table t = {.heads = heads, .columns = 2};
    put_fact(&t, "state", w->held ? "held" : "free");
    if (w->held)
        put_holder(&t, w);
    cli_table_put(&t, "token");
    cli_table_putf(&t, w->token ? "%llu" : "-", (unsigned long long)w->token);
    put_number(&t, "waiting", w->waiting);
    return cli_table_print(&t);
}

/* --- Both ----------------------------------------------------------------- */

static void put(const rlock_wait *who, void *arg)
{
    showing *w = arg;
    if (who->name_len != strlen(w->name) ||
        memcmp(who->name, w->name, who->name_len) != 0)
        return;
    if (w->o->json)
        put_json(w, who);
    else
        put_row(w, who);
}

static int look_at_queue(rlock_client *cl, const char *server, void *arg)
{
    showing *w = arg;
    w->server = server;
    if (rlock_waits_for(cl, put, w) == RLOCK_OK)
        return 0;
    return w->lacking ? CLI_FAILED : look_failed();
}

static bool print(showing *w)
{
    if (!w->o->json) {
        bool whole = print_facts(w);
        if (whole && w->queue.n)
            putchar('\n');
        return whole && (w->queue.n == 0 || cli_table_print(&w->queue));
    }
    if (!w->begun)
        begin_json(w);
    cli_json_shut(&w->json, ']');
    cli_json_shut(&w->json, '}');
    putchar('\n');
    return true;
}

static int show(const cli_options *o, const cli_server *s, const char *name)
{
    static const char *const heads[] = {"SERVER", "WAITER", "WAITED", "CIRCLE"};
    size_t one = s->n == 1;
    showing w = {.o = o, .name = name, .held_ms = -1};
    rlock_status found = look_find_any(s, name, &w.x);
    if (found != RLOCK_OK && found != RLOCK_NOT_HELD)
        return look_failed();
    rlock_free(w.x.lk);
    w.held = found == RLOCK_OK;
    w.in_all = w.held; /* no side key tells of what another program holds */
    w.queue = (cli_table){.heads = heads + one, .columns = 4 - one};
    int status = look_at_each(o, s, note_side_keys, &w);
    if (status == 0 || s->n > 1) {
        int queue = look_at_each(o, s, look_at_queue, &w);
        status = status ? status : queue;
    }
    if (status != 0 && s->n == 1 && !w.begun && w.queue.n == 0)
        return status;
    if (!print(&w))
        return CLI_FAILED;
    if (status == 0)
        status = w.held ? LOOK_HELD : LOOK_FREE;
    return cli_printed(status);
}

static int run(cli_options *o, int argc, char **argv)
{
    cli_server s;
    int status;
    if (!cli_take_options(&cli_show, o, argc, argv, NULL, NULL, &status))
        return status;
    if (!cli_words(&cli_show, argc, 1, 1) || !look_open(&s, o))
        return CLI_FAILED;
    status = show(o, &s, argv[optind]);
    cli_close(&s);
    return status;
}

const cli_verb cli_show = {
    .name = "show",
    .usage = "[--json] NAME",
    .options = options,
    .help = "All that is known about one lock: who has it, for how long, its "
            "token, and\nwho waits, in order. Exit status: 0 held; 1 free; 125 "
            "not told.\n",
    .run = run,
    .prints = true,
};
