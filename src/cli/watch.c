/*
 * The verb `watch`: which locks are taken and freed. It looks every so often,
 * and tells what is not as it was at the look before: what came and went in
 * between is not seen.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "locks.h"
#include "os.h"

typedef struct watching {
    const cli_options *o;
    bool foreign;
    const char *glob;
    int64_t pause_us;
    long rounds; /* 0: until it is interrupted */
    locks before[RLOCK_RED_MAX], now;
    size_t server, asked; /* which one is looked at; so many have answered */
    bool met[RLOCK_RED_MAX], away[RLOCK_RED_MAX]; /* and that was said */
} watching;

enum { FOREIGN = 256 };

static const cli_option options[] = {
    {'d', "delay", "SECONDS", "between two looks; 1"},
    {'n', "rounds", "N", "look so often, and end"},
    {FOREIGN, "foreign", NULL, "also what other programs hold"},
    {0},
};

static int take(void *arg, int letter)
{
    watching *x = arg;
    if (letter == 'n')
        return cli_take_rounds(&cli_watch, &x->rounds);
    if (letter == 'd')
        return cli_take_delay(&cli_watch, 50, &x->pause_us);
    x->foreign = true;
    return 0;
}

/* --- What there is -------------------------------------------------------- */

static bool note(const rlock_lock_info *l, void *arg)
{
    watching *x = arg;
    if (l->n_holders == 0 || (l->foreign && !x->foreign))
        return true;
    return locks_add(&x->now, 0, l); /* of one server, as the one before */
}

/* --- What has changed ----------------------------------------------------- */

static void tell_json(const char *at, const char *server, const locks_row *i,
                      const char *what)
{
    cli_json j = {0};
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "time", at);
    cli_json_bytes(&j, "name", i->name, i->len);
    if (server)
        cli_json_text(&j, "server", server);
    cli_json_text(&j, "event", what);
    look_json_holder(&j, "holder", &i->holder);
    cli_json_shut(&j, '}');
    putchar('\n');
}

static void tell(const watching *x, const char *server, const locks_row *i,
                 const char *what)
{
    struct timespec now;
    struct tm utc;
    char second[40], at[60];
    look_text name, holder;
    clock_gettime(CLOCK_REALTIME, &now);
    strftime(second, sizeof second, "%Y-%m-%dT%H:%M:%S",
             gmtime_r(&now.tv_sec, &utc));
    snprintf(at, sizeof at, "%s.%03ldZ", second, now.tv_nsec / 1000000);
    if (x->o->json) {
        tell_json(at, server, i, what);
        return;
    }
    printf("%s  %s%s%s  %-5s  %s\n", at, server ? server : "",
           server ? "  " : "",
           cli_printable_n(name.text, sizeof name, i->name, i->len), what,
           look_holder(&holder, &i->holder));
}

/* NULL: there was no look at it before. */
static void compare(const watching *x, const char *server, const locks *before,
                    const locks *is)
{
    static const locks none = {0};
    const locks *was = before ? before : &none;
    size_t i = 0, k = 0;
    while (i < was->n || k < is->n) {
        int c = i == was->n  ? 1
                : k == is->n ? -1
                             : locks_order(&was->at[i], &is->at[k]);
        if (c < 0)
            tell(x, server, &was->at[i], "freed");
        else if (c > 0)
            tell(x, server, &is->at[k], before ? "taken" : "held");
        else if (!locks_same_hold(&was->at[i], &is->at[k]))
            tell(x, server, &is->at[k], "taken");
        i += c <= 0;
        k += c >= 0;
    }
}

static int look(rlock_client *cl, const char *server, void *arg)
{
    watching *x = arg;
    size_t i = x->server++;
    x->now = (locks){0};
    rlock_status status =
        rlock_scan(cl, x->glob, x->foreign ? RLOCK_SCAN_ALL : 0, note, x);
    bool lacking = x->now.lacking, was_away = x->away[i];
    x->away[i] = status != RLOCK_OK || lacking;
    if (x->away[i]) {
        locks_clear(&x->now);
        if (lacking)
            cli_say("out of memory");
        else if (!was_away)
            look_failed();
        return CLI_FAILED;
    }
    compare(x, server, x->met[i] ? &x->before[i] : NULL, &x->now);
    locks_clear(&x->before[i]);
    x->before[i] = x->now;
    x->met[i] = true;
    x->asked++;
    return 0;
}

/* While one of several is away the others are told of. */
static int watch(watching *x, const cli_server *s)
{
    int status = 0, printed;
    long i = 0;
    do {
        if (i > 0)
            cli_poll(NULL, 0, cli_now_us() + x->pause_us);
        x->server = x->asked = 0;
        if (look_at_each(x->o, s, look, x) != 0)
            status = CLI_FAILED;
        printed = cli_printed(0);
    } while (x->asked > 0 && printed == 0 && ++i != x->rounds);
    if (printed != 0)
        status = printed;
    for (size_t k = 0; k < s->n; k++)
        locks_clear(&x->before[k]);
    return status;
}

static int run(cli_options *o, int argc, char **argv)
{
    watching x = {.o = o, .pause_us = 1000000};
    cli_server s;
    int status;
    if (!cli_take_options(&cli_watch, o, argc, argv, take, &x, &status))
        return status;
    if (!cli_words(&cli_watch, argc, 0, 1) || !look_open_any(&s, o))
        return CLI_FAILED;
    x.glob = argv[optind];
    status = watch(&x, &s);
    cli_close(&s);
    return status;
}

const cli_verb cli_watch = {
    .name = "watch",
    .usage = "[-d SECONDS] [-n N] [--foreign] [--json] [GLOB]",
    .options = options,
    .help = "A line for each lock that is held, then for each that is taken or "
            "freed, until it\nis interrupted. What is taken and freed between "
            "two looks is not seen.\nExit status: 0 after -n looks; 125 not "
            "told.\n",
    .run = run,
    .prints = true,
};
