/* `rlock run -N`: one of so many permits. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "permits.h"

static command *hold(server *sv, const char *count, const char *file)
{
    command *c =
        RLOCK(sv, "run", "-N", count, POOL, "sh", "-c",
              "echo $$ >\"$0\"; exec sleep 100", command_file(sv, file));
    command_number(sv, file);
    return c;
}

static int tries(server *sv, const char *count)
{
    return command_end(RLOCK(sv, "run", "-n", "-N", count, POOL, "true"));
}

TEST(permits, so_many_run_at_a_time)
{
    server *sv = server_start(NULL);
    command *one = hold(sv, "2", "one"), *two = hold(sv, "2", "two");
    EXPECT_INT(held_at(sv), 2);
    EXPECT_INT(tries(sv, "2"), 124);
    command_kill(sv, one, "one");
    EXPECT_INT(held_at(sv), 1);
    EXPECT_INT(tries(sv, "2"), 0);
    command_kill(sv, two, "two");
    EXPECT_STR(server_str(sv, "GET " POOL), "2");
    server_stop(sv);
}

TEST(permits, what_a_dead_one_had_comes_back_with_its_lease)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "run", "-N1", "-l", "1.5", POOL, "sleep", "100");
    command_pid(c);
    kill(command_keeper(c), SIGKILL);
    EXPECT_INT(command_end(c), 123);
    EXPECT_INT(tries(sv, "1"), 124);
    EXPECT_INT(command_end(RLOCK(sv, "run", "-N1", POOL, "true")), 0);
    EXPECT_INT(held_at(sv), 0);
    server_stop(sv);
}

TEST(permits, the_first_says_how_many_until_nobody_has_had_one_for_a_minute)
{
    server *sv = server_start(NULL);
    command *c = hold(sv, "1", "one");
    EXPECT_INT(tries(sv, "5"), 124);
    EXPECT_BETWEEN(key_ttl(sv, POOL), 30000, 60000);
    command_kill(sv, c, "one");
    EXPECT_STR(server_str(sv, "GET " POOL), "1");
    EXPECT_BETWEEN(key_ttl(sv, POOL), 1, 60000);
    server_cmd(sv, "DEL " POOL); /* as when the minute is over */
    EXPECT_INT(tries(sv, "5"), 0);
    EXPECT_STR(server_str(sv, "GET " POOL), "5");
    server_stop(sv);
}

TEST(permits, a_lease_is_longer_than_the_minute_and_keeps_the_number)
{
    server *sv = server_start(NULL);
    command *c =
        RLOCK(sv, "run", "-N1", "-l", "100", POOL, "sh", "-c",
              "echo $$ >\"$0\"; exec sleep 100", command_file(sv, "one"));
    command_number(sv, "one");
    EXPECT_BETWEEN(key_ttl(sv, POOL), 90000, 101000);
    command_kill(sv, c, "one");
    server_stop(sv);
}

/* A permit is nobody's: no token, no holder, also none of a lock around it. */
TEST(permits, command_is_told_the_name_and_nothing_else)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "run", "outer", RLOCK_COMMAND, "run", "-v", "-N1",
                       POOL, "sh", "-c",
                       "echo \"$RLOCK_NAME,$RLOCK_TOKEN,$RLOCK_HOLDER,\"; "
                       "exec \"$0\" run outer sh -c 'echo $RLOCK_NAME'",
                       RLOCK_COMMAND);
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), POOL ",,,\nouter\n");
    EXPECT_STR(command_err(c), "rlock: has a permit\n");
    command_free(c);
    server_stop(sv);
}

TEST(permits, an_inner_one_takes_one_more)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "run", "-N2", POOL, RLOCK_COMMAND, "run", "-N2",
                       POOL, "sh", "-c",
                       "redis-cli -s \"$1\" zcard " POOL_PERMITS "; "
                       "$0 run -n -N2 " POOL " true; echo $?",
                       RLOCK_COMMAND, server_path(sv));
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "2\n124\n");
    EXPECT_INT(held_at(sv), 0);
    command_free(c);
    server_stop(sv);
}

TEST(permits, who_has_some_is_told)
{
    server *sv = server_start(NULL);
    command *one = hold(sv, "3", "one"), *two = hold(sv, "3", "two");
    const char *text = command_prints(sv, WORDS("ls"));
    EXPECT_CONTAINS(text, POOL "  permit  ");
    EXPECT_CONTAINS(text, " +1  1 ");
    EXPECT_CONTAINS(command_prints(sv, WORDS("--json", "ls")),
                    "\"in_all\":2,\"available\":1}");
    EXPECT_CONTAINS(command_prints(sv, WORDS("show", POOL)), "available  1");
    const char *who = command_prints(sv, WORDS("who", POOL));
    EXPECT_INT(server_int(sv, "EVAL %s 1 " POOL_PERMITS " %b",
                          "return redis.call('ZRANK', KEYS[1], ARGV[1] .. ':1')"
                          " and 1 or 0",
                          who, strcspn(who, "\n")),
               1);
    command_kill(sv, one, "one");
    command_kill(sv, two, "two");
    EXPECT_INT(command_end(RLOCK(sv, "who", POOL)), 1);
    EXPECT_INT(command_end(RLOCK(sv, "show", POOL)), 1);
    server_stop(sv);
}

TEST(permits, a_lock_of_that_name_is_left_alone)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, POOL);
    command_fails(sv, WORDS("run", "-N1", POOL, "true"), "WRONGTYPE");
    EXPECT_INT(levels(sv, POOL), 1);
    server_cmd(sv, "DEL " POOL);
    command *c = hold(sv, "1", "one");
    command_fails(sv, WORDS("run", POOL, "true"), "-N: semaphores)");
    command_fails(sv, WORDS("run", "-s", POOL, "true"), "WRONGTYPE");
    command_fails(sv, WORDS("break", "-y", POOL), "semaphores and latches");
    command_fails(sv, WORDS("wait", POOL), "semaphores and latches");
    EXPECT_INT(held_at(sv), 1);
    command_kill(sv, c, "one");
    server_stop(sv);
}

static void is_no_count(const char *count)
{
    char says[80];
    snprintf(says, sizeof says, "-N wants 1 to 1000000000, and not '%s'",
             count);
    command_is_misused(WORDS("run", "-N", count, POOL, "true"), says);
}

TEST(permits, a_count_is_a_number)
{
    is_no_count("0");
    is_no_count("-1");
    is_no_count("two");
    is_no_count("1000000001");
}
