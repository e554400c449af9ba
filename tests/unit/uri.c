/* Every form of a URI; where an error is, and that no secret is told. */
#include "net/uri.h"

#include <errno.h>

#include "shim.h"
#include "test.h"

static rl_uri parse(const char *text)
{
    rl_uri u;
    rl_fault f = {0};
    rlock_status s = rl_uri_parse(&u, text, &f);
    if (s != RLOCK_OK)
        FAIL("%s: %s", text ? text : "NULL", f.text);
    return u;
}

static void expect_tcp(const char *text, const char *host, int port, int db)
{
    rl_uri u = parse(text);
    EXPECT(!u.local && !u.user && !u.password);
    EXPECT_STR(u.host, host);
    EXPECT_INT(u.port, port);
    EXPECT_INT(u.db, db);
    rl_uri_fini(&u);
}

TEST(uri, none_is_the_default_server)
{
    expect_tcp(NULL, "127.0.0.1", 6379, 0);
}

#define TCP(name, text, host, port, db)                                        \
    TEST_CASE(uri, name, expect_tcp(text, host, port, db))

TCP(a_host_has_the_usual_port, "redis://h", "h", 6379, 0)
TCP(a_slash_alone_is_database_0, "redis://h/", "h", 6379, 0)
TCP(the_least_port, "redis://h:1", "h", 1, 0)
TCP(the_largest_port, "redis://h:65535/", "h", 65535, 0)
TCP(host_port_and_database, "redis://e.org:7000/15", "e.org", 7000, 15)
TCP(an_address_and_a_database, "redis://10.0.0.1/3", "10.0.0.1", 6379, 3)
TCP(a_port_with_zeros_before_it, "redis://h:06379", "h", 6379, 0)
TCP(a_host_with_an_escape, "redis://h%2do", "h-o", 6379, 0)
TCP(the_largest_database, "redis://h/1048576", "h", 6379, 1048576)
TCP(an_ipv6_address, "redis://[::1]", "::1", 6379, 0)
TCP(an_ipv6_address_with_all, "redis://[fe80::1]:7000/2", "fe80::1", 7000, 2)
TCP(an_ipv6_address_and_a_database, "redis://[::1]/4", "::1", 6379, 4)

TEST(uri, an_ipv6_address_is_shown_in_brackets)
{
    rl_uri u = parse("redis://[::1]:7000");
    EXPECT_STR(u.shown, "redis://[::1]:7000");
    rl_uri_fini(&u);
}

static void expect_login(const char *text, const char *user, const char *pass)
{
    rl_uri u = parse(text);
    if (user)
        EXPECT_STR(u.user, user);
    else
        EXPECT(!u.user);
    if (pass)
        EXPECT_STR(u.password, pass);
    else
        EXPECT(!u.password);
    EXPECT_STR(u.host, u.local ? "/s" : "h");
    rl_uri_fini(&u);
}

#define LOGIN(name, text, user, password)                                      \
    TEST_CASE(uri, name, expect_login(text, user, password))

LOGIN(user_and_password, "redis://u:p@h", "u", "p")
LOGIN(a_password_alone, "redis://:p@h:1/2", NULL, "p")
LOGIN(a_user_alone, "redis://u@h", "u", NULL)
LOGIN(an_empty_password, "redis://u:@h", "u", "")
LOGIN(neither_of_both, "redis://@h", NULL, NULL)
LOGIN(a_user_of_a_socket, "unix://u@/s", "u", NULL)
LOGIN(user_and_password_of_a_socket, "unix://u:p@/s", "u", "p")
LOGIN(a_password_of_a_socket, "unix://:p@/s?db=1", NULL, "p")

LOGIN(a_password_with_an_at, "redis://u:p@q@h", "u", "p@q")
LOGIN(a_password_with_a_colon, "redis://u:p:q@h", "u", "p:q")
LOGIN(escapes_in_both, "redis://u%3av:p%40%2F%25@h", "u:v", "p@/%")
LOGIN(a_password_in_utf_8, "redis://:%c3%A9@h", NULL, "\xc3\xa9")
LOGIN(a_slash_in_a_sockets_password, "unix://:a%2fb@/s", NULL, "a/b")

