/* Exit statuses, what is said, and bad input. */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "fake.h"
#include "scene.h"

/* With a server: that status; nothing on stdout; and on stderr this much (NULL:
   nothing), in lines that begin as rlock's do, or tell the usage. */
static void ends_so(const char *const words[], int status, const char *says)
{
    server *sv = server_start(NULL);
    command *c = command_start(sv, words);
    EXPECT_INT(command_status(c), status);
    EXPECT_STR(command_out(c), "");
    const char *err = command_err(c);
    if (!says) {
        EXPECT_STR(err, "");
    } else {
        EXPECT_CONTAINS(err, says);
        EXPECT_INT(strncmp(err, "rlock: ", 7), 0);
        const char *second = strchr(err, '\n');
        EXPECT(second &&
               (!second[1] || strncmp(second + 1, "usage: rlock ", 13) == 0));
    }
    EXPECT_INT(key_exists(sv, "job"), false);
    command_free(c);
    server_stop(sv);
}

#define ENDS(name, wanted, says, ...)                                          \
    TEST_CASE(status, name, ends_so(WORDS(__VA_ARGS__), wanted, says))

ENDS(is_that_of_command, 7, NULL, "run", "job", "sh", "-c", "exit 7")
ENDS(is_128_and_the_signal_of_command, 128 + 9, NULL, "run", "job", "-c",
     "kill -9 $$")
ENDS(is_126_when_command_cannot_be_executed, 126,
     "cannot run '/etc/passwd': Permission denied", "run", "job", "--",
     "/etc/passwd")
ENDS(is_127_when_there_is_no_such_command, 127,
     "cannot run 'no-such': No such file or directory", "run", "job", "no-such")

ENDS(a_wait_below_zero, 125, "-w wants seconds, and not '-1'", "run", "-w",
     "-1", "job", "true")
ENDS(a_wait_that_is_no_number, 125, "-w wants seconds, and not 'inf'", "run",
     "-w", "inf", "job", "true")
ENDS(a_grace_above_a_third_of_the_lease, 125,
     "-k is at most a third of the lease, 10000 ms", "run", "-k", "10.1", "job",
     "true")
ENDS(a_lease_of_nothing, 125, "-l wants seconds, at least 0.1, and not '0'",
     "run", "-l", "0", "job", "true")
ENDS(a_code_that_is_none, 125, "-E wants 0 to 255, and not '256'", "run", "-E",
     "256", "job", "true")
ENDS(an_unknown_option_of_the_verb, 125, "unknown option '-z'", "run", "-z",
     "job", "true")
/* A word in the wrong place may have a password. */
static void is_not_shown(const char *const words[])
{
    command *c = command_start(NULL, words);
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_err(c), "rlock: ");
    EXPECT(!strstr(command_err(c), "secret"));
    command_free(c);
}

TEST_CASE(status, a_uri_that_stands_behind_no_option_is_not_shown,
          is_not_shown(WORDS("redis://me:secret@nowhere", "ls")))
TEST_CASE(status, a_uri_of_an_unknown_option_is_not_shown,
          is_not_shown(WORDS("--url=redis://me:secret@nowhere", "ls")))
TEST_CASE(status, a_value_of_an_unknown_option_is_not_shown,
          is_not_shown(WORDS("--password=secret", "ls")))
TEST_CASE(status, a_uri_that_is_no_file_is_not_shown,
          is_not_shown(WORDS("--uri-file", "redis://me:se/secret@nowhere",
                             "ls")))

#define IS_NOT_SHOWN(name, ...)                                                \
    TEST_CASE(status, name##_that_is_a_uri_is_not_shown,                       \
              is_not_shown(WORDS(__VA_ARGS__)))
#define SECRET "redis://me:secret@nowhere"

