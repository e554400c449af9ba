/* A COMMAND that is a setuid program, of an rlock whose user is not root. */
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "scene.h"

#define NOBODY "65534"

/* In a server's directory, where nobody may go; a copy of what this is. */
static const char *install(server *sv, const char *program)
{
    char command[300];
    const char *copy = command_file(sv, "setuid");
    if (geteuid() != 0)
        SKIP("only root makes programs that are root's");
    snprintf(command, sizeof command,
             "cp \"$(command -v %s)\" '%s' && chmod 4755 '%s' && "
             "chmod 777 \"$(dirname '%s')\"",
             program, copy, copy, copy);
    EXPECT_INT(system(command), 0);
    snprintf(command, sizeof command,
             "setpriv --reuid=" NOBODY " --clear-groups test -x '%s'",
             RLOCK_COMMAND);
    if (system(command) != 0)
        SKIP("nobody may execute the rlock of this build");
    return copy;
}

/* Of the real, and of the effective user. */
static void users_of(pid_t pid, int *real, int *effective)
{
    char path[40], line[200];
    *real = *effective = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Uid: %d %d", real, effective) == 2)
            break;
    if (f)
        fclose(f);
}

static bool is_setuid(pid_t pid)
{
    int real, effective;
    users_of(pid, &real, &effective);
    return effective == 0 && real == atoi(NOBODY);
}

typedef struct one {
    server *sv;
    command *c;
    pid_t command, front;
} one;

/* The rlock that is watched runs as nobody, in one that does not. */
static one one_start(const char *program, const char *arguments)
{
    char script[300], uri[60];
    one x = {.sv = server_start_tcp(NULL)};
    snprintf(script, sizeof script, "echo $$ >\"$1\"; exec \"$0\" %s",
             arguments);
    const char *copy = install(x.sv, program);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(x.sv));
    setenv("RLOCK_URI", uri, 1);
    x.c = RLOCK(NULL, "run", "outer", "setpriv", "--reuid=" NOBODY,
                "--clear-groups", RLOCK_COMMAND, "run", "-l", "1.5", "job",
                "sh", "-c", script, copy, command_file(x.sv, "command"));
    x.command = command_number(x.sv, "command");
    x.front = command_pid(x.c);
    return x;
}

static void one_stop(one *x)
{
    command_free(x->c);
    server_stop(x->sv);
}

static one sleeper_start(void)
{
    one x = one_start("sleep", "1000");
    EVENTUALLY(SOON, is_setuid(x.command));
    EXPECT_INT(levels(x.sv, "job"), 1);
    return x;
}

/* Its real user is that of rlock, who may kill it therefore. */
TEST(setuid, a_program_is_ended_when_its_lock_is_lost)
{
    one x = sleeper_start();
    server_cmd(x.sv, "DEL job");
    EXPECT_INT(command_status(x.c), 123);
    EXPECT(!process_is_alive(x.command));
    one_stop(&x);
}

/* It is told of no parent's death: that is forgotten with the user. */
TEST(setuid, a_program_is_killed_by_the_keeper_when_the_front_is_dead)
{
    one x = sleeper_start();
    kill(x.front, SIGKILL);
    EVENTUALLY(SOON, levels(x.sv, "job") == 0);
    EXPECT(!process_is_alive(x.command));
    one_stop(&x);
}

/* The first that the front has started. */
static pid_t keeper_of(const one *x)
{
    char path[60];
    int pid = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)x->front,
             (int)x->front);
    FILE *f = fopen(path, "r");
    EXPECT(f && fscanf(f, "%d", &pid) == 1 && pid != x->command);
    fclose(f);
    return pid;
}

/* It is wholly root's then: nobody may not kill it, and rlock waits. */
TEST(setuid, a_program_that_has_left_its_user_is_waited_for)
{
    one x = one_start("setpriv", "--reuid=0 sleep 1000");
    int real = -1, effective = -1;
    EVENTUALLY(SOON, (users_of(x.command, &real, &effective), real == 0));
    pid_t keeper = keeper_of(&x);
    server_cmd(x.sv, "DEL job");
    EVENTUALLY(SOON, !process_is_alive(keeper)); /* who has found it lost */
    EXPECT(process_is_alive(x.command) && !command_ended(x.c));
    kill(x.command, SIGKILL);
    EXPECT_INT(command_status(x.c), 123);
    one_stop(&x);
}
