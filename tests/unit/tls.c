/*
 * A TLS stream over a pair of sockets, with OpenSSL at the other end too: what
 * poll does not see, and what becomes of a record that cannot be sent.
 */
#include "net/tls.h"
#include "rlock_config.h"
#include "test.h"

#ifdef RL_HAS_OPENSSL

#include <errno.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/conn.h"
#include "shim.h"

typedef struct scene {
    rl_tls *tls;
    rl_conn *c;
    SSL_CTX *ctx;
    SSL *peer; /* blocks */
    int fd;    /* its socket */
    int pushed;
} scene;

static EVP_PKEY *make_key(void)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *p = EVP_PKEY_CTX_new_id(EVP_PKEY_ED25519, NULL);
    EXPECT(p && EVP_PKEY_keygen_init(p) == 1 && EVP_PKEY_keygen(p, &key) == 1);
    EVP_PKEY_CTX_free(p);
    return key;
}

/* Signed by itself. */
static SSL_CTX *make_server(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = make_key();
    X509 *cert = X509_new();
    X509_gmtime_adj(X509_getm_notBefore(cert), -60);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    EXPECT(X509_sign(cert, key, NULL) > 0);
    EXPECT(SSL_CTX_use_certificate(ctx, cert) == 1);
    EXPECT(SSL_CTX_use_PrivateKey(ctx, key) == 1);
    SSL_CTX_set_num_tickets(ctx, 0);
    X509_free(cert);
    EVP_PKEY_free(key);
    return ctx;
}

static intptr_t accept_one(void *ssl)
{
    return SSL_accept(ssl);
}

static void count(void *arg, const rl_reply *r)
{
    (void)r;
    (*(int *)arg)++;
}

/* What the peer's SSL_accept comes to is `accepted`. */
static void scene_start_at(scene *s, SSL_CTX *server, int accepted)
{
    int fds[2];
    rl_fault f;
    rl_transport io;
    rlock_options o = RLOCK_OPTIONS_INIT;
    *s = (scene){.ctx = server};
    o.tls_verify = RLOCK_TLS_VERIFY_NONE;
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    s->fd = fds[1];
    s->peer = SSL_new(s->ctx);
    SSL_set_fd(s->peer, s->fd);
    test_thread *t = test_spawn(accept_one, s->peer);
    EXPECT_INT(rl_tls_new(&o, &s->tls, &f), RLOCK_OK);
    EXPECT_INT(rl_tls_shake_hands(s->tls, fds[0], "localhost",
                                  rl_after_ms(rl_now_us(), SOON), &io, &f),
               RLOCK_OK);
    EXPECT_INT(test_join(t), accepted);
    s->c = rl_conn_new(io);
    s->c->line.pushed = count;
    s->c->line.arg = &s->pushed;
}

static void scene_start(scene *s)
{
    scene_start_at(s, make_server(), 1);
}

static void scene_stop(scene *s)
{
    rl_conn_free(s->c);
    rl_tls_free(s->tls);
    SSL_free(s->peer);
    SSL_CTX_free(s->ctx);
    close(s->fd);
}

/* Until the socket has something; then one look. */
static bool receive(scene *s)
{
    struct pollfd p = {.fd = s->c->io.fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, SOON), 1);
    return rl_conn_receive(s->c);
}

