/*
 * rediss://: TLS by OpenSSL, with a real server, and certificates of every
 * kind. What a server cannot prove is said in words, within the deadline, and
 * no byte goes to it in the clear.
 */
#include "rlock_config.h"
#include "scene.h"
#include "secure.h"
#include "slow_port.h"

#ifdef RL_HAS_OPENSSL
#include <openssl/bio.h>
#include <openssl/err.h>
#endif

#define SECRET "open-sesame"

typedef struct secured {
    authority *a;
    server *sv;
    int port;
    rlock_options opts; /* that trust the authority */
} secured;

static void need_tls(void)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
}

static secured secured_start(const char *cert, const char *clients)
{
    need_tls();
    secured s = {.a = authority_new(), .opts = RLOCK_OPTIONS_INIT};
    s.sv = server_start(NULL);
    s.port = secure_listen(s.sv, s.a, cert, clients);
    s.opts.tls_ca_file = authority_file(s.a, "ca");
    s.opts.uri = secure_uri("127.0.0.1", s.port);
    return s;
}

static void secured_stop(secured *s)
{
    server_stop(s->sv);
    authority_free(s->a);
}

static void expect_refused(const rlock_options *opts, rlock_status status,
                           const char *why)
{
    rlock_client *cl;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(opts, &cl), status);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
    EXPECT(!cl);
    EXPECT(test_since_ms(began_ms) < 1000 + SLACK_MS);
}

