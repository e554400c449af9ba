/* The verb `top`: which locks are held and waited for, round by round. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "os.h"
#include "top.h"

static const cli_option options[] = {
    {'b', "batch", NULL, "text instead of a screen"},
    {'d', "delay", "SECONDS",
     "between two rounds; 1, or more where they cost\n"
     "the server more than one moment in eighty"},
    {'n', "rounds", "N", "so many, as text, and end"},
    {0},
};

static int take(void *arg, int letter)
{
    top *t = arg;
    if (letter == 'n')
        return cli_take_rounds(&cli_top, &t->rounds);
    if (letter == 'd')
        return cli_take_delay(&cli_top, 100, &t->pause_us);
    t->batch = true;
    return 0;
}

/* --- In a batch ----------------------------------------------------------- */

static size_t width_of_output(void)
{
    struct winsize w;
    const char *env = getenv("COLUMNS");
    long n = 0;
    if (env && cli_number(env, 20, TOP_WIDTH_MAX, &n))
        return (size_t)n;
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 &&
        w.ws_col >= 20)
        return w.ws_col;
    return 120;
}

static void print_round(const top *t)
{
    char line[TOP_WIDTH_MAX + 1], at[40], first[TOP_WIDTH_MAX + 50];
    time_t now = time(NULL);
    struct tm utc;
    size_t width = width_of_output();
    strftime(at, sizeof at, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    snprintf(first, sizeof first, "%s  %s", at,
             top_summary(t, line, TOP_WIDTH_MAX));
    printf("%.*s\n", (int)width, first);
    printf("%s\n", top_line(NULL, line, width));
    for (size_t i = 0; i < t->now.n; i++)
        printf("%s\n", top_line(&t->now.at[i], line, width));
    printf("\n");
}

static int print_rounds(top *t)
{
    int status = 0;
    bool lacking = false;
    for (long i = 0; status == 0 && (!t->rounds || i < t->rounds); i++) {
        if (i > 0)
            cli_poll(NULL, 0, cli_now_us() + top_pause_us(t));
        bool told = top_look(t);
        if (t->error[0])
            cli_say("%s", t->error);
        lacking = lacking || t->error[0];
        if (!told)
            return CLI_FAILED;
        print_round(t);
        status = cli_printed(0);
    }
    return status == 0 && lacking ? CLI_FAILED : status;
}

/* --- The verb ------------------------------------------------------------- */

static int run(cli_options *o, int argc, char **argv)
{
    top t = {.o = o, .pause_us = 1000000};
    int status;
    if (!cli_take_options(&cli_top, o, argc, argv, take, &t, &status))
        return status;
    if (o->json)
        return cli_misused(&cli_top, "top: there is no --json of it");
    if (!cli_words(&cli_top, argc, 0, 1) || !look_open_any(&t.s, o))
        return CLI_FAILED;
    o->askpass = false; /* for the verbs that the screen calls it is known */
    t.glob = argv[optind];
    if (t.batch || t.rounds || !top_screen(&t, &status))
        status = print_rounds(&t);
    locks_clear(&t.now);
    cli_close(&t.s);
    return status;
}

const cli_verb cli_top = {
    .name = "top",
    .usage = "[-b] [-d SECONDS] [-n N] [GLOB]",
    .options = options,
    .help = "Locks that are held or waited for, those first for which most "
            "processes wait, on\na screen that is drawn anew every second. "
            "CHANGES counts the rounds in which the\nholder was another. Keys: "
            "s the order, / which locks, Enter one lock, w who waits\nfor "
            "whom, b break, space hold the picture, q quit. Exit status: 0; "
            "125 not told.\n",
    .run = run,
};
