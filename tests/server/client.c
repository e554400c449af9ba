/*
 * Making a client, and what it needs of a server: addresses, passwords,
 * rights, the connect callback; its counters and its end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/socket.h>
#include <unistd.h>

#include "scene.h"

#define SECRET "s3cr3t"

static const char *message(void)
{
    return rlock_last_error()->message;
}

static void expect_no_secret(void)
{
    EXPECT(!strstr(message(), SECRET));
}

/* No client comes of these options; its message is left in place. */
static void expect_refused(const rlock_options *opts, rlock_status wanted)
{
    rlock_client *cl = (rlock_client *)opts;
    EXPECT_STATUS(rlock_client_new(opts, &cl), wanted);
    EXPECT(!cl);
    EXPECT_STATUS(rlock_last_error()->status, wanted);
    EXPECT(*message());
    expect_no_secret();
}

static void expect_uri_refused(const char *uri, rlock_status wanted)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    expect_refused(&opts, wanted);
}

/* A client of this address locks; the lock is in database db of the server. */
static void expect_uri_works(server *sv, const char *uri, int db)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STR(server_str(sv, "SELECT %d", db), "OK");
    EXPECT_INT(server_int(sv, "HLEN job"), 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_INT(server_int(sv, "HLEN job"), 0);
    rlock_free(lk);
    rlock_client_free(cl);
}

/* A server with a user alice who may do everything. */
static server *server_of_alice(void)
{
    server *sv = server_start_tcp(NULL);
    EXPECT_STR(server_str(sv, "ACL SETUSER alice on >" SECRET " ~* &* +@all"),
               "OK");
    return sv;
}

/* --- options -------------------------------------------------------------- */

TEST(client, defaults_are_those_of_the_header)
{
    rlock_client *cl = NULL;
    rlock_status s = rlock_client_new(NULL, &cl);
    rlock_client_free(cl);
    if (s == RLOCK_OK)
        SKIP("a Redis server runs on port 6379");
    EXPECT_CONTAINS(message(), "127.0.0.1:6379");
}

TEST(client, out_must_not_be_null)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    EXPECT_STATUS(rlock_client_new(&opts, NULL), RLOCK_EINVAL);
}

static redisContext *never_called(void *arg)
{
    (void)arg;
    FAIL("the callback was called");
}

static void expect_option_refused(rlock_options opts, const char *name)
{
    opts.uri = opts.connect ? opts.uri : "unix:///nowhere";
    expect_refused(&opts, RLOCK_EINVAL);
    EXPECT_CONTAINS(message(), name);
}

TEST(client, fault_107_options_out_of_range_are_refused)
{
    const size_t size = sizeof(rlock_options);
    char host[257];
    expect_uri_refused("unix:///nowhere", RLOCK_EIO); /* the control */
    memset(host, 'h', 256);
    host[256] = '\0';
#define EXPECT_OPTION_REFUSED(member, value)                                   \
    do {                                                                       \
        rlock_options opts_ = RLOCK_OPTIONS_INIT;                              \
        opts_.member = (value);                                                \
        expect_option_refused(opts_, #member);                                 \
    } while (0)
    EXPECT_OPTION_REFUSED(connect_timeout_ms, -1);
    EXPECT_OPTION_REFUSED(connect_timeout_ms, INT64_MIN);
    EXPECT_OPTION_REFUSED(command_timeout_ms, -1);
    EXPECT_OPTION_REFUSED(watchdog_lease_ms, -1);
    EXPECT_OPTION_REFUSED(watchdog_lease_ms, 99);
    EXPECT_OPTION_REFUSED(watchdog_lease_ms, RLOCK_LEASE_MAX_MS + 1);
    EXPECT_OPTION_REFUSED(max_hold_ms, -1);
    EXPECT_OPTION_REFUSED(host_id, "");
    EXPECT_OPTION_REFUSED(host_id, host);
    EXPECT_OPTION_REFUSED(size, 0);
    EXPECT_OPTION_REFUSED(size, size + 1);
}

TEST(client, an_address_and_a_callback_exclude_each_other)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = "unix:///nowhere";
    opts.connect = never_called;
    expect_refused(&opts, RLOCK_EINVAL);
}

TEST(client, options_of_an_older_version_end_earlier)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.size = offsetof(rlock_options, connect_timeout_ms);
    opts.watchdog_lease_ms = -1; /* not there yet */
    rlock_client *cl = server_client(sv, &opts);
    EXPECT_STATUS(rlock_client_ping(cl), RLOCK_OK);
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(client, the_longest_times_do_not_overflow)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect_timeout_ms = opts.command_timeout_ms = RLOCK_LEASE_MAX_MS;
    opts.watchdog_lease_ms = RLOCK_LEASE_MAX_MS;
    opts.max_hold_ms = INT64_MAX;
    opts.pool_size = 1;
    scene s = scene_with(server_start(NULL), &opts);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(rlock_valid_ms(s.lk) > RLOCK_LEASE_MAX_MS / 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client, strings_of_the_options_are_copied)
{
    server *sv = server_start(NULL);
    char uri[200], host[] = "copied";
    snprintf(uri, sizeof uri, "%s", server_uri(sv));
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = uri;
    opts.host_id = host;
    rlock_client *cl = server_client(sv, &opts);
    memset(uri, 'x', sizeof uri);
    memset(host, 'x', sizeof host);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    rlock_holder h;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(lk, &h), RLOCK_OK);
    EXPECT_STR(h.host, "copied");
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}

static void expect_host(server *sv, const char *host_id, const char *wanted)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.host_id = host_id;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    rlock_holder h;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(lk, &h), RLOCK_OK);
    EXPECT_STR(h.host, wanted);
    EXPECT_INT(h.pid, getpid());
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
}

