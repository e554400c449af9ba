/*
 * Section C of the catalogue, as far as it is about the way to the server:
 * black holes, links that go down, connections that die unnoticed, proxies that
 * understand only half of it.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "network.h"
#include "scene.h"

/* What a call may take longer than its own limit on a busy machine. */
#define SLACK_MS 600

/* --- 47: nobody answers the SYN ------------------------------------------ */

static int64_t expect_no_client(const char *uri, int64_t connect_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    opts.uri = uri;
    opts.connect_timeout_ms = connect_ms;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EIO);
    return test_now_ms() - began_ms;
}

static void expect_client(const char *uri)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    opts.uri = uri;
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    rlock_client_free(cl);
}

TEST(network, fault_047_a_black_hole_is_given_up_after_the_connect_timeout)
{
    network *n = network_new();
    server *sv = network_server(n);
    expect_client(NETWORK_SERVER); /* the control */
    EXPECT_BETWEEN(expect_no_client(NETWORK_BLACK_HOLE, 300), 290,
                   300 + SLACK_MS);
    EXPECT_CONTAINS(rlock_last_error()->message, "cannot connect");
    server_stop(sv);
    network_free(n);
}

static int64_t time_try(rlock *lk, rlock_status wanted)
{
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(lk), wanted);
    return test_now_ms() - began_ms;
}

static scene scene_far(network *n, int64_t lease_ms, int64_t timeout_ms)
{
    scene s = {.sv = network_server(n), .opts = RLOCK_OPTIONS_INIT};
    server_load_scripts(s.sv);
    s.opts.uri = NETWORK_SERVER;
    s.opts.connect_timeout_ms = 10000;
    scene_client(&s, lease_ms, timeout_ms);
    return s;
}

/* The second try finds no connection, and has to make one. */
TEST(network, fault_047_connecting_counts_against_the_calls_own_limit)
{
    network *n = network_new();
    scene s = scene_far(n, 0, 300);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    network_link(n, false);
    EXPECT_BETWEEN(time_try(s.lk, RLOCK_EIO), 290, 300 + SLACK_MS);
    EXPECT_BETWEEN(time_try(s.lk, RLOCK_EIO), 290, 300 + SLACK_MS);
    EXPECT_CONTAINS(rlock_last_error()->message, "cannot connect");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(s.lk, 700, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 690, 700 + 300 + SLACK_MS);
    network_link(n, true);
    scene_stop(&s);
    network_free(n);
}

/* --- 48: half-open connections ------------------------------------------- */

TEST(network, fault_048_a_link_that_stays_down_loses_the_hold_by_its_deadline)
{
    network *n = network_new();
    scene s = scene_far(n, 1500, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 2); /* the control */
    network_link(n, false);
    int64_t down_ms = test_now_ms();
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_BETWEEN(events_time(s.ev, RLOCK_EVENT_LOST) - down_ms, 0,
                   1500 + SLACK_MS);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    network_link(n, true);
    EXPECT_STATUS(rlock_acquire(s.lk, 15000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
    network_free(n);
}

TEST(network, fault_048_a_link_that_comes_back_costs_no_hold)
{
    network *n = network_new();
    scene s = scene_far(n, 0, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK); /* the control */
    network_link(n, false);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 290, 300 + SLACK_MS);
    EXPECT(rlock_is_held(s.lk));
    network_link(n, true);
    EVENTUALLY(10000, rlock_client_ping(s.cl) == RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
    network_free(n);
}

TEST(network, fault_048_a_proxy_that_freezes_is_given_up_in_time)
{
    scene s = scene_proxied(0, 300);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK); /* the control */
    proxy_freeze(s.px, true);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 290, 300 + SLACK_MS);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    proxy_freeze(s.px, false);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

static bool is_tcp(int fd)
{
    struct sockaddr_storage peer;
    socklen_t len = sizeof peer;
    return getpeername(fd, (struct sockaddr *)&peer, &len) == 0 &&
           peer.ss_family == AF_INET;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;
    EXPECT_INT(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void expect_watched(int fd)
{
    int idle_s = option(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    int probing_s = option(fd, IPPROTO_TCP, TCP_KEEPINTVL) *
                    option(fd, IPPROTO_TCP, TCP_KEEPCNT);
    EXPECT_INT(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_BETWEEN(idle_s, 1, 59);
    EXPECT_BETWEEN(idle_s + probing_s, 1, 60);
    EXPECT_BETWEEN(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 1, 60000);
}

/* A connection as the kernel makes it: it would be believed in for hours. */
static void expect_unwatched(int port)
{
    redisContext *cx = redisConnect("127.0.0.1", port);
    EXPECT(cx && !cx->err);
    EXPECT_INT(option(cx->fd, SOL_SOCKET, SO_KEEPALIVE), 0);
    EXPECT_INT(option(cx->fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 0);
    redisFree(cx);
}

/*
 * The command connection, the watchdog's and the doorbell's: those of the
 * process, as the test's own go by the Unix socket.
 */
static void expect_all_watched(void)
{
    int found = 0;
    for (int fd = 3; fd < 256; fd++) {
        if (!is_tcp(fd))
            continue;
        expect_watched(fd);
        found++;
    }
    EXPECT_INT(found, 3);
}

/* A server on TCP; lock `renewed` is held, and SCENE_LOCK was waited for. */
static scene scene_with_all_connections(rlock **renewed)
{
    static char uri[64];
    scene s = {.sv = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT};
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(s.sv));
    s.opts.uri = uri;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    scene_client(&s, 600, 0);
    *renewed = test_lock(s.cl, "renewed");
    EXPECT_STATUS(rlock_lock(*renewed), RLOCK_OK);
    expect_renewals(&s, 1);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    return s;
}

TEST(network, fault_048_the_kernel_gives_every_connection_up_within_a_minute)
{
    rlock *renewed;
    scene s = scene_with_all_connections(&renewed);
    expect_unwatched(server_port(s.sv)); /* the control */
    expect_all_watched();
    EXPECT_STATUS(rlock_unlock(renewed), RLOCK_OK);
    rlock_free(renewed);
    scene_stop(&s);
}
