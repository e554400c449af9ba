/* Signals that the front gets, one after the other, out of a pipe. */
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "run.h"

static const int handled[RUN_SIGNALS] = {SIGTERM, SIGINT,  SIGHUP,
                                         SIGQUIT, SIGUSR1, SIGUSR2,
                                         SIGTSTP, SIGCHLD, SIGPIPE};

enum { BY_TERMINAL = 0x80 };

static int to_pipe = -1;

static void note(int sig, siginfo_t *info, void *context)
{
    unsigned char byte = (unsigned char)sig;
    (void)context;
#ifdef SI_KERNEL
    if (info->si_code == SI_KERNEL)
        byte |= BY_TERMINAL;
#else
    (void)info;
#endif
    (void)!write(to_pipe, &byte, 1);
}

bool run_signals_begin(run_signals *s)
{
    int ends[2];
    sigset_t ttou, chld;
    if (!run_pipe(ends))
        return false;
    for (int i = 0; i < 2; i++)
        fcntl(ends[i], F_SETFL, O_NONBLOCK);
    s->fd = ends[0];
    to_pipe = ends[1];
    for (int i = 0; i < RUN_SIGNALS; i++) {
        int sig = handled[i];
        struct sigaction a = {.sa_sigaction = note,
                              .sa_flags = SA_SIGINFO | SA_RESTART};
        sigemptyset(&a.sa_mask);
        if (sig == SIGPIPE)
            a = (struct sigaction){.sa_handler = SIG_IGN};
        sigaction(sig, NULL, &s->former[i]);
        /* What was ignored stays so, as for nohup. */
        if (sig == SIGCHLD || s->former[i].sa_handler != SIG_IGN)
            sigaction(sig, &a, NULL);
    }
    /* Who is in the background, and takes the terminal back, is not stopped. */
    sigemptyset(&ttou);
    sigaddset(&ttou, SIGTTOU);
    /* Whoever started us may have blocked what tells that COMMAND has ended. */
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    return sigprocmask(SIG_BLOCK, &ttou, &s->mask) == 0 &&
           sigprocmask(SIG_UNBLOCK, &chld, NULL) == 0;
}

int run_signals_next(const run_signals *s, bool *by_terminal)
{
    unsigned char byte;
    if (read(s->fd, &byte, 1) != 1)
        return 0;
    *by_terminal = byte & BY_TERMINAL;
    return byte & ~BY_TERMINAL;
}

void run_signals_restore(const run_signals *s)
{
    for (int i = 0; i < RUN_SIGNALS; i++)
        sigaction(handled[i], &s->former[i], NULL);
    sigprocmask(SIG_SETMASK, &s->mask, NULL);
}

_Noreturn void run_signals_die(int sig, bool group)
{
    sigset_t set;
    /* A core of this process would tell nobody anything. */
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    signal(sig, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, sig);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    kill(group ? 0 : getpid(), sig);
    _exit(128 + sig);
}
