/*
 * Clients that cannot be made, or whose server is never met: they end in their
 * time, whatever some thread of theirs is waiting for just then. And those that
 * can, though some of whom the program has named do not answer.
 */
#include "cluster.h"
#include "fake.h"
#include "rlock_config.h"
#include "scene.h"
#include "sentinels.h"

enum { CONNECT_MS = 1000, COMMAND_MS = 100 };

static rlock_options hasty(const char *uri)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = uri;
    o.connect_timeout_ms = CONNECT_MS;
    o.command_timeout_ms = COMMAND_MS;
    return o;
}

static void expect_given_up(const char *scheme, int port, const char *rest)
{
    char uri[96];
    rlock_client *cl;
    snprintf(uri, sizeof uri, "%s://127.0.0.1:%d%s", scheme, port, rest);
    rlock_options o = hasty(uri);
    /* A client's TLS is made ready before anything is timed. */
    bool tls = strncmp(scheme, "rediss", 6) == 0;
    int64_t slack_ms = tls ? 2 * SLACK_MS : SLACK_MS;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_EIO);
    EXPECT(test_since_ms(began_ms) < CONNECT_MS + COMMAND_MS + slack_ms);
    o.lazy = true;
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    began_ms = test_now_ms();
    rlock_client_free(cl);
    EXPECT(test_since_ms(began_ms) < SLACK_MS);
}

static void everywhere(int port, bool tls)
{
    expect_given_up(tls ? "rediss" : "redis", port, "");
    expect_given_up(tls ? "rediss-sentinel" : "redis-sentinel", port, "/main");
    expect_given_up(tls ? "rediss-cluster" : "redis-cluster", port, "");
}

/* It reads a handshake and waits for more. */
TEST(unmade, with_tls_on_a_port_that_is_plain)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
    server *sv = server_start_tcp(NULL);
    everywhere(server_port(sv), true);
    server_stop(sv);
}

TEST(unmade, at_a_port_where_nobody_answers)
{
    black_hole b = black_hole_open();
    everywhere(b.port, false);
    black_hole_close(&b);
}

TEST(unmade, at_a_server_that_has_stopped)
{
    server *sv = server_start_tcp(NULL);
    server_pause(sv);
    everywhere(server_port(sv), false);
    server_resume(sv);
    server_stop(sv);
}

/* --- one of many is there ------------------------------------------------- */

enum { SILENT = 3 };

/* Of each kind as many, and the one that answers last. */
static void name_all(char *uri, size_t size, const char *scheme, int silent,
                     int hole, int port)
{
    size_t n = (size_t)snprintf(uri, size, "%s://", scheme);
    for (int i = 0; i < SILENT; i++)
        n += (size_t)snprintf(uri + n, size - n, "127.0.0.1:%d,localhost:%d,",
                              i ? silent : hole, silent);
    snprintf(uri + n, size - n, "127.0.0.1:%d", port);
}

static void expect_made(const char *uri)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    o.uri = uri;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&o, &cl), RLOCK_OK);
    EXPECT(test_since_ms(began_ms) < 1000 + SLACK_MS);
    rlock_client_free(cl);
}

TEST(unmade, servers_of_a_cluster_that_are_silent_keep_nobody_from_the_next)
{
    char uri[300];
    need_host_names();
    cluster *c = cluster_start();
    server *sv = server_start_tcp(NULL);
    black_hole b = black_hole_open();
    server_pause(sv);
    name_all(uri, sizeof uri, "redis-cluster", server_port(sv), b.port,
             cluster_port(c, 0));
    expect_made(uri);
    server_resume(sv);
    black_hole_close(&b);
    server_stop(sv);
    cluster_stop(c);
}

TEST(unmade, sentinels_that_are_silent_keep_nobody_from_the_next)
{
    char uri[300];
    need_host_names();
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *s = sentinels_start(master, 1);
    server *sv = server_start_tcp(NULL);
    black_hole b = black_hole_open();
    server_pause(sv);
    name_all(uri, sizeof uri, "redis-sentinel", server_port(sv), b.port,
             sentinels_port(s, 0));
    strcat(uri, "/" SENTINELS_MASTER);
    expect_made(uri);
    server_resume(sv);
    black_hole_close(&b);
    server_stop(sv);
    sentinels_stop(s);
    server_stop(replica);
    server_stop(master);
}
