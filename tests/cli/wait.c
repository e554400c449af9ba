/* `rlock wait`, `watch` and `bench`: until something is so, what changes, and
   what it costs. */
#include <signal.h>

#include "command.h"
#include "layouts.h"
#include "scene.h"

/* --- wait ----------------------------------------------------------------- */

/* It has asked, in vain, and asks again. */
static command *start_waiting(server *sv, const char *const words[])
{
    long long before = server_calls(sv, "evalsha");
    command *c = command_start(sv, words);
    EVENTUALLY(SOON, server_calls(sv, "evalsha") >= before + 3);
    EXPECT(!command_ended(c));
    return c;
}

TEST(wait, it_ends_when_the_lock_is_free_and_takes_nothing)
{
    scene s = scene_held(0, 0);
    command *c = start_waiting(s.sv, WORDS("wait", "job"));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(command_end(c), 0);
    EXPECT(!key_exists(s.sv, "job"));
    scene_stop(&s);
}

static void ends_with(bool held, int status, const char *const words[])
{
    scene s = held ? scene_held(0, 0) : scene_start(0, 0);
    command *c = command_start(s.sv, words);
    EXPECT_INT(command_status(c), status);
    EXPECT_STR(command_out(c), "");
    EXPECT_STR(command_err(c), "");
    command_free(c);
    scene_stop(&s);
}

TEST_CASE(wait, of_a_free_lock_it_ends_at_once,
          ends_with(false, 0, WORDS("wait", "job")))
TEST_CASE(wait, it_is_124_when_the_lock_is_not_free_in_time,
          ends_with(true, 124, WORDS("wait", "-w", "0.2", "job")))
TEST_CASE(wait, no_time_is_one_look,
          ends_with(true, 124, WORDS("wait", "job", "-w", "0")))
TEST_CASE(wait, until_held_it_ends_at_once_where_it_is,
          ends_with(true, 0, WORDS("wait", "--until", "held", "job")))
TEST_CASE(wait, until_held_is_124_when_nobody_comes,
          ends_with(false, 124,
                    WORDS("wait", "--until", "held", "-w", "0.2", "job")))

TEST(wait, until_held_it_ends_when_somebody_takes_the_lock)
{
    scene s = scene_start(0, 0);
    command *c = start_waiting(s.sv, WORDS("wait", "--until", "held", "job"));
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(command_end(c), 0);
    scene_stop(&s);
}

TEST(wait, a_server_that_ends_meanwhile_is_a_failure)
{
    scene s = scene_held(0, 0);
    command *c = start_waiting(s.sv, WORDS("wait", "job"));
    server_kill(s.sv);
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_err(c), "lock 'job'");
    command_free(c);
    scene_stop(&s);
}

TEST_CASE(wait, a_time_that_is_none,
          command_is_misused(WORDS("wait", "-w", "-1", "job"), "-w is seconds"))
TEST_CASE(wait, an_end_that_is_none,
          command_is_misused(WORDS("wait", "--until", "late", "job"),
                             "--until is free or held, and not 'late'"))
TEST_CASE(wait, a_name_is_missing,
          command_is_misused(WORDS("wait"), "the name of the lock is missing"))

/* --- watch ---------------------------------------------------------------- */

TEST(watch, it_tells_what_is_held_then_what_is_freed_and_taken)
{
    scene s = scene_held(0, 0);
    command *c = RLOCK(s.sv, "watch", "-d", "0.05");
    EVENTUALLY(SOON, strstr(command_out(c), "  job  held   "));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, strstr(command_out(c), "  job  freed  "));
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, strstr(command_out(c), "  job  taken  "));
    kill(command_front(c), SIGINT);
    EXPECT_INT(command_end(c), -SIGINT);
    scene_stop(&s);
}

TEST(watch, a_lock_that_has_another_holder_was_taken)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, "job");
    command *c = RLOCK(sv, "watch", "-d", "0.05", "--json");
    EVENTUALLY(SOON, strstr(command_out(c), "\"event\":\"held\""));
    server_cmd(sv, "EVAL %s 1 job",
               "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], "
               "'second:2:2:11111111-1111-4111-8111-111111111111', 1)");
    EVENTUALLY(SOON, strstr(command_out(c), "\"event\":\"taken\""));
    EXPECT_CONTAINS(command_out(c), "\"id\":\"second:2:2:1111");
    EXPECT(!strstr(command_out(c), "freed"));
    kill(command_front(c), SIGTERM);
    EXPECT_INT(command_end(c), -SIGTERM);
    server_stop(sv);
}

