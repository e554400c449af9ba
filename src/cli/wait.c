/*
 * The verb `wait`: until a lock is free, or held. It asks who has it, ever more
 * rarely, and stands in no queue: who waits there is given the lock.
 */
#include <getopt.h>
#include <string.h>

#include "look.h"
#include "os.h"

#define FIRST_PAUSE_US 50000
#define LAST_PAUSE_US  500000

typedef struct waiting {
    int64_t most_ms; /* below zero: for ever */
    bool until_held;
} waiting;

enum { UNTIL = 256 };

static const cli_option options[] = {
    {'w', "wait", "SECONDS", "at most so long; fractions are allowed"},
    {UNTIL, "until", "free|held", "what is waited for; free"},
    {0},
};

static int take(void *arg, int letter)
{
    waiting *x = arg;
    char shown[60];
    if (letter == 'w') {
        if (cli_seconds(optarg, &x->most_ms))
            return 0;
        return cli_misused(&cli_wait, "-w is seconds, and not '%s'",
                           cli_printable_word(shown, sizeof shown, optarg));
    }
    x->until_held = strcmp(optarg, "held") == 0;
    if (x->until_held || strcmp(optarg, "free") == 0)
        return 0;
    return cli_misused(&cli_wait, "--until is free or held, and not '%s'",
                       cli_printable_word(shown, sizeof shown, optarg));
}

/* 0: it is as it was to be; CLI_NOT_OBTAINED: not yet. */
static int look(const waiting *x, const cli_server *s, const char *name)
{
    look_lock found;
    rlock_status status = look_find(s, name, &found);
    if (status != RLOCK_OK && status != RLOCK_NOT_HELD)
        return look_failed();
    rlock_free(found.lk);
    return (status == RLOCK_OK) == x->until_held ? 0 : CLI_NOT_OBTAINED;
}

static int wait_for(const waiting *x, const cli_server *s, const char *name)
{
    int64_t now_us = cli_now_us(), pause_us = FIRST_PAUSE_US;
    int64_t end_us = x->most_ms < 0 ? CLI_NEVER : now_us + x->most_ms * 1000;
    int status;
    while ((status = look(x, s, name)) == CLI_NOT_OBTAINED &&
           (now_us = cli_now_us()) < end_us) {
        bool last = end_us - now_us < pause_us;
        cli_poll(NULL, 0, last ? end_us : now_us + pause_us);
        pause_us = pause_us * 3 / 2;
        if (pause_us > LAST_PAUSE_US)
            pause_us = LAST_PAUSE_US;
    }
    return status;
}

static int run(cli_options *o, int argc, char **argv)
{
    waiting x = {.most_ms = -1};
    cli_server s;
    int status;
    if (!cli_take_options(&cli_wait, o, argc, argv, take, &x, &status))
        return status;
    if (!cli_words(&cli_wait, argc, 1, 1) || !look_open(&s, o))
        return CLI_FAILED;
    status = wait_for(&x, &s, argv[optind]);
    cli_close(&s);
    return status;
}

const cli_verb cli_wait = {
    .name = "wait",
    .usage = "[-w SECONDS] [--until free|held] NAME",
    .options = options,
    .help = "Waits until nobody has the lock, or somebody has, and does not "
            "take it: another\nmay have it a moment later. It asks twenty "
            "times a second at first, later twice.\nExit status: 0 it is so; "
            "124 it was not in time; 125 not told.\n",
    .run = run,
};
