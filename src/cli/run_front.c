/* The front: what the shell knows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"

/* Who interrupts a wait does not wait for a server. */
#define LEAVE_US 1000000

typedef struct front {
    const run_options *r;
    run_shared *sh;
    pid_t keeper; /* 0: it has ended */
    int from_keeper, to_keeper;
    run_signals signals;
    run_command command;
    bool ended; /* COMMAND; status is how */
    bool lost;
    bool had_terminal; /* COMMAND, at its end */
    int ended_by;      /* the signal; 0: none */
    int told; /* INT or QUIT, by the terminal and not to COMMAND alone */
    int status;
    int64_t began_us;
    int width; /* of the line that says what is waited for */
} front;

/* --- The line on a terminal --- */

static void wipe(front *f)
{
    if (f->width > 0)
        fprintf(stderr, "\r%*s\r", f->width, "");
    f->width = 0;
}

static void draw(front *f, bool terminal)
{
    char name[100], who[420] = "", line[600];
    struct winsize w = {.ws_col = 80};
    ioctl(STDERR_FILENO, TIOCGWINSZ, &w);
    cli_printable(name, sizeof name, f->r->name);
    if (f->sh->who[0])
        snprintf(who, sizeof who, ", which %.390s has", f->sh->who);
    snprintf(line, sizeof line, "rlock: waiting for '%s'%s: %lld s", name, who,
             (long long)(cli_now_us() - f->began_us) / 1000000);
    if (!terminal) {
        fprintf(stderr, "%s\n", line);
        return;
    }
    int most = w.ws_col > 10 ? w.ws_col - 1 : 79, width = (int)strlen(line);
    wipe(f);
    f->width = width < most ? width : most;
    fprintf(stderr, "%.*s", f->width, line);
}

/* --- Until the lock is there --- */

/* What the keeper has said: a byte; 0: nothing; -1: it is gone. */
static int hear(front *f)
{
    char what;
    ssize_t n = read(f->from_keeper, &what, 1);
    return n == 1 ? what : n < 0 && errno == EINTR ? 0 : -1;
}

/* Lets the keeper go, which leaves the queue, or frees the lock. False: it has
   not ended by then. */
static bool let_go(front *f, int64_t until_us)
{
    struct pollfd p = {.fd = f->from_keeper, .events = POLLIN};
    close(f->to_keeper);
    while (cli_now_us() < until_us) {
        cli_poll(&p, 1, until_us);
        if (p.revents && hear(f) < 0)
            return true;
    }
    return false;
}

static _Noreturn void leave_by(front *f, int sig)
{
    wipe(f);
    let_go(f, cli_now_us() + LEAVE_US);
    run_signals_die(sig, false);
}

static void while_waiting(front *f)
{
    bool by_terminal;
    for (int sig; (sig = run_signals_next(&f->signals, &by_terminal)) != 0;) {
        if (sig == SIGTSTP) {
            wipe(f);
            run_stop();
        } else if (sig != SIGCHLD) {
            leave_by(f, sig);
        }
    }
}

/* RUN_GRANTED, RUN_REFUSED, or -1 if the keeper is gone. */
static int wait_for_lock(front *f)
{
    bool terminal = isatty(STDERR_FILENO), shows;
    struct pollfd p[] = {{.fd = f->signals.fd, .events = POLLIN},
                         {.fd = f->from_keeper, .events = POLLIN}};
    shows = !f->r->quiet && (terminal || f->r->verbose);
    atomic_store(&f->sh->wants_who, shows);
    for (;;) {
        int what = 0;
        cli_poll(p, 2, shows && f->width ? cli_now_us() + 1000000 : CLI_NEVER);
        if (p[0].revents)
            while_waiting(f);
        if (p[1].revents)
            what = hear(f);
        if (what != 0 && what != RUN_WHO) {
            wipe(f);
            return what;
        }
        if (shows && (what == RUN_WHO || f->width))
            draw(f, terminal);
        shows = shows && (terminal || what != RUN_WHO);
    }
}

/* That somebody else has it is said by the status; in words only to a person, as
   cron would write a letter for each machine. */