/* Each renewal of a timestamp writes another one. */
TEST(watch, a_timestamp_that_is_renewed_is_taken_once)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 1000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    command *c = RLOCK(s.sv, "watch", "-d", "0.05");
    command *top = RLOCK(s.sv, "top", "-b", "-d", "0.1");
    EVENTUALLY(SOON, strstr(command_out(c), "  held   "));
    text before = value_of(s.sv);
    EVENTUALLY(SOON, strstr(command_out(top), "  timestamp  "));
    EVENTUALLY(SOON, seconds_of(value_of(s.sv).is) > seconds_of(before.is) + 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, strstr(command_out(c), "  freed  "));
    EXPECT(!strstr(command_out(c), "taken"));
    EXPECT(!strstr(command_out(top), "  1\n"));
    kill(command_front(c), SIGINT);
    kill(command_front(top), SIGINT);
    EXPECT_INT(command_end(c), -SIGINT);
    EXPECT_INT(command_end(top), -SIGINT);
    scene_stop(&s);
}

TEST(watch, it_ends_after_so_many_looks)
{
    scene s = scene_held(0, 0);
    const char *text =
        command_prints(s.sv, WORDS("watch", "-n", "3", "-d", "0.05", "j*"));
    EXPECT_CONTAINS(text, "  job  held");
    EXPECT(strchr(text, '\n') == strrchr(text, '\n'));
    EXPECT_STR(command_prints(s.sv, WORDS("watch", "-n", "1", "other")), "");
    scene_stop(&s);
}

TEST(watch, what_other_programs_hold_is_told_with_foreign_only)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET theirs 285475da-9152-4c83-822a-67ee2f116a79:52 1");
    EXPECT_STR(command_prints(sv, WORDS("watch", "-n", "1")), "");
    EXPECT_CONTAINS(command_prints(sv, WORDS("watch", "-n", "1", "--foreign")),
                    "theirs  held");
    server_stop(sv);
}

TEST_CASE(watch, a_delay_that_is_too_short,
          command_is_misused(WORDS("watch", "-d", "0"),
                             "-d is 0.05 seconds or more"))
TEST_CASE(watch, a_number_that_is_none,
          command_is_misused(WORDS("watch", "-n", "0"), "-n is a number"))

/* --- bench ---------------------------------------------------------------- */

TEST(bench, it_tells_a_ping_a_pair_and_a_hand_over_and_leaves_no_lock)
{
    server *sv = server_start(NULL);
    const char *text = command_prints(sv, WORDS("bench", "-t", "0.3"));
    EXPECT_CONTAINS(text, "\nping       ");
    EXPECT_CONTAINS(text, "  1.00   ");
    EXPECT_CONTAINS(text, "\npair       ");
    EXPECT_CONTAINS(text, "\nhand-over  ");
    EXPECT_STR(command_prints(sv, WORDS("ls", "--foreign")),
               "LOCK  KIND  HOLDER  COUNT  HELD  LEASE  WAITING  TOKEN\n");
    text = command_prints(sv, WORDS("bench", "-t", "0.3", "--json"));
    EXPECT_CONTAINS(text, "{\"what\":\"ping\",\"median_us\":");
    server_stop(sv);
}

TEST(bench, a_server_that_ends_is_a_failure_within_seconds)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "bench", "-t", "100");
    EVENTUALLY(SOON, server_int(sv, "EVAL %s 0",
                                "return #redis.call('KEYS', 'rlock_token:*')"));
    server_kill(sv);
    int64_t began = test_now_ms();
    EXPECT_INT(command_status(c), 125);
    EXPECT_BETWEEN(test_now_ms() - began, 0, 8000);
    EXPECT_CONTAINS(command_err(c), "rlock: ");
    command_free(c);
    server_stop(sv);
}

TEST_CASE(bench, a_time_that_is_none,
          command_is_misused(WORDS("bench", "-t", "0"),
                             "-t is 0.3 to 1000 seconds"))