IS_NOT_SHOWN(a_wait, "run", "-w", SECRET, "job", "true")
IS_NOT_SHOWN(a_lease, "run", "-l", SECRET, "job", "true")
IS_NOT_SHOWN(a_grace, "run", "-k", SECRET, "job", "true")
IS_NOT_SHOWN(a_code, "run", "-E", SECRET, "job", "true")
IS_NOT_SHOWN(a_number_of_permits, "run", "-N", SECRET, "job", "true")
IS_NOT_SHOWN(a_way_to_verify, "--tls-verify", SECRET, "ls")
IS_NOT_SHOWN(a_number_of_replicas, "--min-replicas", SECRET, "ls")
IS_NOT_SHOWN(a_delay, "watch", "-d", SECRET)
IS_NOT_SHOWN(a_number_of_rounds, "top", "-n", SECRET)
IS_NOT_SHOWN(what_to_wait_for, "wait", "--until", SECRET, "job")
IS_NOT_SHOWN(how_long_to_wait, "wait", "-w", SECRET, "job")
IS_NOT_SHOWN(an_address, "exporter", "--listen", SECRET)
IS_NOT_SHOWN(a_file, "exporter", "--textfile", SECRET "/x", "-n1")
IS_NOT_SHOWN(an_option, "--redis://me:secret@nowhere", "ls")

TEST(status, a_command_that_is_a_uri_is_not_shown)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "run", "job", SECRET);
    EXPECT_INT(command_status(c), 127);
    EXPECT_CONTAINS(command_err(c), "cannot run 'redis://...'");
    command_free(c);
    server_stop(sv);
}

ENDS(json_of_what_has_none, 125, "top: there is no --json of it", "--json",
     "top", "-b", "-n", "1")
ENDS(json_of_the_exporter, 125, "exporter: there is no --json of it", "--json",
     "exporter", "-n", "1")
ENDS(a_file_whose_name_is_two_lines, 125, "nowhere/a\\x0ab: No such file",
     "exporter", "-n", "1", "--textfile", "/nowhere/a\nb")
ENDS(an_unknown_long_option, 125, "unknown option '--zz'", "run", "--zz", "job",
     "true")
ENDS(an_option_whose_value_is_missing, 125, "unknown option '-w', or its value",
     "run", "-w")
ENDS(an_unknown_option_before_the_verb, 125, "unknown option '-n'", "-n", "run",
     "job", "true")
ENDS(no_verb, 125, "no verb", "-u", "redis://127.0.0.1:1")
ENDS(an_unknown_verb, 125, "'ran\\x0a' is no verb", "ran\n", "job", "true")
ENDS(two_verbs, 125, "COMMAND is missing", "run", "run")
ENDS(no_name, 125, "the name of the lock is missing", "run", "-n")
ENDS(a_command_besides_c, 125, "COMMAND besides -c", "run", "-c", "true", "job",
     "true")
ENDS(json_of_what_prints_nothing, 125, "--json", "--json", "run", "job", "true")
ENDS(a_name_that_the_library_keeps, 125, "rlock_token:", "run",
     "rlock_token:job", "true")
ENDS(a_uri_that_is_none, 125, "malformed URI", "-u", "http://x", "run", "job",
     "true")
ENDS(a_cluster_node_that_is_none, 125, "redis-cluster://127.0.0.1:1", "-u",
     "redis-cluster://127.0.0.1:1", "run", "job", "true")
ENDS(a_way_to_verify_that_is_none, 125, "--tls-verify is full, ca or none",
     "--tls-verify", "some", "run", "job", "true")
ENDS(a_certificate_for_who_speaks_no_tls, 125, "rediss://", "--tls-ca-file",
     "/no/such", "run", "job", "true")
ENDS(replicas_that_are_too_many, 125, "--min-replicas is 0 to 16",
     "--min-replicas", "17", "run", "job", "true")
ENDS(a_file_of_uris_that_is_not_there, 125, "cannot read '/no/such'",
     "--uri-file", "/no/such", "run", "job", "true")
ENDS(a_terminal_that_is_not_there, 125, "--askpass: there is no terminal",
     "--askpass", "run", "job", "true")

static void says_that_replicas_lack(const char *wait)
{
    server *sv = server_start(NULL);
    command_fails(
        sv, WORDS("--min-replicas", "1", "run", "-w", wait, "job", "true"),
        "0 of 1 replicas");
    server_stop(sv);
}

TEST_CASE(status, replicas_that_lack_are_no_lock_of_somebody_else,
          says_that_replicas_lack("1"))
