/* `rlock run -s` and `-x`: the sides of a read-write lock. */
#include <signal.h>
#include <unistd.h>

#include "command.h"
#include "scene.h"

/* Runs until command_kill(); its pid is in the file. */
static command *hold(server *sv, const char *kind, const char *file)
{
    command *c = RLOCK(sv, "run", kind, SCENE_LOCK, "sh", "-c",
                       "echo $RLOCK_TOKEN; echo $$ >\"$0\"; exec sleep 100",
                       command_file(sv, file));
    command_number(sv, file);
    return c;
}

static int tries(server *sv, const char *kind)
{
    return command_end(RLOCK(sv, "run", "-n", kind, SCENE_LOCK, "true"));
}

/* --- Who is let in -------------------------------------------------------- */

TEST(shared, many_read_and_nobody_writes_meanwhile)
{
    server *sv = server_start(NULL);
    command *one = hold(sv, "-s", "one"), *two = hold(sv, "-s", "two");
    EXPECT_INT(server_int(sv, "HLEN " SCENE_LOCK), 3);
    EXPECT_INT(tries(sv, "-s"), 0);
    EXPECT_INT(tries(sv, "-x"), 124);
    command_kill(sv, one, "one");
    EXPECT_INT(tries(sv, "-x"), 124);
    command_kill(sv, two, "two");
    EXPECT(!key_exists(sv, SCENE_LOCK));
    EXPECT_INT(tries(sv, "-x"), 0);
    server_stop(sv);
}

TEST(shared, who_writes_is_alone)
{
    server *sv = server_start(NULL);
    command *c = hold(sv, "-x", "one");
    EXPECT_INT(tries(sv, "-s"), 124);
    EXPECT_INT(tries(sv, "-x"), 124);
    command_kill(sv, c, "one");
    EXPECT_INT(tries(sv, "-s"), 0);
    server_stop(sv);
}

TEST(shared, nobody_passes_who_waits_to_write)
{
    server *sv = server_start(NULL);
    command *c = hold(sv, "-s", "one");
    command *w = RLOCK(sv, "run", "-x", SCENE_LOCK, "echo", "ran");
    EVENTUALLY(SOON, server_int(sv, "ZCARD rlock_line:{job}") == 1);
    EXPECT_INT(tries(sv, "-s"), 124);
    EXPECT_STR(command_out(w), "");
    command_kill(sv, c, "one");
    EXPECT_INT(command_status(w), 0);
    command_free(w);
    EXPECT_INT(tries(sv, "-s"), 0);
    server_stop(sv);
}

TEST(shared, one_that_reads_and_dies_ends_no_other)
{
    server *sv = server_start(NULL);
    command *one =
        RLOCK(sv, "run", "-s", "-l", "1.5", SCENE_LOCK, "sleep", "100");
    command_pid(one);
    command *two = hold(sv, "-s", "two");
    kill(command_keeper(one), SIGKILL);
    EXPECT_INT(command_end(one), 123);
    /* The one that writes waits for the lease of the dead, and for who lives. */
    command *w = RLOCK(sv, "run", "-x", SCENE_LOCK, "true");
    EVENTUALLY(SOON, server_int(sv, "HLEN " SCENE_LOCK) == 2);
    EXPECT(!command_ended(two) && !command_ended(w));
    command_kill(sv, two, "two");
    EXPECT_INT(command_end(w), 0);
    server_stop(sv);
}

TEST(shared, a_lock_of_another_kind_is_left_alone)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, SCENE_LOCK);
    command_fails(sv, WORDS("run", "-s", SCENE_LOCK, "true"), "WRONGTYPE");
    command_fails(sv, WORDS("run", "-x", SCENE_LOCK, "true"), "WRONGTYPE");
    EXPECT_INT(levels(sv, SCENE_LOCK), 1);
    server_cmd(sv, "DEL " SCENE_LOCK);
    command *c = hold(sv, "-s", "one");
    command_fails(sv, WORDS("run", SCENE_LOCK, "true"),
                  "WRONGTYPE it is a read-write lock (-s and -x: ");
    command_kill(sv, c, "one");
    server_stop(sv);
}

/* --- What COMMAND and others are told ------------------------------------- */

TEST(shared, who_reads_has_one_token_and_who_writes_a_larger_one)
{
    server *sv = server_start(NULL);
    command *one = hold(sv, "-s", "one"), *two = hold(sv, "-s", "two");
    long long token = atoll(command_out(one));
    EXPECT(token > 0);
    EXPECT_INT(atoll(command_out(two)), token);
    command_kill(sv, one, "one");
    command_kill(sv, two, "two");
    one = hold(sv, "-x", "three");
    EXPECT(atoll(command_out(one)) > token);
    command_kill(sv, one, "three");
    server_stop(sv);
}

TEST(shared, each_is_told_its_own_holder)
{
    server *sv = server_start(NULL);
    command *one = hold(sv, "-s", "one");
    command *c = RLOCK(sv, "run", "-s", SCENE_LOCK, "--", "sh", "-c",
                       "echo $RLOCK_HOLDER");
    EXPECT_INT(command_status(c), 0);
    char pid[40];
    snprintf(pid, sizeof pid, ":%d:", (int)command_keeper(one));
    EXPECT_CONTAINS(command_out(c), "/sh:");
    EXPECT(!strstr(command_out(c), pid));
    command_free(c);
    command_kill(sv, one, "one");
    server_stop(sv);
}