/* Bytes that lie at the other end, as they were sent. */
static ssize_t arrived(scene *s)
{
    char bytes[4096];
    ssize_t n = recv(s->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

TEST(tls, what_one_record_brings_is_read_to_its_end)
{
    enum { REPLIES = 3000 };
    scene s;
    static char text[4 * REPLIES + 1];
    scene_start(&s);
    for (int i = 0; i < REPLIES; i++)
        memcpy(text + 4 * i, ":1\r\n", 4);
    EXPECT_INT(SSL_write(s.peer, text, 4 * REPLIES), 4 * REPLIES);
    EXPECT(receive(&s));
    EXPECT_INT(s.pushed, REPLIES);
    scene_stop(&s);
}

/* The socket stays open, so poll will never tell. */
TEST(tls, an_end_behind_data_is_seen_at_once)
{
    scene s;
    char both[64];
    scene_start(&s);
    EXPECT_INT(SSL_write(s.peer, ":1\r\n", 4), 4);
    SSL_shutdown(s.peer);
    EXPECT(recv(s.c->io.fd, both, sizeof both, MSG_PEEK) > 0);
    EXPECT(!receive(&s));
    EXPECT_INT(s.pushed, 1);
    EXPECT_CONTAINS(s.c->line.fault.text, "closed by the server");
    scene_stop(&s);
}

TEST(tls, what_has_been_read_whole_is_not_read_again)
{
    scene s;
    rl_fault f;
    char bytes[16], one;
    scene_start(&s);
    EXPECT_INT(SSL_write(s.peer, ":1\r\n", 4), 4);
    EXPECT_INT(recv(s.c->io.fd, &one, 1, MSG_PEEK), 1);
    EXPECT_INT(s.c->io.ops->read(&s.c->io, bytes, sizeof bytes, &f), 4);
    EXPECT(!s.c->io.again);
    EXPECT_INT(s.c->io.ops->read(&s.c->io, bytes, sizeof bytes, &f), 0);
    EXPECT(!s.c->io.again);
    scene_stop(&s);
}

TEST(tls, a_record_that_there_is_no_memory_for_is_told_as_such)
{
    scene s;
    rl_fault f = {.status = RLOCK_OK};
    static char bytes[16000];
    scene_start(&s);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    EXPECT_INT(s.c->io.ops->write(&s.c->io, bytes, sizeof bytes, &f), -1);
    shim_clear(shim_here());
    EXPECT_INT(f.status, RLOCK_ENOMEM);
    EXPECT_CONTAINS(f.text, "out of memory");
    EXPECT(f.transient && f.sys_errno == 0);
    scene_stop(&s);
}

TEST(tls, a_record_that_was_refused_is_never_sent)
{
    scene s;
    rl_fault f;
    char bytes[16];
    scene_start(&s);
    shim_fail(shim_here(), SHIM_SEND, 1, 1, ENOBUFS);
    EXPECT_INT(s.c->io.ops->write(&s.c->io, "PING\r\n", 6, &f), -1);
    shim_clear(shim_here());
    EXPECT(!s.c->io.holds);
    s.c->io.ops->read(&s.c->io, bytes, sizeof bytes, &f);
    EXPECT_INT(s.c->io.ops->write(&s.c->io, "PING\r\n", 6, &f), -1);
    EXPECT_INT(arrived(&s), 0);
    scene_stop(&s);
}

TEST(tls, a_record_that_has_to_wait_is_sent_when_there_is_room)
{
    scene s;
    char text[16] = "";
    scene_start(&s);
    rl_put_raw(rl_line_begin(&s.c->line), "PING\r\n", 6);
    EXPECT(rl_line_push(&s.c->line, NULL));
    shim_fail(shim_here(), SHIM_SEND, 1, 2, EAGAIN);
    EXPECT(rl_conn_send(s.c));
    shim_clear(shim_here());
    EXPECT_INT(arrived(&s), 0);
    EXPECT(rl_conn_events(s.c) & POLLOUT);
    EXPECT(rl_conn_send(s.c));
    EXPECT(!(rl_conn_events(s.c) & POLLOUT));
    EXPECT_INT(SSL_read(s.peer, text, sizeof text - 1), 6);
    EXPECT_STR(text, "PING\r\n");
    scene_stop(&s);
}

/*
 * With TLS 1.3 a server refuses after our end of the handshake. If it has reset
 * the connection by the time of the first command, its reason lies there still.
 */
TEST(tls, why_a_server_has_reset_the_connection_is_read_before_it_is_told)
{
    scene s;
    rl_fault f;
    SSL_CTX *server = make_server();
    SSL_CTX_set_verify(server,
                       SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    scene_start_at(&s, server, -1);
    shim_fail(shim_here(), SHIM_SEND, 1, 1, ECONNRESET);
    EXPECT_INT(s.c->io.ops->write(&s.c->io, "PING\r\n", 6, &f), -1);
    shim_clear(shim_here());
    EXPECT_CONTAINS(f.text, "wants a client certificate");
    scene_stop(&s);
}

/* What it has answered comes before its last words. */
TEST(tls, a_reply_before_a_reset_is_not_lost)
{
    scene s;
    scene_start(&s);
    EXPECT_INT(SSL_write(s.peer, ":1\r\n", 4), 4);
    rl_put_raw(rl_line_begin(&s.c->line), "PING\r\n", 6);
    EXPECT(rl_line_push(&s.c->line, NULL));
    shim_fail(shim_here(), SHIM_SEND, 1, 1, ECONNRESET);
    EXPECT(!rl_conn_send(s.c));
    shim_clear(shim_here());
    EXPECT_INT(s.pushed, 1);
    EXPECT_CONTAINS(s.c->line.fault.text, "reset by peer");
    scene_stop(&s);
}

#endif
