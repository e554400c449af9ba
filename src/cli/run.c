/* The verb `run`: its options, and its two processes. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "run.h"

enum { FOREGROUND = 256, PERMITS_MAX = 1000000000 };

static const cli_option options[] = {
    {'n', "nonblock", NULL, "do not wait for the lock"},
    {'w', "wait", "SECONDS", "wait at most so long; default: for ever"},
    {'E', "conflict-exit-code", "CODE", "when the lock was not obtained; 124"},
    {'c', "command", "STRING", "COMMAND is $SHELL -c STRING"},
    {'l', "lease", "SECONDS", "the lease, renewed every third of it; 30"},
    {'k', "kill-after", "SECONDS",
     "SIGTERM so long before the lease is over, if\n"
     "it cannot be renewed; 5, at most a third of\n"
     "the lease. SIGKILL before it is over"},
    {'s', "shared", NULL,
     "beside others that do so: the read side of a\n"
     "read-write lock"},
    {'x', "exclusive", NULL, "while nobody runs with -s or -x: its write side"},
    {'N', "permits", "COUNT", "beside COUNT - 1 others: a permit of COUNT"},
    {'o', "close", NULL,
     "free the lock when COMMAND ends, though others\n"
     "of its group run on"},
    {FOREGROUND, "foreground", NULL, "no group of its own for COMMAND"},
    {'q', "quiet", NULL, "say nothing while waiting"},
    {'v', "verbose", NULL, "say what happens"},
    {0},
};

static int take_wait(run_options *r, const char *text)
{
    char shown[60];
    return cli_seconds(text, &r->wait_ms)
               ? 0
               : cli_misused(&cli_run, "run: -w wants seconds, and not '%s'",
                             cli_printable_word(shown, sizeof shown, text));
}

static int take_lease(run_options *r, const char *text)
{
    char shown[60];
    return cli_seconds(text, &r->lease_ms) && r->lease_ms >= 100
               ? 0
               : cli_misused(&cli_run,
                             "run: -l wants seconds, at least 0.1, and not "
                             "'%s'",
                             cli_printable_word(shown, sizeof shown, text));
}

static int take_grace(run_options *r, const char *text)
{
    char shown[60];
    return cli_seconds(text, &r->grace_ms)
               ? 0
               : cli_misused(&cli_run, "run: -k wants seconds, and not '%s'",
                             cli_printable_word(shown, sizeof shown, text));
}

static int take_code(run_options *r, const char *text)
{
    long code = 0;
    char shown[60];
    if (!cli_number(text, 0, 255, &code))
        return cli_misused(&cli_run, "run: -E wants 0 to 255, and not '%s'",
                           cli_printable_word(shown, sizeof shown, text));
    r->not_obtained = (int)code;
    return 0;
}

static int take_kind(run_options *r, rlock_kind kind)
{
    if (r->kind != RLOCK_KIND_LOCK && r->kind != kind)
        return cli_misused(&cli_run, "run: -s, -x and -N exclude each other");
    r->kind = kind;
    return 0;
}

static int take_permits(run_options *r, const char *text)
{
    long permits = 0;
    char shown[60];
    if (!cli_number(text, 1, PERMITS_MAX, &permits))
        return cli_misused(&cli_run, "run: -N wants 1 to %d, and not '%s'",
                           PERMITS_MAX,
                           cli_printable_word(shown, sizeof shown, text));
    r->permits = permits;
    return take_kind(r, RLOCK_KIND_PERMIT);
}

static int take_flag(run_options *r, int c)
{
    switch (c) {
    case 'n':
        r->wait_ms = 0;
        return 0;
    case 'o':
        r->ends_with_command = true;
        return 0;
    case FOREGROUND:
        r->foreground = true;
        return 0;
    case 'q':
        r->quiet = true;
        return 0;
    case 'v':
        r->verbose = true;
        return 0;
    case 's':
        return take_kind(r, RLOCK_KIND_READ);
    default:
        return take_kind(r, RLOCK_KIND_WRITE);
    }
}

static int take_option(void *arg, int c)
{
    run_options *r = arg;
    switch (c) {
    case 'w':
        return take_wait(r, optarg);
    case 'l':
        return take_lease(r, optarg);
    case 'k':
        return take_grace(r, optarg);
    case 'E':
        return take_code(r, optarg);
    case 'N':
        return take_permits(r, optarg);
    case 'c':
        r->shell_line = optarg;
        return 0;
    default:
        return take_flag(r, c);
    }
}

/* NAME, and COMMAND; as with flock, -c may also stand behind the name. */
static int take_command(run_options *r, char **rest)
{
    if (!*rest)
        return cli_misused(&cli_run, "run: the name of the lock is missing");
    r->name = *rest++;
    if (*rest &&
        (strcmp(*rest, "-c") == 0 || strcmp(*rest, "--command") == 0)) {
        if (!rest[1] || r->shell_line)
            return cli_misused(&cli_run, "run: -c wants one command line");
        r->shell_line = rest[1];
        rest += 2;
    }
    if (*rest && strcmp(*rest, "--") == 0)
        rest++;
    r->command = rest;
    if (!*rest && !r->shell_line)
        return cli_misused(&cli_run, "run: COMMAND is missing");
    if (*rest && r->shell_line)
        return cli_misused(&cli_run, "run: COMMAND besides -c");
    return 0;
}

