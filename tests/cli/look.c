/* `rlock ls` and `who`: what they tell, and what they do not. */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command.h"
#include "scene.h"

/* --- ls ------------------------------------------------------------------- */

#define LS(sv, ...) command_prints(sv, WORDS("ls", __VA_ARGS__))
#define LS_ALL(sv)  command_prints(sv, WORDS("ls"))

/* How far from the beginning of its line that word is, in the line with `in`.
 */
static long column_of(const char *text, const char *in, const char *word)
{
    const char *line = strstr(text, in);
    EXPECT(line != NULL);
    while (line > text && line[-1] != '\n')
        line--;
    const char *found = strstr(line, word);
    EXPECT(found != NULL);
    return found - line;
}

TEST(look, ls_tells_who_holds_what_in_columns)
{
    scene s = scene_held(0, 0);
    char holder[200], token[40];
    hold_by_hand(s.sv, "one-with-a-longer-name");
    const char *text = LS_ALL(s.sv);
    snprintf(token, sizeof token, "%llu",
             (unsigned long long)rlock_token(s.lk));
    EXPECT_CONTAINS(text, token);
    EXPECT_INT(gethostname(holder, 100), 0);
    snprintf(holder + strlen(holder), 60, ":%d:", getpid());
    EXPECT_INT(column_of(text, "job ", holder),
               column_of(text, "LOCK", "HOLDER"));
    EXPECT_INT(column_of(text, "job ", token),
               column_of(text, "LOCK", "TOKEN"));
    EXPECT_INT(column_of(text, "one-with", "other:1:1"),
               column_of(text, "LOCK", "HOLDER"));
    scene_stop(&s);
}

TEST(look, ls_tells_those_that_a_pattern_fits)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, "jobs:1");
    hold_by_hand(sv, "mail");
    const char *text = LS(sv, "jobs:*");
    EXPECT_CONTAINS(text, "jobs:1");
    EXPECT(!strstr(text, "mail"));
    server_stop(sv);
}

TEST(look, ls_tells_free_ones_with_a_only)
{
    scene s = scene_held(0, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!strstr(LS_ALL(s.sv), "job"));
    EXPECT_CONTAINS(LS(s.sv, "-a"), "job   free");
    scene_stop(&s);
}

#define WRITER "other:1:2:00000000-0000-4000-8000-000000000000"

TEST(look, a_read_write_lock_is_told_by_the_side_that_is_held)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "SET rlock_token:{job} 5");
    server_cmd(sv, "HSET job mode read " BY_HAND " 2");
    EXPECT_CONTAINS(LS_ALL(sv), "job   read  other:1:1");
    EXPECT_CONTAINS(command_prints(sv, WORDS("who", "job")), BY_HAND);
    server_cmd(sv, "HSET job mode write " WRITER ":write 1");
    EXPECT_CONTAINS(command_prints(sv, WORDS("who", "job")), WRITER);
    EXPECT_CONTAINS(command_prints(sv, WORDS("show", "job")), "write");
    server_stop(sv);
}

#define JAVA "285475da-9152-4c83-822a-67ee2f116a79:52"

TEST(look, ls_tells_other_programs_with_foreign_only)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET theirs " JAVA " 1");
    EXPECT(!strstr(LS_ALL(sv), "theirs"));
    EXPECT_CONTAINS(LS(sv, "--foreign"), "theirs  hash, foreign  " JAVA);
    server_stop(sv);
}

TEST(look, ls_tells_of_another_program_for_which_one_of_ours_waits)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET theirs " JAVA " 1");
    server_cmd(sv, "ZADD rlock_queue:{theirs} 1000 rlock_bell:somebody");
    EXPECT_CONTAINS(LS_ALL(sv), "theirs  hash, foreign  " JAVA);
    server_stop(sv);
}

/* As on a long lease that no watchdog renews. */
TEST(look, ls_tells_with_foreign_what_has_no_side_key_any_more)
{
    scene s = scene_held(0, 0);
    EXPECT_INT(server_int(s.sv, "DEL rlock_token:{job}"), 1);
    EXPECT(!strstr(LS_ALL(s.sv), "job"));
    EXPECT_CONTAINS(LS(s.sv, "--foreign"), "job");
    scene_stop(&s);
}

