/*
 * What is wrong is said so that one knows what to do: a server that is called
 * by the wrong scheme, and files of TLS that are of no use.
 */
#include "client.h"
#include "fake.h"
#include "rlock_config.h"
#include "secure.h"
#include "sentinels.h"

static void need_tls(void)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
}

static void expect_said(const rlock_options *opts, rlock_status status,
                        const char *what, const char *remedy)
{
    expect_refused(opts, status);
    EXPECT_CONTAINS(message(), what);
    EXPECT_CONTAINS(message(), remedy);
}

static void expect_said_of(const char *scheme, int port, rlock_status status,
                           const char *what, const char *remedy)
{
    char uri[64];
    rlock_options o = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "%s://127.0.0.1:%d", scheme, port);
    o.uri = uri;
    expect_said(&o, status, what, remedy);
}

/* --- the scheme ----------------------------------------------------------- */

TEST(client_remedy, a_port_for_tls_wants_rediss)
{
    need_tls();
    authority *a = authority_new();
    server *sv = server_start_tcp(NULL);
    int port = secure_listen(sv, a, "server", "no");
    for (int i = 0; i < 20; i++) /* it hangs up in more than one way */
        expect_said_of("redis", port, RLOCK_EIO, "TLS", "use rediss://");
    server_stop(sv);
    authority_free(a);
}

/* As far as can be told from outside, it might be one. */
TEST(client_remedy, who_hangs_up_without_a_word_may_be_a_port_for_tls)
{
    fake f = {.hangs_up = true};
    fake_start(&f);
    expect_said_of("redis", f.port, RLOCK_EIO, "redis://",
                   "if it is a port for TLS, use rediss://");
    fake_stop(&f);
}

static void expect_alert(const char *scheme, const char *path,
                         const char *remedy)
{
    char uri[64];
    fake f = {.answers = ANSWERS("\x15\x03\x01")};
    rlock_options o = RLOCK_OPTIONS_INIT;
    fake_start(&f);
    snprintf(uri, sizeof uri, "%s://127.0.0.1:%d%s", scheme, f.port, path);
    o.uri = uri;
    o.connect_timeout_ms = 300;
    expect_said(&o, RLOCK_EIO, "not a Redis reply", remedy);
    fake_stop(&f);
}

TEST_CASE(client_remedy, who_sends_an_alert_speaks_tls,
          expect_alert("redis", "", "it speaks TLS: use rediss://"))
TEST_CASE(client_remedy, a_sentinel_that_speaks_tls_wants_rediss_sentinel,
          expect_alert("redis-sentinel", "/main",
                       "it speaks TLS: use rediss-sentinel://"))
TEST_CASE(client_remedy, a_cluster_that_speaks_tls_wants_rediss_cluster,
          expect_alert("redis-cluster", "",
                       "it speaks TLS: use rediss-cluster://"))

TEST(client_remedy, a_sentinel_wants_redis_sentinel_and_tells_the_name)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *s = sentinels_start(master, 1);
    int port = sentinels_port(s, 0);
    expect_said_of("redis", port, RLOCK_EINVAL, "it is a Sentinel",
                   "redis-sentinel://host:port/name");
    EXPECT_CONTAINS(message(), "the name " SENTINELS_MASTER);
    expect_said_of("redis-cluster", port, RLOCK_EINVAL, "no cluster",
                   "redis-sentinel://");
    sentinels_stop(s);
    server_stop(replica);
    server_stop(master);
}

TEST(client_remedy, who_lacks_a_command_is_no_sentinel_for_that)
{
    server *sv = server_start_tcp("--rename-command EVAL \"\"");
    expect_said_of("redis", server_port(sv), RLOCK_ESERVER, "unknown command",
                   "EVAL");
    EXPECT(!strstr(message(), "Sentinel"));
    server_stop(sv);
}

TEST(client_remedy, a_server_of_a_cluster_that_has_no_slots_wants_redis_cluster)
{
    server *sv = server_start_tcp("--cluster-enabled yes");
    expect_said_of("redis", server_port(sv), RLOCK_EINVAL, "of a cluster",
                   "use redis-cluster://");
    expect_said_of("redis-cluster", server_port(sv), RLOCK_EIO,
                   "nobody for any slot", "--cluster create");
    server_stop(sv);
}

static bool is_refused_as(const rlock_options *opts, const char *what)
{
    expect_refused(opts, RLOCK_EIO);
    return strstr(message(), what) != NULL;
}

/* A server that waits for more of the handshake ends it by the time limit. On a
   busy machine a Sentinel's end may be noted too late to be told. */
TEST(client_remedy, a_plain_port_does_not_want_rediss)
{
    need_tls();
    server *sv = server_start_tcp(NULL);
    expect_said_of("rediss", server_port(sv), RLOCK_EIO, "TLS handshake",
                   "is it a port for TLS?");
    expect_said_of("rediss-cluster", server_port(sv), RLOCK_EIO,
                   "TLS handshake", "is it a port for TLS?");
    char uri[64];
    rlock_options o = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "rediss-sentinel://127.0.0.1:%d/main",
             server_port(sv));
    o.uri = uri;
    EVENTUALLY(SOON, is_refused_as(&o, "TLS handshake"));
    EXPECT_CONTAINS(message(), "is it a port for TLS?");
    server_stop(sv);
}

/* --- a first server ------------------------------------------------------- */

