/* A `rlock run` in the COMMAND of another one. */
#include <signal.h>
#include <unistd.h>

#include "command.h"
#include "scene.h"

static command *start(server *sv, const char *script)
{
    setenv("RLOCK", RLOCK_COMMAND, 1);
    return RLOCK(sv, "run", "-l", "6", "job", "sh", "-c", script, "sh",
                 command_file(sv, "go"), server_path(sv));
}

TEST(inside, of_the_same_name_runs_at_once_and_releases_nothing)
{
    server *sv = server_start(NULL);
    command *c = start(sv, "$RLOCK run -n job echo inner; "
                           "redis-cli -s \"$2\" exists job; exit 5");
    EXPECT_INT(command_status(c), 5);
    EXPECT_STR(command_out(c), "inner\n1\n");
    EXPECT_INT(levels(sv, "job"), 0);
    command_free(c);
    server_stop(sv);
}

TEST(inside, is_in_the_group_that_the_outer_one_ends)
{
    server *sv = server_start(NULL);
    command *c =
        start(sv, "$RLOCK run job sh -c 'trap \"\" TERM; "
                  "echo $$ >\"$0\"; while :; do sleep 1; done' \"$1\"");
    pid_t inner = command_number(sv, "go");
    server_cmd(sv, "DEL job");
    EXPECT_INT(command_status(c), 123);
    EXPECT(!process_is_alive(inner));
    command_free(c);
    server_stop(sv);
}

static void is_lost_after(const char *what)
{
    char script[200];
    server *sv = server_start(NULL);
    snprintf(script, sizeof script,
             "redis-cli -s \"$2\" del job >&2; %s; "
             "$RLOCK run job echo inner; echo $?",
             what);
    command *c = start(sv, script);
    EVENTUALLY(SOON, strstr(command_out(c), "123\n") || command_ended(c));
    EXPECT_STR(command_out(c), "123\n");
    EXPECT_CONTAINS(command_err(c),
                    "lock 'job' was lost by the rlock that this one runs in");
    command_free(c);
    server_stop(sv);
}

TEST_CASE(inside, of_a_name_that_was_lost_is_123, is_lost_after("true"))
TEST_CASE(inside, of_a_name_that_another_one_has_by_now_is_123,
          is_lost_after("redis-cli -s \"$2\" hset job " BY_HAND " 1 >&2"))

TEST(inside, of_another_name_takes_that_one)
{
    server *sv = server_start(NULL);
    command *c =
        start(sv, "$RLOCK run other redis-cli -s \"$2\" exists job other");
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "2\n");
    EXPECT_INT(levels(sv, "other"), 0);
    command_free(c);
    server_stop(sv);
}

TEST(inside, of_the_name_of_an_outer_one_runs_at_once_too)
{
    server *sv = server_start(NULL);
    char first[40], name[40], last[40];
    command *c =
        RLOCK(sv, "run", "a-b", RLOCK_COMMAND, "run", "%/ ", "sh", "-c",
              "$0 run c $0 run -n a-b $0 run -n '%/ ' $0 run a-b "
              "sh -c 'echo $RLOCK_NAME $RLOCK_TOKEN'; "
              "redis-cli -s \"$1\" get rlock_token:{a-b}",
              RLOCK_COMMAND, server_path(sv));
    EXPECT_INT(command_status(c), 0);
    EXPECT_INT(sscanf(command_out(c), "%39s %39s %39s", name, first, last), 3);
    EXPECT_STR(name, "a-b");
    EXPECT_STR(first, last);
    EXPECT_INT(levels(sv, "a-b") + levels(sv, "%/ ") + levels(sv, "c"), 0);
    command_free(c);
    server_stop(sv);
}

TEST(inside, a_holder_that_was_made_up_is_looked_up)
{
    server *sv = server_start(NULL);
    setenv("RLOCK_NAME", "job", 1);
    setenv("RLOCK_HOLDER", "made:1:1:up", 1);
    take_by_hand(sv, "job", 0);
    command *c = RLOCK(sv, "run", "-n", "job", "echo", "ran");
    EXPECT_INT(command_status(c), 123);
    EXPECT_STR(command_out(c), "");
    command_free(c);
    server_stop(sv);
}

/* The outer one has not lost anything: the environment tells of its server only. */
TEST(inside, of_the_same_name_at_another_server_takes_that_lock)
{
    server *sv = server_start(NULL), *other = server_start(NULL);
    command *c =
        RLOCK(sv, "run", "job", RLOCK_COMMAND, "-u", server_uri(other), "run",
              "job", "redis-cli", "-s", server_path(other), "exists", "job");
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "1\n");
    EXPECT_STR(command_err(c), "");
    command_free(c);
    server_stop(sv);
    server_stop(other);
}
