/* The verb `ls`: which locks there are. */
#include <getopt.h>
#include <stdio.h>

#include "look.h"

enum { FOREIGN = 256 };

typedef struct listing {
    cli_options *o;
    bool all, foreign;
    const char *glob, *server;
    cli_table table;
} listing;

static const cli_option options[] = {
    {'a', "all", NULL, "also locks that are free, and were held lately"},
    {FOREIGN, "foreign", NULL,
     "look at each hash and string: also what other\n"
     "programs hold, as far as it looks like a lock"},
    {0},
};

static int take(void *arg, int letter)
{
    listing *l = arg;
    l->all = l->all || letter == 'a';
    l->foreign = l->foreign || letter == FOREIGN;
    return 0;
}

static void tell_json(const listing *l, const rlock_lock_info *k)
{
    cli_json j = {0};
    bool held = k->n_holders > 0;
    cli_json_open(&j, NULL, '{');
    cli_json_bytes(&j, "name", k->name, k->name_len);
    if (l->server)
        cli_json_text(&j, "server", l->server);
    cli_json_bool(&j, "held", held);
    cli_json_text(&j, "layout", held ? look_kind(k->kind, k->layout) : NULL);
    cli_json_bool(&j, "foreign", k->foreign);
    look_json_holder(&j, "holder", held ? k->holders : NULL);
    cli_json_number(&j, "count", held ? k->holders->count : 0, true);
    cli_json_number(&j, "held_ms", k->held_ms, k->held_ms >= 0);
    cli_json_number(&j, "ttl_ms", k->ttl_ms, k->ttl_ms >= 0);
    cli_json_number(&j, "waiting", k->waiting, true);
    cli_json_number(&j, "token", (int64_t)k->token, k->token > 0);
    cli_json_number(&j, "in_all", k->holders_in_all, true);
    cli_json_number(&j, "available", k->available,
                    k->kind == RLOCK_KIND_PERMIT);
    cli_json_shut(&j, '}');
    putchar('\n');
}

static void tell_row(listing *l, const rlock_lock_info *k)
{
    look_text shown;
    char time[30];
    cli_table *t = &l->table;
    bool held = k->n_holders > 0;
    if (l->server)
        cli_table_put(t, l->server);
    cli_table_put(
        t, cli_printable_n(shown.text, sizeof shown, k->name, k->name_len));
    cli_table_putf(t, "%s%s", held ? look_kind(k->kind, k->layout) : "free",
                   k->foreign ? ", foreign" : "");
    cli_table_put(t, look_holders(&shown, k->holders, k->holders_in_all));
    cli_table_putf(t, "%lld", held ? (long long)k->holders->count : 0);
    cli_table_put(t, cli_duration(time, sizeof time, k->held_ms));
    cli_table_put(t, look_ttl(time, sizeof time, k->ttl_ms));
    cli_table_putf(t, "%lld", (long long)k->waiting);
    cli_table_putf(t, k->token ? "%llu" : "-", (unsigned long long)k->token);
}

/* What others hold concerns us where one of ours waits for it. */
static bool tell(const rlock_lock_info *k, void *arg)
{
    listing *l = arg;
    if (k->foreign && !l->foreign && k->waiting == 0)
        return true;
    if (l->o->json)
        tell_json(l, k);
    else
        tell_row(l, k);
    return !ferror(stdout);
}

static int look(rlock_client *cl, const char *server, void *arg)
{
    listing *l = arg;
    unsigned flags =
        (l->all ? RLOCK_SCAN_IDLE : 0u) | (l->foreign ? RLOCK_SCAN_ALL : 0u);
    l->server = server;
    return rlock_scan(cl, l->glob, flags, tell, l) == RLOCK_OK ? 0
                                                               : look_failed();
}

static int list(listing *l)
{
    static const char *const heads[] = {"SERVER", "LOCK",    "KIND",
                                        "HOLDER", "COUNT",   "HELD",
                                        "LEASE",  "WAITING", "TOKEN"};
    cli_server s;
    if (!look_open_any(&s, l->o))
        return CLI_FAILED;
    size_t one = s.n == 1;
    l->table = (cli_table){.heads = heads + one, .columns = 9 - one};
    int status = look_at_each(l->o, &s, look, l);
    cli_close(&s);
    /* What was not told has not to look as if there was nothing. */
    if (l->o->json || (status != 0 && l->table.n == 0))
        return cli_printed(status);
    return cli_table_print(&l->table) ? cli_printed(status) : CLI_FAILED;
}

static int run(cli_options *o, int argc, char **argv)
{
    listing l = {.o = o};
    int status;
    if (!cli_take_options(&cli_ls, o, argc, argv, take, &l, &status))
        return status;
    if (!cli_words(&cli_ls, argc, 0, 1))
        return CLI_FAILED;
    l.glob = argv[optind];
    return list(&l);
}

const cli_verb cli_ls = {
    .name = "ls",
    .usage = "[-a] [--foreign] [--json] [GLOB]",
    .options = options,
    .help =
        "Locks that are held or waited for, and semaphores of which "
        "somebody has permits,\nby name: all, or those that GLOB fits (? * "
        "[a-z] \\). WAITING counts processes;\nbehind one of several "
        "holders stands how many others there are. Of several\nservers each "
        "tells its own. Exit status: 0; 125 not told.\n",
    .run = run,
    .prints = true,
};
