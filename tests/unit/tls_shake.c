/* Handshakes: whom a certificate has to be of, what is told when it is another's,
   and files that are changed meanwhile. */
#include "rlock_config.h"
#include "test.h"

#ifdef RL_HAS_OPENSSL

#include <errno.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/tls.h"
#include "pem.h"

typedef struct scene {
    char dir[32];
    SSL_CTX *server; /* its certificate is in the file "cert" */
    rlock_options o;
    rl_tls *tls;
    rl_fault f;
} scene;

static void open_scene(scene *s)
{
    *s = (scene){.dir = "/tmp/rlock-unit-XXXXXX", .o = RLOCK_OPTIONS_INIT};
    EXPECT(mkdtemp(s->dir) && chdir(s->dir) == 0);
    EVP_PKEY *key = make_key();
    X509 *cert = make_certificate(key);
    FILE *out = pem_file("cert", "w");
    EXPECT(PEM_write_X509(out, cert) == 1);
    fclose(out);
    s->server = SSL_CTX_new(TLS_server_method());
    EXPECT(SSL_CTX_use_certificate(s->server, cert) == 1);
    EXPECT(SSL_CTX_use_PrivateKey(s->server, key) == 1);
    X509_free(cert);
    EVP_PKEY_free(key);
    s->o.tls_ca_file = "cert";
    signal(SIGPIPE, SIG_IGN); /* the server's end writes, too */
}

static void close_scene(scene *s)
{
    rl_tls_free(s->tls);
    SSL_CTX_free(s->server);
    unlink("cert");
    EXPECT(chdir("/") == 0 && rmdir(s->dir) == 0);
}

static intptr_t accept_one(void *ssl)
{
    char byte;
    return SSL_accept(ssl) == 1 ? SSL_read(ssl, &byte, 1) : -1;
}

static rlock_status shake(scene *s, int fd, const char *host)
{
    rl_transport io;
    rlock_status status = rl_tls_shake_hands(
        s->tls, fd, host, rl_after_ms(rl_now_us(), SOON), &io, &s->f);
    if (status == RLOCK_OK)
        io.ops->close(&io);
    else
        close(fd);
    return status;
}

static rlock_status shake_with_server(scene *s, const char *host)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    SSL *peer = SSL_new(s->server);
    SSL_set_fd(peer, fds[1]);
    test_thread *t = test_spawn(accept_one, peer);
    rlock_status status = shake(s, fds[0], host);
    test_join(t);
    SSL_free(peer);
    close(fds[1]);
    return status;
}

/* --- names -------------------------------------------------------------------- */

/* why: 0: it is taken; another's: the option with which it would be. */
static void expect_name(const char *host, const char *server_name,
                        rlock_tls_verify verify, long why)
{
    scene s;
    char text[200];
    open_scene(&s);
    s.o.tls_server_name = server_name;
    s.o.tls_verify = verify;
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(shake_with_server(&s, host), why ? RLOCK_EIO : RLOCK_OK);
    snprintf(text, sizeof text,
             "TLS: the server's certificate is refused: %s (tls_server_name "
             "sets another name)",
             X509_verify_cert_error_string(why));
    EXPECT(!why || strcmp(s.f.text, text) == 0);
    EXPECT(!why || s.f.sys_errno == 0);
    close_scene(&s);
}

#define NAME(name, host, server_name, why)                                     \
    TEST_CASE(tls_shake, name,                                                 \
              expect_name(host, server_name, RLOCK_TLS_VERIFY_FULL, why))

NAME(a_name_of_the_certificate_is_taken, "localhost", NULL, 0)
NAME(a_whole_name_is_taken, "localhost.", NULL, 0)
NAME(an_address_of_the_certificate_is_taken, "127.0.0.1", NULL, 0)
NAME(another_name_is_refused, "other", NULL, X509_V_ERR_HOSTNAME_MISMATCH)
NAME(another_address_is_refused, "127.0.0.2", NULL,
     X509_V_ERR_IP_ADDRESS_MISMATCH)
NAME(another_address_of_ipv6_is_refused, "::1", NULL,
     X509_V_ERR_IP_ADDRESS_MISMATCH)
NAME(the_name_that_the_program_says_counts, "other", "localhost", 0)
NAME(the_name_that_the_program_says_counts_alone, "localhost", "other",
     X509_V_ERR_HOSTNAME_MISMATCH)
TEST_CASE(tls_shake, without_a_look_at_names_any_is_taken,
          expect_name("other", NULL, RLOCK_TLS_VERIFY_CA, 0))

static void expect_no_name(const char *host, const char *shown)
{
    scene s;
    int fds[2];
    char text[200];
    open_scene(&s);
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    EXPECT_INT(shake(&s, fds[0], host), RLOCK_EIO);
    snprintf(text, sizeof text,
             "TLS: no certificate can be for the name \"%.60s\"", shown);
    EXPECT_STR(s.f.text, text);
    EXPECT_INT(s.f.sys_errno, 0);
    close(fds[1]);
    close_scene(&s);
}

static void expect_long_name(size_t len, bool taken)
{
    char name[300] = "";
    memset(name, 'n', len);
    if (taken)
        expect_name(name, NULL, RLOCK_TLS_VERIFY_CA, 0);
    else
        expect_no_name(name, name);
}

TEST_CASE(tls_shake, a_name_that_would_let_others_pass_is_none,
          expect_no_name(".localhost", ".localhost"))
TEST_CASE(tls_shake, a_name_that_is_too_long_is_none,
          expect_long_name(256, false))
