/* What the front gets by signals, and what a terminal does. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "command.h"
#include "scene.h"
#include "terminal.h"

static void passes_on(int sig, const char *name)
{
    char script[100];
    server *sv = server_start(NULL);
    snprintf(script, sizeof script,
             "trap 'echo got; exit 5' %s; echo $$ >\"$1\"; "
             "while :; do sleep 0.01; done",
             name);
    command *c = RLOCK(sv, "run", "job", "sh", "-c", script, "sh",
                       command_file(sv, "pid"));
    command_number(sv, "pid");
    kill(command_front(c), sig);
    EXPECT_INT(command_status(c), 5);
    EXPECT_STR(command_out(c), "got\n");
    command_free(c);
    server_stop(sv);
}

TEST_CASE(signals, term_is_passed_on, passes_on(SIGTERM, "TERM"))
TEST_CASE(signals, int_is_passed_on, passes_on(SIGINT, "INT"))
TEST_CASE(signals, hup_is_passed_on, passes_on(SIGHUP, "HUP"))
TEST_CASE(signals, quit_is_passed_on, passes_on(SIGQUIT, "QUIT"))
TEST_CASE(signals, usr1_is_passed_on, passes_on(SIGUSR1, "USR1"))
TEST_CASE(signals, usr2_is_passed_on, passes_on(SIGUSR2, "USR2"))

/* Signals the front as soon as it has said that the lock is there, and a little
   later, again and again: COMMAND is being made then. */
static void reaches_what_begins(int sig, const char *const words[])
{
    server *sv = server_start(NULL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    for (int round = 0; round < 12; round++) {
        command *c = command_start(sv, words);
        int64_t until = test_now_ms() + SOON;
        while (!strstr(command_err(c), "has") && test_now_ms() < until)
            ;
        usleep((useconds_t)round / 2 * 150);
        kill(command_front(c), sig);
        EXPECT_INT(command_status(c), 128 + sig);
        EXPECT_CONTAINS(command_err(c), "has");
        command_free(c);
    }
    server_stop(sv);
}

#define BEGINS(name, sig, ...)                                                 \
    TEST_CASE(signals, name##_reaches_a_command_that_has_just_begun,           \
              reaches_what_begins(sig, WORDS("run", "-v", __VA_ARGS__, "job",  \
                                             "sleep", "100")))

BEGINS(term, SIGTERM, "-q")
BEGINS(int, SIGINT, "-q")
BEGINS(hup, SIGHUP, "-q")
BEGINS(quit, SIGQUIT, "-q")
BEGINS(term_in_foreground, SIGTERM, "--foreground")
BEGINS(int_in_foreground, SIGINT, "--foreground")
BEGINS(term_of_one_who_reads, SIGTERM, "-s")
BEGINS(term_of_one_who_has_a_permit, SIGTERM, "-N", "2")

static void ends_the_wait(int sig)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    command *c = RLOCK(sv, "run", "job", "echo", "ran");
    EVENTUALLY(SOON, queued(sv, "job") == 1);
    int64_t began = test_now_ms();
    pid_t keeper = command_keeper(c);
    kill(command_front(c), sig);
    EXPECT_INT(command_status(c), -sig);
    EXPECT_BETWEEN(test_since_ms(began), 0, 1000 + SLACK_MS);
    EXPECT_STR(command_out(c), "");
    EVENTUALLY(SOON, queued(sv, "job") == 0 && !process_is_alive(keeper));
    command_free(c);
    server_stop(sv);
}

TEST_CASE(signals, term_ends_a_wait, ends_the_wait(SIGTERM))
TEST_CASE(signals, int_ends_a_wait, ends_the_wait(SIGINT))
TEST_CASE(signals, usr1_ends_a_wait, ends_the_wait(SIGUSR1))

TEST(signals, a_front_that_is_killed_while_it_waits_leaves_the_queue)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    command *c = RLOCK(sv, "run", "job", "true");
    EVENTUALLY(SOON, queued(sv, "job") == 1);
    kill(command_front(c), SIGKILL);
    EVENTUALLY(SOON, queued(sv, "job") == 0);
    command_free(c);
    server_stop(sv);
}