/* Behind the options. */
static int take(run_options *r, char **rest)
{
    if (r->grace_ms < 0)
        r->grace_ms = r->lease_ms / 3 < 5000 ? r->lease_ms / 3 : 5000;
    if (r->grace_ms > r->lease_ms / 3)
        return cli_misused(&cli_run,
                           "run: -k is at most a third of the lease, %lld ms",
                           (long long)r->lease_ms / 3);
    return take_command(r, rest);
}

/* --- The two processes --- */

bool run_pipe(int ends[2])
{
    return pipe(ends) == 0 && fcntl(ends[0], F_SETFD, FD_CLOEXEC) == 0 &&
           fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0;
}

static int run_both(const run_options *r)
{
    int to_keeper[2], to_front[2];
    run_shared *sh = mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t keeper = -1;
    if (sh != MAP_FAILED && run_pipe(to_keeper) && run_pipe(to_front))
        keeper = fork();
    if (keeper < 0) {
        cli_say("cannot start: %s", strerror(errno));
        return CLI_FAILED;
    }
    if (keeper == 0) {
        close(to_keeper[1]);
        close(to_front[0]);
        run_keeper(r, sh, to_keeper[0], to_front[1]);
    }
    close(to_keeper[0]);
    close(to_front[1]);
    return run_front(r, sh, keeper, to_front[0], to_keeper[1]);
}

/* --- In a `run` of the same name --- */

static rlock_status ask_side(const cli_server *server, const char *name,
                             rlock_kind side, const run_hold *outer)
{
    rlock *lk = NULL, **read = side == RLOCK_KIND_READ ? &lk : NULL;
    rlock_holder h;
    rlock_status s =
        side == RLOCK_KIND_LOCK
            ? cli_lock(server, name, &lk)
            : rlock_rw_new(server->client[0], name, read, read ? NULL : &lk);
    if (s == RLOCK_OK) {
        s = rlock_hold_info(lk, outer->holder, &h, sizeof h);
        /* Who made that text up has nothing. */
        if (s == RLOCK_EINVAL)
            s = RLOCK_NOT_HELD;
    }
    rlock_free(lk);
    return s;
}

/* What that hold has: the lock, or which side. */
static rlock_status ask_outer(const cli_server *server, const run_options *r,
                              const run_hold *outer, rlock_kind *has)
{
    *has = r->kind == RLOCK_KIND_LOCK ? RLOCK_KIND_LOCK : RLOCK_KIND_WRITE;
    rlock_status s = ask_side(server, r->name, *has, outer);
    if (s == RLOCK_NOT_HELD && *has == RLOCK_KIND_WRITE) {
        *has = RLOCK_KIND_READ;
        s = ask_side(server, r->name, *has, outer);
    }
    return s;
}

