/* Servers that no client can be made of, and what is no server at all. */
#include <errno.h>

#include "client.h"
#include "fake.h"

/* --- servers that cannot be used ------------------------------------------ */

TEST(client_server, a_refused_connection_names_the_address)
{
    server *sv = server_start_tcp(NULL);
    char uri[200], address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", server_port(sv));
    snprintf(uri, sizeof uri, "redis://alice:" SECRET "@%s", address);
    server_kill(sv);
    expect_uri_refused(uri, RLOCK_EIO);
    EXPECT_CONTAINS(message(), address);
    EXPECT_CONTAINS(message(), "cannot connect: Connection refused");
    EXPECT_INT(rlock_last_error()->sys_errno, ECONNREFUSED);
    server_stop(sv);
}

TEST(client_server, a_missing_socket_names_the_path)
{
    expect_uri_refused("unix://u:" SECRET "@/nowhere/at/all", RLOCK_EIO);
    EXPECT_CONTAINS(message(), "/nowhere/at/all");
    EXPECT_INT(rlock_last_error()->sys_errno, ENOENT);
}

TEST(client_server, an_unknown_host_is_named)
{
    int64_t began = test_now_ms();
    expect_uri_refused("redis://alice:" SECRET "@name.invalid", RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began, 0, 3500);
    EXPECT_CONTAINS(message(), "name.invalid");
}

TEST(client_server, a_wrong_password_is_said_and_not_shown)
{
    server *sv = server_of_alice();
    char uri[200];
    snprintf(uri, sizeof uri, "redis://alice:" SECRET "x@127.0.0.1:%d",
             server_port(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "WRONGPASS");
    server_stop(sv);
}

TEST(client_server, a_missing_password_is_said)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "CONFIG SET requirepass " SECRET);
    expect_uri_refused(server_uri(sv), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "NOAUTH");
    server_stop(sv);
}

TEST(client_server, a_password_that_the_server_does_not_want_is_said)
{
    server *sv = server_start_tcp(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "redis://:" SECRET "@127.0.0.1:%d",
             server_port(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "AUTH");
    server_stop(sv);
}

TEST(client_server, a_database_that_is_not_there_is_said)
{
    server *sv = server_start(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "%s?db=16", server_uri(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "16");
    server_stop(sv);
}

TEST(client_server, a_server_that_became_a_replica_is_reported)
{
    scene s = scene_start(0, 0);
    EXPECT_STR(server_str(s.sv, "REPLICAOF 127.0.0.1 1"), "OK");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "READONLY");
    EXPECT_STR(server_str(s.sv, "REPLICAOF NO ONE"), "OK");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client_server, a_replica_is_refused_from_the_start)
{
    server *sv = server_start(NULL);
    EXPECT_STR(server_str(sv, "REPLICAOF 127.0.0.1 1"), "OK");
    expect_uri_refused(server_uri(sv), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "READONLY");
    server_stop(sv);
}

TEST(client_server, a_server_that_is_full_is_reported)
{
    server *sv = server_start(NULL);
    EXPECT_STR(server_str(sv, "CONFIG SET maxclients 1"), "OK");
    for (int i = 0; i < 300; i++) { /* it hangs up before or after PING */
        expect_uri_refused(server_uri(sv), RLOCK_ESERVER);
        EXPECT_CONTAINS(message(), "max number of clients");
    }
    server_stop(sv);
}

/* So a Sentinel of Redis 6.2 answers, and one of KeyDB. */
TEST(client_server, one_whose_ping_takes_no_word_has_answered_it)
{
    server *sv = server_start(NULL);
    proxy *px = proxy_start(sv);
    proxy_rule(px, "PING", 1, PROXY_ANSWER,
               "-ERR wrong number of arguments for 'ping' command\r\n");
    expect_uri_works(sv, proxy_uri(px), 0);
    EXPECT(proxy_fired(px));
    proxy_stop(px);
    server_stop(sv);
}

/* --- what answers is no Redis --------------------------------------------- */

/* A client of the fake does not come about; returns how long that took. */
static int64_t expect_fake_refused(fake f, const char *login,
                                   rlock_status wanted)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[1000];
    fake_start(&f);
    snprintf(uri, sizeof uri, "redis://%s127.0.0.1:%d", login, f.port);
    opts.uri = uri;
    opts.connect_timeout_ms = 300;
    opts.command_timeout_ms = 600;
    int64_t began = test_now_ms();
    expect_refused(&opts, wanted);
    int64_t took = test_now_ms() - began;
    fake_stop(&f);
    return took;
}

TEST(client_server, a_web_server_is_no_redis)
{
    fake f = {.greeting = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                          "Content-Length: 0\r\n\r\n"};
    expect_fake_refused(f, "", RLOCK_EIO);
    EXPECT_CONTAINS(message(), "not a Redis");
    expect_fake_refused(f, "u:" SECRET "@", RLOCK_EIO);
}