/* The line of a process's status that begins so; valid until the next call. */
static const char *status_line(const char *path, const char *begins)
{
    static char line[256];
    FILE *f = fopen(path, "re");
    EXPECT(f != NULL);
    while (fgets(line, sizeof line, f) &&
           strncmp(line, begins, strlen(begins)) != 0)
        ;
    fclose(f);
    return line;
}

TEST(signals, command_gets_signals_as_rlock_got_them)
{
    server *sv = server_start(NULL);
    char path[64];
    signal(SIGUSR1, SIG_IGN);
    command *c = RLOCK(sv, "run", "job", "sleep", "100");
    snprintf(path, sizeof path, "/proc/%d/status", (int)command_pid(c));
    EVENTUALLY(SOON, strstr(status_line(path, "Name:"), "sleep"));
    EXPECT_STR(status_line(path, "SigBlk:"), "SigBlk:\t0000000000000000\n");
    char ours[256];
    snprintf(ours, sizeof ours, "%s",
             status_line("/proc/self/status", "SigIgn:"));
    EXPECT_STR(status_line(path, "SigIgn:"), ours);
    command_free(c);
    server_stop(sv);
}

TEST(signals,
     the_end_of_command_is_seen_by_who_was_started_with_sigchld_blocked)
{
    server *sv = server_start(NULL);
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    EXPECT_INT(sigprocmask(SIG_BLOCK, &chld, NULL), 0);
    command *c = RLOCK(sv, "run", "job", "grep", "SigBlk", "/proc/self/status");
    EVENTUALLY(SOON, command_ended(c));
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "SigBlk:\t0000000000010000\n");
    EXPECT_INT(key_exists(sv, "job"), 0);
    command_free(c);
    server_stop(sv);
}

/* As root, or where the system lets us: else all three are alike. */
TEST(signals, who_ends_command_does_not_stand_in_line_behind_it)
{
    server *sv = server_start(NULL);
    struct sched_param p = {.sched_priority = 1};
    pid_t probe = fork();
    if (probe == 0)
        _exit(sched_setscheduler(0, SCHED_RR, &p) != 0);
    int refused = 1;
    waitpid(probe, &refused, 0);
    command *c = RLOCK(sv, "run", "job", "sleep", "100");
    pid_t command = command_pid(c), keeper = command_keeper(c);
    int wanted = refused ? SCHED_OTHER : SCHED_RR;
    EVENTUALLY(SOON, (sched_getscheduler(command_front(c)) &
                      ~SCHED_RESET_ON_FORK) == wanted);
    EVENTUALLY(SOON,
               (sched_getscheduler(keeper) & ~SCHED_RESET_ON_FORK) == wanted);
    EXPECT_INT(sched_getscheduler(command), SCHED_OTHER);
    command_free(c);
    server_stop(sv);
}

TEST(signals, command_has_no_descriptor_of_ours)
{
    server *sv = server_start(NULL);
    command_inherits_nothing();
    command *c = RLOCK(sv, "run", "job", "ls", "/proc/self/fd");
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "0\n1\n2\n3\n"); /* 3 is that of ls */
    command_free(c);
    server_stop(sv);
}

static bool has_open(pid_t pid, const char *what)
{
    bool has = false;
    for (int fd = 0; fd < 64; fd++) {
        char path[64], target[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)pid, fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        has = has || strcmp(target, what) == 0;
    }
    return has;
}