TEST(client, the_host_part_is_the_option_or_the_hosts_name)
{
    server *sv = server_start(NULL);
    char host[256] = "", longest[256];
    EXPECT_INT(gethostname(host, sizeof host - 1), 0);
    memset(longest, 'h', 255);
    longest[255] = '\0';
    expect_host(sv, NULL, host);
    expect_host(sv, "a b:c\n\x7f%s", "a_b_c__%s");
    expect_host(sv, longest, longest);
    server_stop(sv);
}

/* --- addresses ------------------------------------------------------------ */

TEST(client, tcp_with_user_password_and_database)
{
    server *sv = server_of_alice();
    char uri[200];
    snprintf(uri, sizeof uri, "redis://alice:" SECRET "@127.0.0.1:%d/3",
             server_port(sv));
    expect_uri_works(sv, uri, 3);
    server_stop(sv);
}

TEST(client, tcp_with_a_password_only)
{
    server *sv = server_start_tcp(NULL);
    char uri[200];
    server_cmd(sv, "CONFIG SET requirepass " SECRET);
    snprintf(uri, sizeof uri, "redis://:" SECRET "@127.0.0.1:%d",
             server_port(sv));
    expect_uri_works(sv, uri, 0);
    server_stop(sv);
}

TEST(client, tcp_by_name_and_without_login)
{
    need_host_names();
    server *sv = server_start_tcp(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "redis://localhost:%d/", server_port(sv));
    expect_uri_works(sv, uri, 0);
    server_stop(sv);
}

