#include "terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#ifndef RLOCK_COMMAND
#define RLOCK_COMMAND "rlock" /* it was not built: no test asks for it */
#endif

static _Noreturn void shell(const char *path, int talk, const server *sv,
                            const char *script)
{
    setsid();
    int tty = open(path, O_RDWR), status;
    ioctl(tty, TIOCSCTTY, 0);
    signal(SIGTTOU, SIG_IGN);
    pid_t job = fork();
    if (job == 0) {
        setpgid(0, 0);
        tcsetpgrp(tty, getpid());
        /* As a shell that has been started in the background ignores some. */
        for (int sig = 1; sig < 32; sig++)
            signal(sig, SIG_DFL);
        setenv("RLOCK_URI", server_uri(sv), 1);
        setenv("RLOCK", RLOCK_COMMAND, 1);
        for (int fd = 0; fd < 3; fd++)
            dup2(tty, fd);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(99);
    }
    setpgid(job, job);
    while (waitpid(job, &status, WUNTRACED) == job && WIFSTOPPED(status)) {
        char c = 's';
        tcsetpgrp(tty, getpgrp());
        if (write(talk, &c, 1) != 1 || read(talk, &c, 1) != 1)
            _exit(1);
        tcsetpgrp(tty, job);
        kill(-job, SIGCONT);
    }
    char end[2] = {'e', (char)(WIFSIGNALED(status) ? 128 + WTERMSIG(status)
                                                   : WEXITSTATUS(status))};
    _exit(write(talk, end, 2) != 2);
}

terminal terminal_start(const server *sv, const char *script)
{
    terminal t = {.master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)};
    int talk[2];
    pid_t parent = getpid();
    EXPECT(t.master >= 0 && grantpt(t.master) == 0 && unlockpt(t.master) == 0);
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, talk), 0);
    fflush(NULL);
    t.shell = fork();
    if (t.shell == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        shell(ptsname(t.master), talk[1], sv, script);
    }
    close(talk[1]);
    t.talk = talk[0];
    fcntl(t.talk, F_SETFL, O_NONBLOCK);
    fcntl(t.master, F_SETFL, O_NONBLOCK);
    return t;
}

bool terminal_shows(terminal *t, const char *what)
{
    ssize_t n = read(t->master, t->text + t->len, sizeof t->text - 1 - t->len);
    t->len += n > 0 ? (size_t)n : 0;
    return strstr(t->text, what) != NULL;
}

void terminal_type(terminal *t, const char *keys)
{
    EXPECT_INT(write(t->master, keys, strlen(keys)), strlen(keys));
}

static int hears(terminal *t)
{
    unsigned char c = 0;
    char ignored[512];
    (void)!read(t->master, ignored, sizeof ignored);
    return read(t->talk, &c, 1) == 1 ? c : -1;
}

void terminal_is_told(terminal *t, int what)
{
    int got = -1;
    EVENTUALLY(SOON, (got = hears(t)) >= 0);
    EXPECT_INT(got, what);
}

void terminal_end(terminal *t, int status)
{
    terminal_is_told(t, 'e');
    terminal_is_told(t, status);
    waitpid(t->shell, NULL, 0);
    close(t->master);
    close(t->talk);
}
