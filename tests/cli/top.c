/* `rlock top`: rounds as text, and the screen. */
#include <signal.h>

#include "command.h"
#include "layouts.h"
#include "scene.h"
#include "terminal.h"

/* As an acquire leaves it, with so many processes in its queue. */
static void hold(server *sv, const char *name, int waiting)
{
    hold_by_hand(sv, name);
    for (int i = 0; i < waiting; i++)
        server_cmd(sv, "ZADD rlock_queue:{%s} %d rlock_bell:%d", name, 1000 + i,
                   i);
}

/* --- In a batch ----------------------------------------------------------- */

TEST(top, a_round_has_a_summary_heads_and_the_most_waited_for_first)
{
    server *sv = server_start(NULL);
    hold(sv, "alpha", 0);
    hold(sv, "beta", 3);
    hold(sv, "gamma", 1);
    const char *text = command_prints(sv, WORDS("top", "-b", "-n", "1"));
    EXPECT_CONTAINS(text, "Z  3 held, 4 waiting, 0 circles; ping ");
    EXPECT_CONTAINS(text, "; by waiting\nLOCK ");
    const char *alpha = strstr(text, "\nalpha "),
               *beta = strstr(text, "\nbeta"),
               *gamma = strstr(text, "\ngamma ");
    EXPECT(beta && gamma && alpha && beta < gamma && gamma < alpha);
    EXPECT_CONTAINS(beta, "other:1:1");
    server_stop(sv);
}

TEST(top, a_pattern_says_which_locks)
{
    server *sv = server_start(NULL);
    hold(sv, "jobs:1", 0);
    hold(sv, "mail", 0);
    const char *text = command_prints(sv, WORDS("top", "-b", "-n", "1", "j*"));
    EXPECT_CONTAINS(text, "1 held");
    EXPECT_CONTAINS(text, "\njobs:1 ");
    EXPECT(!strstr(text, "mail"));
    server_stop(sv);
}

/* Wide as the environment says; what does not fit is left out. */
static void is_wide(const char *columns, const char *heads)
{
    server *sv = server_start(NULL);
    hold(sv, "a-lock-with-a-name-that-is-longer-than-any-screen-is-wide-at-all",
         0);
    setenv("COLUMNS", columns, 1);
    const char *text = command_prints(sv, WORDS("top", "-b", "-n", "1"));
    const char *line = strchr(text, '\n') + 1;
    EXPECT_CONTAINS(line, heads);
    for (; *line; line += strcspn(line, "\n") + 1)
        EXPECT(strcspn(line, "\n") <= strtoul(columns, NULL, 10));
    server_stop(sv);
}

TEST(top, no_line_of_a_batch_is_wider_than_columns)
{
    server *sv = server_start(NULL);
    hold(sv, "a-lock-with-a-name-that-is-longer-than-any-screen-is-wide-at-all",
         0);
    setenv("COLUMNS", "40", 1);
    const char *text = command_prints(sv, WORDS("top", "-b", "-n", "1"));
    for (; *text; text += strcspn(text, "\n") + 1)
        EXPECT_BETWEEN(strcspn(text, "\n"), 0, 40);
    server_stop(sv);
}

TEST_CASE(top, twenty_columns_are_enough,
          is_wide("20", "LOCK         WAITING\n"))
TEST_CASE(top, sixty_columns_tell_the_holder, is_wide("60", "  HOLDER  "))
TEST_CASE(top, many_columns_tell_all, is_wide("300", "  LEASE     CHANGES\n"))

TEST(top, a_lock_that_has_another_holder_has_changed)
{
    server *sv = server_start(NULL);
    hold(sv, "job", 0);
    command *c = RLOCK(sv, "top", "-b", "-d", "0.1");
    EVENTUALLY(SOON, strstr(command_out(c), "  0\n\n"));
    server_cmd(sv, "EVAL %s 1 job",
               "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], "
               "'second:2:2:11111111-1111-4111-8111-111111111111', 1)");
    EVENTUALLY(SOON, strstr(command_out(c), "  1\n\n"));
    EXPECT_CONTAINS(command_out(c), "second:2:2");
    kill(command_front(c), SIGINT);
    EXPECT_INT(command_end(c), -SIGINT);
    server_stop(sv);
}

TEST(top, a_server_that_ends_is_a_failure_of_a_batch)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "top", "-b", "-d", "0.1");
    EVENTUALLY(SOON, strstr(command_out(c), "0 held"));
    server_kill(sv);
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_err(c), "rlock: ");
    command_free(c);
    server_stop(sv);
}

