/*
 * What the other tests rely on: that servers come and go, and that a failed
 * expectation is a failure. Plain hiredis only, so that a defect of the library
 * cannot show up here.
 */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "direct.h"
#include "server.h"

static intptr_t fail_here(void *arg)
{
    EXPECT_INT(*(int *)arg, 1);
    return 0;
}

/* Exit status of a child whose expectation fails, on a thread or not. */
static int status_of_failure(bool on_thread)
{
    int zero = 0, status;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        if (on_thread)
            test_join(test_spawn(fail_here, &zero));
        else
            fail_here(&zero);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(support, a_failed_expectation_ends_the_process)
{
    EXPECT_INT(status_of_failure(false), 1);
    EXPECT_INT(status_of_failure(true), 1);
}

TEST(support, a_stopped_server_leaves_nothing)
{
    server *sv = server_start("--appendonly yes");
    char dir[200];
    struct stat st;
    snprintf(dir, sizeof dir, "%s", server_path(sv));
    *strrchr(dir, '/') = '\0';
    pid_t pid = server_pid(sv);
    EXPECT_STR(server_str(sv, "SET k %s", "a b"), "OK");
    EXPECT_INT(stat(dir, &st), 0);
    server_stop(sv);
    EXPECT(kill(pid, 0) < 0);
    EXPECT(stat(dir, &st) < 0);
}

TEST(support, a_restarted_server_has_its_port_and_data)
{
    server *sv = server_start_tcp(SERVER_DURABLE);
    int port = server_port(sv);
    pid_t pid = server_pid(sv);
    server_cmd(sv, "SET k v");
    server_restart(sv);
    EXPECT(server_pid(sv) != pid);
    EXPECT_STR(server_str(sv, "GET k"), "v");
    redisContext *cx = redisConnect("127.0.0.1", port);
    expect_reply(cx, "PING", "PONG");
    redisFree(cx);
    server_kill(sv);
    server_restart(sv);
    EXPECT_STR(server_str(sv, "GET k"), "v");
    server_stop(sv);
}

/* A server's clock against the machine's, in seconds. */
static long long ahead_s(server *sv)
{
    return atoll(server_cmd(sv, "TIME")->element[0]->str) - time(NULL);
}

TEST(support, a_clocked_server_has_a_time_of_its_own)
{
    server *sv = server_start_clocked(NULL);
    EXPECT_BETWEEN(ahead_s(sv), -1, 1);
    server_set_clock(sv, 3600);
    EXPECT_BETWEEN(ahead_s(sv), 3599, 3601);
    server_set_clock(sv, -3600);
    EXPECT_BETWEEN(ahead_s(sv), -3601, -3599);
    server_kill(sv);
    server_restart(sv);
    EXPECT_BETWEEN(ahead_s(sv), -3601, -3599);
    server_stop(sv);
}

TEST(support, a_paused_server_answers_later)
{
    server *sv = server_start(NULL);
    redisContext *cx = connect_to(server_path(sv), 20000);
    server_pause(sv);
    test_thread *t = test_spawn(incr_slowly, cx);
    test_pause_ms(20);
    EXPECT(!test_done(t));
    server_resume(sv);
    EXPECT_INT(test_join(t), 1);
    EXPECT_INT(server_calls(sv, "incr"), 1);
    EXPECT(server_info(sv, "total_commands_processed") > 1);
    redisFree(cx);
    server_stop(sv);
}

/* A zombie has no command line any more. */
static bool is_alive(pid_t pid)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    FILE *f = fopen(path, "r");
    bool alive = f && fgetc(f) != EOF;
    if (f)
        fclose(f);
    return alive;
}

static void remove_leftovers(char *socket)
{
    char *slash = strrchr(socket, '/');
    unlink(socket);
    strcpy(slash, "/log");
    unlink(socket);
    *slash = '\0';
    EXPECT_INT(rmdir(socket), 0);
}

/* However the test's process ends, its server ends with it. */
TEST(support, a_server_dies_with_the_process_that_started_it)
{
    struct {
        pid_t pid;
        char socket[108];
    } told = {0};
    int fds[2];
    EXPECT_INT(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        server *sv = server_start(NULL);
        told.pid = server_pid(sv);
        snprintf(told.socket, sizeof told.socket, "%s", server_path(sv));
        if (write(fds[1], &told, sizeof told) == sizeof told)
            pause();
        _exit(1);
    }
    EXPECT_INT(read(fds[0], &told, sizeof told), sizeof told);
    EXPECT(is_alive(told.pid));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    EVENTUALLY(5000, !is_alive(told.pid));
    remove_leftovers(told.socket);
    close(fds[0]);
    close(fds[1]);
}

TEST(support, a_broken_connection_of_the_test_is_opened_again)
{
    server *sv = server_start(NULL);
    signal(SIGPIPE, SIG_DFL);
    server_cmd(sv, "SET k v");
    server_cmd(sv, "CLIENT KILL TYPE normal SKIPME no");
    EXPECT_STR(server_str(sv, "GET k"), "v");
    server_restart(sv);
    EXPECT_STR(server_str(sv, "GET k"), "");
    server_stop(sv);
}

static rlock_event made_event(rlock_event_type type, const char *message)
{
    return (rlock_event){.type = type,
                         .name = "n",
                         .name_len = 1,
                         .message = message,
                         .owner = ""};
}

TEST(support, events_are_kept)
{
    events *ev = events_new();
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_event last, lost = made_event(RLOCK_EVENT_LOST, "first");
    events_hook(ev, &opts);
    EXPECT(!events_last(ev, RLOCK_EVENT_LOST, &last));
    EXPECT_INT(events_time(ev, RLOCK_EVENT_LOST), 0);
    opts.on_event(&lost, opts.event_arg);
    lost = made_event(RLOCK_EVENT_LOST, "second");
    opts.on_event(&lost, opts.event_arg);
    events_wait(ev, RLOCK_EVENT_LOST, 2, 0);
    EXPECT_INT(events_count(ev, RLOCK_EVENT_LOST), 2);
    EXPECT_INT(events_count(ev, RLOCK_EVENT_RENEWED), 0);
    EXPECT_STR(events_message(ev, RLOCK_EVENT_LOST), "second");
    EXPECT_STR(events_message(ev, RLOCK_EVENT_RENEWED), "");
    EXPECT(events_last(ev, RLOCK_EVENT_LOST, &last));
    EXPECT_STR(last.name, "n");
    events_free(ev);
}