TEST(look, ls_tells_json_one_object_a_line)
{
    server *sv = server_start(NULL);
    take_by_hand(sv, "a", 0);
    take_by_hand(sv, "b", 0);
    static const char wanted[] =
        "{\"name\":\"a\",\"held\":true,\"layout\":\"hash\",\"foreign\":false,"
        "\"holder\":{\"id\":\"" BY_HAND "\",\"host\":\"other\",\"pid\":1,"
        "\"tid\":1,\"label\":null,"
        "\"hold\":\"00000000-0000-4000-8000-000000000000\"},"
        "\"count\":1,\"held_ms\":null,\"ttl_ms\":null,\"waiting\":0,"
        "\"token\":null,\"in_all\":1,\"available\":null}\n"
        "{\"name\":\"b\",";
    EXPECT_INT(strncmp(LS(sv, "--json", "--foreign"), wanted, strlen(wanted)),
               0);
    EXPECT_INT(strncmp(command_prints(sv, WORDS("--json", "ls", "--foreign")),
                       wanted, strlen(wanted)),
               0);
    server_stop(sv);
}

TEST(look, names_of_any_bytes_never_reach_a_terminal_raw)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET %b " BY_HAND " 1", "a\033[1m\n\0\xc2\x9b", (size_t)9);
    EXPECT_CONTAINS(LS(sv, "--foreign"),
                    "\na\\x1b[1m\\x0a\\x00\\xc2\\x9b  hash");
    EXPECT_CONTAINS(LS(sv, "--json", "--foreign"),
                    "{\"name\":\"a\\u001b[1m\\u000a\\u0000\\u009b\",");
    server_stop(sv);
}

TEST(look, json_has_names_as_utf8_or_as_digits_if_they_are_none)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "HSET %s " BY_HAND " 1", "\xe9\x94\x81\"\\");
    EXPECT_CONTAINS(LS(sv, "--json", "--foreign"),
                    "{\"name\":\"\xe9\x94\x81\\\"\\\\\",");
    server_cmd(sv, "FLUSHALL");
    server_cmd(sv, "HSET %s " BY_HAND " 1", "a\xff\n");
    EXPECT_CONTAINS(LS(sv, "--json", "--foreign"), "{\"name_hex\":\"61ff0a\",");
    server_cmd(sv, "FLUSHALL");
    server_cmd(sv, "HSET %s " BY_HAND " 1", "\xc0\x8a"); /* an overlong \n */
    EXPECT_CONTAINS(LS(sv, "--json", "--foreign"), "{\"name_hex\":\"c08a\",");
    server_stop(sv);
}

static void lacks(const char *right, const char *const words[])
{
    char uri[80], what[60];
    server *sv = server_start_tcp(NULL);
    take_by_hand(sv, "job", 0);
    server_str(sv, "ACL SETUSER watch on >pass ~* &* +@all -%s", right);
    snprintf(uri, sizeof uri, "redis://watch:pass@127.0.0.1:%d",
             server_port(sv));
    setenv("RLOCK_URI", uri, 1);
    snprintf(what, sizeof what, "'%s'", right);
    command_fails(NULL, words, what);
    server_stop(sv);
}

TEST_CASE(look, ls_names_the_right_to_scan_where_it_is_missing,
          lacks("scan", WORDS("ls")))
TEST_CASE(look, ls_names_a_right_that_types_need,
          lacks("hrandfield", WORDS("ls", "--foreign")))