TEST_CASE(tls_shake, the_longest_name_is_one, expect_long_name(255, true))

TEST(tls_shake, who_is_not_trusted_is_refused_whatever_the_name)
{
    scene s;
    char text[200];
    open_scene(&s);
    s.o.tls_ca_file = NULL;
    s.o.tls_ca_dir = ".";
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_EIO);
    snprintf(
        text, sizeof text, "TLS: the server's certificate is refused: %s",
        X509_verify_cert_error_string(X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT));
    EXPECT_STR(s.f.text, text);
    close_scene(&s);
}

/* --- who answers something else ----------------------------------------------- */

/* NULL: hangs up. */
static void expect_answer(const char *answer, const char *text)
{
    scene s;
    int fds[2];
    open_scene(&s);
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    if (answer)
        EXPECT_INT(write(fds[1], answer, strlen(answer)), strlen(answer));
    shutdown(fds[1], SHUT_WR);
    EXPECT_INT(shake(&s, fds[0], "localhost"), RLOCK_EIO);
    EXPECT_STR(s.f.text, text);
    EXPECT(s.f.sys_errno == 0 && s.f.transient);
    close(fds[1]);
    close_scene(&s);
}

TEST_CASE(tls_shake, who_answers_in_plain_text_is_told,
          expect_answer("-ERR unknown command\r\n",
                        "TLS: what answers there does not speak TLS"))
TEST_CASE(tls_shake, who_hangs_up_is_told,
          expect_answer(NULL, "connection closed by the server"))

/* A record of a handshake, which is none. */
TEST(tls_shake, who_makes_no_sense_is_told)
{
    static const char rubbish[] = "\x16\x03\x03\x00\x04\x63\x00\x00\x00";
    scene s;
    int fds[2];
    open_scene(&s);
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    EXPECT_INT(write(fds[1], rubbish, 9), 9);
    EXPECT_INT(shake(&s, fds[0], "localhost"), RLOCK_EIO);
    EXPECT(strncmp(s.f.text, "TLS handshake: TLS: ", 20) == 0);
    EXPECT(s.f.status == RLOCK_EIO && s.f.sys_errno == 0);
    close(fds[1]);
    close_scene(&s);
}

TEST(tls_shake, what_a_server_says_is_told)
{
    scene s;
    open_scene(&s);
    SSL_CTX_set_max_proto_version(s.server, TLS1_2_VERSION);
    SSL_CTX_set_verify(s.server,
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_EIO);
    EXPECT_CONTAINS(s.f.text, "TLS handshake: TLS: the server says: ");
    EXPECT(s.f.status == RLOCK_EIO && s.f.sys_errno == 0);
    close_scene(&s);
}

TEST(tls_shake, who_says_nothing_is_told)
{
    scene s;
    int fds[2];
    rl_transport io;
    open_scene(&s);
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    EXPECT_INT(
        rl_tls_shake_hands(s.tls, fds[0], "localhost", rl_now_us(), &io, &s.f),
        RLOCK_EIO);
    EXPECT_STR(s.f.text, "TLS handshake: Connection timed out (is it a port "
                         "for TLS?)");
    EXPECT_INT(s.f.sys_errno, ETIMEDOUT);
    close(fds[0]);
    close(fds[1]);
    close_scene(&s);
}

/* --- files that change -------------------------------------------------------- */

static void expect_explained(scene *s, const char *text)
{
    rl_fault_set(&s->f, RLOCK_EIO, 0, "why");
    rl_tls_explain(s->tls, &s->f);
    EXPECT_STR(s->f.text, text);
}

/* As they were, they go on to be used, and what fails is told with both. */
TEST(tls_shake, newer_files_that_are_of_no_use_are_told_until_they_are)
{
    scene s;
    open_scene(&s);
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    expect_explained(&s, "why");
    EXPECT_INT(rename("cert", "kept"), 0);
    write_text("cert", "hello\n");
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_OK);
    expect_explained(&s, "why (the newer tls_ca_file \"cert\" has no "
                         "certificate in PEM)");
    EXPECT_INT(rename("kept", "cert"), 0);
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_OK);
    expect_explained(&s, "why");
    close_scene(&s);
}

/* The same file again, by its name: nothing of it has changed. */
TEST(tls_shake, the_files_in_use_are_told_no_more_when_they_are_back)
{
    scene s;
    open_scene(&s);
    EXPECT_INT(symlink("cert", "link"), 0);
    s.o.tls_ca_file = "link";
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    write_text("text", "hello\n");
    EXPECT(unlink("link") == 0 && symlink("text", "link") == 0);
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_OK);
    expect_explained(&s, "why (the newer tls_ca_file \"link\" has no "
                         "certificate in PEM)");
    EXPECT(unlink("link") == 0 && symlink("cert", "link") == 0);
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_OK);
    expect_explained(&s, "why");
    unlink("link");
    unlink("text");
    close_scene(&s);
}

TEST(tls_shake, newer_files_are_taken)
{
    scene s;
    open_scene(&s);
    EXPECT_INT(rl_tls_new(&s.o, &s.tls, &s.f), RLOCK_OK);
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_OK);
    EVP_PKEY *other = make_key();
    unlink("cert");
    write_certificate("cert", other);
    EVP_PKEY_free(other);
    EXPECT_INT(shake_with_server(&s, "localhost"), RLOCK_EIO);
    EXPECT_CONTAINS(s.f.text, "certificate is refused");
    expect_explained(&s, "why");
    close_scene(&s);
}

#endif