/* Behind a writer who waits for whom reads, and the other way round. */
static void says_who_is_in_the_way(const char *first, const char *second)
{
    server *sv = server_start(NULL);
    char who[80];
    command *one = hold(sv, first, "one");
    command *c = RLOCK(sv, "run", "-v", second, SCENE_LOCK, "true");
    snprintf(who, sizeof who, ":%d/sh has", (int)command_keeper(one));
    EVENTUALLY(SOON, strstr(command_err(c), "waiting for 'job', which "));
    EXPECT_CONTAINS(command_err(c), who);
    command_kill(sv, one, "one");
    EXPECT_INT(command_end(c), 0);
    server_stop(sv);
}

TEST_CASE(shared, who_waits_to_read_is_told_who_writes,
          says_who_is_in_the_way("-x", "-s"))
TEST_CASE(shared, who_waits_to_write_is_told_who_reads,
          says_who_is_in_the_way("-s", "-x"))
TEST_CASE(shared, who_waits_to_write_is_told_who_writes,
          says_who_is_in_the_way("-x", "-x"))

static void is_shown(const char *kind, const char *layout)
{
    server *sv = server_start(NULL);
    char wanted[40];
    command *c = hold(sv, kind, "one");
    snprintf(wanted, sizeof wanted, "\"layout\":\"%s\"", layout);
    EXPECT_CONTAINS(command_prints(sv, WORDS("ls", "--json")), wanted);
    EXPECT_CONTAINS(command_prints(sv, WORDS("show", "--json", "job")), wanted);
    EXPECT_CONTAINS(command_prints(sv, WORDS("who", "job")), "/sh:");
    EXPECT_CONTAINS(command_prints(sv, WORDS("break", "-y", "job")), "freed");
    EXPECT_INT(command_end(c), 123);
    EXPECT_STR(command_prints(sv, WORDS("wait", "-w", "5", "job")), "");
    server_stop(sv);
}

TEST_CASE(shared, a_read_side_is_shown_and_broken, is_shown("-s", "read"))
TEST_CASE(shared, a_write_side_is_shown_and_broken, is_shown("-x", "write"))

/* --- Inside of another ---------------------------------------------------- */

/* The outer one, other names, and the inner one's status on a line. */
static void inside(const char *outer, const char *inner, const char *prints,
                   const char *says)
{
    server *sv = server_start(NULL);
    setenv("RLOCK", RLOCK_COMMAND, 1);
    command *c =
        RLOCK(sv, "run", outer, "job", RLOCK_COMMAND, "run", "other", "sh",
              "-c", "$RLOCK run \"$0\" job echo inner; echo $?", inner);
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), prints);
    EXPECT_CONTAINS(command_err(c), says);
    EXPECT(!key_exists(sv, "job"));
    command_free(c);
    server_stop(sv);
}

TEST_CASE(shared, who_reads_may_read, inside("-s", "-s", "inner\n0\n", ""))
TEST_CASE(shared, who_writes_may_write, inside("-x", "-x", "inner\n0\n", ""))
TEST_CASE(shared, who_writes_may_read, inside("-x", "-s", "inner\n0\n", ""))
TEST_CASE(shared, who_reads_would_wait_for_itself_to_write,
          inside("-s", "-x", "125\n", "-x of 'job' would wait for the run -s"))

TEST(shared, an_inner_one_reads_on_though_a_writer_waits_and_others_read)
{
    server *sv = server_start(NULL);
    setenv("RLOCK", RLOCK_COMMAND, 1);
    command *one = hold(sv, "-s", "one");
    command *c = RLOCK(sv, "run", "-s", "job", "sh", "-c",
                       "until [ \"$(redis-cli -s \"$0\" zcard "
                       "'rlock_line:{job}')\" = 1 ]; do :; done; "
                       "$RLOCK run -n -s job echo inner",
                       server_path(sv));
    EVENTUALLY(SOON, server_int(sv, "HLEN job") == 3);
    command *w = RLOCK(sv, "run", "-x", "job", "echo", "ran");
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "inner\n");
    command_kill(sv, one, "one");
    EXPECT_INT(command_end(w), 0);
    command_free(c);
    server_stop(sv);
}

TEST(shared, an_inner_one_is_123_when_others_read_but_the_outer_one_no_more)
{
    server *sv = server_start(NULL);
    setenv("RLOCK", RLOCK_COMMAND, 1);
    command *one = hold(sv, "-s", "one");
    command *c = RLOCK(sv, "run", "-s", "job", "sh", "-c",
                       "redis-cli -s \"$0\" hdel job $RLOCK_HOLDER >&2; "
                       "$RLOCK run -s job echo inner; echo $?",
                       server_path(sv));
    EVENTUALLY(SOON, strstr(command_out(c), "\n") || command_ended(c));
    EXPECT_STR(command_out(c), "123\n");
    EXPECT_INT(command_end(c), 123);
    command_kill(sv, one, "one");
    server_stop(sv);
}

/* --- What is refused ------------------------------------------------------ */

TEST(shared, one_kind_at_a_time_and_one_server)
{
    command_is_misused(WORDS("run", "-s", "-x", "job", "true"),
                       "-s, -x and -N exclude each other");
    command_is_misused(WORDS("run", "-N", "2", "-s", "job", "true"),
                       "-s, -x and -N exclude each other");
    command_is_misused(
        WORDS("-u", "redis://a", "-u", "redis://b", "run", "-s", "job", "true"),
        "-s, -x and -N are for one server");
}
