/* Addresses of servers, with what is needed to log in. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"

TEST(client_address, tcp_with_user_password_and_database)
{
    server *sv = server_of_alice();
    char uri[200];
    snprintf(uri, sizeof uri, "redis://alice:" SECRET "@127.0.0.1:%d/3",
             server_port(sv));
    expect_uri_works(sv, uri, 3);
    server_stop(sv);
}

TEST(client_address, tcp_with_a_password_only)
{
    server *sv = server_start_tcp(NULL);
    char uri[200];
    server_cmd(sv, "CONFIG SET requirepass " SECRET);
    snprintf(uri, sizeof uri, "redis://:" SECRET "@127.0.0.1:%d",
             server_port(sv));
    expect_uri_works(sv, uri, 0);
    server_stop(sv);
}

TEST(client_address, tcp_by_name_and_without_login)
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

TEST(client_address, tcp_with_an_ipv6_address)
{
    if (!has_ipv6())
        SKIP("no IPv6 here");
    server *sv = server_start_tcp("--bind 127.0.0.1 ::1");
    char uri[200];
    snprintf(uri, sizeof uri, "redis://[::1]:%d/1", server_port(sv));
    expect_uri_works(sv, uri, 1);
    server_stop(sv);
}

TEST(client_address, unix_socket)
{
    server *sv = server_start(NULL);
    expect_uri_works(sv, server_uri(sv), 0);
    server_stop(sv);
}

TEST(client_address, unix_socket_with_a_database)
{
    server *sv = server_start(NULL);
    char uri[200];
    snprintf(uri, sizeof uri, "%s?db=5", server_uri(sv));
    expect_uri_works(sv, uri, 5);
    server_stop(sv);
}

TEST(client_address, unix_socket_with_a_login)
{
    server *sv = server_of_alice();
    char uri[200];
    snprintf(uri, sizeof uri, "unix://alice:" SECRET "@%s?db=2",
             server_path(sv));
    expect_uri_works(sv, uri, 2);
    server_stop(sv);
}

TEST(client_address, a_user_alone_logs_in_as_one_who_needs_no_password)
{
    server *sv = server_start_tcp(NULL);
    char uri[200];
    server_cmd(sv, "CONFIG SET requirepass " SECRET);
    EXPECT_STR(server_str(sv, "ACL SETUSER open on nopass ~* &* +@all"), "OK");
    snprintf(uri, sizeof uri, "redis://open@127.0.0.1:%d", server_port(sv));
    expect_uri_works(sv, uri, 0);
    server_stop(sv);
}

TEST(client_address, escapes_in_user_password_and_path)
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

TEST(client_address, fault_107_a_malformed_scheme_is_located)
{
    expect_well_formed("redis://alice:" SECRET "@127.0.0.1:1");
    expect_malformed("", 1);
    expect_malformed("127.0.0.1:6379", 1);
    expect_malformed("http://localhost", 1);
    expect_malformed("redis:/localhost", 1);
    expect_malformed("alice:" SECRET "@localhost", 1);
}

TEST(client_address, fault_107_a_malformed_tcp_address_is_located)
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

TEST(client_address, fault_107_a_malformed_database_is_located)
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

TEST(client_address, fault_107_a_malformed_escape_is_located)
{
    expect_well_formed("redis://u:" SECRET "%40@127.0.0.1:1");
    expect_malformed("redis://u:" SECRET "%@h", 17);
    expect_malformed("redis://u:" SECRET "%4@h", 17);
    expect_malformed("redis://u:" SECRET "%zz@h", 17);
    expect_malformed("redis://u:" SECRET "%00@h", 17);
    expect_malformed("unix:///s%", 10);
}

TEST(client_address, fault_107_a_malformed_path_is_located)
{
    char uri[300] = "unix:///";
    expect_well_formed("unix://u:" SECRET "@/nowhere");
    memset(uri + strlen(uri), 'p', 200);
    expect_malformed(uri, 8);
    expect_malformed("unix://", 8);
    expect_malformed("unix://relative", 8);
    expect_malformed("unix://u:" SECRET "@relative/path", 17);
}