static int refused(front *f, int what)
{
    bool person = f->r->verbose || isatty(STDERR_FILENO);
    if (what != RUN_REFUSED)
        cli_say("the process that was to have the lock has ended");
    else if (!f->sh->busy || (person && !f->r->quiet))
        cli_say("%s", f->sh->message);
    let_go(f, cli_now_us() + LEAVE_US);
    return what == RUN_REFUSED ? f->sh->status : CLI_FAILED;
}

/* --- While COMMAND runs --- */

static void command_ended(front *f, int status)
{
    f->ended = true;
    f->had_terminal = f->command.handed;
    f->ended_by = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    f->status = f->ended_by ? 128 + f->ended_by : WEXITSTATUS(status);
    run_command_take_tty(&f->command);
    if (f->r->foreground)
        atomic_store(&f->sh->target, 0);
}

/* A child that has changed is looked at before it is waited for: with its
   number free, a signal for it might be another's. */
static void reap(front *f)
{
    siginfo_t child;
    int status, flags = f->r->foreground ? 0 : WSTOPPED;
    for (;;) {
        child.si_pid = 0;
        if (waitid(P_ALL, 0, &child, WEXITED | flags | WNOHANG | WNOWAIT) ||
            child.si_pid == 0)
            return;
        bool is_command = child.si_pid == f->command.pid && !f->ended;
        bool stopped = child.si_code == CLD_STOPPED;
        if (is_command && f->r->foreground && !stopped)
            atomic_store(&f->sh->target, 0);
        if (waitpid(child.si_pid, &status, WNOHANG | WUNTRACED) <= 0)
            return;
        if (child.si_pid == f->keeper && !stopped)
            f->keeper = 0;
        else if (is_command && stopped)
            run_command_stop(&f->command, f->sh, child.si_status);
        else if (is_command)
            command_ended(f, status);
    }
}

static void pass_on(front *f, int sig, bool by_terminal)
{
    if (by_terminal && (sig == SIGINT || sig == SIGQUIT))
        f->told = sig;
    if (sig == SIGCHLD)
        reap(f);
    else if (sig == SIGTSTP && f->r->foreground)
        run_stop();
    /* In one group, the terminal has told COMMAND as well, if it was there: as
       long as it waits at the gate, a second signal is none. Otherwise it stops
       by that, and then we do. */
    else if (!f->r->foreground || !by_terminal || f->command.gate[1] >= 0)
        run_signal(f->sh, sig);
}

static bool is_over(const front *f)
{
    int target = atomic_load(&f->sh->target);
    return f->ended && ((f->r->ends_with_command && !f->lost) || target >= 0 ||
                        !cli_is_alive(target));
}

/* When the lock is lost, also those are ended that have left COMMAND's group,
   when they have become our children. */
static bool lose(front *f)
{
    f->lost = true;
    atomic_store(&f->sh->ended, 1);
    run_signal(f->sh, SIGKILL);
    return f->ended && !cli_kill_children_but(f->keeper);
}

/* Is there nothing to wait for any more? *due_us: when to look again. */
static bool is_done(front *f, int64_t *due_us)
{
    int64_t soon_us = cli_now_us() + cli_look_again_us;
    *due_us = f->lost ? CLI_NEVER : run_guard(f->sh, f->r->grace_ms);
    if (*due_us != CLI_NEVER && is_over(f)) {
        if (!atomic_load(&f->sh->ended) ||
            run_guard_renewed(f->sh, f->r->lease_ms))
            return true;
        *due_us = CLI_NEVER; /* it ended because it was told to */
    }
    if (*due_us == CLI_NEVER && lose(f) && is_over(f))
        return true;
    if (f->lost || (f->ended && *due_us > soon_us))
        *due_us = soon_us;
    return false;
}

static void pass_signals_on(front *f)
{
    bool by_terminal;
    for (int sig; (sig = run_signals_next(&f->signals, &by_terminal)) != 0;)
        pass_on(f, sig, by_terminal);
}

