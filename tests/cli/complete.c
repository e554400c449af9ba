/* `rlock complete`: what shells are told to complete a line with. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "scene.h"

#define COMPLETE(sv, ...)                                                      \
    command_prints(sv, WORDS("complete", "--", __VA_ARGS__))

/* Is there such a line, as a whole or with what it means behind it? */
static bool tells(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (const char *at = text; at; at = strchr(at, '\n')) {
        at += *at == '\n';
        if (strncmp(at, word, len) == 0 && strchr("\t\n", at[len]))
            return true;
    }
    return false;
}

static int lines(const char *text)
{
    int n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

TEST(complete, verbs_that_help_tells_of)
{
    const char *text = COMPLETE(NULL, "");
    EXPECT(tells(text, "run") && tells(text, "doctor"));
    EXPECT(!tells(text, "complete"));
    text = COMPLETE(NULL, "wh");
    EXPECT(tells(text, "who"));
    EXPECT_INT(lines(text), 1);
    EXPECT_STR(COMPLETE(NULL, "nothing", "w"), "");
}

TEST(complete, options_of_the_verb_or_before_it)
{
    const char *text = COMPLETE(NULL, "-");
    EXPECT(tells(text, "--uri") && tells(text, "-u") && tells(text, "--json"));
    EXPECT(!tells(text, "--hold"));
    text = COMPLETE(NULL, "-u", "redis://somewhere", "break", "--");
    EXPECT(tells(text, "--hold") && tells(text, "--yes") &&
           tells(text, "--json"));
    EXPECT(!tells(text, "--uri") && !tells(text, "-y"));
    text = COMPLETE(NULL, "run", "-n", "-");
    EXPECT_CONTAINS(text, "--wait\twait at most so long");
    EXPECT(tells(text, "--shared") && tells(text, "-x") && tells(text, "-N"));
    EXPECT(!tells(text, "--json"));
}

TEST(complete, values_of_options)
{
    EXPECT_STR(COMPLETE(NULL, "--uri-file", ""), "\tfile 0\n");
    const char *text = COMPLETE(NULL, "--tls-verify", "");
    EXPECT(tells(text, "full") && tells(text, "ca") && tells(text, "none"));
    EXPECT_STR(COMPLETE(NULL, "run", "-nw", ""), "");
    EXPECT_STR(COMPLETE(NULL, "run", "-N", ""), "");
    EXPECT_STR(COMPLETE(NULL, "break", "--hold", ""), "");
    EXPECT(tells(COMPLETE(NULL, "run", "-w3", "-"), "--lease"));
    EXPECT(tells(COMPLETE(NULL, "run", "--wait=3", "-"), "--lease"));
}

TEST(complete, values_behind_the_option_and_its_equals_sign)
{
    EXPECT_STR(COMPLETE(NULL, "--uri-file=/et"), "\tfile 11\n");
    const char *text = COMPLETE(NULL, "--tls-verify=");
    EXPECT(tells(text, "--tls-verify=full") && tells(text, "--tls-verify=ca") &&
           tells(text, "--tls-verify=none"));
    text = COMPLETE(NULL, "wait", "--until=f");
    EXPECT(tells(text, "--until=free"));
    EXPECT_INT(lines(text), 1);
    EXPECT_STR(COMPLETE(NULL, "wait", "--wait="), "");
    EXPECT_STR(COMPLETE(NULL, "wait", "--nothing=f"), "");
    EXPECT_STR(COMPLETE(NULL, "break", "--yes="), "");
}

TEST(complete, command_behind_the_name)
{
    EXPECT_STR(COMPLETE(NULL, "run", "-n", "job", "l"), "\tcommand 3\n");
    EXPECT_STR(COMPLETE(NULL, "run", "job", "--", "ls", "-"), "\tcommand 3\n");
    EXPECT_STR(COMPLETE(NULL, "run", "-N", "3", "job", "l"), "\tcommand 4\n");
    EXPECT_STR(COMPLETE(NULL, "-u", "x", "run", "job", "--"), "\tcommand 4\n");
    EXPECT_STR(COMPLETE(NULL, "run", "job", "-c", "l"), "");
}

TEST(complete, names_of_locks_that_begin_so)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, "jobs:1");
    hold_by_hand(sv, "jobs:2");
    hold_by_hand(sv, "mail");
    EXPECT_STR(COMPLETE(sv, "who", "jobs:"), "jobs:1\theld\njobs:2\theld\n");
    EXPECT_STR(COMPLETE(sv, "run", "-w", "3", "ma"), "mail\theld\n");
    EXPECT_STR(COMPLETE(sv, "ls", "--", "m"), "mail\theld\n");
    EXPECT_STR(COMPLETE(sv, "show", "*"), "");
    EXPECT_STR(COMPLETE(sv, "show", "mail", ""), "");
    EXPECT_STR(COMPLETE(sv, "waits", ""), "");
    server_stop(sv);
}

TEST(complete, names_at_the_server_that_the_line_names)
{
    server *sv = server_start(NULL), *other = server_start(NULL);
    hold_by_hand(other, "theirs");
    EXPECT_STR(COMPLETE(sv, "who", ""), "");
    EXPECT_STR(COMPLETE(sv, "--uri", server_uri(other), "who", ""),
               "theirs\theld\n");
    server_stop(other);
    server_stop(sv);
}

TEST(complete, no_name_with_bytes_that_a_terminal_obeys)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, "a\033[2J");
    hold_by_hand(sv, "b\nc");
    hold_by_hand(sv, "d e");
    EXPECT_STR(COMPLETE(sv, "who", ""), "d e\theld\n");
    server_stop(sv);
}

/* A person has pressed a key, and waits. */
TEST(complete, no_name_of_a_server_that_does_not_answer)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, "job");
    server_pause(sv);
    int64_t began = test_now_ms();
    command *c = RLOCK(sv, "complete", "--", "who", "");
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "");
    EXPECT(test_now_ms() - began < 1400);
    command_free(c);
    server_resume(sv);
    server_stop(sv);
}

TEST(complete, no_name_and_no_complaint_without_a_server)
{
    EXPECT_STR(COMPLETE(NULL, "-u", "redis://127.0.0.1:1", "who", ""), "");
}