static void expect_locks(const rlock_options *opts)
{
    rlock_client *cl;
    EXPECT_STATUS(rlock_client_new(opts, &cl), RLOCK_OK);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    lock_times(lk, 2);
    unlock_times(lk, 2, RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
}

/* --- a lock --------------------------------------------------------------- */

TEST(tls, a_lock_is_taken_nested_renewed_and_released)
{
    secured s = secured_start("server", "no");
    s.opts.watchdog_lease_ms = BRISK_MS;
    scene one = scene_with(s.sv, &s.opts);
    lock_times(one.lk, 2);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    watch_renewals(one.cl, 2);
    unlock_times(one.lk, 2, RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    EXPECT_INT(stats_of(one.cl).reconnects, 0);
    scene_leave(&one);
    secured_stop(&s);
}

TEST(tls, a_waiter_is_rung)
{
    secured s = secured_start("server", "no");
    scene one = scene_with(s.sv, &s.opts), two = scene_with(s.sv, &s.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    waiter *w = waiter_start(two.lk, SOON, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, two.cl, 1);
    int64_t freed_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_INT(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT(at_ms - freed_ms < WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_leave(&two);
    scene_leave(&one);
    secured_stop(&s);
}

static intptr_t lock_often(void *lk)
{
    for (int i = 0; i < 200; i++) {
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return 0;
}

TEST(tls, sixteen_threads_share_its_connections)
{
    enum { THREADS = 16 };
    secured s = secured_start("server", "no");
    scene one = scene_with(s.sv, &s.opts);
    test_thread *t[THREADS];
    rlock *lk[THREADS];
    for (int i = 0; i < THREADS; i++) {
        char name[16];
        snprintf(name, sizeof name, "job:%d", i);
        lk[i] = test_lock(one.cl, name);
        t[i] = test_spawn(lock_often, lk[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        test_join(t[i]);
        rlock_free(lk[i]);
    }
    EXPECT_INT(stats_of(one.cl).reconnects, 0);
    EXPECT(server_info(s.sv, "connected_clients") < THREADS);
    scene_leave(&one);
    secured_stop(&s);
}

/* TLS 1.3 sends session tickets after the handshake: they are no input. */
TEST(tls, fault_126_a_hundred_clients_of_each_version_reconnect_for_nothing)
{
    static const char *const versions[] = {"TLSv1.2", "TLSv1.3"};
    secured s = secured_start("server", "no");
    for (int i = 0; i < 200; i++) {
        if (i % 100 == 0)
            EXPECT_STR(server_str(s.sv, "CONFIG SET tls-protocols %s",
                                  versions[i / 100]),
                       "OK");
        scene one = scene_with(s.sv, &s.opts);
        EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
        EXPECT_INT(stats_of(one.cl).reconnects, 0);
        scene_leave(&one);
    }
    secured_stop(&s);
}

TEST(tls, a_broken_connection_is_replaced_and_the_hold_stays)
{
    secured s = secured_start("server", "no");
    scene one = scene_with(s.sv, &s.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    server_int(s.sv, "CLIENT KILL TYPE normal SKIPME yes");
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    unlock_times(one.lk, 2, RLOCK_OK);
    EXPECT(stats_of(one.cl).reconnects > 0);
    scene_leave(&one);
    secured_stop(&s);
}

TEST(tls, records_that_arrive_byte_by_byte_are_read)
{
    secured s = secured_start("server", "no");
    slow_port *t = slow_port_start(s.port);
    slow_port_one_by_one(t);
    s.opts.uri = secure_uri("127.0.0.1", slow_port_port(t));
    s.opts.connect_timeout_ms = SOON;
    expect_locks(&s.opts);
    slow_port_stop(t);
    secured_stop(&s);
}

/* --- whom to trust -------------------------------------------------------- */

TEST(tls, fault_125_an_authority_that_nobody_named_is_refused)
{
    secured s = secured_start("server", "no");
    s.opts.tls_ca_file = NULL;
    expect_refused(&s.opts, RLOCK_EIO, "certificate is refused");
    authority *other = authority_new();
    s.opts.tls_ca_file = authority_file(other, "ca");
    expect_refused(&s.opts, RLOCK_EIO, "certificate is refused");
    authority_free(other);
    secured_stop(&s);
}

TEST(tls, fault_125_another_name_is_refused_unless_it_is_the_one_that_is_set)
{
    secured s = secured_start("server", "no");
    s.opts.tls_server_name = "redis.elsewhere";
    expect_refused(&s.opts, RLOCK_EIO, "tls_server_name");
    s.opts.tls_server_name = "redis.test";
    expect_locks(&s.opts);
    s.opts.tls_server_name = NULL;
    s.opts.uri = secure_uri("localhost", s.port);
    expect_locks(&s.opts);
    secured_stop(&s);
}

TEST(tls, fault_125_an_address_that_is_not_in_the_certificate_is_refused)
{
    secured s = secured_start("named", "no");
    expect_refused(&s.opts, RLOCK_EIO, "IP address mismatch");
    s.opts.tls_verify = RLOCK_TLS_VERIFY_CA;
    expect_locks(&s.opts);
    secured_stop(&s);
}

TEST(tls, fault_125_an_expired_certificate_is_refused)
{
    secured s = secured_start("expired", "no");
    expect_refused(&s.opts, RLOCK_EIO, "expired");
    s.opts.tls_verify = RLOCK_TLS_VERIFY_CA;
    expect_refused(&s.opts, RLOCK_EIO, "expired");
    secured_stop(&s);
}

TEST(tls, without_verification_any_certificate_will_do)
{
    secured s = secured_start("expired", "no");
    s.opts.tls_ca_file = NULL;
    s.opts.tls_verify = RLOCK_TLS_VERIFY_NONE;
    expect_locks(&s.opts);
    secured_stop(&s);
}

TEST(tls, fault_125_a_missing_client_certificate_is_said)
{
    secured s = secured_start("server", "yes");
    EXPECT_STR(server_str(s.sv, "CONFIG SET tls-protocols TLSv1.3"), "OK");
    expect_refused(&s.opts, RLOCK_EIO, "wants a client certificate");
    s.opts.tls_cert_file = authority_file(s.a, "client");
    s.opts.tls_key_file = authority_file(s.a, "client.key");
    expect_locks(&s.opts);
    secured_stop(&s);
}

/* --- what is no TLS ------------------------------------------------------- */

/* Its counters show that nothing was said in the clear. */
TEST(tls, fault_125_a_plain_port_is_refused_and_never_spoken_to)
{
    need_tls();
    secured s = {.a = authority_new(), .opts = RLOCK_OPTIONS_INIT};
    s.sv = server_start_tcp(NULL);
    long long pings = server_calls(s.sv, "ping");
    s.opts.tls_ca_file = authority_file(s.a, "ca");
    s.opts.uri = secure_uri(":" SECRET "@127.0.0.1", server_port(s.sv));
    rlock_client *cl;
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_client_new(&s.opts, &cl), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "TLS");
    EXPECT(!strstr(rlock_last_error()->message, SECRET));
    EXPECT(test_since_ms(began_ms) < 1000 + SLACK_MS);
    EXPECT_INT(server_calls(s.sv, "auth"), 0);
    EXPECT_INT(server_calls(s.sv, "ping"), pings);
    secured_stop(&s);
}

/* As many bytes of each handshake as there are, a few at a time. */
TEST(tls, fault_125_a_handshake_that_stalls_anywhere_ends_in_time)
{
    secured s = secured_start("server", "no");
    slow_port *t = slow_port_start(s.port);
    s.opts.uri = secure_uri("127.0.0.1", slow_port_port(t));
    expect_locks(&s.opts);
    s.opts.connect_timeout_ms = 50;
    for (int bytes = 0; bytes < 700; bytes += 40) {
        rlock_client *cl;
        slow_port_stall_after(t, bytes);
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(rlock_client_new(&s.opts, &cl), RLOCK_EIO);
        EXPECT(test_since_ms(began_ms) < 50 + SLACK_MS);
        EXPECT_CONTAINS(rlock_last_error()->message, "timed out");
    }
    slow_port_stop(t);
    secured_stop(&s);
}

/* --- options -------------------------------------------------------------- */

TEST(tls, a_file_that_cannot_be_used_is_named)
{
    secured s = secured_start("server", "no");
    rlock_options o = s.opts;
    o.tls_ca_file = "/nowhere/ca";
    expect_refused(&o, RLOCK_EINVAL, "tls_ca_file \"/nowhere/ca\"");
    o = s.opts;
    o.tls_ca_dir = "/nowhere";
    expect_refused(&o, RLOCK_EINVAL, "tls_ca_dir");
    o = s.opts;
    o.tls_cert_file = authority_file(s.a, "client.key");
    expect_refused(&o, RLOCK_EINVAL, "tls_cert_file");
    o = s.opts;
    o.tls_cert_file = authority_file(s.a, "client");
    expect_refused(&o, RLOCK_EINVAL, "tls_key_file");
    o.tls_key_file = authority_file(s.a, "server.key");
    expect_refused(&o, RLOCK_EINVAL, "tls_key_file");
    o = s.opts;
    o.tls_key_file = authority_file(s.a, "client.key");
    expect_refused(&o, RLOCK_EINVAL, "tls_key_file without tls_cert_file");
    secured_stop(&s);
}

/* OpenSSL would ask for the passphrase on the terminal. */
TEST(tls, a_key_with_a_passphrase_is_refused_without_a_question)
{
    secured s = secured_start("server", "no");
    char locked[200], command[500];
    snprintf(locked, sizeof locked, "%s.csr", authority_file(s.a, "client"));
    snprintf(command, sizeof command,
             "openssl ec -aes128 -passout pass:x -in '%s' -out '%s' "
             "2>/dev/null </dev/null",
             authority_file(s.a, "client.key"), locked);
    EXPECT_INT(system(command), 0);
    s.opts.tls_cert_file = authority_file(s.a, "client");
    s.opts.tls_key_file = locked;
    expect_refused(&s.opts, RLOCK_EINVAL, "tls_key_file");
    secured_stop(&s);
}

TEST(tls, a_name_that_no_certificate_can_have_is_refused)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    char name[300];
    o.uri = "rediss://127.0.0.1:1";
    o.tls_server_name = "";
    expect_refused(&o, RLOCK_EINVAL, "tls_server_name");
    o.tls_server_name = ".test"; /* to OpenSSL, any in that domain */
    expect_refused(&o, RLOCK_EINVAL, "tls_server_name");
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    o.tls_server_name = name;
    expect_refused(&o, RLOCK_EINVAL, "tls_server_name");
}

TEST(tls, the_dot_at_the_end_of_a_whole_name_is_not_in_the_certificate)
{
    secured s = secured_start("server", "no");
    s.opts.tls_server_name = "redis.test.";
    expect_locks(&s.opts);
    secured_stop(&s);
}

TEST(tls, an_older_version_is_not_spoken)
{
    secured s = secured_start("server", "no");
    if (server_cmd(s.sv, "CONFIG SET tls-protocols TLSv1.1")->type ==
        REDIS_REPLY_STATUS)
        expect_refused(&s.opts, RLOCK_EIO, "TLS");
    secured_stop(&s);
}

TEST(tls, options_of_tls_without_rediss_are_refused)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = "redis://127.0.0.1:1";
    o.tls_ca_file = "/nowhere/ca";
    expect_refused(&o, RLOCK_EINVAL, "without rediss://");
    o.tls_ca_file = NULL;
    o.tls_verify = RLOCK_TLS_VERIFY_NONE;
    expect_refused(&o, RLOCK_EINVAL, "without rediss://");
    o.tls_verify = (rlock_tls_verify)3;
    expect_refused(&o, RLOCK_EINVAL, "tls_verify");
}

static int calls;

static int refuse(struct ssl_ctx_st *ctx, void *arg)
{
    EXPECT(ctx && arg == &calls);
    calls++;
    return 0;
}

static int accept(struct ssl_ctx_st *ctx, void *arg)
{
    EXPECT(ctx && arg == &calls);
    calls++;
    return 1;
}

TEST(tls, the_program_has_the_last_word_once)
{
    secured s = secured_start("server", "no");
    s.opts.tls_setup_arg = &calls;
    s.opts.tls_setup = refuse;
    expect_refused(&s.opts, RLOCK_EINVAL, "tls_setup");
    EXPECT_INT(calls, 1);
    s.opts.tls_setup = accept;
    expect_locks(&s.opts);
    EXPECT_INT(calls, 2);
    secured_stop(&s);
}

/* --- the program ---------------------------------------------------------- */

TEST(tls, fault_084_a_childs_end_says_nothing_on_the_parents_streams)
{
    secured s = secured_start("server", "no");
    s.opts.watchdog_lease_ms = BRISK_MS;
    scene one = scene_with(s.sv, &s.opts);
    EXPECT_STATUS(rlock_lock(one.lk), RLOCK_OK);
    scene_free_in_child(&one);
    watch_renewals(one.cl, 2);
    EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).reconnects, 0);
    scene_leave(&one);
    secured_stop(&s);
}

#ifdef RL_HAS_OPENSSL

/* One that is not ours must not be taken for ours, and none of ours stays.
   OpenSSL itself empties the queue before a handshake. */
TEST(tls, an_error_of_the_program_in_openssls_queue_is_not_taken_for_ours)
{
    secured s = secured_start("server", "no");
    EXPECT(!BIO_new_file("/nowhere/of/the/programs", "r"));
    EXPECT(ERR_peek_error() != 0);
    expect_locks(&s.opts);
    EXPECT(ERR_peek_error() == 0);
    s.opts.tls_server_name = "redis.elsewhere";
    expect_refused(&s.opts, RLOCK_EIO, "tls_server_name");
    s.opts.tls_ca_file = "/nowhere/ca";
    expect_refused(&s.opts, RLOCK_EINVAL, "tls_ca_file");
    EXPECT(ERR_peek_error() == 0);
    secured_stop(&s);
}

#else

TEST(tls, without_openssl_is_not_supported)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = "rediss://127.0.0.1:1";
    expect_refused(&o, RLOCK_ENOTSUP, "without OpenSSL");
}

#endif