static void look_after(front *f)
{
    struct pollfd p[] = {{.fd = f->signals.fd, .events = POLLIN},
                         {.fd = f->from_keeper, .events = POLLIN}};
    for (int64_t due_us; !is_done(f, &due_us);) {
        cli_poll(p, 2, due_us);
        if (p[0].revents)
            pass_signals_on(f);
        if (p[1].revents && hear(f) < 0) {
            p[1].fd = -1;
            f->lost = true;
        }
    }
    run_command_take_tty(&f->command);
}

/* --- And afterwards --- */

static void let_go_for_good(front *f)
{
    int64_t until = cli_now_us() + LEAVE_US;
    int64_t deadline = atomic_load(&f->sh->deadline_us);
    /* Past the deadline the lock is free without the keeper. */
    if (!let_go(f, deadline > until ? deadline : until) && f->keeper)
        kill(f->keeper, SIGKILL);
    if (f->keeper)
        waitpid(f->keeper, NULL, 0);
}

static int finish(front *f)
{
    char name[120];
    bool told = atomic_load(&f->sh->ended);
    cli_printable(name, sizeof name, f->r->name);
    atomic_store(&f->sh->target, 0);
    atomic_store(&f->sh->over, 1);
    let_go_for_good(f);
    const char *message = f->sh->message, *colon = *message ? ": " : "";
    const char *what = f->r->kind == RLOCK_KIND_PERMIT ? "permit of" : "lock";
    if (f->lost || f->sh->status == CLI_LOST) {
        cli_say("%s '%s' was lost%s%s%s", what, name,
                f->lost ? ", and COMMAND was ended" : " while COMMAND ran",
                colon, message);
        return CLI_LOST;
    }
    if (told) {
        cli_say("COMMAND was told to end, as %s '%s' was not renewed in time",
                what, name);
        return CLI_LOST;
    }
    if (f->sh->status != 0)
        cli_say("%s '%s' stays until its lease is over%s%s", what, name, colon,
                message);
    return f->status;
}

/* False: it could not be started, and that was said. */
static bool start(front *f)
{
    run_hold hold = {.token = ""};
    if (f->sh->token)
        snprintf(hold.token, sizeof hold.token, "%llu",
                 (unsigned long long)f->sh->token);
    memcpy(hold.holder, f->sh->holder, sizeof hold.holder);
    cli_adopt_orphans();
    if (run_env_put(f->r, &hold) &&
        run_command_start(&f->command, f->r, f->sh, &f->signals)) {
        pass_signals_on(f); /* those that came before COMMAND */
        run_command_go(&f->command);
        return true;
    }
    cli_say("cannot start COMMAND: %s", strerror(errno));
    atomic_store(&f->sh->over, 1);
    let_go(f, cli_now_us() + LEAVE_US);
    return false;
}

static void say_granted(const front *f)
{
    if (f->r->kind == RLOCK_KIND_PERMIT)
        cli_say("has a permit");
    else
        cli_say("has the lock, token %llu", (unsigned long long)f->sh->token);
}

/* A script that we are in ends if we do by the signal, and if it was told: that is
   left to us where the terminal told COMMAND alone. */
static bool was_interrupted(const front *f)
{
    bool interrupts = f->ended_by == SIGINT || f->ended_by == SIGQUIT;
    return interrupts && (f->had_terminal || f->told == f->ended_by);
}

int run_front(const run_options *r, run_shared *sh, pid_t keeper,
              int from_keeper, int to_keeper)
{
    front f = {.r = r,
               .sh = sh,
               .keeper = keeper,
               .from_keeper = from_keeper,
               .to_keeper = to_keeper,
               .began_us = cli_now_us()};
    if (!run_signals_begin(&f.signals)) {
        cli_say("no descriptors: %s", strerror(errno));
        return CLI_FAILED;
    }
    int what = wait_for_lock(&f);
    if (what != RUN_GRANTED)
        return refused(&f, what);
    if (r->verbose)
        say_granted(&f);
    if (!start(&f))
        return CLI_FAILED;
    cli_be_prompt();
    look_after(&f);
    int status = finish(&f);
    if (status == f.status && was_interrupted(&f))
        run_signals_die(f.ended_by, f.had_terminal);
    return status;
}
