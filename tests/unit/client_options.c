/* Which options a client takes, to the last value, and what it says of others. */
#include "client/options.h"

#include <stddef.h>
#include <unistd.h>

#include "handles.h"
#include "shim.h"

static rlock_options none(void)
{
    return (rlock_options)RLOCK_OPTIONS_INIT;
}

static void expect_taken(const rlock_options *o)
{
    rlock_options to;
    EXPECT_STATUS(rl_client_options_read(&to, o), RLOCK_OK);
    EXPECT(memcmp(&to, o, sizeof to) == 0);
}

static void expect_refused(const rlock_options *o, const char *what)
{
    rlock_options to;
    char message[100];
    snprintf(message, sizeof message, "bad option: %s", what);
    INVALID(rl_client_options_read(&to, o), message);
}

/* --- numbers -------------------------------------------------------------- */

/* Its first and last value are taken, and those beyond are not. */
static void expect_range(size_t offset, int64_t first, int64_t last,
                         const char *what)
{
    rlock_options o = none();
    int64_t *member = (int64_t *)(void *)((char *)&o + offset);
    expect_taken(&o);
    *member = first;
    expect_taken(&o);
    *member = last;
    expect_taken(&o);
    *member = first - 1;
    expect_refused(&o, what);
    *member = INT64_MIN;
    expect_refused(&o, what);
    if (last == INT64_MAX)
        return;
    *member = last + 1;
    expect_refused(&o, what);
    *member = INT64_MAX;
    expect_refused(&o, what);
}

#define RANGE_CASE(name, member, ...)                                          \
    TEST_CASE(client_options, name,                                            \
              expect_range(offsetof(rlock_options, member), __VA_ARGS__))

RANGE_CASE(have_a_time_to_connect, connect_timeout_ms, 0, RLOCK_LEASE_MAX_MS,
           "connect_timeout_ms")
RANGE_CASE(have_a_time_for_a_command, command_timeout_ms, 0, RLOCK_LEASE_MAX_MS,
           "command_timeout_ms")
RANGE_CASE(have_a_time_for_replicas, replica_wait_ms, 0, RLOCK_LEASE_MAX_MS,
           "replica_wait_ms")
RANGE_CASE(have_a_time_that_a_hold_may_take, warn_hold_ms, 0,
           RLOCK_LEASE_MAX_MS, "warn_hold_ms")
RANGE_CASE(have_a_time_that_a_wait_may_take, warn_wait_ms, 0,
           RLOCK_LEASE_MAX_MS, "warn_wait_ms")
RANGE_CASE(have_a_lease, watchdog_lease_ms, 100, RLOCK_LEASE_MAX_MS,
           "watchdog_lease_ms (at least 100)")
RANGE_CASE(have_an_age_of_holds, max_hold_ms, 0, INT64_MAX, "max_hold_ms")
RANGE_CASE(have_a_turn, turn_ms, 0, 1000, "turn_ms (at most 1000)")

TEST(client_options, have_replicas)
{
    rlock_options o = none();
    o.min_replicas = 16;
    expect_taken(&o);
    o.min_replicas = 17;
    expect_refused(&o, "min_replicas (at most 16)");
}

TEST(client_options, have_names_of_figures)
{
    rlock_options o = none();
    o.metrics_names = 1000;
    expect_taken(&o);
    o.metrics_names = 1001;
    expect_refused(&o, "metrics_names (at most 1000)");
}

TEST(client_options, have_what_is_verified)
{
    rlock_options o = none();
    o.tls_verify = RLOCK_TLS_VERIFY_NONE;
    expect_taken(&o);
    o.tls_verify = (rlock_tls_verify)(RLOCK_TLS_VERIFY_NONE + 1);
    expect_refused(&o, "tls_verify");
    o.tls_verify = (rlock_tls_verify)-1;
    expect_refused(&o, "tls_verify");
}

TEST(client_options, have_a_size)
{
    rlock_options o = none();
    expect_taken(&o);
    o.size++;
    expect_refused(&o, "size (use RLOCK_OPTIONS_INIT; or the program was built "
                       "for a newer rlock)");
}

/* --- texts ---------------------------------------------------------------- */

static char text[300];

static const char *of_length(size_t len)
{
    memset(text, 'h', len);
    text[len] = '\0';
    return text;
}

static void expect_name(size_t offset, const char *what)
{
    rlock_options o = none();
    const char **member = (const char **)(void *)((char *)&o + offset);
    *member = of_length(1);
    expect_taken(&o);
    *member = of_length(255);
    expect_taken(&o);
    *member = of_length(256);
    expect_refused(&o, what);
    *member = "";
    expect_refused(&o, what);
}