TEST(look, ls_of_several_servers_says_at_which)
{
    server *sv[] = {server_start(NULL), server_start(NULL)};
    hold_by_hand(sv[1], "job");
    const char *text = command_prints(
        NULL, WORDS("-u", server_uri(sv[0]), "-u", server_uri(sv[1]), "ls"));
    EXPECT(!strstr(text, server_uri(sv[0])));
    EXPECT_INT(column_of(text, "other:1:1", server_uri(sv[1])),
               column_of(text, "LOCK", "SERVER"));
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST(look, ls_of_several_servers_tells_the_others_where_one_is_away)
{
    server *sv[] = {server_start(NULL), server_start(NULL)};
    hold_by_hand(sv[1], "job");
    command *c = RLOCK(NULL, "-u", "redis://127.0.0.1:1", "-u",
                       server_uri(sv[0]), "-u", server_uri(sv[1]), "ls");
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_out(c), "other:1:1");
    EXPECT_CONTAINS(command_err(c), "Connection refused");
    command_free(c);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

/* A Red lock has no majority then; what each tells by itself it tells. */
static void tells_beside_one_away(const char *const words[], int status,
                                  const char *out, const char *err)
{
    server *sv = server_start(NULL);
    char uris[200];
    hold_by_hand(sv, "job");
    snprintf(uris, sizeof uris, "redis://127.0.0.1:1 %s", server_uri(sv));
    setenv("RLOCK_URI", uris, 1);
    command *c = command_start(NULL, words);
    EXPECT_INT(command_status(c), status);
    EXPECT_CONTAINS(command_out(c), out);
    EXPECT_CONTAINS(command_err(c), err);
    command_free(c);
    server_stop(sv);
}

TEST_CASE(look, ls_tells_what_one_of_two_has,
          tells_beside_one_away(WORDS("ls"), 125, "other:1:1",
                                "127.0.0.1:1: cannot connect"))
TEST_CASE(look, top_tells_what_one_of_two_has,
          tells_beside_one_away(WORDS("top", "-b", "-n", "1"), 125, "other:1:1",
                                "127.0.0.1:1: cannot connect"))
TEST_CASE(look, watch_tells_what_one_of_two_has,
          tells_beside_one_away(WORDS("watch", "-d", "0.1", "-n", "2"), 125,
                                "held", "127.0.0.1:1: cannot connect"))
TEST_CASE(look, doctor_examines_one_of_two,
          tells_beside_one_away(WORDS("doctor"), 1, "circles", ""))
TEST_CASE(look, who_has_a_red_lock_one_of_two_cannot_tell,
          tells_beside_one_away(WORDS("who", "job"), 125, "",
                                "127.0.0.1:1: cannot connect"))

static redisContext *occupy(server *sv)
{
    int done = 0;
    redisContext *cx = redisConnectUnix(server_path(sv));
    redisAppendCommand(cx, "EVAL %s 0", "while true do end");
    while (!done)
        EXPECT_INT(redisBufferWrite(cx, &done), REDIS_OK);
    EVENTUALLY(SOON, strstr(server_str(sv, "PING"), "BUSY"));
    return cx;
}

/* It answers, but not what it is asked: as one that loads its data does. */
TEST(look, a_server_that_is_busy_is_away_for_a_red_lock)
{
    server *sv[] = {server_start(NULL), server_start(NULL),
                    server_start("--lua-time-limit 10")};
    char uris[300];
    snprintf(uris, sizeof uris, "%s %s %s", server_uri(sv[0]),
             server_uri(sv[1]), server_uri(sv[2]));
    setenv("RLOCK_URI", uris, 1);
    redisContext *cx = occupy(sv[2]);
    command *c = RLOCK(NULL, "run", "-n", "job", "--", "echo", "it ran");
    EXPECT_INT(command_status(c), 0);
    EXPECT_CONTAINS(command_out(c), "it ran");
    command_free(c);
    hold_by_hand(sv[0], "job");
    c = RLOCK(NULL, "ls");
    EXPECT_INT(command_status(c), 125);
    EXPECT_CONTAINS(command_out(c), "other:1:1");
    EXPECT_CONTAINS(command_err(c), "BUSY");
    command_free(c);
    EXPECT_STR(server_str(sv[2], "SCRIPT KILL"), "OK");
    redisFree(cx);
    for (int i = 0; i < 3; i++)
        server_stop(sv[i]);
}

/* It was not there at the first look: what it has then was not taken just now. */
TEST(look, watch_goes_on_with_one_that_is_back)
{
    server *sv[] = {server_start_tcp(NULL), server_start(NULL)};
    hold_by_hand(sv[1], "job");
    char uris[200];
    snprintf(uris, sizeof uris, "%s %s", server_uri(sv[0]), server_uri(sv[1]));
    setenv("RLOCK_URI", uris, 1);
    server_kill(sv[0]);
    command *c = RLOCK(NULL, "watch", "-d", "0.1");
    EVENTUALLY(SOON, strstr(command_out(c), "job  held "));
    server_restart(sv[0]);
    hold_by_hand(sv[0], "back");
    EVENTUALLY(SOON, strstr(command_out(c), "back  "));
    const char *said = strstr(command_err(c), "cannot connect");
    EXPECT(said && !strstr(said + 1, "cannot connect"));
    server_kill(sv[1]);
    EVENTUALLY(SOON, strstr(command_err(c), server_uri(sv[1])));
    EXPECT(!command_ended(c));
    kill(command_front(c), SIGINT);
    EXPECT_INT(command_end(c), -SIGINT);
    server_stop(sv[1]);
    server_stop(sv[0]);
}

/* Though it told all in the end. */
static void did_not_tell_all(const char *const words[])
{
    server *sv[] = {server_start_tcp(NULL), server_start(NULL)};
    char uris[200];
    snprintf(uris, sizeof uris, "%s %s", server_uri(sv[0]), server_uri(sv[1]));
    setenv("RLOCK_URI", uris, 1);
    server_kill(sv[0]);
    command *c = command_start(NULL, words);
    EVENTUALLY(SOON, strstr(command_err(c), "cannot connect"));
    server_restart(sv[0]);
    EXPECT_INT(command_status(c), 125);
    command_free(c);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST_CASE(look, watch_that_once_did_not_tell_all_says_so,
          did_not_tell_all(WORDS("watch", "-d", "0.2", "-n", "10")))
TEST_CASE(look, top_that_once_did_not_tell_all_says_so,
          did_not_tell_all(WORDS("top", "-b", "-d", "0.2", "-n", "10")))

/* It is waited for, which costs the others nothing. */
TEST(look, top_is_drawn_anew_beside_a_server_that_hangs)
{
    server *sv[] = {server_start(NULL), server_start(NULL)};
    char uris[200];
    snprintf(uris, sizeof uris, "%s %s", server_uri(sv[0]), server_uri(sv[1]));
    setenv("RLOCK_URI", uris, 1);
    server_pause(sv[1]);
    command *c = RLOCK(NULL, "top", "-d", "0.1", "-n", "2");
    EVENTUALLY(20000, command_ended(c));
    EXPECT_CONTAINS(command_out(c), "a round 0.1s");
    command_free(c);
    server_resume(sv[1]);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST(look, no_line_of_a_table_ends_with_blanks)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "doctor");
    command_status(c);
    EXPECT_CONTAINS(command_out(c), "\nok ");
    EXPECT(!strstr(command_out(c), " \n"));
    command_free(c);
    server_stop(sv);
}

/* --- Where it is printed -------------------------------------------------- */

/* The status of ls, which prints there; with SIGPIPE as told. */
static int status_into(server *sv, int fd, void (*pipe)(int), int err)
{
    int status;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGPIPE, pipe);
        setenv("RLOCK_URI", server_uri(sv), 1);
        setenv("LLVM_PROFILE_FILE", "/dev/null", 1); /* as command_start() */
        if (dup2(fd, 1) < 0)
            close(1);
        dup2(err, 2);
        execl(RLOCK_COMMAND, "rlock", "ls", (char *)NULL);
        _exit(99);
    }
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

