/* The verb `doctor`: what threatens locks at these servers. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define LEASE_MS 30000

static const cli_option options[] = {
    {'l', "long", "SECONDS", "find locks that are held for longer"},
    {0},
};

static const char *const verdicts[] = {"ok", "unknown", "warn", "bad"};

static void tell_json(const char *server, doctor_verdict v, const char *check,
                      const char *is, const char *remedy)
{
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "server", server);
    cli_json_text(&j, "check", check);
    cli_json_text(&j, "verdict", verdicts[v]);
    cli_json_text(&j, "is", is);
    cli_json_text(&j, "remedy", v == DOCTOR_OK ? NULL : remedy);
    cli_json_shut(&j, '}');
    putchar('\n');
}

void doctor_find(doctor *d, const char *server, doctor_verdict v,
                 const char *check, const char *remedy, const char *fmt, ...)
{
    char is[400];
    look_text shown;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(is, sizeof is, fmt, ap);
    va_end(ap);
    d->found[v]++;
    if (d->o->json) {
        tell_json(server, v, check, is, remedy);
        return;
    }
    cli_table_put(&d->table, verdicts[v]);
    cli_table_put(&d->table, cli_printable(shown.text, sizeof shown, server));
    cli_table_put(&d->table, check);
    cli_table_put(&d->table, cli_printable(shown.text, sizeof shown, is));
    cli_table_put(&d->table, v == DOCTOR_OK ? "" : remedy);
}

static bool examine(const rlock_server_info *s, void *arg)
{
    doctor *d = arg;
    d->asked += s->status == RLOCK_OK;
    if (s->status != RLOCK_OK)
        snprintf(d->error, sizeof d->error, "%s: %s", s->address, s->error);
    doctor_examine(d, s);
    return !ferror(stdout);
}

static int look(rlock_client *cl, const char *server, void *arg)
{
    doctor *d = arg;
    size_t asked = d->asked;
    d->volatile_keys = d->evicted = 0;
    d->keys_untold = d->evicts = false;
    if (rlock_servers(cl, examine, arg) != RLOCK_OK) {
        if (!server || rlock_last_error()->status != RLOCK_EIO)
            return look_failed();
        doctor_unreached(d, server, DOCTOR_WARN, rlock_last_error()->message);
        return 0;
    }
    char *uri = server ? NULL : cli_public_uri(d->o, 0);
    const char *of = server ? server : uri ? uri : "";
    int status = d->asked > asked ? doctor_look_at_locks(d, cl, of) : 0;
    free(uri);
    return status;
}

static int take(void *arg, int letter)
{
    doctor *d = arg;
    char shown[60];
    (void)letter;
    if (cli_seconds(optarg, &d->long_ms))
        return 0;
    return cli_misused(&cli_doctor, "--long is seconds, and not '%s'",
                       cli_printable_word(shown, sizeof shown, optarg));
}

static bool open_all(cli_server *s, cli_options *o)
{
    if (!cli_complete_uris(o))
        return false;
    /* The first server of a cluster that is asked may be the one that is dead. */
    bool lazily = o->uris == 1 && strstr(o->uri[0], "-cluster://");
    rlock_status status =
        lazily ? cli_open_lazily(s, o) : cli_open_any(s, o, LEASE_MS);
    /* Sentinels tell of a master that is away. */
    if (status == RLOCK_EIO && o->uris == 1 &&
        strstr(o->uri[0], "-sentinel://"))
        status = cli_open_lazily(s, o);
    if (status == RLOCK_OK)
        return true;
    look_failed();
    return false;
}

static int judge(doctor *d, int status)
{
    if (status == 0 && d->asked == 0) {
        cli_say("%s", d->error);
        return CLI_FAILED;
    }
    if (status != 0)
        return status;
    return d->found[DOCTOR_BAD]                                ? 2
           : d->found[DOCTOR_WARN] || d->found[DOCTOR_UNKNOWN] ? 1
                                                               : 0;
}

static int run(cli_options *o, int argc, char **argv)
{
    static const char *const heads[] = {"", "SERVER", "CHECK", "IS", "REMEDY"};
    doctor d = {.o = o, .long_ms = -1, .table = {.heads = heads, .columns = 5}};
    cli_server s;
    int status;
    if (!cli_take_options(&cli_doctor, o, argc, argv, take, &d, &status))
        return status;
    if (!cli_words(&cli_doctor, argc, 0, 0) || !open_all(&s, o))
        return CLI_FAILED;
    d.several = s.n > 1;
    status = look_at_each(o, &s, look, &d);
    doctor_compare(&d);
    status = judge(&d, status);
    cli_close(&s);
    if (o->json || d.asked == 0) {
        cli_table_free(&d.table);
        return cli_printed(status);
    }
    return cli_table_print(&d.table) ? cli_printed(status) : CLI_FAILED;
}

const cli_verb cli_doctor = {
    .name = "doctor",
    .usage = "[--long SECONDS] [--json]",
    .options = options,
    .help = "What threatens locks at these servers, their replicas and "
            "Sentinels: a line for\neach finding, ok, warn, bad, or unknown "
            "where the user may not ask, with what\nis to be done. Leaves "
            "nothing behind. Exit status: 0 all is ok; 1 something is\nwarn or "
            "unknown; 2 something is bad; 125 nothing could be told.\n",
    .run = run,
    .prints = true,
};