static bool has_ipv6(void)
{
    struct sockaddr_in6 addr = {.sin6_family = AF_INET6,
                                .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool has = fd >= 0 && bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
    if (fd >= 0)
        close(fd);
    return has;
}

TEST(client, tcp_with_an_ipv6_address)
{
    if (!has_ipv6())
        SKIP("no IPv6 here");
    server *sv = server_start_tcp("--bind 127.0.0.1 ::1");
    char uri[200];
    snprintf(uri, sizeof uri, "redis://[::1]:%d/1", server_port(sv));
    expect_uri_works(sv, uri, 1);
    server_stop(sv);
}

TEST(client, unix_socket)
{
    server *sv = server_start(NULL);
    expect_uri_works(sv, server_uri(sv), 0);
    server_stop(sv);
}

TEST(client, unix_socket_with_a_database)
{
    server *sv = server_start(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "%s?db=5", server_uri(sv));
    expect_uri_works(sv, uri, 5);
    server_stop(sv);
}

TEST(client, unix_socket_with_a_login)
{
    server *sv = server_of_alice();
    char uri[200];
    snprintf(uri, sizeof uri, "unix://alice:" SECRET "@%s?db=2",
             server_path(sv));
    expect_uri_works(sv, uri, 2);
    server_stop(sv);
}

TEST(client, a_user_alone_logs_in_as_one_who_needs_no_password)
{
    server *sv = server_start_tcp(NULL);
    char uri[200];
    server_cmd(sv, "CONFIG SET requirepass " SECRET);
    EXPECT_STR(server_str(sv, "ACL SETUSER open on nopass ~* &* +@all"), "OK");
    snprintf(uri, sizeof uri, "redis://open@127.0.0.1:%d", server_port(sv));
    expect_uri_works(sv, uri, 0);
    server_stop(sv);
}

TEST(client, escapes_in_user_password_and_path)
{
    server *sv = server_start_tcp(NULL);
    char uri[300];
    EXPECT_STR(server_str(sv, "ACL SETUSER %s on >%s ~* &* +@all", "a:b@c",
                          "p@s/s:%w?"),
               "OK");
    snprintf(uri, sizeof uri,
             "redis://a%%3ab%%40c:p%%40s%%2Fs%%3A%%25w%%3f@127.0.0.1:%d",
             server_port(sv));
    expect_uri_works(sv, uri, 0);
    snprintf(uri, sizeof uri, "unix://%.*s%%73",
             (int)strlen(server_path(sv)) - 1, server_path(sv));
    expect_uri_works(sv, uri, 0);
    server_stop(sv);
}

/* The control: nothing is wrong with it but that nobody listens there. */
static void expect_well_formed(const char *uri)
{
    expect_uri_refused(uri, RLOCK_EIO);
}

/* Where the fault is, counted from 1. */
static void expect_malformed(const char *uri, int position)
{
    char wanted[40];
    snprintf(wanted, sizeof wanted, "position %d:", position);
    expect_uri_refused(uri, RLOCK_EINVAL);
    if (!strstr(message(), wanted))
        FAIL("\"%s\": \"%s\" does not say %s", uri, message(), wanted);
}

TEST(client, fault_107_a_malformed_scheme_is_located)
{
    expect_well_formed("redis://alice:" SECRET "@127.0.0.1:1");
    expect_malformed("", 1);
    expect_malformed("127.0.0.1:6379", 1);
    expect_malformed("http://localhost", 1);
    expect_malformed("redis:/localhost", 1);
    expect_malformed("alice:" SECRET "@localhost", 1);
}

TEST(client, fault_107_a_malformed_tcp_address_is_located)
{
    expect_well_formed("redis://127.0.0.1:1");
    expect_malformed("redis://", 9);
    expect_malformed("redis://:" SECRET "@", 17);
    expect_malformed("redis://alice:" SECRET "@:6379", 22);
    expect_malformed("redis://h:", 11);
    expect_malformed("redis://h:0", 11);
    expect_malformed("redis://h:65536", 11);
    expect_malformed("redis://h:99999999999999999999", 11);
    expect_malformed("redis://h:6379x", 11);
    expect_malformed("redis://h:-1", 11);
    expect_malformed("redis://alice:" SECRET, 15); /* taken for a port */
    expect_malformed("redis://[::1", 9);
    expect_malformed("redis://[::1]6379", 14);
    expect_malformed("redis://[::1]:x", 15);
    expect_malformed("redis://[]:1", 10);
}

TEST(client, fault_107_a_malformed_database_is_located)
{
    expect_well_formed("redis://127.0.0.1:1/0");
    expect_well_formed("unix:///nowhere?db=1");
    expect_malformed("redis://h/x", 11);
    expect_malformed("redis://h/-1", 11);
    expect_malformed("redis://h/1/2", 11);
    expect_malformed("redis://h/99999999999999999999", 11);
    expect_malformed("redis://h?db=1", 10);
    expect_malformed("unix:///s?", 11);
    expect_malformed("unix:///s?x=1", 11);
    expect_malformed("unix:///s?db=", 14);
    expect_malformed("unix:///s?db=x", 14);
}

TEST(client, fault_107_a_malformed_escape_is_located)
{
    expect_well_formed("redis://u:" SECRET "%40@127.0.0.1:1");
    expect_malformed("redis://u:" SECRET "%@h", 17);
    expect_malformed("redis://u:" SECRET "%4@h", 17);
    expect_malformed("redis://u:" SECRET "%zz@h", 17);
    expect_malformed("redis://u:" SECRET "%00@h", 17);
    expect_malformed("unix:///s%", 10);
}

TEST(client, fault_107_a_malformed_path_is_located)
{
    char uri[300] = "unix:///";
    expect_well_formed("unix://u:" SECRET "@/nowhere");
    memset(uri + strlen(uri), 'p', 200);
    expect_malformed(uri, 8);
    expect_malformed("unix://", 8);
    expect_malformed("unix://relative", 8);
    expect_malformed("unix://u:" SECRET "@relative/path", 17);
}

TEST(client, tls_is_not_supported_yet)
{
    expect_uri_refused("rediss://alice:" SECRET "@localhost/", RLOCK_ENOTSUP);
}

/* --- servers that cannot be used ------------------------------------------ */

TEST(client, a_refused_connection_names_the_address)
{
    server *sv = server_start_tcp(NULL);
    char uri[200], address[32];
    snprintf(address, sizeof address, "127.0.0.1:%d", server_port(sv));
    snprintf(uri, sizeof uri, "redis://alice:" SECRET "@%s", address);
    server_kill(sv);
    expect_uri_refused(uri, RLOCK_EIO);
    EXPECT_CONTAINS(message(), address);
    EXPECT_CONTAINS(message(), "refused");
    EXPECT_INT(rlock_last_error()->sys_errno, ECONNREFUSED);
    server_stop(sv);
}

TEST(client, a_missing_socket_names_the_path)
{
    expect_uri_refused("unix://u:" SECRET "@/nowhere/at/all", RLOCK_EIO);
    EXPECT_CONTAINS(message(), "/nowhere/at/all");
    EXPECT_INT(rlock_last_error()->sys_errno, ENOENT);
}

TEST(client, an_unknown_host_is_named)
{
    int64_t began = test_now_ms();
    expect_uri_refused("redis://alice:" SECRET "@name.invalid", RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began, 0, 3500);
    EXPECT_CONTAINS(message(), "name.invalid");
}

TEST(client, a_wrong_password_is_said_and_not_shown)
{
    server *sv = server_of_alice();
    char uri[200];
    snprintf(uri, sizeof uri, "redis://alice:" SECRET "x@127.0.0.1:%d",
             server_port(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "WRONGPASS");
    server_stop(sv);
}

TEST(client, a_missing_password_is_said)
{
    server *sv = server_start(NULL);
    server_cmd(sv, "CONFIG SET requirepass " SECRET);
    expect_uri_refused(server_uri(sv), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "NOAUTH");
    server_stop(sv);
}

TEST(client, a_password_that_the_server_does_not_want_is_said)
{
    server *sv = server_start_tcp(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "redis://:" SECRET "@127.0.0.1:%d",
             server_port(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "AUTH");
    server_stop(sv);
}

TEST(client, a_database_that_is_not_there_is_said)
{
    server *sv = server_start(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "%s?db=16", server_uri(sv));
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "16");
    server_stop(sv);
}

TEST(client, a_server_that_became_a_replica_is_reported)
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

TEST(client, a_server_that_is_full_is_reported)
{
    server *sv = server_start(NULL);
    EXPECT_STR(server_str(sv, "CONFIG SET maxclients 1"), "OK");
    for (int i = 0; i < 300; i++) { /* it hangs up before or after PING */
        expect_uri_refused(server_uri(sv), RLOCK_ESERVER);
        EXPECT_CONTAINS(message(), "max number of clients");
    }
    server_stop(sv);
}

/* --- what answers is no Redis --------------------------------------------- */

/*
 * A listener that takes one connection after the other. It sends the greeting,
 * and answers what comes, piece by piece, with one answer after the other;
 * then it says nothing.
 */
typedef struct fake {
    const char *greeting;       /* NULL: none */
    const char *const *answers; /* up to a NULL; NULL: none */
    int delay_ms;               /* before each answer */
    bool hangs_up;              /* at once */
    int listener, port;
    test_thread *thread;
} fake;

static void tell(int fd, const char *text)
{
    if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
        return; /* the client has gone, which recv() will tell */
}

static void converse(const fake *f, int fd)
{
    char heard[16384];
    const char *const *answer = f->answers;
    if (f->greeting)
        tell(fd, f->greeting);
    while (!f->hangs_up && recv(fd, heard, sizeof heard, 0) > 0) {
        test_pause_ms(f->delay_ms);
        if (answer && *answer)
            tell(fd, *answer++);
    }
}

static intptr_t serve(void *arg)
{
    const fake *f = arg;
    int fd;
    while ((fd = accept(f->listener, NULL, NULL)) >= 0) {
        converse(f, fd);
        close(fd);
    }
    return 0;
}

static void fake_start(fake *f)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(f->listener >= 0);
    EXPECT_INT(bind(f->listener, (struct sockaddr *)&addr, len), 0);
    EXPECT_INT(listen(f->listener, 8), 0);
    EXPECT_INT(getsockname(f->listener, (struct sockaddr *)&addr, &len), 0);
    f->port = ntohs(addr.sin_port);
    f->thread = test_spawn(serve, f);
}

static void fake_stop(fake *f)
{
    shutdown(f->listener, SHUT_RDWR);
    test_join(f->thread);
    close(f->listener);
}

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

/* What a server answers to the PING of a new connection. */
#define ECHO "$5\r\nrlock\r\n"

#define ANSWERS(...) ((const char *const[]){__VA_ARGS__, NULL})

TEST(client, a_web_server_is_no_redis)
{
    fake f = {.greeting = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n"
                          "Content-Length: 0\r\n\r\n"};
    expect_fake_refused(f, "", RLOCK_EIO);
    EXPECT_CONTAINS(message(), "not a Redis");
    expect_fake_refused(f, "u:" SECRET "@", RLOCK_EIO);
}

TEST(client, a_mail_server_is_no_redis)
{
    fake f = {.greeting = "220 mail.example ESMTP\r\n"};
    expect_fake_refused(f, "", RLOCK_EIO);
    EXPECT_CONTAINS(message(), "not a Redis");
}

TEST(client, a_server_that_never_answers_is_given_up_in_time)
{
    fake f = {.greeting = NULL};
    EXPECT_BETWEEN(expect_fake_refused(f, "", RLOCK_EIO), 250, 5000);
    EXPECT_BETWEEN(expect_fake_refused(f, ":" SECRET "@", RLOCK_EIO), 250,
                   5000);
}

TEST(client, a_server_that_falls_silent_after_ping_is_given_up_in_time)
{
    fake f = {.answers = ANSWERS(ECHO)};
    EXPECT_BETWEEN(expect_fake_refused(f, "", RLOCK_EIO), 550, 5000);
}

TEST(client, a_server_that_hangs_up_at_once_is_reported)
{
    fake f = {.hangs_up = true};
    EXPECT_BETWEEN(expect_fake_refused(f, "", RLOCK_EIO), 0, 5000);
}

TEST(client, garbage_behind_ping_is_reported)
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
TEST(client, a_slow_server_is_checked_within_both_limits_together)
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

TEST(client, a_server_that_repeats_the_password_is_not_quoted)
{
    fake f = {.answers = ANSWERS(UNKNOWN_AUTH "`" SECRET "`, \r\n")};
    expect_fake_refused(f, ":" SECRET "@", RLOCK_ESERVER);
    f.answers = ANSWERS(UNKNOWN_AUTH "`alice`, `" SECRET "`, \r\n");
    expect_fake_refused(f, "alice:" SECRET "@", RLOCK_ESERVER);
}

/* Redis shows 128 bytes of the arguments. */
TEST(client, a_long_password_that_is_repeated_in_part_is_not_quoted)
{
    char login[300], answer[300];
    snprintf(login, sizeof login, ":" SECRET "%0200d@", 7);
    snprintf(answer, sizeof answer, UNKNOWN_AUTH "'" SECRET "%0121d'\r\n", 0);
    fake f = {.answers = ANSWERS(answer)};
    expect_fake_refused(f, login, RLOCK_ESERVER);
}

/* Redis turns line ends in an error into blanks. */
TEST(client, a_password_that_is_repeated_with_changes_is_not_quoted)
{
    fake f = {.answers = ANSWERS(UNKNOWN_AUTH "'" SECRET "  x'\r\n")};
    expect_fake_refused(f, ":" SECRET "%0d%0ax@", RLOCK_ESERVER);
}

TEST(client, a_real_server_without_auth_does_not_give_the_password_away)
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

/* --- rights --------------------------------------------------------------- */

/* All that the library's user needs; INFO only for the warning of eviction. */
static const char *const needed[] = {
    "eval", "evalsha", "ping",    "subscribe", "unsubscribe", "publish",
    "time", "exists",  "get",     "set",       "del",         "pexpire",
    "pttl", "hset",    "hexists", "hlen",      "hscan",       "hdel",
    "zadd", "zrem",    "zpopmin", "zrank"};

static const char *const key_patterns[] = {"~job", "~rlock_token:*",
                                           "~rlock_queue:*", "~rlock_undone:*"};

static const char *const channel_patterns[] = {"&rlock_bell:*",
                                               "&redisson_lock__channel:*"};

static size_t add_words(char *to, size_t size, const char *prefix,
                        const char *const *words, size_t n, const char *without)
{
    size_t len = strlen(to);
    for (size_t i = 0; i < n; i++) {
        if (without && strcmp(words[i], without) == 0)
            continue;
        len +=
            (size_t)snprintf(to + len, size - len, " %s%s", prefix, words[i]);
        EXPECT(len < size);
    }
    return len;
}

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* A user app with what is needed, without one word of it (NULL: with all). */
static void make_user(server *sv, const char *without)
{
    char cmd[1000] = "ACL SETUSER app reset resetchannels on >" SECRET;
    add_words(cmd, sizeof cmd, "", key_patterns, COUNT(key_patterns), without);
    add_words(cmd, sizeof cmd, "", channel_patterns, COUNT(channel_patterns),
              without);
    add_words(cmd, sizeof cmd, "+", needed, COUNT(needed), without);
    EXPECT_STR(server_str(sv, cmd), "OK");
}

static const char *app_uri(server *sv, char *uri, size_t size)
{
    snprintf(uri, size, "unix://app:" SECRET "@%s", server_path(sv));
    return uri;
}

static scene scene_of_app(server *sv, int64_t watchdog_lease_ms)
{
    char uri[200];
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = app_uri(sv, uri, sizeof uri);
    opts.watchdog_lease_ms = watchdog_lease_ms;
    return scene_with(sv, &opts);
}

static intptr_t wait_and_unlock(void *lk)
{
    rlock_status s = rlock_acquire(lk, SOON, RLOCK_WATCHDOG);
    return s == RLOCK_OK ? rlock_unlock(lk) : s;
}

/* Rights that were asked for and not given, but INFO. */
static void expect_nothing_denied(server *sv)
{
    redisReply *log = server_cmd(sv, "ACL LOG");
    EXPECT_INT(log->type, REDIS_REPLY_ARRAY);
    for (size_t i = 0; i < log->elements; i++)
        EXPECT_STR(log->element[i]->element[7]->str, "info");
}

static void use_everything(scene *one, scene *two)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_lock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(two->lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_holder_info(two->lk, &h), RLOCK_OK);
    events_wait(one->ev, RLOCK_EVENT_RENEWED, 2, SOON);
    EXPECT_STATUS(rlock_acquire(two->lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(one->lk, 60000), RLOCK_OK);
    test_thread *t = test_spawn(wait_and_unlock, two->lk);
    EVENTUALLY(SOON, queued(one->sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    EXPECT_INT(stats_of(two->cl).wakeups, 1);
    EXPECT_STATUS(rlock_lock(one->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(two->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_client_ping(one->cl), RLOCK_OK);
}

/* The command as it stands in the documents, on one line and for lock k. */
static void make_documented_user(server *sv)
{
    char cmd[1200] = "", word[100];
    FILE *f = fopen(RLOCK_SOURCE_DIR "/src/doc/rights.md", "r");
    bool inside = false;
    EXPECT(f != NULL);
    while (fscanf(f, "%99s", word) == 1 && !(inside && word[0] == '`')) {
        inside = inside || strcmp(word, "ACL") == 0;
        if (!inside)
            continue;
        const char *w = strcmp(word, ">PASSWORD") == 0   ? ">" SECRET
                        : strcmp(word, "~orders:*") == 0 ? "~job"
                                                         : word;
        snprintf(cmd + strlen(cmd), sizeof cmd - strlen(cmd), "%s ", w);
    }
    fclose(f);
    cmd[strlen(cmd) - 1] = '\0';
    EXPECT_STR(server_str(sv, cmd), "OK");
}

TEST(client, the_documented_user_can_do_everything)
{
    server *sv = server_start(NULL);
    make_documented_user(sv);
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    use_everything(&one, &two);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 0);
    expect_nothing_denied(sv);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client, the_minimal_user_can_do_everything)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    use_everything(&one, &two);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 0);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_RENEW_FAILED), 0);
    expect_nothing_denied(sv);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client, a_database_other_than_0_needs_select_as_well)
{
    server *sv = server_start(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "unix://app:" SECRET "@%s?db=2", server_path(sv));
    make_user(sv, NULL);
    expect_uri_refused(uri, RLOCK_ESERVER);
    EXPECT(strcasestr(message(), "select"));
    EXPECT_STR(server_str(sv, "ACL SETUSER app +select"), "OK");
    expect_uri_works(sv, uri, 2);
    server_stop(sv);
}