/* Another server does not know that hold, and has a lock of its own by that name. */
static bool is_elsewhere(const run_options *r, const run_hold *outer)
{
    const char *its = outer->innermost ? getenv("RLOCK_URI") : NULL;
    char *ours = cli_public_uris(r->cli);
    bool differ = its && ours && strcmp(its, ours) != 0;
    free(ours);
    return differ;
}

/*
 * That one renews for both, and ends both, so COMMAND stays in its group, and
 * in this very process. But it runs only if the server says that the hold still
 * has the lock. Who writes may read, too; who reads would wait for itself.
 */
static int run_inside(const run_options *r, const run_hold *outer)
{
    cli_server server;
    rlock_kind has = r->kind;
    char shown[120];
    rlock_status s = cli_open(&server, r->cli, r->lease_ms);
    if (s == RLOCK_OK)
        s = ask_outer(&server, r, outer, &has);
    if (s != RLOCK_OK && s != RLOCK_NOT_HELD)
        cli_say("%s%s", rlock_last_error()->message,
                s == RLOCK_EWRONGTYPE ? RUN_OTHER_KIND : "");
    cli_close(&server);
    cli_printable(shown, sizeof shown, r->name);
    if (s == RLOCK_NOT_HELD && is_elsewhere(r, outer))
        return run_both(r);
    if (s == RLOCK_OK && has == RLOCK_KIND_READ && r->kind != has)
        cli_say("-x of '%s' would wait for the run -s that it runs in", shown);
    else if (s == RLOCK_OK && run_env_put(r, outer))
        return run_command_exec(r);
    else if (s == RLOCK_NOT_HELD)
        cli_say("lock '%s' was lost by the rlock that this one runs in", shown);
    return s == RLOCK_NOT_HELD ? CLI_LOST : CLI_FAILED;
}

static int run(cli_options *o, int argc, char **argv)
{
    run_options r = {.cli = o,
                     .wait_ms = RLOCK_FOREVER,
                     .lease_ms = 30000,
                     .grace_ms = -1,
                     .not_obtained = CLI_NOT_OBTAINED};
    int status;
    if (!cli_take_options(&cli_run, o, argc, argv, take_option, &r, &status))
        return status;
    status = take(&r, argv + optind);
    if (status == 0 && o->json)
        status = cli_misused(&cli_run, "run: --json, and nothing to print");
    if (status != 0)
        return status;
    if (!cli_complete_uris(o))
        return CLI_FAILED;
    if (o->uris > 1 && r.kind != RLOCK_KIND_LOCK)
        return cli_misused(&cli_run, "run: -s, -x and -N are for one server");
    run_hold outer;
    if (r.kind == RLOCK_KIND_PERMIT || !run_env_find(r.name, &outer))
        return run_both(&r);
    return run_inside(&r, &outer);
}

const cli_verb cli_run = {
    .name = "run",
    .usage = "[-n | -w SECONDS] [-s | -x | -N COUNT] [-E CODE] [-l SECONDS] "
             "[-k SECONDS] [-o] [--foreground] [-q] [-v] NAME [--] COMMAND "
             "[ARG...]",
    .options = options,
    .help =
        "Exit status: COMMAND's; 128 + n when signal n ended it; 123 the lock "
        "was\nlost and COMMAND was ended; 124 the lock was not obtained; 125 "
        "rlock\nfailed; 126 COMMAND cannot be executed; 127 it is not there.\n"
        "COMMAND has RLOCK_NAME, RLOCK_TOKEN, RLOCK_HOLDER and RLOCK_URI in "
        "its\nenvironment.\n",
    .run = run,
    .starts = true,
};
