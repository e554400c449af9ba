/* `rlock break`: the hold that was shown is freed, and nothing else. */
#include "command.h"
#include "layouts.h"
#include "scene.h"
#include "terminal.h"

#define UUID   "00000000-0000-4000-8000-000000000000"
#define SECOND "second:2:2:11111111-1111-4111-8111-111111111111"

static server *with_hold(void)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    return sv;
}

/* --- Without a terminal --------------------------------------------------- */

TEST(break, frees_it_and_says_who_had_it)
{
    server *sv = with_hold();
    EXPECT_STR(command_prints(sv, WORDS("break", "--yes", "job")),
               "freed 'job', which other:1:1 had\n");
    EXPECT(!key_exists(sv, "job"));
    server_stop(sv);
}

/* It ends so, says this much, and the hold stays. */
static void leaves(const char *const words[], int status, const char *says)
{
    server *sv = with_hold();
    command *c = command_start(sv, words);
    EXPECT_INT(command_status(c), status);
    EXPECT_STR(command_out(c), "");
    EXPECT_CONTAINS(command_err(c), says);
    EXPECT_INT(levels(sv, "job"), 1);
    command_free(c);
    server_stop(sv);
}

TEST_CASE(break, nobody_is_there_to_be_asked,
          leaves(WORDS("break", "job"), 125, "there is no terminal to ask"))
TEST_CASE(break, the_hold_that_was_meant_does_not_have_it,
          leaves(WORDS("break", "-y", "--hold", SECOND, "job"), 1,
                 "lock 'job' is held by another hold: nothing was freed\n"))
TEST_CASE(break, part_of_a_hold_is_none,
          leaves(WORDS("break", "-y", "--hold", "other", "job"), 1,
                 "is held by another hold"))
TEST_CASE(break, a_hold_is_missing,
          leaves(WORDS("break", "-y", "job", "--hold"), 125,
                 "unknown option '--hold', or its value"))
TEST_CASE(break, a_free_lock_is_1,
          leaves(WORDS("break", "-y", "free"), 1, "lock 'free' is free"))
TEST_CASE(break, a_name_is_missing,
          leaves(WORDS("break", "-y"), 125, "the name of the lock is missing"))

static void frees_hold(const char *id)
{
    server *sv = with_hold();
    command_prints(sv, WORDS("break", "-y", "job", "--hold", id));
    EXPECT(!key_exists(sv, "job"));
    server_stop(sv);
}

TEST_CASE(break, takes_the_uuid_of_the_hold, frees_hold(UUID))
TEST_CASE(break, takes_what_who_prints, frees_hold(BY_HAND))

static void frees_odd(const char *id)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "SET job %s", "what\never");
    command_prints(sv, WORDS("break", "-y", "job", "--hold", id));
    EXPECT(!key_exists(sv, "job"));
    server_stop(sv);
}

TEST_CASE(break, takes_what_who_prints_of_odd_bytes, frees_odd("what\\x0aever"))
TEST_CASE(break, takes_odd_bytes_as_they_are, frees_odd("what\never"))

TEST(break, frees_whatever_layout_it_has)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET java 285475da-9152-4c83-822a-67ee2f116a79:52 1");
    server_cmd(sv, "SET python 2b7ac5b1a8f14dd3 PX 60000");
    command_prints(sv, WORDS("break", "-y", "java"));
    command_prints(sv, WORDS("break", "-y", "python"));
    EXPECT(!key_exists(sv, "java"));
    EXPECT(!key_exists(sv, "python"));
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    command_prints(s.sv, WORDS("break", "-y", "job"));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
    server_stop(sv);
}

TEST(break, leaves_alone_what_is_no_lock)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET job name somebody town somewhere");
    command_fails(sv, WORDS("break", "-y", "job"), "'job'");
    EXPECT(key_exists(sv, "job"));
    server_stop(sv);
}

/* A semaphore's, or a latch's. */
static void leaves_count(const char *count)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "SET job %s", count);
    command_fails(sv, WORDS("break", "-y", "job"), "'job'");
    EXPECT_INT(command_end(RLOCK(sv, "who", "job")), 1); /* nobody has it */
    EXPECT_STR(server_str(sv, "GET job"), count);
    server_stop(sv);
}

TEST_CASE(break, leaves_a_count_alone, leaves_count("7"))
TEST_CASE(break, leaves_a_count_below_zero_alone, leaves_count("-2"))

TEST(break, of_a_red_lock_frees_it_on_all_servers)
{
    server *sv[] = {with_hold(), with_hold()};
    command_prints(NULL, WORDS("-u", server_uri(sv[0]), "-u", server_uri(sv[1]),
                               "break", "-y", "job"));
    EXPECT(!key_exists(sv[0], "job") && !key_exists(sv[1], "job"));
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST(break, who_waits_gets_it)
{
    server *sv = with_hold();
    command *c = RLOCK(sv, "run", "job", "echo", "ran");
    EVENTUALLY(SOON, queued(sv, "job") == 1);
    command_prints(sv, WORDS("break", "-y", "job"));
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "ran\n");
    command_free(c);
    server_stop(sv);
}