/* Tombstones, which only trouble brings, are within the rights as well. */
TEST(client, the_minimal_user_can_undo_an_acquire)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 900);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1), RLOCK_EIO);
    EVENTUALLY(SOON, server_int(sv, "DBSIZE") == 2); /* token, tombstone */
    expect_nothing_denied(sv);
    scene_stop(&s);
}

TEST(client, a_missing_command_is_named)
{
    server *sv = server_start(NULL);
    char uri[200];
    app_uri(sv, uri, sizeof uri);
    for (size_t i = 0; i < COUNT(needed); i++) {
        const char *command = needed[i];
        if (strcmp(command, "publish") == 0 ||
            strcmp(command, "subscribe") == 0 ||
            strcmp(command, "unsubscribe") == 0 ||
            strcmp(command, "zrank") == 0)
            continue; /* waiters can poll, and need not know their rank */
        server_cmd(sv, "SCRIPT FLUSH");
        make_user(sv, command);
        expect_uri_refused(uri, RLOCK_ESERVER);
        if (!strcasestr(message(), command))
            FAIL("\"%s\" does not name %s", message(), command);
    }
    server_stop(sv);
}

/* It would be missed when the server has lost its scripts. */
TEST(client, missing_eval_is_named_also_when_the_scripts_are_loaded)
{
    server *sv = server_start(NULL);
    char uri[200];
    make_user(sv, "eval");
    server_load_scripts(sv);
    expect_uri_refused(app_uri(sv, uri, sizeof uri), RLOCK_ESERVER);
    EXPECT(strcasestr(message(), "eval"));
    server_stop(sv);
}

