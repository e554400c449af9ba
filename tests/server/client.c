/* Making a client, by its options; asking it whether all is well; and its end.
 */
#include <stddef.h>
#include <unistd.h>

#include "client.h"

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
    EXPECT_OPTION_REFUSED(warn_hold_ms, -1);
    EXPECT_OPTION_REFUSED(warn_hold_ms, RLOCK_LEASE_MAX_MS + 1);
    EXPECT_OPTION_REFUSED(warn_wait_ms, -1);
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
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
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
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
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

/* --- ping and the end -------------------------------------------------------
 */

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
