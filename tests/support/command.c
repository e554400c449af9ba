#include "command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef RLOCK_COMMAND
#define RLOCK_COMMAND "rlock" /* it was not built: no test asks for it */
#endif

enum { WORDS_MAX = 40 };

struct command {
    pid_t pid;
    int out, err; /* files that are gone already */
    bool ended;
    int status;
    char text[16384];
};

static int new_file(void)
{
    char path[] = "/tmp/rlock.XXXXXX";
    int fd = mkostemp(path, O_CLOEXEC);
    EXPECT(fd >= 0);
    unlink(path);
    return fd;
}

static _Noreturn void become(const command *c, const server *sv,
                             const char *const words[], pid_t parent)
{
    const char *argv[WORDS_MAX + 2] = {RLOCK_COMMAND};
    for (int i = 0; i < WORDS_MAX && words[i]; i++)
        argv[i + 1] = words[i];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    setsid();
    dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
    dup2(c->out, 1);
    dup2(c->err, 2);
    if (sv)
        setenv("RLOCK_URI", server_uri(sv), 1);
    /* Where coverage is counted, the program, which has no counters, would say on
       stderr that it has none. */
    setenv("LLVM_PROFILE_FILE", "/dev/null", 1);
    execv(argv[0], (char *const *)argv);
    _exit(99);
}

command *command_start(const server *sv, const char *const words[])
{
    command *c = calloc(1, sizeof *c);
    pid_t parent = getpid();
    EXPECT(c != NULL);
    c->out = new_file();
    c->err = new_file();
    fflush(NULL);
    c->pid = fork();
    EXPECT(c->pid >= 0);
    if (c->pid == 0)
        become(c, sv, words, parent);
    return c;
}

void command_inherits_nothing(void)
{
    for (int fd = 3; fd < 256; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool command_ended(command *c)
{
    int status;
    if (!c->ended && waitpid(c->pid, &status, WNOHANG) == c->pid) {
        c->ended = true;
        c->status =
            WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    }
    return c->ended;
}

int command_status(command *c)
{
    EVENTUALLY(SOON, command_ended(c));
    return c->status;
}

static const char *read_file(command *c, int fd)
{
    ssize_t n = pread(fd, c->text, sizeof c->text - 1, 0);
    EXPECT(n >= 0);
    c->text[n] = '\0';
    return c->text;
}

const char *command_out(command *c)
{
    return read_file(c, c->out);
}

const char *command_err(command *c)
{
    return read_file(c, c->err);
}

void command_free(command *c)
{
    if (!command_ended(c)) {
        kill(c->pid, SIGKILL);
        waitpid(c->pid, NULL, 0);
    }
    close(c->out);
    close(c->err);
    free(c);
}

int command_end(command *c)
{
    int status = command_status(c);
    command_free(c);
    return status;
}

const char *command_prints(server *sv, const char *const words[])
{
    static char text[sizeof((command *)0)->text];
    command *c = command_start(sv, words);
    int status = command_status(c);
    if (status != 0)
        FAIL("status %d: %s", status, command_err(c));
    EXPECT_STR(command_err(c), "");
    snprintf(text, sizeof text, "%s", command_out(c));
    command_free(c);
    return text;
}

void command_fails(server *sv, const char *const words[], const char *says)
{
    command *c = command_start(sv, words);
    EXPECT_INT(command_status(c), 125);
    EXPECT_STR(command_out(c), "");
    const char *err = command_err(c);
    EXPECT_CONTAINS(err, says);
    EXPECT_INT(strchr(err, '\n') - err + 1, strlen(err));
    command_free(c);
}

void command_is_misused(const char *const words[], const char *says)
{
    command *c = command_start(NULL, words);
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_err(c), says);
    EXPECT_CONTAINS(command_err(c), "usage: rlock ");
    EXPECT_STR(command_out(c), "");
    command_free(c);
}

/* --- Processes --- */

/* The letter of its state; 0: it is not there. */
static char state_of(pid_t pid)
{
    char path[40], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    char *after = strrchr(text, ')');
    return after ? after[2] : 0;
}

bool process_is_alive(pid_t pid)
{
    char state = state_of(pid);
    return state && state != 'Z' && state != 'X';
}

bool process_is_stopped(pid_t pid)
{
    return state_of(pid) == 'T';
}

pid_t command_front(const command *c)
{
    return c->pid;
}

/* A child of the front that leads a session, or leads but a group; 0: not
   there. */
static pid_t child(const command *c, bool session)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)c->pid,
             (int)c->pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = '\0';
    for (char *p = text; *p; p += strspn(p, " ")) {
        pid_t pid = (pid_t)strtol(p, &p, 10);
        if (process_is_alive(pid) && getpgid(pid) == pid &&
            (getsid(pid) == pid) == session)
            return pid;
    }
    return 0;
}

pid_t command_keeper(const command *c)
{
    EVENTUALLY(SOON, child(c, true) != 0);
    return child(c, true);
}

pid_t command_pid(const command *c)
{
    EVENTUALLY(SOON, child(c, false) != 0);
    return child(c, false);
}

/* --- Files --- */

const char *command_file(const server *sv, const char *file)
{
    static char paths[4][160];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s", server_file(sv, file));
    return path;
}

pid_t command_number(const server *sv, const char *file)
{
    int number = 0;
    int64_t until = test_now_ms() + SOON;
    const char *path = command_file(sv, file);
    for (;;) {
        FILE *f = fopen(path, "re");
        int n = f ? fscanf(f, "%d\n", &number) : 0;
        if (f)
            fclose(f);
        if (n == 1 && number > 0)
            return number;
        if (test_now_ms() > until)
            FAIL("nothing was written to %s", path);
        test_pause_ms(2);
    }
}

void command_kill(const server *sv, command *c, const char *file)
{
    kill(command_number(sv, file), SIGKILL);
    EXPECT_INT(command_status(c), 128 + SIGKILL);
    command_free(c);
}