TEST(client, several_missing_commands_are_named_together)
{
    server *sv = server_start(NULL);
    char uri[200];
    make_user(sv, NULL);
    server_cmd(sv, "ACL SETUSER app -hscan -zpopmin -hset");
    expect_uri_refused(app_uri(sv, uri, sizeof uri), RLOCK_ESERVER);
    EXPECT(strcasestr(message(), "hscan"));
    EXPECT(strcasestr(message(), "zpopmin"));
    EXPECT(strcasestr(message(), "hset"));
    server_stop(sv);
}

TEST(client, a_missing_key_pattern_is_named)
{
    static const char *const prefixes[] = {
        "rlock_token:", "rlock_queue:", "rlock_undone:"};
    server *sv = server_start(NULL);
    char uri[200];
    app_uri(sv, uri, sizeof uri);
    for (size_t i = 0; i < COUNT(prefixes); i++) {
        char pattern[32];
        snprintf(pattern, sizeof pattern, "~%s*", prefixes[i]);
        make_user(sv, pattern);
        expect_uri_refused(uri, RLOCK_ESERVER);
        EXPECT_CONTAINS(message(), prefixes[i]);
    }
    server_stop(sv);
}

TEST(client, a_lock_outside_the_users_keys_is_refused_and_named)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 0);
    rlock *lk = test_lock(s.cl, "elsewhere");
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "elsewhere");
    EXPECT_CONTAINS(message(), "permission");
    EXPECT_STATUS(rlock_acquire(lk, SOON, RLOCK_WATCHDOG), RLOCK_ESERVER);
    EXPECT_INT(server_int(sv, "DBSIZE"), 0);
    rlock_free(lk);
    scene_stop(&s);
}