static void expect_local(const char *text, const char *path, int db)
{
    rl_uri u = parse(text);
    EXPECT(u.local);
    EXPECT_STR(u.host, path);
    EXPECT_INT(u.db, db);
    rl_uri_fini(&u);
}

#define LOCAL(name, text, path, db)                                            \
    TEST_CASE(uri, name, expect_local(text, path, db))

LOCAL(a_socket, "unix:///s", "/s", 0)
LOCAL(a_socket_and_a_database, "unix:///run/redis.sock?db=7", "/run/redis.sock",
      7)
LOCAL(a_socket_and_the_largest_database, "unix:///s?db=1048576", "/s", 1048576)
LOCAL(a_socket_and_database_0, "unix:///s?db=0", "/s", 0)
LOCAL(a_socket_with_escapes, "unix:///a%20b%3Fc", "/a b?c", 0)
LOCAL(a_socket_with_signs_of_a_login, "unix:///a@b:c", "/a@b:c", 0)

static void expect_bad(const char *text, int position)
{
    rl_uri u;
    rl_fault f = {0};
    char wanted[64];
    EXPECT_INT(rl_uri_parse(&u, text, &f), RLOCK_EINVAL);
    snprintf(wanted, sizeof wanted, "position %d:", position);
    if (!strstr(f.text, wanted))
        FAIL("%s: \"%s\", expected %s", text, f.text, wanted);
    rl_uri_fini(&u);
}

/* A test for each: where the error is said to be, counted from 1. */
#define BAD(name, text, position)                                              \
    TEST_CASE(uri, name, expect_bad(text, position))

BAD(no_uri_at_all, "", 1)
BAD(a_host_without_a_scheme, "localhost:6379", 1)
BAD(another_scheme, "http://h", 1)
BAD(a_scheme_with_one_slash, "redis:/h", 1)
BAD(a_scheme_without_its_colon, "REDIS//h", 1)
BAD(a_scheme_in_capitals, "REDIS://h", 1)
BAD(a_blank_before_the_scheme, " redis://h", 1)

BAD(an_empty_port, "redis://h:", 11)
BAD(port_0, "redis://h:0", 11)
BAD(a_port_above_the_largest, "redis://h:65536", 11)
BAD(a_port_that_overflows, "redis://h:99999999999999999999", 11)
BAD(a_negative_port, "redis://h:-1", 11)
BAD(a_port_with_a_sign, "redis://h:+1", 11)
BAD(a_port_that_goes_on, "redis://h:6379x/0", 11)
BAD(a_port_with_a_blank, "redis://h: 6379", 11)
BAD(a_port_behind_a_login, "redis://u:p@h:x", 15)
BAD(a_port_behind_brackets, "redis://[::1]:x", 15)

BAD(no_host, "redis://", 9)
BAD(no_host_but_a_port, "redis://:6379", 9)
BAD(no_host_but_a_login, "redis://u:p@/0", 13)
BAD(no_closing_bracket, "redis://[::1", 9)
BAD(something_behind_the_bracket, "redis://[::1]x", 14)
BAD(nothing_in_brackets, "redis://[]", 10)

BAD(a_database_that_is_no_number, "redis://h/x", 11)
BAD(a_negative_database, "redis://h/-1", 11)
BAD(two_databases, "redis://h/1/2", 11)
BAD(a_database_that_overflows, "redis://h/99999999999999999999", 11)
BAD(a_database_above_the_largest, "redis://h/1048577", 11)
BAD(a_sockets_database_above_the_largest, "unix:///s?db=1048577", 14)
BAD(a_query_behind_the_database, "redis://h/0?x=1", 11)
BAD(an_empty_database_of_a_socket, "unix:///s?db=", 14)
BAD(a_word_for_a_sockets_database, "unix:///s?db=x", 14)
BAD(an_option_that_is_unknown, "unix:///s?x=1", 11)
BAD(an_empty_query, "unix:///s?", 11)

/* What is no path must not be dropped without a word. */
BAD(a_query_behind_the_host, "redis://h?db=1", 10)
BAD(a_fragment_behind_the_host, "redis://h#x", 10)
BAD(a_query_behind_the_port, "redis://h:1?db=1", 11)