#define NAME_CASE(name, member, what)                                          \
    TEST_CASE(client_options, name,                                            \
              expect_name(offsetof(rlock_options, member), what))

NAME_CASE(have_a_host, host_id, "host_id (1 to 255 bytes)")
NAME_CASE(have_a_label, metrics_label, "metrics_label (1 to 255 bytes)")
#define SERVER_NAME "tls_server_name (1 to 255 bytes, not . first)"
NAME_CASE(have_a_server_name, tls_server_name, SERVER_NAME)

TEST(client_options, have_a_server_name_that_is_one)
{
    rlock_options o = none();
    o.tls_server_name = ".example";
    expect_refused(&o, SERVER_NAME);
    o.tls_server_name = "a.example";
    expect_taken(&o);
}

/* --- who connects --------------------------------------------------------- */

static struct redisContext *connect_never(void *arg)
{
    FAIL("asked to connect %s", (const char *)arg);
    return NULL;
}

static int tell_never(rlock_credentials *out, void *arg)
{
    (void)out;
    FAIL("asked for credentials by %s", (const char *)arg);
    return 0;
}

TEST(client_options, have_an_address_or_a_callback)
{
    rlock_options o = none();
    o.connect = connect_never;
    expect_taken(&o);
    o.uri = "redis://there";
    expect_refused(&o, "uri and connect are both given");
    o.connect = NULL;
    expect_taken(&o);
}

TEST(client_options, have_a_login_or_a_callback)
{
    rlock_options o = none();
    o.credentials = tell_never;
    expect_taken(&o);
    o.connect = connect_never;
    expect_refused(&o, "connect, with tls_... or credentials");
    o.credentials = NULL;
    o.tls_ca_file = "ca";
    expect_refused(&o, "connect, with tls_... or credentials");
    o.connect = NULL;
    expect_taken(&o);
}

/* --- with an address ------------------------------------------------------ */

static void expect_unfit(const rlock_options *o, const char *message)
{
    rlock_client *cl = (rlock_client *)&text;
    INVALID(rlock_client_new(o, &cl), message);
    EXPECT(!cl);
}

static void expect_login_unfit(const char *uri)
{
    rlock_options o = none();
    o.credentials = tell_never;
    o.uri = uri;
    expect_unfit(&o, "bad option: credentials, and a URI with a login");
}

TEST_CASE(client_options, have_a_login_only_once,
          expect_login_unfit("redis://me:secret@127.0.0.1:1"))
TEST_CASE(client_options, have_a_password_only_once,
          expect_login_unfit("redis://:secret@127.0.0.1:1"))

static void expect_sentinel_unfit(const char *user, const char *password)
{
    rlock_options o = none();
    o.uri = "redis://127.0.0.1:1";
    o.sentinel_user = user;
    o.sentinel_password = password;
    expect_unfit(&o, "bad option: sentinel_... without redis-sentinel://");
}

TEST_CASE(client_options, have_a_sentinel_login_for_sentinels,
          expect_sentinel_unfit("me", "secret"))
TEST_CASE(client_options, have_a_sentinel_user_for_sentinels,
          expect_sentinel_unfit("me", NULL))
TEST_CASE(client_options, have_a_sentinel_password_for_sentinels,
          expect_sentinel_unfit(NULL, "secret"))

TEST(client_options, have_tls_for_rediss)
{
    rlock_options o = none();
    o.uri = "redis://127.0.0.1:1";
    o.tls_ca_file = "/nowhere";
    expect_unfit(&o, "bad option: tls_... without rediss://");
}

TEST(client_options, have_an_address_that_is_one)
{
    rlock_options o = none();
    o.uri = "http://127.0.0.1";
    rlock_client *cl;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "URI");
}

TEST(client_options, want_somewhere_to_put_the_client)
{
    rlock_options o = none();
    INVALID(rlock_client_new(&o, NULL), "out is NULL");
}

/* --- whose locks they are ------------------------------------------------- */

static void expect_process(const char *host_id, const char *host)
{
    rl_settings set;
    rlock_options o = none();
    char process[sizeof set.process];
    o.host_id = host_id;
    rl_settings_read(&set, &o);
    snprintf(process, sizeof process, "%s:%ld", host, (long)getpid());
    EXPECT_STR(set.process, process);
}

TEST_CASE(client_options, say_whose_locks_they_are, expect_process("me", "me"))
TEST_CASE(client_options, say_it_without_what_would_end_it,
          expect_process("a b:c", "a_b_c"))
TEST_CASE(client_options, say_it_at_length,
          expect_process(of_length(255), of_length(255)))