TEST(client_server, a_mail_server_is_no_redis)
{
    fake f = {.greeting = "220 mail.example ESMTP\r\n"};
    expect_fake_refused(f, "", RLOCK_EIO);
    EXPECT_CONTAINS(message(), "not a Redis");
}

TEST(client_server, a_server_that_never_answers_is_given_up_in_time)
{
    fake f = {.greeting = NULL};
    EXPECT_BETWEEN(expect_fake_refused(f, "", RLOCK_EIO), 250, 5000);
    EXPECT_BETWEEN(expect_fake_refused(f, ":" SECRET "@", RLOCK_EIO), 250,
                   5000);
}

TEST(client_server, a_server_that_falls_silent_after_ping_is_given_up_in_time)
{
    fake f = {.answers = ANSWERS(ECHO)};
    EXPECT_BETWEEN(expect_fake_refused(f, "", RLOCK_EIO), 550, 5000);
}

TEST(client_server, a_server_that_hangs_up_at_once_is_reported)
{
    fake f = {.hangs_up = true};
    EXPECT_BETWEEN(expect_fake_refused(f, "", RLOCK_EIO), 0, 5000);
}

TEST(client_server, garbage_behind_ping_is_reported)
{
    expect_fake_refused((fake){.answers = ANSWERS(ECHO, ":1\r\n", "!?\r\n")},
                        "", RLOCK_EIO);
    expect_fake_refused((fake){.answers = ANSWERS(ECHO, ":1\r\n", ":1\r\n")},
                        "", RLOCK_EIO);
    expect_fake_refused(
        (fake){.answers = ANSWERS(ECHO, ":1\r\n", "*2147483647\r\n")}, "",
        RLOCK_EIO);
    expect_fake_refused(
        (fake){.answers = ANSWERS(ECHO, ":1\r\n", "*2\r\n:1\r\n:2\r\n")}, "",
        RLOCK_EIO);
    expect_fake_refused((fake){.answers = ANSWERS("+HELLO\r\n")}, "",
                        RLOCK_EIO);
    expect_fake_refused((fake){.answers = ANSWERS("$-1\r\n")}, "", RLOCK_EIO);
}

/* Each answer comes within its own limit, all together are too late. */
TEST(client_server, a_slow_server_is_checked_within_both_limits_together)
{
    static const char *const answers[] = {
        ECHO,
        ":1\r\n",
        "*2\r\n$0\r\n\r\n$0\r\n\r\n",
        "*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:1\r\n",
        "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:0\r\n",
        NULL};
    fake f = {.answers = answers, .delay_ms = 900};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    char uri[64];
    fake_start(&f);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", f.port);
    opts.uri = uri;
    opts.connect_timeout_ms = 1000;
    opts.command_timeout_ms = 1000;
    int64_t began = test_now_ms();
    rlock_status s = rlock_client_new(&opts, &cl);
    EXPECT_BETWEEN(test_now_ms() - began, 900, 2500);
    EXPECT_STATUS(s, RLOCK_EIO);
    EXPECT_CONTAINS(message(), "timed out");
    fake_stop(&f);
}

#define UNKNOWN_AUTH "-ERR unknown command `AUTH`, with args beginning with: "

TEST(client_server, a_server_that_repeats_the_password_is_not_quoted)
{
    fake f = {.answers = ANSWERS(UNKNOWN_AUTH "`" SECRET "`, \r\n")};
    expect_fake_refused(f, ":" SECRET "@", RLOCK_ESERVER);
    f.answers = ANSWERS(UNKNOWN_AUTH "`alice`, `" SECRET "`, \r\n");
    expect_fake_refused(f, "alice:" SECRET "@", RLOCK_ESERVER);
}

/* Redis shows 128 bytes of the arguments. */
TEST(client_server, a_long_password_that_is_repeated_in_part_is_not_quoted)
{
    char login[300], answer[300];
    snprintf(login, sizeof login, ":" SECRET "%0200d@", 7);
    snprintf(answer, sizeof answer, UNKNOWN_AUTH "'" SECRET "%0121d'\r\n", 0);
    fake f = {.answers = ANSWERS(answer)};
    expect_fake_refused(f, login, RLOCK_ESERVER);
}

/* Redis turns line ends in an error into blanks. */
TEST(client_server, a_password_that_is_repeated_with_changes_is_not_quoted)
{
    fake f = {.answers = ANSWERS(UNKNOWN_AUTH "'" SECRET "  x'\r\n")};
    expect_fake_refused(f, ":" SECRET "%0d%0ax@", RLOCK_ESERVER);
}

TEST(client_server, a_real_server_without_auth_does_not_give_the_password_away)
{
    server *sv = server_start("--rename-command AUTH \"\"");
    char uri[500];
    snprintf(uri, sizeof uri, "unix://:" SECRET "%0200d@%s", 7,
             server_path(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    snprintf(uri, sizeof uri, "unix://alice:" SECRET "@%s", server_path(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    server_stop(sv);
}