TEST_CASE(status, replicas_that_lack_for_long_are_no_lock_of_somebody_else,
          says_that_replicas_lack("4"))

TEST(status, a_file_with_too_many_uris_is_said_in_one_line)
{
    server *sv = server_start(NULL);
    const char *path = command_file(sv, "uris");
    FILE *f = fopen(path, "w");
    EXPECT(f != NULL);
    for (int i = 0; i < RLOCK_RED_MAX + 1; i++)
        fprintf(f, "%s\n", server_uri(sv));
    fclose(f);
    command_fails(sv, WORDS("--uri-file", path, "ls"), "more than 9 servers");
    server_stop(sv);
}

TEST(status, a_name_of_513_bytes_is_refused)
{
    char name[514];
    memset(name, 'x', 513);
    name[513] = '\0';
    ends_so(WORDS("run", name, "true"), 125, "not 513");
}

TEST(status, a_name_may_be_any_bytes_and_is_shown_so_that_none_is_raw)
{
    server *sv = server_start(NULL);
    const char *name = "a \033[1mb\n\xff";
    take_by_hand(sv, "plain", 0);
    server_cmd(sv, "HSET %s %s 1", name, BY_HAND);
    command *c = RLOCK(sv, "run", "-n", "-v", name, "true");
    EXPECT_INT(command_status(c), 124);
    EXPECT_CONTAINS(command_err(c), "'a \\x1b[1mb\\x0a\\xff'");
    EXPECT(!strchr(command_err(c), '\033'));
    command_free(c);
    server_cmd(sv, "DEL %s", name);
    c = RLOCK(sv, "run", name, "sh", "-c", "printf %s \"$RLOCK_NAME\"");
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), name);
    command_free(c);
    server_stop(sv);
}

/* --- Not obtained --- */

static void is_busy(const char *const words[], int status, int64_t least_ms)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    int64_t began = test_now_ms();
    command *c = command_start(sv, words);
    EXPECT_INT(command_status(c), status);
    EXPECT_BETWEEN(test_since_ms(began), least_ms, least_ms + SOON / 4);
    EXPECT_STR(command_err(c), "");
    EXPECT_STR(command_out(c), "");
    command_free(c);
    server_stop(sv);
}

TEST_CASE(status, is_124_at_once_with_n,
          is_busy(WORDS("run", "-n", "job", "true"), 124, 0))
TEST_CASE(status, is_124_after_the_wait,
          is_busy(WORDS("run", "-w", "0.25", "job", "true"), 124, 250))
TEST_CASE(status, is_what_e_says,
          is_busy(WORDS("run", "-E", "9", "-w", "0", "job", "true"), 9, 0))

TEST(status, who_waits_gets_the_lock_when_it_is_free)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "job", 0);
    command *c = RLOCK(sv, "run", "-v", "job", "echo", "ran");
    EVENTUALLY(SOON, queued(sv, "job") == 1);
    EXPECT_STR(command_out(c), "");
    EVENTUALLY(SOON,
               strstr(command_err(c), "waiting for 'job', which other:1"));
    server_cmd(sv, "DEL job");
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), "ran\n");
    EXPECT_CONTAINS(command_err(c), "has the lock, token ");
    command_free(c);
    server_stop(sv);
}

/* --- Servers --- */

static void fails_so_in_time(const char *const words[], const char *says)
{
    int64_t began = test_now_ms();
    command *c = command_start(NULL, words);
    EXPECT_INT(command_status(c), 125);
    EXPECT_BETWEEN(test_since_ms(began), 0, 3000 + SLACK_MS);
    EXPECT_CONTAINS(command_err(c), says);
    EXPECT(!strstr(command_err(c), "secret"));
    EXPECT_INT(strchr(command_err(c), '\n') - command_err(c) + 1,
               strlen(command_err(c)));
    command_free(c);
}

static void fails_in_time(const char *uri, const char *says)
{
    fails_so_in_time(WORDS("-u", uri, "run", "job", "true"), says);
}

TEST(status, no_server_is_said_within_3_s)
{
    char uri[80];
    snprintf(uri, sizeof uri, "redis://:secret@127.0.0.1:%d",
             server_free_port());
    fails_in_time(uri, "Connection refused");
}

