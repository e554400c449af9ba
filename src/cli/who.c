/* The verb `who`: who has a lock, for scripts. */
#include <getopt.h>
#include <stdio.h>

#include "look.h"

static const cli_option options[] = {{0}};

static void tell_json(const char *name, const look_lock *x, bool held)
{
    cli_json j = {0};
    const rlock_holder *h = &x->holder;
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "name", name);
    cli_json_bool(&j, "held", held);
    look_json_holder(&j, "holder", held ? h : NULL);
    cli_json_number(&j, "count", held ? h->count : 0, true);
    cli_json_number(&j, "ttl_ms", h->ttl_ms, held && h->ttl_ms >= 0);
    cli_json_shut(&j, '}');
    putchar('\n');
}

static int who(const cli_options *o, const cli_server *s, const char *name)
{
    look_lock x;
    look_text id;
    rlock_status status = look_find_any(s, name, &x);
    if (status != RLOCK_OK && status != RLOCK_NOT_HELD)
        return look_failed();
    bool held = status == RLOCK_OK;
    rlock_free(x.lk);
    if (o->json)
        tell_json(name, &x, held);
    else if (held)
        printf("%s\n", cli_printable(id.text, sizeof id, x.holder.raw));
    return cli_printed(held ? LOOK_HELD : LOOK_FREE);
}

static int run(cli_options *o, int argc, char **argv)
{
    cli_server s;
    int status;
    if (!cli_take_options(&cli_who, o, argc, argv, NULL, NULL, &status))
        return status;
    if (!cli_words(&cli_who, argc, 1, 1) || !look_open(&s, o))
        return CLI_FAILED;
    status = who(o, &s, argv[optind]);
    cli_close(&s);
    return status;
}

const cli_verb cli_who = {
    .name = "who",
    .usage = "[--json] NAME",
    .options = options,
    .help = "The holder of a lock, one line, as RLOCK_HOLDER has it, and "
            "--hold of break\ntakes it: host:pid:tid[/label]:uuid, or what "
            "another program has put there.\nExit status: 0 held; 1 free, and "
            "nothing is printed; 125 not told.\n",
    .run = run,
    .prints = true,
};