TEST(signals, the_keeper_holds_no_pipe_of_who_started_rlock)
{
    server *sv = server_start(NULL);
    int ends[2];
    char path[64], name[64] = "";
    command_inherits_nothing();
    EXPECT_INT(pipe(ends), 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", ends[1]);
    EXPECT(readlink(path, name, sizeof name - 1) > 0);
    command *c = RLOCK(sv, "run", "job", "sleep", "100");
    EXPECT(has_open(command_pid(c), name));
    EXPECT(!has_open(command_keeper(c), name));
    command_free(c);
    server_stop(sv);
}

/* --- A terminal --- */

TEST(signals, command_reads_and_writes_the_terminal)
{
    server *sv = server_start(NULL);
    terminal t = terminal_start(
        sv, "exec $RLOCK run job sh -c 'echo what; read x; echo \"<$x>\"'");
    EVENTUALLY(SOON, terminal_shows(&t, "what"));
    terminal_type(&t, "this\n");
    EVENTUALLY(SOON, terminal_shows(&t, "<this>"));
    terminal_end(&t, 0);
    server_stop(sv);
}

TEST(signals, at_the_head_of_a_pipeline_too)
{
    server *sv = server_start(NULL);
    terminal t = terminal_start(sv, "$RLOCK run job sh -c 'echo what >&2; read "
                                    "x; echo \"<$x>\"' | cat; exit 7");
    EVENTUALLY(SOON, terminal_shows(&t, "what"));
    terminal_type(&t, "this\n");
    EVENTUALLY(SOON, terminal_shows(&t, "<this>"));
    terminal_end(&t, 7);
    server_stop(sv);
}

TEST(signals, an_interrupt_reaches_command_in_the_foreground_once)
{
    server *sv = server_start(NULL);
    terminal t = terminal_start(
        sv, "exec $RLOCK run --foreground job sh -c 'trap \"echo got\" INT; "
            "echo run; while [ -z \"$x\" ]; do read x; done; "
            "echo \"<$x>\"'");
    EVENTUALLY(SOON, terminal_shows(&t, "run"));
    terminal_type(&t, "\x03");
    EVENTUALLY(SOON, terminal_shows(&t, "got"));
    terminal_type(&t, "this\n");
    EVENTUALLY(SOON, terminal_shows(&t, "<this>"));
    EXPECT(!strstr(strstr(t.text, "got") + 3, "got"));
    terminal_end(&t, 0);
    server_stop(sv);
}

TEST(signals, an_interrupt_in_the_foreground_reaches_what_has_just_begun)
{
    server *sv = server_start(NULL);
    for (int round = 0; round < 6; round++) {
        terminal t =
            terminal_start(sv, "exec $RLOCK run -v --foreground job sleep 100");
        EVENTUALLY(SOON, terminal_shows(&t, "has"));
        terminal_type(&t, "\x03");
        terminal_end(&t, 130);
    }
    server_stop(sv);
}

TEST(signals, an_interrupt_of_the_terminal_ends_command_and_the_script)
{
    server *sv = server_start(NULL);
    terminal t = terminal_start(
        sv, "$RLOCK run job sh -c 'echo run; exec sleep 100'; echo went on");
    EVENTUALLY(SOON, terminal_shows(&t, "run"));
    terminal_type(&t, "\x03");
    terminal_end(&t, 130);
    EXPECT(!terminal_shows(&t, "went on"));
    EXPECT_INT(levels(sv, "job"), 0);
    server_stop(sv);
}

/* Other shells end by the terminal's signal, whatever they wait for. */
static void ends_bash(const char *script)
{
    if (access("/bin/bash", X_OK) != 0)
        SKIP("there is no bash");
    server *sv = server_start(NULL);
    terminal t = terminal_start(sv, script);
    EVENTUALLY(SOON, terminal_shows(&t, "run"));
    terminal_type(&t, "\x03");
    terminal_end(&t, 130);
    server_stop(sv);
}

TEST_CASE(signals, an_interrupt_ends_the_script_around_a_pipe,
          ends_bash("exec bash -c '$RLOCK run job sh -c \"echo run >&2; exec "
                    "sleep 100\" | cat; exit 7'"))
TEST_CASE(signals, an_interrupt_ends_the_script_around_one_in_the_foreground,
          ends_bash("exec bash -c '$RLOCK run --foreground job sh -c \"echo "
                    "run; exec sleep 100\"; exit 7'"))

TEST(signals, what_was_stopped_by_the_terminal_keeps_its_lock_and_goes_on)
{
    server *sv = server_start(NULL);
    terminal t = terminal_start(sv, "exec $RLOCK run -l 1.5 job sh -c 'echo "
                                    "run; read x; echo \"<$x>\"; exit 4'");
    EVENTUALLY(SOON, terminal_shows(&t, "run"));
    terminal_type(&t, "\x1a");
    terminal_is_told(&t, 's');
    long long calls = script_calls(sv);
    EVENTUALLY(SOON, script_calls(sv) >= calls + 6);
    EXPECT_INT(levels(sv, "job"), 1);
    EXPECT_INT(write(t.talk, "g", 1), 1);
    terminal_type(&t, "this\n");
    EVENTUALLY(SOON, terminal_shows(&t, "<this>"));
    terminal_end(&t, 4);
    server_stop(sv);
}

TEST(signals, what_was_stopped_and_has_lost_its_lock_is_dead_when_it_goes_on)
{
    server *sv = server_start(NULL);
    terminal t = terminal_start(
        sv, "exec $RLOCK run -l 1.5 job sh -c 'echo run; read x; echo ran on'");
    EVENTUALLY(SOON, terminal_shows(&t, "run"));
    terminal_type(&t, "\x1a");
    terminal_is_told(&t, 's');
    server_cmd(sv, "DEL job");
    long long calls = script_calls(sv);
    EVENTUALLY(SOON, script_calls(sv) > calls);
    EXPECT_INT(write(t.talk, "g", 1), 1);
    terminal_end(&t, 123);
    EXPECT(!terminal_shows(&t, "ran on"));
    server_stop(sv);
}

TEST(signals, who_waits_is_told_for_what_and_may_be_stopped)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    terminal t = terminal_start(sv, "exec $RLOCK run job echo ran");
    EVENTUALLY(SOON, terminal_shows(
                         &t, "rlock: waiting for 'job', which other:1 has"));
    terminal_type(&t, "\x1a");
    terminal_is_told(&t, 's');
    EXPECT_INT(write(t.talk, "g", 1), 1);
    server_cmd(sv, "DEL job");
    EVENTUALLY(SOON, terminal_shows(&t, "ran"));
    terminal_end(&t, 0);
    server_stop(sv);
}

