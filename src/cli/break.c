/* The verb `break`: frees the hold that it has shown, and no other one. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "look.h"
#include "os.h"

enum { HOLD = 256 };

typedef struct breaking {
    const cli_options *o;
    const char *name, *hold; /* of --hold */
    bool yes;
    look_lock x;         /* as it was shown */
    int64_t shown_us;    /* the clock, when it had been told */
    look_text printable; /* its name */
} breaking;

static const cli_option options[] = {
    {'y', "yes", NULL, "do not ask; needed where there is no terminal"},
    {HOLD, "hold", "ID",
     "only if this hold has it: its uuid, or the holder\n"
     "as who prints it"},
    {0},
};

static int take(void *arg, int letter)
{
    breaking *b = arg;
    if (letter == HOLD)
        b->hold = optarg;
    else
        b->yes = true;
    return 0;
}

static bool is_meant(const breaking *b)
{
    const rlock_holder *h = &b->x.holder;
    look_text shown;
    return !b->hold || strcmp(b->hold, h->raw) == 0 ||
           (h->hold_id[0] && strcmp(b->hold, h->hold_id) == 0) ||
           strcmp(b->hold, cli_printable(shown.text, sizeof shown, h->raw)) ==
               0;
}

/* --- Asking --------------------------------------------------------------- */

static bool says_yes(void)
{
    char *line = NULL;
    size_t size = 0;
    bool yes = getline(&line, &size, stdin) > 0 &&
               (strcasecmp(line, "y\n") == 0 || strcasecmp(line, "yes\n") == 0);
    free(line);
    return yes;
}

static void show(const breaking *b)
{
    const rlock_holder *h = &b->x.holder;
    look_text holder;
    char time[30];
    fprintf(stderr, "lock '%s' is held by %s\n", b->printable.text,
            look_holder(&holder, h));
    if (h->hold_id[0])
        fprintf(stderr, "hold %s, ", h->hold_id);
    fprintf(stderr, "%lld level%s, lease: %s\n", (long long)h->count,
            h->count == 1 ? "" : "s", look_ttl(time, sizeof time, h->ttl_ms));
}

/*
 * Its lease is no shorter than time has made it: somebody has renewed it since
 * it was shown. Clocks may run apart by a hundredth.
 */
static bool has_been_renewed(const breaking *b)
{
    rlock_holder now;
    int64_t passed_ms = (cli_now_us() - b->shown_us) / 1000;
    if (rlock_holder_info(b->x.lk, &now, sizeof now) != RLOCK_OK ||
        !look_is_same_hold(&now, &b->x.holder, b->x.layout) ||
        b->x.holder.ttl_ms < 0)
        return false;
    return now.ttl_ms < 0 ||
           now.ttl_ms > b->x.holder.ttl_ms - passed_ms + passed_ms / 100 + 2;
}

static bool asks(const breaking *b)
{
    show(b);
    fprintf(stderr, "Free it? [y/N] ");
    if (!says_yes())
        return false;
    if (!has_been_renewed(b))
        return true;
    fprintf(stderr, "Its holder has renewed the lease since: it is alive, and "
                    "will go on\nuntil it learns of this. Free it all the "
                    "same? [y/N] ");
    return says_yes();
}

/* --- Breaking ------------------------------------------------------------- */

static void tell(const breaking *b, bool held, bool freed)
{
    look_text holder;
    cli_json j = {0};
    if (!b->o->json) {
        if (freed)
            printf("freed '%s', which %s had\n", b->printable.text,
                   look_holder(&holder, &b->x.holder));
        return;
    }
    cli_json_open(&j, NULL, '{');
    cli_json_text(&j, "name", b->name);
    cli_json_bool(&j, "freed", freed);
    look_json_holder(&j, "holder", held ? &b->x.holder : NULL);
    cli_json_shut(&j, '}');
    putchar('\n');
}

/* Nothing was freed, for that reason. */
static int leave(const breaking *b, bool held, const char *why)
{
    cli_say("lock '%s' %s: nothing was freed", b->printable.text, why);
    tell(b, held, false);
    return cli_printed(LOOK_CHANGED);
}

static int free_it(const breaking *b)
{
    if (!is_meant(b))
        return leave(b, true, "is held by another hold");
    if (!b->yes && !asks(b))
        return leave(b, true, "stays as it is");
    rlock_status s = rlock_force_unlock_hold(b->x.lk, b->x.holder.raw);
    if (s == RLOCK_NOT_HELD)
        return leave(b, true, "is not held any more by who was shown");
    if (s != RLOCK_OK)
        return look_failed();
    tell(b, true, true);
    return cli_printed(0);
}

static int look(breaking *b, const cli_server *s)
{
    rlock_status found = look_find(s, b->name, &b->x);
    b->shown_us = cli_now_us();
    cli_printable(b->printable.text, sizeof b->printable, b->name);
    int status = found == RLOCK_OK         ? free_it(b)
                 : found == RLOCK_NOT_HELD ? leave(b, false, "is free")
                                           : look_failed();
    rlock_free(b->x.lk);
    return status;
}

static int run(cli_options *o, int argc, char **argv)
{
    breaking b = {.o = o};
    cli_server s;
    int status;
    if (!cli_take_options(&cli_break, o, argc, argv, take, &b, &status))
        return status;
    if (!cli_words(&cli_break, argc, 1, 1))
        return CLI_FAILED;
    if (!b.yes && (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)))
        return cli_misused(&cli_break, "break: there is no terminal to ask; "
                                       "--yes frees it without");
    if (!look_open(&s, o))
        return CLI_FAILED;
    b.name = argv[optind];
    status = look(&b, &s);
    cli_close(&s);
    return status;
}

const cli_verb cli_break = {
    .name = "break",
    .usage = "[-y] [--hold ID] [--json] NAME",
    .options = options,
    .help =
        "Frees a lock whose holder is dead or hangs: the hold that it shows, "
        "and never\none that has come meanwhile. A holder that lives learns of "
        "it with its next\nrenewal at the latest. Exit status: 0 freed; 1 "
        "nothing was freed; 125 it failed.\n",
    .run = run,
    .prints = true,
};