TEST(look, a_closed_stdout_is_told_of)
{
    server *sv = server_start(NULL);
    hold_by_hand(sv, "job");
    EXPECT_INT(status_into(sv, -1, SIG_DFL, 2), 125);
    server_stop(sv);
}

/* It ends so, and says this much. */
static void ends_into(int fd, void (*pipe)(int), int wanted, const char *says)
{
    char text[200] = "";
    server *sv = server_start(NULL);
    int err = open(command_file(sv, "err"), O_RDWR | O_CREAT, 0600);
    EXPECT_INT(status_into(sv, fd, pipe, err), wanted);
    EXPECT(pread(err, text, sizeof text - 1, 0) >= 0);
    EXPECT_STR(text, says);
    close(err);
    server_stop(sv);
}

static void ends_quietly(void (*pipe_is)(int))
{
    int ends[2];
    EXPECT_INT(pipe(ends), 0);
    close(ends[0]);
    ends_into(ends[1], pipe_is, 128 + SIGPIPE, "");
}

TEST_CASE(look, a_pipe_that_nobody_reads_ends_it_quietly, ends_quietly(SIG_DFL))
TEST_CASE(look, also_where_the_signal_is_ignored, ends_quietly(SIG_IGN))
TEST_CASE(look, what_cannot_be_written_is_said,
          ends_into(open("/dev/full", O_WRONLY), SIG_DFL, 125,
                    "rlock: cannot write: No space left on device\n"))

/* --- who ------------------------------------------------------------------ */

static void who_is(server *sv, const char *name, int status, const char *says)
{
    command *c = RLOCK(sv, "who", name);
    EXPECT_INT(command_status(c), status);
    EXPECT_STR(command_out(c), says);
    EXPECT_STR(command_err(c), "");
    command_free(c);
}