BAD(a_relative_path, "unix://s", 8)
BAD(no_path, "unix://", 8)
BAD(a_relative_path_behind_a_login, "unix://u:p@s/t", 12)

TEST(uri, a_socket_path_that_does_not_fit_is_refused)
{
    char text[200] = "unix:///";
    memset(text + 8, 'x', 106); /* with the slash 107, and a NUL */
    expect_local(text, text + 7, 0);
    text[8 + 106] = 'x';
    expect_bad(text, 8);
}

BAD(an_escape_without_digits, "redis://:p%@h", 11)
BAD(an_escape_of_one_digit, "redis://:p%4@h", 11)
BAD(an_escape_of_letters, "redis://:p%zz@h", 11)
BAD(an_escape_of_nul, "redis://:p%00q@h", 11)
BAD(an_escape_at_the_end, "redis://h%", 10)

/* Digits, and what stands beside them in ASCII. */
TEST(uri, an_escape_has_two_hexadecimal_digits)
{
    for (const char *c = "09afAF/:`g@G"; *c; c++) {
        for (int place = 0; place < 2; place++) {
            char text[] = "redis://:p%77@h", wanted[] = {'p', 0, 0};
            text[11 + place] = *c;
            if (!strchr("09afAF", *c)) {
                expect_bad(text, 11);
                continue;
            }
            wanted[1] = (char)strtol((char[]){text[11], text[12], 0}, NULL, 16);
            expect_login(text, NULL, wanted);
        }
    }
    expect_login("redis://:p%10@h", NULL, "p\x10");
    expect_login("redis://:p%01@h", NULL, "p\x01");
}

static void expect_why(const char *text, const char *why)
{
    rl_uri u;
    rl_fault f = {0};
    char wanted[200];
    EXPECT_INT(rl_uri_parse(&u, text, &f), RLOCK_EINVAL);
    snprintf(wanted, sizeof wanted, "malformed URI at position %s", why);
    EXPECT_STR(f.text, wanted);
    EXPECT(f.sys_errno == 0 && !f.transient);
    rl_uri_fini(&u);
}

#define WHY(name, text, why) TEST_CASE(uri, why_##name, expect_why(text, why))

WHY(a_scheme, "http://h",
    "1: expected redis://, rediss://, unix://, redis(s)-sentinel:// or "
    "redis(s)-cluster://")
WHY(an_escape, "redis://%", "9: bad %XX escape")
WHY(a_port, "redis://h:x", "11: not a port")
WHY(a_host, "redis://", "9: missing host")
WHY(a_bracket, "redis://[::1", "9: missing ]")
WHY(behind_a_bracket, "redis://[::1]x", "14: expected : after ]")
WHY(a_database, "redis://h/x", "11: not a database number")
WHY(a_path, "unix://s", "8: the socket's path must be absolute")
WHY(an_option, "unix:///s?x=1", "11: unknown option, expected db=")
WHY(a_sockets_database, "unix:///s?db=", "14: not a database number")
WHY(hosts, "redis-cluster://a,b,c,d,e,f,g,h,i", "33: too many hosts")
WHY(a_name, "redis-sentinel://a", "19: expected / and the master's name")
WHY(a_name_that_goes_on, "redis-sentinel://a/m?x",
    "21: unexpected in the master's name")
WHY(a_masters_database, "redis-sentinel://a/m/x", "22: not a database number")
WHY(a_clusters_database, "redis-cluster://a/1",
    "18: a cluster has no other database than 0")

TEST(uri, of_a_master_that_sentinels_name)
{
    rl_uri u;
    rl_fault f = {0};
    EXPECT_INT(rl_uri_parse(
                   &u, "redis-sentinel://me:hu%73h@a,b:7,[::1]:8/my%20m/3", &f),
               RLOCK_OK);
    EXPECT_INT(u.endpoints, 3);
    EXPECT_STR(u.endpoint[0].host, "a");
    EXPECT_INT(u.endpoint[0].port, 26379);
    EXPECT_STR(u.endpoint[1].host, "b");
    EXPECT_INT(u.endpoint[1].port, 7);
    EXPECT_STR(u.endpoint[2].host, "::1");
    EXPECT_INT(u.endpoint[2].port, 8);
    EXPECT_STR(u.master, "my m");
    EXPECT_STR(u.user, "me");
    EXPECT_STR(u.password, "hush");
    EXPECT(u.db == 3 && !u.tls);
    EXPECT_STR(u.shown, "redis-sentinel://a:26379/my m");
    rl_uri_fini(&u);
    EXPECT_INT(rl_uri_parse(&u, "rediss-sentinel://a/m", &f), RLOCK_OK);
    EXPECT(u.tls);
    rl_uri_fini(&u);
}

