/* The options of a verb, and those before it: one table for the parser, for --help
   and for completion. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "print.h"

enum { OPTIONS_MAX = 20, JSON = 1000, HELP, VERSION, HELP_COLUMN = 29 };

static const cli_option json = {JSON, "json", NULL,
                                "one JSON object a line: rlock(1)"};
static const cli_option help = {HELP, "help", NULL, "tell verbs and options"};
static const cli_option version = {VERSION, "version", NULL,
                                   "tell the version"};

const cli_option *cli_option_at(const cli_verb *v, size_t i)
{
    const cli_option *of_all[] = {&help, v->prints ? &json : NULL,
                                  v->name ? NULL : &version};
    size_t own = 0;
    while (v->options[own].name)
        own++;
    if (i < own)
        return &v->options[i];
    for (size_t k = 0; k < sizeof of_all / sizeof *of_all; k++) {
        if (of_all[k] && own++ == i)
            return of_all[k];
    }
    return NULL;
}

/* --- --help --------------------------------------------------------------- */

static void help_of(const cli_option *p)
{
    char left[60];
    int n = p->letter < 256
                ? snprintf(left, sizeof left, "  -%c, --%s", p->letter, p->name)
                : snprintf(left, sizeof left, "      --%s", p->name);
    if (p->value)
        n += snprintf(left + n, sizeof left - (size_t)n, " %s", p->value);
    printf("%s", left);
    if (n >= HELP_COLUMN - 1) {
        printf("\n");
        n = 0;
    }
    for (const char *line = p->help; *line; n = 0) {
        size_t len = strcspn(line, "\n");
        printf("%*s%.*s\n", HELP_COLUMN - n, "", (int)len, line);
        line += len + (line[len] == '\n');
    }
}

static void help_of_options(const cli_verb *v)
{
    const cli_option *p;
    for (size_t i = 0; (p = cli_option_at(v, i)); i++) {
        if (p->help && (p != &help || !v->name))
            help_of(p);
    }
    printf("\n%s\n", v->help);
}

static void help_of_verb(const cli_verb *v)
{
    printf("rlock %s %s\n", v->name, v->usage);
    help_of_options(v);
}

/* Of rlock itself: with all verbs. */
static void help_with(const cli_verb *v)
{
    printf("usage: ");
    if (v->name) {
        help_of_verb(v);
        return;
    }
    printf("rlock %s\n\n", v->usage);
    for (size_t i = 0; cli_verbs[i]; i++) {
        if (cli_verbs[i]->help)
            help_of_verb(cli_verbs[i]);
    }
    printf("Options before the verb:\n");
    help_of_options(v);
}

/* --- The parser ----------------------------------------------------------- */

typedef struct parser {
    struct option names[OPTIONS_MAX];
    char letters[3 * OPTIONS_MAX];
    size_t n, len;
} parser;

static void put(parser *p, const cli_option *of)
{
    p->names[p->n++] =
        (struct option){of->name, of->value ? required_argument : no_argument,
                        NULL, of->letter};
    if (of->letter >= 256)
        return;
    p->letters[p->len++] = (char)of->letter;
    if (of->value)
        p->letters[p->len++] = ':';
}

static void make(parser *p, const cli_verb *v)
{
    const cli_option *of;
    /* What stands behind a verb is the verb's, and behind COMMAND COMMAND's. */
    *p = v->starts || !v->name ? (parser){.letters = "+:", .len = 2}
                               : (parser){.letters = ":", .len = 1};
    for (size_t i = 0; (of = cli_option_at(v, i)); i++)
        put(p, of);
}

bool cli_take_options(const cli_verb *v, cli_options *o, int argc, char **argv,
                      int (*take)(void *arg, int letter), void *arg,
                      int *status)
{
    parser p;
    int c;
    make(&p, v);
    *status = 0;
    optind = 0; /* anew, wherever main() has stopped */
    while (*status == 0 &&
           (c = getopt_long(argc, argv, p.letters, p.names, NULL)) != -1) {
        if (c == HELP || c == VERSION) {
            if (c == HELP)
                help_with(v);
            else
                printf("rlock %s\n", rlock_version());
            *status = cli_printed(0);
            return false;
        }
        if (c == '?' || c == ':')
            *status = cli_bad_option(v->name ? v : NULL, argv);
        else if (c == JSON)
            o->json = true;
        else
            *status = take(arg, c);
    }
    return *status == 0;
}

int cli_take_rounds(const cli_verb *v, long *rounds)
{
    char shown[60];
    if (cli_number(optarg, 1, 1000000000, rounds))
        return 0;
    return cli_misused(v, "-n is a number, and not '%s'",
                       cli_printable_word(shown, sizeof shown, optarg));
}

int cli_take_delay(const cli_verb *v, int64_t least_ms, int64_t *us)
{
    int64_t ms;
    char shown[60];
    if (!cli_seconds(optarg, &ms) || ms < least_ms)
        return cli_misused(v, "-d is %g seconds or more, and not '%s'",
                           (double)least_ms / 1000,
                           cli_printable_word(shown, sizeof shown, optarg));
    *us = ms * 1000;
    return 0;
}

bool cli_words(const cli_verb *v, int argc, int least, int most)
{
    int n = argc - optind;
    if (n < least)
        cli_misused(v, "%s: the name of the lock is missing", v->name);
    else if (n > most)
        cli_misused(v, "%s: too many words", v->name);
    return n >= least && n <= most;
}
