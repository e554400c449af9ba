/*
 * TLS 1.3 by a connect callback, with hiredis_ssl and a real server. Session
 * tickets come after the handshake, whenever the server likes: what they make
 * of a socket is no input. Skipped where hiredis, or the server, has no TLS.
 */
#include "scene.h"

#ifdef TEST_HIREDIS_SSL

#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>

#include "secure.h"

typedef struct secured {
    authority *a;
    server *sv;
    int port;
    redisSSLContext *tls;
} secured;

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
    redisInitOpenSSL();
    secured s = {.a = authority_new(), .sv = server_start(NULL)};
    s.port = secure_listen(s.sv, s.a, "server", "no");
    EXPECT_STR(server_str(s.sv, "CONFIG SET tls-protocols TLSv1.3"), "OK");
    s.tls = redisCreateSSLContext(authority_file(s.a, "ca"), NULL, NULL, NULL,
                                  NULL, NULL);
    EXPECT(s.tls);
    return s;
}

static void secured_stop(secured *s)
{
    server_stop(s->sv);
    redisFreeSSLContext(s->tls);
    authority_free(s->a);
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