/* Does it still let one client wait for the other? */
static void expect_polling_works(scene *one, scene *two)
{
    EXPECT_STATUS(rlock_acquire(one->lk, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(two->lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    events_wait(two->ev, RLOCK_EVENT_RENEWED, 2, SOON);
    EXPECT_STATUS(rlock_unlock(two->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(one->lk), RLOCK_LOST);
    EXPECT_INT(events_count(two->ev, RLOCK_EVENT_RENEW_FAILED), 0);
}

static void expect_warned_and_working(const char *without, const char *word)
{
    server *sv = server_start(NULL);
    make_user(sv, without);
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 1);
    EXPECT_CONTAINS(events_message(one.ev, RLOCK_EVENT_WARNING), word);
    expect_polling_works(&one, &two);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client, without_publish_waiters_poll)
{
    expect_warned_and_working("publish", "PUBLISH");
}

TEST(client, without_subscribe_waiters_poll)
{
    expect_warned_and_working("subscribe", "SUBSCRIBE");
}

TEST(client, without_zrank_waiters_do_without_their_rank)
{
    expect_warned_and_working("zrank", "ZRANK");
}

TEST(client, without_the_bells_channel_waiters_poll)
{
    server *sv = server_start(NULL);
    make_user(sv, "&rlock_bell:*");
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    EXPECT(events_count(one.ev, RLOCK_EVENT_WARNING) >= 1);
    expect_polling_works(&one, &two);
    scene_leave(&two);
    scene_stop(&one);
}

TEST(client, without_redissons_channel_all_works)
{
    server *sv = server_start(NULL);
    make_user(sv, "&redisson_lock__channel:*");
    scene one = scene_of_app(sv, 900), two = scene_of_app(sv, 900);
    use_everything(&one, &two);
    EXPECT_INT(events_count(one.ev, RLOCK_EVENT_WARNING), 0);
    scene_leave(&two);
    scene_stop(&one);
}

/* Either answer will do; but no connection may stay subscribed unnoticed. */
TEST(client, missing_unsubscribe_is_named_or_does_no_harm)
{
    server *sv = server_start(NULL);
    char uri[200];
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    make_user(sv, "unsubscribe");
    opts.uri = app_uri(sv, uri, sizeof uri);
    rlock_status made = rlock_client_new(&opts, &cl);
    rlock_client_free(cl);
    if (made != RLOCK_OK) {
        EXPECT_STATUS(made, RLOCK_ESERVER);
        EXPECT(strcasestr(message(), "unsubscribe"));
        server_stop(sv);
        return;
    }
    scene s = scene_of_app(sv, 900);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, events_count(s.ev, RLOCK_EVENT_RENEWED) >= 2 ||
                         events_count(s.ev, RLOCK_EVENT_LOST) > 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client, a_right_that_is_taken_away_later_is_reported)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 0);
    EXPECT_STR(server_str(sv, "ACL SETUSER app -evalsha"), "OK");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(message(), "evalsha");
    expect_no_secret();
    scene_stop(&s);
}

/* --- the connect callback ------------------------------------------------- */

typedef struct dialer {
    server *sv;
    atomic_int calls;
    void (*spoil)(redisContext *cx); /* what is wrong with the context */
    redisContext *again;             /* returned instead of a new one */
} dialer;

static redisContext *dial(void *arg)
{
    dialer *d = arg;
    atomic_fetch_add(&d->calls, 1);
    if (d->again)
        return d->again;
    redisContext *cx = redisConnectUnix(server_path(d->sv));
    EXPECT(cx && !cx->err);
    if (d->spoil)
        d->spoil(cx);
    return cx;
}

static rlock_options options_of(dialer *d)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = dial;
    opts.connect_arg = d;
    return opts;
}

static scene scene_dialed(dialer *d)
{
    rlock_options opts = options_of(d);
    return scene_with(d->sv, &opts);
}

