/* The verb `waits`: who waits for whom. */
#include <stdio.h>

#include "look.h"

typedef struct waiting {
    cli_options *o;
    const char *server;
    cli_table table;
} waiting;

static const cli_option options[] = {{0}};

static void tell_json(const waiting *x, const rlock_wait *w)
{
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_bytes(&j, "name", w->name, w->name_len);
    if (x->server)
        cli_json_text(&j, "server", x->server);
    cli_json_text(&j, "kind", look_wanted(w));
    look_json_waiter(&j, w);
    look_json_holders(&j, w);
    cli_json_shut(&j, '}');
    putchar('\n');
}

static void tell(const rlock_wait *w, void *arg)
{
    waiting *x = arg;
    cli_table *t = &x->table;
    look_text shown;
    char time[30];
    if (x->o->json) {
        tell_json(x, w);
        return;
    }
    if (x->server)
        cli_table_put(t, x->server);
    cli_table_put(
        t, cli_printable_n(shown.text, sizeof shown, w->name, w->name_len));
    cli_table_put(t, look_wanted(w));
    cli_table_put(t, look_waiter(&shown, w));
    cli_table_put(t, cli_duration(time, sizeof time, w->waited_ms));
    cli_table_putf(t, w->rank < 0 ? "-" : "%lld", (long long)w->rank);
    cli_table_put(t, look_holders(&shown, w->holder, (int64_t)w->n_holders));
    if (w->circle)
        cli_table_putf(t, "circle %u", w->circle);
    else
        cli_table_put(t, "-");
}

static int look(rlock_client *cl, const char *server, void *arg)
{
    waiting *x = arg;
    x->server = server;
    return rlock_waits_for(cl, tell, x) == RLOCK_OK ? 0 : look_failed();
}

static int run(cli_options *o, int argc, char **argv)
{
    static const char *const heads[] = {"SERVER", "LOCK", "KIND",   "WAITER",
                                        "WAITED", "RANK", "HOLDER", "CIRCLE"};
    waiting x = {.o = o};
    cli_server s;
    int status;
    if (!cli_take_options(&cli_waits, o, argc, argv, NULL, NULL, &status))
        return status;
    if (!cli_words(&cli_waits, argc, 0, 0) || !look_open_any(&s, o))
        return CLI_FAILED;
    size_t one = s.n == 1;
    x.table = (cli_table){.heads = heads + one, .columns = 8 - one};
    status = look_at_each(o, &s, look, &x);
    cli_close(&s);
    if (o->json || (status != 0 && x.table.n == 0))
        return cli_printed(status);
    return cli_table_print(&x.table) ? cli_printed(status) : CLI_FAILED;
}

const cli_verb cli_waits = {
    .name = "waits",
    .usage = "[--json]",
    .options = options,
    .help = "Who waits for whom: a line for each process in the queue of a "
            "lock or a latch,\nin the order in which they stand there; for "
            "each thread that stands in line, for a\nfair lock, a side of a "
            "read-write lock or permits, with how many are before it\n(RANK). "
            "Those of one circle wait for each other, and will for ever, "
            "unless one\ngives up. Exit status: 0; 125 not told.\n",
    .run = run,
    .prints = true,
};
