/* COMMAND: how it begins, and who has the terminal. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "run.h"

int run_command_exec(const run_options *r)
{
    const char *shell = getenv("SHELL"), *file = r->command[0];
    char shown[300];
    if (r->shell_line) {
        file = shell && *shell ? shell : "/bin/sh";
        execl(file, file, "-c", r->shell_line, (char *)NULL);
    } else {
        execvp(file, r->command);
    }
    int why = errno;
    cli_say("cannot run '%s': %s",
            cli_printable_word(shown, sizeof shown, file), strerror(why));
    return why == ENOENT ? CLI_NOT_FOUND : CLI_NOT_EXECUTABLE;
}

static bool is_in_foreground(int tty)
{
    return tty >= 0 && tcgetpgrp(tty) == getpgrp();
}

/* In the foreground COMMAND gets the terminal; but the next program of a
   pipeline may want it, so there only what has tried to read it. */
static bool may_have_tty(const run_command *c, bool reads)
{
    struct stat out;
    bool piped = fstat(STDOUT_FILENO, &out) == 0 && S_ISFIFO(out.st_mode);
    return (reads || !piped) && is_in_foreground(c->tty);
}

static _Noreturn void become(const run_command *c, const run_options *r,
                             run_shared *sh, const run_signals *s, pid_t front)
{
    char end;
    (void)!read(c->gate[0], &end, 1);
    if (c->handed)
        tcsetpgrp(c->tty, getpid());
    if (!cli_die_with(front) ||
        cli_now_us() >= atomic_load(&sh->deadline_us) - RUN_MARGIN_US)
        _exit(CLI_LOST);
    run_signals_restore(s);
    _exit(run_command_exec(r));
}

bool run_command_start(run_command *c, const run_options *r, run_shared *sh,
                       const run_signals *s)
{
    pid_t front = getpid();
    sigset_t all, mask;
    c->tty = r->foreground ? -1 : open("/dev/tty", O_RDWR | O_CLOEXEC);
    c->handed = may_have_tty(c, false);
    if (!run_pipe(c->gate))
        return false;
    /* A signal that comes now is the front's, and not its copy's; what is sent to
       the copy waits until it has the dispositions that COMMAND is to have. */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &mask);
    c->pid = fork();
    if (c->pid == 0) {
        close(c->gate[1]);
        become(c, r, sh, s, front);
    }
    int why = errno;
    close(c->gate[0]);
    if (c->pid > 0 && !r->foreground)
        setpgid(c->pid, c->pid);
    if (c->pid > 0)
        atomic_store(&sh->target, r->foreground ? c->pid : -c->pid);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    errno = why;
    return c->pid > 0;
}

void run_command_go(run_command *c)
{
    close(c->gate[1]);
    c->gate[1] = -1;
}

void run_command_take_tty(run_command *c)
{
    if (c->handed)
        tcsetpgrp(c->tty, getpgrp());
    c->handed = false;
}

void run_stop(void)
{
    struct sigaction ours, normal = {.sa_handler = SIG_DFL};
    sigemptyset(&normal.sa_mask);
    sigaction(SIGTSTP, &normal, &ours);
    kill(0, SIGTSTP);
    sigaction(SIGTSTP, &ours, NULL);
}

void run_command_stop(run_command *c, run_shared *sh, int sig)
{
    bool reads = sig == SIGTTIN || sig == SIGTTOU;
    if (sig == SIGSTOP && !c->handed)
        return; /* somebody's, who will make it go on */
    if (!reads || !is_in_foreground(c->tty)) {
        run_command_take_tty(c);
        run_stop();
    }
    c->handed = may_have_tty(c, reads);
    if (c->handed)
        tcsetpgrp(c->tty, c->pid);
    /* What is still in the background would only try again. */
    if (c->handed || !reads)
        run_signal(sh, SIGCONT);
}