static void ask(redisContext *cx, const char *cmd)
{
    redisReply *reply = redisCommand(cx, cmd);
    EXPECT(reply && reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

static void ask_without_reading(redisContext *cx, const char *cmd)
{
    int done = 0;
    EXPECT_INT(redisAppendCommand(cx, cmd), REDIS_OK);
    while (!done)
        EXPECT_INT(redisBufferWrite(cx, &done), REDIS_OK);
}

static void select_2(redisContext *cx)
{
    ask(cx, "SELECT 2");
}

TEST(client, the_callbacks_context_is_used_as_it_is)
{
    dialer d = {.sv = server_start(NULL), .spoil = select_2};
    scene s = scene_dialed(&d);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(d.sv, "SELECT 2");
    EXPECT_INT(server_int(d.sv, "HLEN job"), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(atomic_load(&d.calls) >= 1);
    scene_stop(&s);
}

TEST(client, the_callback_is_called_again_after_a_break)
{
    dialer d = {.sv = server_start(NULL)};
    scene s = scene_dialed(&d);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int calls = atomic_load(&d.calls);
    EXPECT(server_int(d.sv, "CLIENT KILL TYPE normal") > 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(atomic_load(&d.calls) > calls);
    EXPECT(stats_of(s.cl).reconnects >= 1);
    events_wait(s.ev, RLOCK_EVENT_RECONNECTED, 1, SOON);
    EXPECT_INT(server_int(d.sv, "EXISTS job"), 0);
    scene_stop(&s);
}

TEST(client, waiters_survive_a_break_of_all_connections)
{
    dialer d = {.sv = server_start(NULL)};
    scene s = scene_dialed(&d);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_and_unlock, s.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    server_cmd(d.sv, "CLIENT KILL TYPE pubsub");
    server_cmd(d.sv, "CLIENT KILL TYPE normal");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    scene_stop(&s);
}

static void expect_context_refused(void (*spoil)(redisContext *))
{
    dialer d = {.sv = server_start(NULL), .spoil = spoil};
    rlock_options opts = options_of(&d);
    expect_refused(&opts, RLOCK_EINVAL);
    EXPECT_INT(atomic_load(&d.calls), 1);
    EXPECT_CONTAINS(message(), "callback");
    EXPECT_INT(server_int(d.sv, "DBSIZE"), 0);
    server_stop(d.sv);
}

static void begin_multi(redisContext *cx)
{
    ask(cx, "MULTI");
}

static void subscribe(redisContext *cx)
{
    ask(cx, "SUBSCRIBE news");
}

static void psubscribe(redisContext *cx)
{
    ask(cx, "PSUBSCRIBE n*");
}

static void leave_ok_unread(redisContext *cx)
{
    ask_without_reading(cx, "CLIENT SETNAME x");
}

static void leave_pong_in_the_reader(redisContext *cx)
{
    static const char pong[] = "+PONG\r\n";
    EXPECT_INT(redisReaderFeed(cx->reader, pong, sizeof pong - 1), REDIS_OK);
}

static void make_non_blocking(redisContext *cx)
{
    cx->flags &= ~REDIS_BLOCK;
}

TEST(client, a_context_inside_multi_is_refused)
{
    expect_context_refused(begin_multi);
}

TEST(client, a_subscribed_context_is_refused)
{
    expect_context_refused(subscribe);
    expect_context_refused(psubscribe);
}

TEST(client, a_context_with_an_unread_reply_is_refused)
{
    expect_context_refused(leave_ok_unread);
    expect_context_refused(leave_pong_in_the_reader);
}

static redisContext *dial_and_leave_pong(void *arg)
{
    const fake *f = arg;
    redisContext *cx = redisConnect("127.0.0.1", f->port);
    EXPECT(cx && !cx->err);
    struct pollfd p = {.fd = cx->fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, SOON), 1);
    return cx;
}

/* It looks like the answer to the library's own first question. */
TEST(client, a_context_with_an_unread_pong_is_refused)
{
    fake f = {
        .greeting = "+PONG\r\n", .answers = ANSWERS(ECHO), .delay_ms = 100};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    fake_start(&f);
    opts.connect = dial_and_leave_pong;
    opts.connect_arg = &f;
    expect_refused(&opts, RLOCK_EINVAL);
    EXPECT_CONTAINS(message(), "callback");
    fake_stop(&f);
}

TEST(client, a_non_blocking_context_is_refused)
{
    expect_context_refused(make_non_blocking);
}

TEST(client, a_context_returned_twice_is_refused)
{
    dialer d = {.sv = server_start(NULL)};
    d.again = redisConnectUnix(server_path(d.sv));
    rlock_client *cl = NULL;
    rlock_options opts = options_of(&d);
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    EXPECT_CONTAINS(message(), "owns already");
    d.again = NULL;
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(d.sv);
}

static redisContext *dial_nothing(void *arg)
{
    (void)arg;
    return NULL;
}

static redisContext *dial_nowhere(void *arg)
{
    (void)arg;
    return redisConnectUnix("/nowhere/at/all");
}

static redisContext *dial_and_break(void *arg)
{
    redisContext *cx = redisConnectUnix(server_path(arg));
    EXPECT(cx && !cx->err);
    shutdown(cx->fd, SHUT_RDWR);
    return cx;
}

TEST(client, a_callback_that_fails_is_an_io_error)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = dial_nothing;
    expect_refused(&opts, RLOCK_EIO);
    EXPECT_CONTAINS(message(), "callback");
    opts.connect = dial_nowhere;
    expect_refused(&opts, RLOCK_EIO);
    EXPECT_CONTAINS(message(), "callback");
}

TEST(client, a_context_that_is_closed_is_an_io_error)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = dial_and_break;
    opts.connect_arg = sv;
    expect_refused(&opts, RLOCK_EIO);
    server_stop(sv);
}

/* --- ping, counters, the end ---------------------------------------------- */

TEST(client, ping_tells_whether_the_server_answers)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    EXPECT_STATUS(rlock_client_ping(NULL), RLOCK_EINVAL);
    server_kill(s.sv);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    EXPECT_CONTAINS(message(), "unix://");
    server_restart(s.sv);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    scene_stop(&s);
}

TEST(client, ping_gives_up_in_time)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.command_timeout_ms = 200;
    scene s = scene_with(server_start(NULL), &opts);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    server_pause(s.sv);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began, 199, 3000);
    server_resume(s.sv);
    scene_stop(&s);
}

TEST(client, stats_need_a_client_and_room)
{
    scene s = scene_start(0, 0);
    rlock_stats st;
    EXPECT_STATUS(rlock_client_stats(NULL, &st), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_client_stats(s.cl, NULL), RLOCK_EINVAL);
    scene_stop(&s);
}

TEST(client, stats_ask_no_server)
{
    scene s = scene_start(0, 0);
    long long before = server_info(s.sv, "total_commands_processed");
    stats_of(s.cl);
    EXPECT_INT(server_info(s.sv, "total_commands_processed") - before, 1);
    scene_stop(&s);
}

TEST(client, a_new_client_has_counted_nothing)
{
    scene s = scene_start(0, 0);
    rlock_stats st = stats_of(s.cl), zero;
    memset(&zero, 0, sizeof zero);
    zero.script_loads = st.script_loads;
    EXPECT_INT(memcmp(&st, &zero, sizeof st), 0);
    scene_stop(&s);
}