TEST(signals, who_waits_is_told_of_a_holder_in_printable_words)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET job %s 1",
               "ho\033[1mst:1:1:00000000-0000-4000-8000-000000000000");
    terminal t = terminal_start(sv, "exec $RLOCK run job true");
    EVENTUALLY(SOON, terminal_shows(&t, "which ho\\x1b[1mst:1 has"));
    terminal_type(&t, "\x03");
    terminal_end(&t, 130);
    server_stop(sv);
}

TEST(signals, a_password_is_asked_for_on_the_terminal_and_not_shown)
{
    server *sv = server_start("--requirepass se:cr@t");
    terminal t = terminal_start(
        sv, "exec $RLOCK --askpass run job sh -c 'echo ran $RLOCK_URI'");
    EVENTUALLY(SOON, terminal_shows(&t, "Password: "));
    terminal_type(&t, "se:cr@t\n");
    EVENTUALLY(SOON, terminal_shows(&t, "ran unix:///"));
    EXPECT(!terminal_shows(&t, "cr@t") && !terminal_shows(&t, "cr%"));
    terminal_end(&t, 0);
    server_stop(sv);
}

static void leaves_the_terminal(const char *script, const char *shown,
                                const char *key)
{
    char all[200];
    server *sv = server_start(NULL);
    snprintf(all, sizeof all,
             "ulimit -c 0; trap : INT QUIT; export TERM=xterm; $RLOCK %s; "
             "stty -a | grep -q -e ' -echo ' && exit 1; exit 5",
             script);
    terminal t = terminal_start(sv, all);
    EVENTUALLY(SOON, terminal_shows(&t, shown));
    terminal_type(&t, key);
    terminal_end(&t, 5);
    server_stop(sv);
}

TEST_CASE(signals, an_interrupt_leaves_a_terminal_that_was_asked_as_it_was,
          leaves_the_terminal("--askpass who job", "Password: ", "\x03"))
TEST_CASE(signals, a_quit_leaves_a_terminal_that_was_asked_as_it_was,
          leaves_the_terminal("--askpass who job", "Password: ", "\x1c"))
TEST_CASE(signals, a_quit_leaves_the_terminal_of_a_screen_as_it_was,
          leaves_the_terminal("top", "0 held", "\x1c"))
TEST_CASE(signals, an_interrupt_leaves_the_terminal_of_a_screen_as_it_was,
          leaves_the_terminal("top", "0 held", "\x03"))