BAD(a_clusters_path, "redis-cluster://a/0/", 18)
BAD(a_clusters_query, "redis-cluster://a?x", 18)
BAD(a_clusters_second_port, "redis-cluster://a,b:x", 21)
BAD(a_masters_database_above_the_largest, "redis-sentinel://a/m/1048577", 22)
BAD(sentinels_with_two_names, "redis-sentinel://a//m", 19)
BAD(sentinels_without_a_host, "redis-sentinel:///m", 18)

static void expect_cluster(const char *text, size_t endpoints, bool tls)
{
    rl_uri u = parse(text);
    EXPECT(u.cluster && !u.master && u.db == 0 && u.tls == tls);
    EXPECT_INT(u.endpoints, endpoints);
    EXPECT_STR(u.endpoint[0].host, "a");
    EXPECT_INT(u.endpoint[0].port, 7);
    EXPECT_STR(u.endpoint[endpoints - 1].host, endpoints > 1 ? "h-o" : "a");
    EXPECT_INT(u.endpoint[endpoints - 1].port, endpoints > 1 ? 6379 : 7);
    EXPECT_STR(u.host, "a");
    EXPECT_INT(u.port, 7);
    EXPECT_STR(u.secure, "rediss-cluster://");
    EXPECT_STR(u.shown, tls ? "rediss-cluster://a:7" : "redis-cluster://a:7");
    rl_uri_fini(&u);
}

