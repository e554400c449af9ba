/* The options of a verb: one table for the parser and for --help. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "print.h"

enum { OPTIONS_MAX = 20, JSON = 1000, HELP, HELP_COLUMN = 29 };

static const cli_option of_all[] = {
    {JSON, "json", NULL, "one JSON object a line: src/doc/looking.md"},
    {HELP, "help", NULL, NULL},
};

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

void cli_help(const cli_verb *v)
{
    printf("rlock %s %s\n", v->name, v->usage);
    for (const cli_option *p = v->options; p->name; p++) {
        if (p->help)
            help_of(p);
    }
    if (v->prints)
        help_of(of_all);
    printf("\n%s\n", v->help);
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
    *p = v->starts ? (parser){.letters = "+:", .len = 2}
                   : (parser){.letters = ":", .len = 1};
    for (const cli_option *of = v->options; of->name; of++)
        put(p, of);
    if (v->prints)
        put(p, &of_all[0]);
    put(p, &of_all[1]);
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
        if (c == HELP) {
            printf("usage: ");
            cli_help(v);
            *status = cli_printed(0);
            return false;
        }
        if (c == '?' || c == ':')
            *status = cli_bad_option(v, argv);
        else if (c == JSON)
            o->json = true;
        else
            *status = take(arg, c);
    }
    return *status == 0;
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
