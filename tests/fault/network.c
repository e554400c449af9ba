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

#include "mux.h"
#include "network.h"
#include "other_client.h"

/* --- 47: nobody answers the SYN ------------------------------------------ */

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

/* What is not acknowledged has not arrived. */
static void expect_given_up(int fd)
{
    EXPECT_BETWEEN(option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT), 1, 60000);
}

static void expect_probed(int fd)
{
    int idle_s = option(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    int probing_s = option(fd, IPPROTO_TCP, TCP_KEEPINTVL) *
                    option(fd, IPPROTO_TCP, TCP_KEEPCNT);
    EXPECT_INT(option(fd, SOL_SOCKET, SO_KEEPALIVE), 1);
    EXPECT_BETWEEN(idle_s, 1, 59);
    EXPECT_BETWEEN(idle_s + probing_s, 1, 60);
}

/* A connection as the kernel makes it: it would be believed in for hours. */
static void expect_kernels_own(int port)
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
static void each_connection(void (*expect)(int fd))
{
    int found = 0;
    for (int fd = 3; fd < 256; fd++) {
        if (!is_tcp(fd))
            continue;
        expect(fd);
        found++;
    }
    EXPECT_INT(found, 3);
}

/* A client on TCP that has opened all of its connections. */
static void expect_of_every_connection(void (*expect)(int fd))
{
    char uri[64];
    scene s = {.sv = server_start_tcp(NULL), .opts = RLOCK_OPTIONS_INIT};
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(s.sv));
    s.opts.uri = uri;
    scene_client(&s, 1500, 0);
    rlock *busy = test_lock(s.cl, "busy");
    take_by_hand(s.sv, "busy", 60000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1);
    EXPECT_STATUS(rlock_acquire(busy, 50, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    expect_kernels_own(server_port(s.sv)); /* the control */
    each_connection(expect);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(busy);
    scene_stop(&s);
}

TEST(network, fault_048_the_kernel_gives_up_what_is_not_acknowledged)
{
    expect_of_every_connection(expect_given_up);
}

/* --- 58: who asks again -------------------------------------------------- */

static rlock_status ask_who(rlock *lk)
{
    bool locked;
    return rlock_is_locked(lk, &locked);
}

static rlock_status lengthen(rlock *lk)
{
    return rlock_extend(lk, 60000);
}

/* A call of the library, and the script that it sends. */
typedef struct verb {
    const char *script;
    rlock_status (*call)(rlock *lk);
    bool inside; /* of a hold */
} verb;

static const verb verbs[] = {{"acquire", rlock_trylock, false},
                             {"acquire", rlock_trylock, true},
                             {"extend", lengthen, true},
                             {"inspect", ask_who, false}};

/* How often the call sends its script, after what happens to the first. */
static int sent(const verb *v, const proxy_action *fault, rlock_status wanted)
{
    scene s = scene_proxied(0, 300);
    if (v->inside)
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int before = proxy_count(s.px, proxy_sha(v->script));
    if (fault)
        proxy_rule(s.px, proxy_sha(v->script), 1, *fault, NULL);
    EXPECT_STATUS(v->call(s.lk), wanted);
    EXPECT(!fault || proxy_fired(s.px));
    int times = proxy_count(s.px, proxy_sha(v->script)) - before;
    scene_stop(&s);
    return times;
}

static void expect_sent(proxy_action fault, rlock_status wanted, int times)
{
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++) {
        EXPECT_INT(sent(&verbs[i], NULL, RLOCK_OK), 1); /* the control */
        EXPECT_INT(sent(&verbs[i], &fault, wanted), times);
    }
}

TEST(network, fault_058_what_is_not_answered_in_time_was_sent_once)
{
    expect_sent(PROXY_SWALLOW_REPLY, RLOCK_EIO, 1);
}

/* By one layer: with two that retry it would be four times. */
TEST(network, fault_058_what_a_broken_connection_took_along_is_sent_twice)
{
    expect_sent(PROXY_CUT_BEFORE, RLOCK_OK, 2);
    expect_sent(PROXY_CUT_AFTER, RLOCK_OK, 2);
}

/* --- 59: multiplexing proxies -------------------------------------------- */

/* A scene whose client is one of many on one connection. */
static scene scene_multiplexed(mux **m, int64_t lease_ms)
{
    scene s = scene_server(NULL);
    *m = mux_start(s.sv);
    s.opts.uri = mux_uri(*m);
    scene_client(&s, lease_ms, 0);
    return s;
}

static void scene_multiplexed_stop(scene *s, mux *m)
{
    scene_free_client(s);
    mux_stop(m);
    scene_stop(s);
}

/* One more client, that reaches the server as the scene's own does. */
static void expect_exclusion(scene *s)
{
    other_client b = other_client_join(s, &s->opts);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    expect_renewals(s, 2);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    expect_nothing_left(s->sv);
    other_client_leave(&b);
}

TEST(network, fault_059_clients_that_share_a_connection_exclude_each_other)
{
    mux *m;
    scene s = scene_start(1500, 0); /* the control */
    expect_exclusion(&s);
    scene_stop(&s);
    s = scene_multiplexed(&m, 1500);
    expect_exclusion(&s);
    scene_multiplexed_stop(&s, m);
}

/* How long after a release the client of the scene has the lock. */
static int64_t hand_over(scene *s, bool queued_in_redis)
{
    rlock_client *direct = server_client(s->sv, NULL);
    rlock *lk = test_lock(direct, SCENE_LOCK);
    int64_t at_ms;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    waiter *w = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s->sv, queued_in_redis ? 1 : 0, s->cl, 1);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    waiter_end(w);
    rlock_free(lk);
    rlock_client_free(direct);
    return at_ms - freed_ms;
}

TEST(network, fault_059_where_nobody_can_subscribe_waiters_poll)
{
    mux *m;
    scene s = scene_start(0, 0); /* the control */
    EXPECT_BETWEEN(hand_over(&s, true), 0, WELL_BEFORE_POLL_MS);
    scene_stop(&s);
    s = scene_multiplexed(&m, 0);
    EXPECT_BETWEEN(hand_over(&s, false), 0, 4000);
    EXPECT(mux_refusals(m) > 0);
    scene_multiplexed_stop(&s, m);
}

/* --- 68: connections that died unnoticed --------------------------------- */

TEST(network, fault_068_idle_connections_are_probed_within_a_minute)
{
    expect_of_every_connection(expect_probed);
}

/* What the proxy holds back a firewall has forgotten: no reset, no answer. */
TEST(network, fault_068_a_renewal_has_three_attempts_on_dying_connections)
{
    scene s = scene_proxied(4500, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1); /* the control */
    for (int i = 0; i < 2; i++) {
        proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REQUEST, NULL);
        EVENTUALLY(10000, proxy_fired(s.px));
    }
    expect_renewals(&s, 1);
    EXPECT(stats_of(s.cl).renew_failures >= 2);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    scene_stop(&s);
}

TEST(network, fault_068_a_wait_gets_over_a_connection_that_died_unnoticed)
{
    scene s = scene_proxied(0, 300);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    proxy_rule(s.px, "", 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}