TEST(client, acquires_and_releases_are_counted)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, -2, 0), RLOCK_EINVAL);
    EXPECT_INT(stats_of(s.cl).held_now, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).held_now, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.acquires, 2);
    EXPECT_INT(st.acquires_failed, 1);
    EXPECT_INT(st.acquires_contended, 0);
    EXPECT_INT(st.releases, 2);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.lost, 0);
    EXPECT_INT(st.wait_us_total, 0);
    EXPECT(st.hold_us_total > 0);
    scene_stop(&s);
}

TEST(client, waits_are_counted_and_over_at_the_end)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_and_unlock, s.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    EVENTUALLY(SOON, stats_of(s.cl).waiting_now == 1);
    EXPECT_INT(stats_of(s.cl).acquires_contended, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.waiting_now, 0);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.acquires, 2);
    EXPECT_INT(st.acquires_contended, 1);
    EXPECT_INT(st.releases, 2);
    EXPECT_INT(st.wakeups, 1);
    EXPECT_INT(st.wakeups_futile, 0);
    EXPECT(st.wait_us_total > 0);
    scene_stop(&s);
}

TEST(client, failed_waits_are_counted_and_over_at_the_end)
{
    scene s = scene_start(0, 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock *lk = test_lock(other, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(lk, 50, 1000), RLOCK_TIMEOUT);
    rlock_stats st = stats_of(other);
    EXPECT_INT(st.acquires, 0);
    EXPECT_INT(st.acquires_failed, 2);
    EXPECT_INT(st.acquires_contended, 1);
    EXPECT_INT(st.waiting_now, 0);
    EXPECT_BETWEEN(st.wait_us_total, 49000, 5000000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(other);
    scene_stop(&s);
}

TEST(client, a_lost_hold_is_counted_once_and_held_no_more)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 150), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.lost, 1);
    EXPECT_INT(st.held_now, 0);
    EXPECT_INT(st.releases, 0);
    EXPECT_BETWEEN(st.hold_us_total, 140000, 5000000);
    scene_stop(&s);
}

TEST(client, renewals_are_counted)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 600;
    scene s = scene_with(server_start(NULL), &opts);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(s.cl).renewals == 2);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client, a_script_is_sent_whole_only_when_the_server_lacks_it)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    scene s = scene_with(server_start(NULL), &opts);
    lock_once(s.lk);
    uint64_t loads = stats_of(s.cl).script_loads;
    EXPECT_INT(loads, 3); /* probe, acquire, release */
    lock_once(s.lk);
    EXPECT_INT(stats_of(s.cl).script_loads, loads);
    server_cmd(s.sv, "SCRIPT FLUSH");
    lock_once(s.lk);
    EXPECT_INT(stats_of(s.cl).script_loads, loads + 2);
    scene_stop(&s);
}

TEST(client, fault_095_handles_outlive_their_client)
{
    scene s = scene_start(0, 0);
    bool locked;
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 60000), RLOCK_OK);
    EXPECT(rlock_is_held(s.lk)); /* the control */
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_OK);
    rlock_client_free(s.cl);
    s.cl = NULL;
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(rlock_hold_count(s.lk), 0);
    EXPECT_INT(rlock_token(s.lk), 0);
    EXPECT_INT(rlock_valid_ms(s.lk), 0);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_is_locked(s.lk, &locked), RLOCK_ECLOSED);
    rlock_cancel(s.lk);
    EXPECT_INT(server_int(s.sv, "HLEN job"), 1); /* till its lease ends */
    EXPECT_BETWEEN(server_int(s.sv, "PTTL job"), 30000, 60000);
    scene_stop(&s);
}

static intptr_t wait_forever(void *lk)
{
    return rlock_lock(lk);
}

TEST(client, free_wakes_waiters)
{
    scene s = scene_start(0, 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock *lk = test_lock(other, SCENE_LOCK);
    test_thread *t[3];
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    for (int i = 0; i < 3; i++)
        t[i] = test_spawn(wait_forever, lk);
    EVENTUALLY(SOON, stats_of(other).waiting_now == 3);
    int64_t began = test_now_ms();
    rlock_client_free(other);
    EXPECT_BETWEEN(test_now_ms() - began, 0, 5000);
    for (int i = 0; i < 3; i++)
        EXPECT_STATUS((rlock_status)test_join(t[i]), RLOCK_ECLOSED);
    EXPECT_INT(server_int(s.sv, "EXISTS rlock_queue:{job}"), 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS job"), 0);
    rlock_free(lk);
    scene_stop(&s);
}

TEST(client, free_closes_every_connection)
{
    scene s = scene_start(0, 0);
    rlock_client *other = server_client(s.sv, NULL);
    rlock *lk = test_lock(other, SCENE_LOCK);
    long long before = server_info(s.sv, "connected_clients");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT(server_info(s.sv, "connected_clients") > before);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(other);
    rlock_free(s.lk);
    rlock_client_free(s.cl);
    EVENTUALLY(SOON, server_info(s.sv, "connected_clients") == 1);
    s.cl = NULL;
    s.lk = NULL;
    scene_stop(&s);
}

/* Is the password in any message or event that trouble brings about? */
TEST(client, no_trouble_brings_the_password_out)
{
    server *sv = server_start(NULL);
    make_user(sv, NULL);
    scene s = scene_of_app(sv, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(sv, "ACL SETUSER app resetpass");
    server_cmd(sv, "CLIENT KILL TYPE normal");
    events_wait(s.ev, RLOCK_EVENT_RENEW_FAILED, 1, SOON);
    EXPECT(!strstr(events_message(s.ev, RLOCK_EVENT_RENEW_FAILED), SECRET));
    EXPECT(rlock_unlock(s.lk) != RLOCK_OK);
    expect_no_secret();
    EXPECT(rlock_client_ping(s.cl) != RLOCK_OK);
    expect_no_secret();
    scene_stop(&s);
}