/* Nothing raw reaches a terminal. */
TEST(top, bytes_of_names_are_escaped)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET %b " BY_HAND " 1", "a\033[1m", (size_t)5);
    server_cmd(sv, "SET %b 1000", "rlock_token:{a\033[1m}", (size_t)19);
    EXPECT_CONTAINS(command_prints(sv, WORDS("top", "-b", "-n", "1")),
                    "\na\\x1b[1m ");
    server_stop(sv);
}

TEST_CASE(top, a_delay_that_is_none,
          command_is_misused(WORDS("top", "-d", "0"),
                             "-d is 0.1 seconds or more"))
TEST_CASE(top, a_number_of_rounds_is_for_a_batch,
          command_is_misused(WORDS("top", "-n", "0"), "-n is"))

/* --- On a screen ---------------------------------------------------------- */

#ifdef RLOCK_CURSES

static terminal start_screen(const server *sv)
{
    return terminal_start(sv, "export TERM=xterm; unset COLUMNS; stty cols 100 "
                              "rows 12; exec $RLOCK top -d 0.2");
}

TEST(top, the_screen_shows_locks_and_the_keys_work)
{
    server *sv = server_start(NULL);
    hold(sv, "job", 1);
    terminal t = start_screen(sv);
    EVENTUALLY(SOON, terminal_shows(&t, "1 held, 1 waiting"));
    EVENTUALLY(SOON, terminal_shows(&t, "other:1:1"));
    terminal_type(&t, "s");
    EVENTUALLY(SOON, terminal_shows(&t, "longest"));
    terminal_type(&t, "\r");
    EVENTUALLY(SOON, terminal_shows(&t, "$ rlock show job"));
    EVENTUALLY(SOON, terminal_shows(&t, "-- any key --"));
    terminal_type(&t, "x");
    terminal_type(&t, "q");
    terminal_end(&t, 0);
    server_stop(sv);
}

static void b_breaks(const char *name)
{
    server *sv = server_start(NULL);
    hold(sv, name, 0);
    terminal t = start_screen(sv);
    EVENTUALLY(SOON, terminal_shows(&t, "other:1:1"));
    terminal_type(&t, "b");
    EVENTUALLY(SOON, terminal_shows(&t, "Free it?"));
    terminal_type(&t, "y\n");
    EVENTUALLY(SOON, !key_exists(sv, name));
    EVENTUALLY(SOON, terminal_shows(&t, "-- any key --"));
    terminal_type(&t, "xq");
    terminal_end(&t, 0);
    server_stop(sv);
}

TEST_CASE(top, b_breaks_the_chosen_lock_after_a_yes, b_breaks("job"))
TEST_CASE(top, b_breaks_one_whose_name_begins_as_options_do, b_breaks("-job"))

/* With these keys before: in a round, while the picture is held, in a verb. */
static void is_interrupted(const char *keys, const char *shown)
{
    server *sv = server_start(NULL);
    hold(sv, "job", 0);
    terminal t = start_screen(sv);
    EVENTUALLY(SOON, terminal_shows(&t, "other:1:1"));
    terminal_type(&t, keys);
    EVENTUALLY(SOON, terminal_shows(&t, shown));
    terminal_type(&t, "\003");
    terminal_end(&t, 128 + SIGINT);
    server_stop(sv);
}

TEST_CASE(top, an_interrupt_ends_a_screen_as_it_ends_a_batch,
          is_interrupted("s", "longest"))
TEST_CASE(top, an_interrupt_ends_a_picture_that_is_held,
          is_interrupted(" s", "longest"))
TEST_CASE(top, an_interrupt_ends_the_question_of_a_break,
          is_interrupted("b", "Free it?"))
TEST_CASE(top, an_interrupt_ends_what_a_verb_has_told,
          is_interrupted("w", "-- any key --"))

TEST(top, a_terminal_without_a_cursor_gets_text)
{
    server *sv = server_start(NULL);
    hold(sv, "job", 0);
    terminal t = terminal_start(sv, "TERM=dumb exec $RLOCK top -d 0.2");
    EVENTUALLY(SOON, terminal_shows(&t, "1 held"));
    EVENTUALLY(SOON, terminal_shows(&t, "other:1:1"));
    EXPECT(!terminal_shows(&t, "\033"));
    terminal_type(&t, "\003");
    terminal_end(&t, 128 + 2);
    server_stop(sv);
}

#endif