#define CLUSTER(name, text, endpoints, tls)                                    \
    TEST_CASE(uri, of_a_cluster_##name, expect_cluster(text, endpoints, tls))

CLUSTER(by_one_server, "redis-cluster://a:7", 1, false)
CLUSTER(with_a_slash, "redis-cluster://a:7/", 1, false)
CLUSTER(with_its_database, "redis-cluster://a:7/0", 1, false)
CLUSTER(by_two, "redis-cluster://u:p@a:7,h%2do", 2, false)
CLUSTER(by_eight, "redis-cluster://a:7,b,c,d,e,f,g,h%2do", 8, false)
CLUSTER(with_tls, "rediss-cluster://a:7,h%2do", 2, true)

/* What is said in case of a port for TLS. */
static void expect_secure(const char *text, const char *secure)
{
    rl_uri u = parse(text);
    EXPECT_STR(u.secure ? u.secure : "", secure);
    rl_uri_fini(&u);
}

TEST_CASE(uri, of_a_server_over_tls_is_the_usual_one,
          expect_secure("redis://h", ""))
TEST_CASE(uri, of_sentinels_over_tls_has_a_scheme_of_its_own,
          expect_secure("redis-sentinel://h/m", "rediss-sentinel://"))

/* --- of another server -------------------------------------------------------- */

static void expect_like(const char *text, const char *host, const char *shown)
{
    rl_uri like = parse(text), u;
    rl_fault f;
    EXPECT_INT(rl_uri_of(&u, &like, host, 8, &f), RLOCK_OK);
    EXPECT_STR(u.host, host);
    EXPECT(u.host != host && u.port == 8 && u.db == 0 && !u.cluster);
    EXPECT_INT(u.tls, like.tls);
    EXPECT(u.secure == like.secure);
    EXPECT_STR(u.user ? u.user : "-", like.user ? like.user : "-");
    EXPECT_STR(u.password ? u.password : "-",
               like.password ? like.password : "-");
    EXPECT_STR(u.shown, shown);
    rl_uri_fini(&like);
    rl_uri_fini(&u);
}

TEST_CASE(uri, of_another_server_has_the_same_login,
          expect_like("redis-cluster://u:p@a:7", "bb", "redis://bb:8"))
TEST_CASE(uri, of_another_server_has_the_same_password,
          expect_like("redis-cluster://:p@a:7", "b", "redis://b:8"))
TEST_CASE(uri, of_another_server_has_no_login_if_there_is_none,
          expect_like("redis-cluster://a:7", "::1", "redis://[::1]:8"))
TEST_CASE(uri, of_another_server_has_tls_as_the_first,
          expect_like("rediss-cluster://u@a:7", "b", "rediss://b:8"))

TEST(uri, without_memory_there_is_none)
{
    rl_uri like = parse("redis://u:p@h"), u;
    rl_fault f;
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rlock_status s = rl_uri_of(&u, &like, "h", 1, &f);
    shim_clear(shim_here());
    EXPECT_INT(s, RLOCK_ENOMEM);
    EXPECT_STR(f.text, "out of memory");
    EXPECT_INT(f.sys_errno, 0);
    rl_uri_fini(&u);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    s = rl_uri_parse(&u, "redis://h", &f);
    shim_clear(shim_here());
    EXPECT_INT(s, RLOCK_ENOMEM);
    EXPECT_STR(f.text, "out of memory");
    EXPECT_INT(f.sys_errno, 0);
    rl_uri_fini(&u);
    rl_uri_fini(&like);
}

BAD(sentinels_without_a_name, "redis-sentinel://a:1", 21)
BAD(sentinels_with_an_empty_name, "redis-sentinel://a:1/", 21)
BAD(a_sentinel_without_a_host, "redis-sentinel://a,/m", 20)
BAD(a_sentinel_with_a_bad_port, "redis-sentinel://a,b:x/m", 22)
BAD(sentinels_with_an_option, "redis-sentinel://a/m?db=1", 21)
BAD(too_many_sentinels, "redis-sentinel://a,b,c,d,e,f,g,h,i/m", 34)
BAD(sentinels_with_a_bad_database, "redis-sentinel://a/m/x", 22)

TEST(uri, of_a_server_with_tls)
{
    rl_uri u;
    rl_fault f = {0};
    EXPECT_INT(rl_uri_parse(&u, "rediss://u:hush@h:7/2", &f), RLOCK_OK);
    EXPECT(u.tls && u.port == 7 && u.db == 2);
    EXPECT_STR(u.host, "h");
    EXPECT_STR(u.password, "hush");
    EXPECT_STR(u.shown, "rediss://h:7");
    rl_uri_fini(&u);
}

/* A port may be a piece of a password that holds an unescaped / or #. */
TEST(uri, fault_107_no_message_has_a_piece_of_the_uri)
{
    static const char *const texts[] = {"redis://user:hush@h:hush",
                                        "redis://:hush@h/hush",
                                        "redis://user:hu/hush@h",
                                        "redis://:hush%zz@h",
                                        "redis://:hush#hush@h",
                                        "redis://user:hush@",
                                        "unix://user:hush@relative/s",
                                        "unix://:hush@/s?hush=1",
                                        "hush://hush@h",
                                        "redis://:hush@[::1"};
    expect_login("redis://user:hush@h", "user", "hush"); /* the control */
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        rl_uri u;
        rl_fault f = {0};
        EXPECT_INT(rl_uri_parse(&u, texts[i], &f), RLOCK_EINVAL);
        if (strstr(f.text, "hush") || strstr(u.shown, "hush"))
            FAIL("%s: \"%s\"", texts[i], f.text);
        rl_uri_fini(&u);
    }
}

static void expect_shown(const char *text, const char *wanted)
{
    rl_uri u = parse(text);
    EXPECT_STR(u.shown, wanted);
    rl_uri_fini(&u);
}

TEST(uri, is_shown_without_login)
{
    expect_shown("redis://user:hush@h/2", "redis://h:6379");
    expect_shown("unix://user:hush@/run/s?db=2", "unix:///run/s");
    expect_shown("unix:///a%0ab", "unix:///a\\x0ab");
}

TEST(uri, a_long_host_is_shown_shortened)
{
    char text[1000] = "redis://";
    memset(text + 8, 'h', 900);
    strcpy(text + 908, ":1234");
    rl_uri u = parse(text);
    EXPECT_INT(strlen(u.host), 900);
    EXPECT_CONTAINS(u.shown, "...:1234");
    rl_uri_fini(&u);
}
