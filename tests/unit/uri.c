/* Every form of a URI; where an error is, and that no secret is told. */
#include "net/uri.h"
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

TEST(uri, tcp)
{
    expect_tcp("redis://h", "h", 6379, 0);
    expect_tcp("redis://h/", "h", 6379, 0);
    expect_tcp("redis://h:1", "h", 1, 0);
    expect_tcp("redis://h:65535/", "h", 65535, 0);
    expect_tcp("redis://example.org:7000/15", "example.org", 7000, 15);
    expect_tcp("redis://10.0.0.1/3", "10.0.0.1", 6379, 3);
}

TEST(uri, ipv6)
{
    expect_tcp("redis://[::1]", "::1", 6379, 0);
    expect_tcp("redis://[fe80::1]:7000/2", "fe80::1", 7000, 2);
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

TEST(uri, login)
{
    expect_login("redis://u:p@h", "u", "p");
    expect_login("redis://:p@h:1/2", NULL, "p");
    expect_login("redis://u@h", "u", NULL);
    expect_login("unix://u@/s", "u", NULL);
    expect_login("unix://u:p@/s", "u", "p");
    expect_login("unix://:p@/s?db=1", NULL, "p");
    expect_login("redis://u:@h", "u", "");
}

TEST(uri, login_with_unusual_characters)
{
    expect_login("redis://u:p@q@h", "u", "p@q");
    expect_login("redis://u:p:q@h", "u", "p:q");
    expect_login("redis://u%3av:p%40%2F%25@h", "u:v", "p@/%");
    expect_login("redis://:%c3%A9@h", NULL, "\xc3\xa9");
    expect_login("unix://:a%2fb@/s", NULL, "a/b");
}

static void expect_local(const char *text, const char *path, int db)
{
    rl_uri u = parse(text);
    EXPECT(u.local);
    EXPECT_STR(u.host, path);
    EXPECT_INT(u.db, db);
    rl_uri_fini(&u);
}

TEST(uri, unix_socket)
{
    expect_local("unix:///s", "/s", 0);
    expect_local("unix:///run/redis/redis.sock?db=7", "/run/redis/redis.sock",
                 7);
    expect_local("unix:///a%20b%3Fc", "/a b?c", 0);
    expect_local("unix:///a@b:c", "/a@b:c", 0);
}

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

TEST(uri, unknown_scheme)
{
    expect_bad("", 1);
    expect_bad("localhost:6379", 1);
    expect_bad("http://h", 1);
    expect_bad("redis:/h", 1);
    expect_bad("REDIS//h", 1);
    expect_bad(" redis://h", 1);
}

TEST(uri, bad_port)
{
    expect_bad("redis://h:", 11);
    expect_bad("redis://h:0", 11);
    expect_bad("redis://h:65536", 11);
    expect_bad("redis://h:99999999999999999999", 11);
    expect_bad("redis://h:-1", 11);
    expect_bad("redis://h:6379x/0", 11);
    expect_bad("redis://h: 6379", 11);
    expect_bad("redis://u:p@h:x", 15);
    expect_bad("redis://[::1]:x", 15);
}

TEST(uri, bad_host)
{
    expect_bad("redis://", 9);
    expect_bad("redis://:6379", 9);
    expect_bad("redis://u:p@/0", 13);
    expect_bad("redis://[::1", 9);
    expect_bad("redis://[::1]x", 14);
    expect_bad("redis://[]", 10);
}

TEST(uri, bad_database)
{
    expect_bad("redis://h/x", 11);
    expect_bad("redis://h/-1", 11);
    expect_bad("redis://h/1/2", 11);
    expect_bad("redis://h/99999999999999999999", 11);
    expect_bad("redis://h/0?x=1", 11);
    expect_bad("unix:///s?db=", 14);
    expect_bad("unix:///s?db=x", 14);
    expect_bad("unix:///s?x=1", 11);
    expect_bad("unix:///s?", 11);
}

/* What is no path must not be dropped without a word. */
TEST(uri, a_query_or_fragment_after_a_host_is_refused)
{
    expect_bad("redis://h?db=1", 10);
    expect_bad("redis://h#x", 10);
    expect_bad("redis://h:1?db=1", 11);
}

TEST(uri, bad_path)
{
    expect_bad("unix://s", 8);
    expect_bad("unix://", 8);
    expect_bad("unix://u:p@s/t", 12);
}

TEST(uri, a_socket_path_that_does_not_fit_is_refused)
{
    char text[200] = "unix:///";
    memset(text + 8, 'x', 106); /* with the slash 107, and a NUL */
    expect_local(text, text + 7, 0);
    text[8 + 106] = 'x';
    expect_bad(text, 8);
}

TEST(uri, bad_escape)
{
    expect_bad("redis://:p%@h", 11);
    expect_bad("redis://:p%4@h", 11);
    expect_bad("redis://:p%zz@h", 11);
    expect_bad("redis://:p%00q@h", 11);
    expect_bad("redis://h%", 10);
}

TEST(uri, tls_is_not_supported)
{
    rl_uri u;
    rl_fault f = {0};
    EXPECT_INT(rl_uri_parse(&u, "rediss://u:hush@h", &f), RLOCK_ENOTSUP);
    EXPECT(!strstr(f.text, "hush"));
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