TEST(status, a_server_that_is_silent_is_said_within_3_s)
{
    char uri[80];
    fake f = {0};
    fake_start(&f);
    snprintf(uri, sizeof uri, "redis://:secret@127.0.0.1:%d", f.port);
    fails_in_time(uri, "rlock: redis://127.0.0.1:");
    fake_stop(&f);
}

static void shows_no_raw_answer(const char *verb, const char *name,
                                const char *word)
{
    char uri[80];
    fake f = {.answers = ANSWERS("-ERR \033]0;mine\007\033[31m\r\n")};
    fake_start(&f);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", f.port);
    command_fails(NULL, WORDS("-u", uri, verb, name, word),
                  "ERR \\x1b]0;mine\\x07\\x1b[31m");
    fake_stop(&f);
}

TEST_CASE(status, an_answer_that_run_tells_is_escaped,
          shows_no_raw_answer("run", "job", "true"))
TEST_CASE(status, an_answer_that_ls_tells_is_escaped,
          shows_no_raw_answer("ls", NULL, NULL))
TEST_CASE(status, an_answer_that_who_tells_is_escaped,
          shows_no_raw_answer("who", "job", NULL))

TEST(status, several_servers_that_are_silent_are_said_within_3_s)
{
    char uri[5][80];
    fake f[5] = {0};
    for (int i = 0; i < 5; i++) {
        fake_start(&f[i]);
        snprintf(uri[i], sizeof uri[i], "redis://:secret@127.0.0.1:%d",
                 f[i].port);
    }
    fails_so_in_time(WORDS("-u", uri[0], "-u", uri[1], "-u", uri[2], "-u",
                           uri[3], "-u", uri[4], "run", "job", "true"),
                     "rlock: redis://127.0.0.1:");
    for (int i = 0; i < 5; i++)
        fake_stop(&f[i]);
}

TEST(status, a_wrong_password_is_said_and_not_repeated)
{
    char uri[80];
    server *sv = server_start_tcp("--requirepass right");
    snprintf(uri, sizeof uri, "redis://:secret@127.0.0.1:%d", server_port(sv));
    fails_in_time(uri, "WRONGPASS");
    server_stop(sv);
}

TEST(status, a_node_of_a_cluster_is_no_server_by_itself)
{
    char uri[80];
    server *sv = server_start_tcp("--cluster-enabled yes");
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(sv));
    fails_in_time(uri, "redis-cluster://");
    server_stop(sv);
}

TEST(status, without_the_replicas_that_were_asked_for_there_is_no_lock)
{
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    command *c = RLOCK(sv, "--min-replicas", "1", "run", "-n", "-l", "6", "job",
                       "echo", "ran");
    EXPECT_INT(command_status(c), 125);
    EXPECT_STR(command_out(c), "");
    EXPECT_CONTAINS(command_err(c), "0 of 1 replicas");
    EVENTUALLY(SOON, levels(sv, "job") == 0);
    command_free(c);
    server_stop(sv);
}