TEST(client_remedy, where_nobody_listens_a_server_has_to_be_started)
{
    server *sv = server_start_tcp(NULL);
    server_kill(sv);
    expect_said_of("redis", server_port(sv), RLOCK_EIO, "Connection refused",
                   "is redis-server running there?");
    expect_said_of("redis-cluster", server_port(sv), RLOCK_EIO,
                   "Connection refused", "is redis-server running there?");
    server_stop(sv);
}

TEST(client_remedy, a_password_that_is_wanted_goes_into_the_uri)
{
    server *sv = server_start_tcp("--requirepass " SECRET);
    expect_said_of("redis", server_port(sv), RLOCK_ESERVER, "NOAUTH",
                   "It goes into the URI: redis://:PASSWORD@");
    server_stop(sv);
}

TEST(client_remedy, a_replica_wants_its_master_or_sentinels_to_be_named)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    expect_said_of("redis", server_port(replica), RLOCK_ESERVER, "READONLY",
                   "redis-sentinel://");
    server_stop(replica);
    server_stop(master);
}

/* As from another machine; what Redis says of it fills a screen. */
TEST(client_remedy, a_server_in_protected_mode_wants_a_password)
{
    fake f = {.answers = ANSWERS(
                  "-DENIED Redis is running in protected mode because "
                  "protected mode is enabled and no password is set for the "
                  "default user. In this mode connections are only accepted "
                  "from the loopback interface. If you want to connect from "
                  "external computers to Redis you may adopt one of the "
                  "following solutions: 1) Just disable protected mode\r\n")};
    fake_start(&f);
    expect_said_of("redis", f.port, RLOCK_ESERVER,
                   "DENIED Redis is running in protected mode",
                   "set a password there");
    fake_stop(&f);
}

/* --- files ---------------------------------------------------------------- */

typedef struct files {
    authority *a;
    rlock_options opts;
} files;

static files files_start(void)
{
    need_tls();
    files f = {.a = authority_new(), .opts = RLOCK_OPTIONS_INIT};
    f.opts.uri = "rediss://127.0.0.1:1";
    f.opts.tls_ca_file = authority_file(f.a, "ca");
    f.opts.tls_cert_file = authority_file(f.a, "client");
    f.opts.tls_key_file = authority_file(f.a, "client.key");
    return f;
}

static void expect_file(files *f, const char *what, const char *remedy)
{
    expect_said(&f->opts, RLOCK_EINVAL, what, remedy);
    authority_free(f->a);
}

TEST(client_remedy, an_authority_that_is_not_there_is_said_to_be_missing)
{
    files f = files_start();
    f.opts.tls_ca_file = "/nowhere/ca";
    expect_file(&f, "tls_ca_file \"/nowhere/ca\"",
                "cannot be read: No such file");
}

TEST(client_remedy, a_folder_of_authorities_that_is_not_there_is_named)
{
    files f = files_start();
    f.opts.tls_ca_file = NULL;
    f.opts.tls_ca_dir = "/nowhere";
    expect_file(&f, "tls_ca_dir \"/nowhere\"", "cannot be read: No such file");
}

TEST(client_remedy, a_file_of_authorities_without_one_is_said_to_have_none)
{
    files f = files_start();
    f.opts.tls_ca_file = authority_file(f.a, "ca.key");
    expect_file(&f, "tls_ca_file", "has no certificate in PEM");
}

TEST(client_remedy, a_certificate_that_is_not_there_is_said_to_be_missing)
{
    files f = files_start();
    f.opts.tls_cert_file = "/nowhere/client";
    expect_file(&f, "tls_cert_file \"/nowhere/client\"",
                "cannot be read: No such file");
}

TEST(client_remedy, a_key_in_the_place_of_a_certificate_is_said_to_be_none)
{
    files f = files_start();
    f.opts.tls_cert_file = authority_file(f.a, "client.key");
    expect_file(&f, "tls_cert_file", "has no certificate in PEM");
}

TEST(client_remedy, a_key_that_is_not_there_is_said_to_be_missing)
{
    files f = files_start();
    f.opts.tls_key_file = "/nowhere/key";
    expect_file(&f, "tls_key_file \"/nowhere/key\"",
                "cannot be read: No such file");
}

TEST(client_remedy, a_certificate_in_the_place_of_a_key_is_said_to_be_none)
{
    files f = files_start();
    f.opts.tls_key_file = authority_file(f.a, "client");
    expect_file(&f, "tls_key_file", "has no private key in PEM");
}

TEST(client_remedy, a_certificate_without_a_key_wants_one)
{
    files f = files_start();
    f.opts.tls_key_file = NULL;
    expect_file(&f, "tls_cert_file", "no tls_key_file is named");
}

TEST(client_remedy, a_key_of_another_certificate_is_said_to_be_one)
{
    files f = files_start();
    f.opts.tls_key_file = authority_file(f.a, "server.key");
    expect_file(&f, "tls_key_file", "is not the key of the certificate");
}

TEST(client_remedy, a_key_of_another_type_is_said_to_be_another_ones)
{
    files f = files_start();
    f.opts.tls_key_file = authority_rsa_key(f.a);
    expect_file(&f, "tls_key_file",
                "is not the key of the certificate in tls_cert_file");
}

TEST(client_remedy, a_key_with_a_passphrase_wants_tls_setup)
{
    files f = files_start();
    char command[500];
    snprintf(command, sizeof command,
             "openssl ec -aes128 -passout pass:x -in '%s' -out '%s' "
             "2>/dev/null </dev/null",
             authority_file(f.a, "client.key"),
             authority_file(f.a, "client.csr"));
    EXPECT_INT(system(command), 0);
    f.opts.tls_key_file = authority_file(f.a, "client.csr");
    expect_file(&f, "needs a passphrase", "tls_setup");
}