TEST(look, who_tells_the_holder_in_one_line_or_by_1_that_it_is_free)
{
    server *sv = server_start(NULL);
    who_is(sv, "job", 1, "");
    take_by_hand(sv, "job", 0);
    who_is(sv, "job", 0, BY_HAND "\n");
    server_stop(sv);
}

TEST(look, who_tells_the_holder_of_each_layout)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "SET odd %s", "what\never");
    server_cmd(sv, "SET stamp 9999999999");
    server_cmd(sv, "SET past 1000000000");
    who_is(sv, "odd", 0, "what\\x0aever\n");
    who_is(sv, "stamp", 0, "9999999999\n");
    who_is(sv, "past", 1, "");
    server_stop(sv);
}

TEST(look, who_tells_json_of_a_free_one_too)
{
    server *sv = server_start(NULL);
    command *c = RLOCK(sv, "who", "job", "--json");
    EXPECT_INT(command_status(c), 1);
    EXPECT_STR(command_out(c), "{\"name\":\"job\",\"held\":false,\"holder\":"
                               "null,\"count\":0,\"ttl_ms\":null}\n");
    command_free(c);
    server_stop(sv);
}

TEST(look, who_of_a_red_lock_tells_whom_a_majority_has)
{
    server *sv[] = {server_start(NULL), server_start(NULL)};
    take_by_hand(sv[0], "job", 0);
    hold_by_hand(sv[1], "job");
    EXPECT_CONTAINS(
        command_prints(NULL, WORDS("-u", server_uri(sv[0]), "-u",
                                   "redis://127.0.0.1:1", "-u",
                                   server_uri(sv[1]), "who", "job")),
        BY_HAND);
    server_stop(sv[0]);
    server_stop(sv[1]);
}

TEST(look, who_does_not_tell_of_what_is_no_lock)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "RPUSH job 1");
    command_fails(sv, WORDS("who", "job"), "'job'");
    server_stop(sv);
}

TEST(look, who_does_not_tell_without_a_server)
{
    setenv("RLOCK_URI", "redis://127.0.0.1:1", 1);
    command_fails(NULL, WORDS("who", "job"), "Connection refused");
    command_fails(NULL, WORDS("ls"), "Connection refused");
}

/* --- Bad input ------------------------------------------------------------ */

TEST(look, names_that_no_lock_has_are_refused)
{
    char name[514];
    server *sv = server_start(NULL);
    memset(name, 'x', 513);
    name[513] = '\0';
    command_fails(sv, WORDS("who", name), "not 513");
    command_fails(sv, WORDS("who", "rlock_token:x"), "rlock_token:");
    server_stop(sv);
}

static void is_misused(const char *const words[], const char *says)
{
    char usage[40];
    command *c = command_start(NULL, words);
    EXPECT_INT(command_status(c), 125);
    EXPECT_STR(command_out(c), "");
    EXPECT_CONTAINS(command_err(c), says);
    snprintf(usage, sizeof usage, "\nusage: rlock %s [", words[0]);
    EXPECT_CONTAINS(command_err(c), usage);
    command_free(c);
}

TEST_CASE(look, of_bench_there_are_no_words,
          is_misused(WORDS("bench", "a"), "too many words"))
TEST_CASE(look, ls_of_two_patterns,
          is_misused(WORDS("ls", "a", "b"), "too many"))
TEST_CASE(look, ls_with_an_unknown_option,
          is_misused(WORDS("ls", "-z"), "unknown option '-z'"))
TEST_CASE(look, ls_with_a_value_that_it_does_not_take,
          is_misused(WORDS("ls", "--all=1"), "--all=1"))
TEST_CASE(look, who_without_a_name,
          is_misused(WORDS("who"), "the name of the lock is missing"))
TEST_CASE(look, who_of_two_names,
          is_misused(WORDS("who", "a", "b"), "too many"))

TEST(look, help_of_a_verb_goes_to_stdout)
{
    const char *text = command_prints(NULL, WORDS("ls", "--help"));
    EXPECT_CONTAINS(text, "usage: rlock ls [-a]");
    EXPECT_CONTAINS(text, "\n  -a, --all   ");
    EXPECT_CONTAINS(text, "\n      --json   ");
    EXPECT(!strstr(text, "rlock who"));
    EXPECT_CONTAINS(command_prints(NULL, WORDS("run", "--help")),
                    "\n  -w, --wait SECONDS         wait at most so long");
}