TEST(status, a_majority_of_servers_is_enough)
{
    server *sv[] = {server_start(NULL), server_start(NULL)};
    command *c = RLOCK(
        NULL, "-u", server_uri(sv[0]), "-u", server_uri(sv[1]), "-u",
        "redis://127.0.0.1:1", "run", "-l", "1.5", "job", "sh", "-c",
        "echo $RLOCK_URI; redis-cli -s $0 exists job", server_path(sv[1]));
    EXPECT_INT(command_status(c), 0);
    EXPECT_CONTAINS(command_out(c), server_uri(sv[0]));
    EXPECT_CONTAINS(command_out(c), " redis://127.0.0.1:1\n1\n");
    command_free(c);
    c = RLOCK(NULL, "-u", server_uri(sv[0]), "-u", "redis://127.0.0.1:2", "-u",
              "redis://127.0.0.1:1", "run", "job", "true");
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_err(c), "Connection refused");
    command_free(c);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST(status, who_waits_for_a_red_lock_gets_it_when_it_is_free)
{
    char uris[300];
    server *sv[] = {server_start(NULL), server_start(NULL)};
    snprintf(uris, sizeof uris, "%s %s", server_uri(sv[0]), server_uri(sv[1]));
    setenv("RLOCK_URI", uris, 1);
    command *first =
        RLOCK(NULL, "run", "job", "sh", "-c", "echo $$ >\"$0\"; exec sleep 100",
              command_file(sv[0], "pid"));
    pid_t pid = command_number(sv[0], "pid");
    command *second = RLOCK(NULL, "run", "job", "echo", "ran");
    EVENTUALLY(SOON, queued(sv[0], "job") == 1);
    EXPECT_STR(command_out(second), "");
    kill(pid, SIGTERM);
    EXPECT_INT(command_status(first), 128 + SIGTERM);
    EXPECT_STR(command_err(second), "");
    EXPECT_INT(command_status(second), 0);
    EXPECT_STR(command_out(second), "ran\n");
    command_free(first);
    command_free(second);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

/* --- What COMMAND is told --- */

TEST(status, no_password_is_in_the_environment_of_command)
{
    char text[300], uri[100];
    server *sv = server_start_tcp("--requirepass s%cret");
    const char *file = command_file(sv, "uris");
    int port = server_port(sv), fd = open(file, O_WRONLY | O_CREAT, 0600);
    snprintf(text, sizeof text, "redis://:s%%25cret@127.0.0.1:%d/0\n", port);
    EXPECT_INT(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    command *c =
        RLOCK(NULL, "--uri-file", file, "run", "job", "sh", "-c", "env");
    EXPECT_INT(command_status(c), 0);
    snprintf(uri, sizeof uri, "RLOCK_URI=redis://127.0.0.1:%d/0\n", port);
    EXPECT_CONTAINS(command_out(c), uri);
    EXPECT_CONTAINS(command_out(c), "RLOCK_NAME=job\n");
    EXPECT(!strstr(command_out(c), "cret"));
    command_free(c);
    server_stop(sv);
}

TEST(status, command_is_told_its_token_and_who_has_the_lock)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "run", "job", "sh", "-c",
                       "echo $RLOCK_TOKEN $RLOCK_HOLDER; redis-cli -s \"$0\" "
                       "get rlock_token:{job}; redis-cli -s \"$0\" hkeys job",
                       server_path(sv));
    char token[40], holder[300], says[40], has[300];
    EXPECT_INT(command_status(c), 0);
    EXPECT_INT(sscanf(command_out(c), "%39s %299s %39s %299s", token, holder,
                      says, has),
               4);
    EXPECT_STR(token, says);
    EXPECT_STR(holder, has);
    EXPECT_CONTAINS(holder, "/sh:");
    command_free(c);
    server_stop(sv);
}

TEST(status, descriptors_that_were_closed_stay_closed)
{
    server *sv = server_start(NULL);
    command_inherits_nothing();
    command *c = RLOCK(sv, "run", "outer", "sh", "-c",
                       "exec $0 run job sh -c 'ls /proc/self/fd >\"$0\"' "
                       "\"$1\" <&- 2>&-",
                       RLOCK_COMMAND, command_file(sv, "list"));
    char text[100] = "";
    EXPECT_INT(command_status(c), 0);
    FILE *f = fopen(command_file(sv, "list"), "re");
    EXPECT(f != NULL);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    /* 0 is that of ls, which opens the directory. */
    EXPECT_STR(text, "0\n1\n");
    command_free(c);
    server_stop(sv);
}

/* --- Without a verb --- */

TEST(status, help_and_version_go_to_stdout)
{
    command *c = RLOCK(NULL, "--help");
    EXPECT_INT(command_status(c), 0);
    EXPECT_CONTAINS(command_out(c), "rlock run [-n | -w SECONDS]");
    EXPECT_STR(command_err(c), "");
    command_free(c);
    c = RLOCK(NULL, "--version");
    char wanted[40];
    snprintf(wanted, sizeof wanted, "rlock %s\n", rlock_version());
    EXPECT_INT(command_status(c), 0);
    EXPECT_STR(command_out(c), wanted);
    command_free(c);
}
