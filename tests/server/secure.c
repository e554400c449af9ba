/*
 * TLS 1.3 by a connect callback, with hiredis_ssl and a real server. Session
 * tickets come after the handshake, whenever the server likes: what they make
 * of a socket is no input. Skipped where hiredis, or the server, has no TLS.
 */
#include "scene.h"

#ifdef TEST_HIREDIS_SSL

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <sys/socket.h>
#include <unistd.h>

typedef struct secured {
    char dir[32];
    server *sv;
    int port;
    redisSSLContext *tls;
} secured;

static void remove_certificate(const secured *s)
{
    const char *const made[] = {"key", "cert", "log"};
    for (size_t i = 0; i < 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/%s", s->dir, made[i]);
        unlink(path);
    }
    rmdir(s->dir);
}

/* In a folder of its own, where the server reads it. */
static void make_certificate(secured *s)
{
    char command[300];
    strcpy(s->dir, "/tmp/rlock-tls-XXXXXX");
    EXPECT(mkdtemp(s->dir));
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey rsa:2048 -nodes -days 2 "
             "-subj /CN=localhost -keyout %s/key -out %s/cert 2>%s/log",
             s->dir, s->dir, s->dir);
    if (system(command) == 0)
        return;
    remove_certificate(s);
    SKIP("no certificate can be made: openssl is missing");
}

static bool sets(server *sv, const char *option, const char *value)
{
    const redisReply *r = server_cmd(sv, "CONFIG SET %s %s", option, value);
    return r->type == REDIS_REPLY_STATUS;
}

static int free_port(void)
{
    struct sockaddr_in addr = {.sin_family = AF_INET,
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof addr;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_INT(bind(fd, (struct sockaddr *)&addr, len), 0);
    EXPECT_INT(getsockname(fd, (struct sockaddr *)&addr, &len), 0);
    close(fd);
    return ntohs(addr.sin_port);
}

/* Another program may take it first; then it is another one. */
static bool listens(secured *s)
{
    char port[8];
    s->port = free_port();
    snprintf(port, sizeof port, "%d", s->port);
    return sets(s->sv, "tls-port", port);
}

static void listen_securely(secured *s)
{
    char key[64], cert[64];
    snprintf(key, sizeof key, "%s/key", s->dir);
    snprintf(cert, sizeof cert, "%s/cert", s->dir);
    if (!sets(s->sv, "tls-auth-clients", "no")) {
        server_stop(s->sv);
        remove_certificate(s);
        SKIP("the server has no TLS");
    }
    EXPECT(sets(s->sv, "tls-key-file", key));
    EXPECT(sets(s->sv, "tls-cert-file", cert));
    EXPECT(sets(s->sv, "tls-ca-cert-file", cert));
    EXPECT(sets(s->sv, "tls-protocols", "TLSv1.3"));
    EVENTUALLY(SOON, listens(s));
    s->tls = redisCreateSSLContext(cert, NULL, NULL, NULL, NULL, NULL);
    EXPECT(s->tls);
}

static struct redisContext *connect_securely(void *arg)
{
    secured *s = arg;
    struct timeval limit = {SOON / 1000, 0};
    redisContext *ctx = redisConnectWithTimeout("127.0.0.1", s->port, limit);
    if (ctx && !ctx->err)
        redisInitiateSSLWithContext(ctx, s->tls);
    return ctx;
}

static secured secured_start(void)
{
    secured s = {.port = 0};
    redisInitOpenSSL();
    make_certificate(&s);
    s.sv = server_start(NULL);
    listen_securely(&s);
    return s;
}

static void secured_stop(secured *s)
{
    server_stop(s->sv);
    redisFreeSSLContext(s->tls);
    remove_certificate(s);
}

static scene join(secured *s)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = connect_securely;
    opts.connect_arg = s;
    return scene_with(s->sv, &opts);
}

TEST(secure, a_hundred_clients_of_tls_1_3_are_made_and_lock)
{
    secured s = secured_start();
    for (int i = 0; i < 100; i++) {
        scene one = join(&s);
        EXPECT_STATUS(rlock_acquire(one.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(one.lk), RLOCK_OK);
        scene_leave(&one);
    }
    secured_stop(&s);
}

#else

TEST(secure, a_hundred_clients_of_tls_1_3_are_made_and_lock)
{
    SKIP("hiredis has no TLS here");
}

#endif