TEST(break, tells_json_of_what_it_did)
{
    server *sv = with_hold();
    EXPECT_CONTAINS(
        command_prints(sv, WORDS("break", "-y", "job", "--json")),
        "{\"name\":\"job\",\"freed\":true,\"holder\":{\"id\":\"" BY_HAND "\"");
    command *c = RLOCK(sv, "break", "-y", "job", "--json");
    EXPECT_INT(command_status(c), 1);
    EXPECT_STR(command_out(c),
               "{\"name\":\"job\",\"freed\":false,\"holder\":null}\n");
    command_free(c);
    server_stop(sv);
}

TEST(break, names_the_right_that_is_missing)
{
    char uri[80];
    server *sv = server_start_tcp(NULL);
    take_by_hand(sv, "job", 0);
    server_str(sv, "ACL SETUSER watch on >pass ~* &* +@all -hdel -del");
    snprintf(uri, sizeof uri, "redis://watch:pass@127.0.0.1:%d",
             server_port(sv));
    setenv("RLOCK_URI", uri, 1);
    command_fails(NULL, WORDS("break", "-y", "job"), "DEL");
    EXPECT_INT(levels(sv, "job"), 1);
    server_stop(sv);
}

/* --- On a terminal -------------------------------------------------------- */

/* It has shown the hold, and asks. */
static terminal asked(server *sv)
{
    terminal t = terminal_start(sv, "exec $RLOCK break job");
    EVENTUALLY(SOON, terminal_shows(&t, "Free it? [y/N] "));
    EXPECT(terminal_shows(&t, "lock 'job' is held by other:1:1\r\nhold " UUID
                              ", 1 level, lease: "));
    return t;
}

TEST(break, frees_it_for_a_yes)
{
    server *sv = with_hold();
    terminal t = asked(sv);
    terminal_type(&t, "y\n");
    terminal_end(&t, 0);
    EXPECT(!key_exists(sv, "job"));
    server_stop(sv);
}

static void leaves_it_for(const char *keys)
{
    server *sv = with_hold();
    terminal t = asked(sv);
    terminal_type(&t, keys);
    terminal_end(&t, 1);
    EXPECT_INT(levels(sv, "job"), 1);
    server_stop(sv);
}

TEST_CASE(break, leaves_it_for_a_no, leaves_it_for("n\n"))
TEST_CASE(break, leaves_it_for_an_empty_line, leaves_it_for("\n"))
TEST_CASE(break, leaves_it_for_another_word, leaves_it_for("yellow\n"))
TEST_CASE(break, leaves_it_for_an_end_of_input, leaves_it_for("\x04"))

TEST(break, a_hold_that_has_come_meanwhile_is_not_freed)
{
    server *sv = with_hold();
    terminal t = asked(sv);
    server_cmd(sv, "DEL job");
    server_cmd(sv, "HSET job %s 1", SECOND);
    terminal_type(&t, "y\n");
    EVENTUALLY(SOON,
               terminal_shows(&t, "is not held any more by who was shown: "
                                  "nothing was freed"));
    terminal_end(&t, 1);
    EXPECT_INT(server_int(sv, "HEXISTS job %s", SECOND), 1);
    server_stop(sv);
}

TEST(break, who_has_renewed_since_it_was_shown_is_told_to_be_alive)
{
    server *sv = with_hold();
    EXPECT_INT(server_int(sv, "PEXPIRE job 100000"), 1);
    terminal t = asked(sv);
    EXPECT_INT(server_int(sv, "PEXPIRE job 120000"), 1);
    terminal_type(&t, "y\n");
    EVENTUALLY(SOON, terminal_shows(&t, "has renewed the lease since"));
    terminal_type(&t, "n\n");
    terminal_end(&t, 1);
    EXPECT_INT(levels(sv, "job"), 1);
    server_stop(sv);
}

TEST(break, who_has_renewed_a_timestamp_is_told_to_be_alive)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 1000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    terminal t = terminal_start(s.sv, "exec $RLOCK break " SCENE_LOCK);
    EVENTUALLY(SOON, terminal_shows(&t, "Free it? [y/N] "));
    text shown = value_of(s.sv);
    EVENTUALLY(SOON, seconds_of(value_of(s.sv).is) > seconds_of(shown.is) + 1);
    terminal_type(&t, "y\n");
    EVENTUALLY(SOON, terminal_shows(&t, "has renewed the lease since"));
    terminal_type(&t, "n\n");
    terminal_end(&t, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(break, who_has_not_renewed_is_not_said_to_live)
{
    server *sv = with_hold();
    EXPECT_INT(server_int(sv, "PEXPIRE job 100000"), 1);
    terminal t = asked(sv);
    terminal_type(&t, "y\n");
    terminal_end(&t, 0);
    EXPECT(!terminal_shows(&t, "renewed"));
    server_stop(sv);
}

TEST(break, nothing_raw_reaches_the_terminal)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "SET %s %s", "a\033[1m", "who\033[2m");
    terminal t =
        terminal_start(sv, "exec $RLOCK break \"$(printf 'a\\033[1m')\"");
    EVENTUALLY(SOON, terminal_shows(&t, "Free it?"));
    EXPECT(terminal_shows(&t, "lock 'a\\x1b[1m' is held by who\\x1b[2m"));
    terminal_type(&t, "n\n");
    terminal_end(&t, 1);
    EXPECT(!strchr(t.text, '\033'));
    server_stop(sv);
}
