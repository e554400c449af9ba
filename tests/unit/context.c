/*
 * A context of hiredis with TLS, whose bytes go through functions of its own.
 * Here they are ours: a 't' is a session ticket, as TLS 1.3 sends them whenever
 * it likes, and no input. hiredis before 1.0 has no TLS.
 */
#include "rlock_config.h"

#ifdef RL_HIREDIS_HAS_FUNCS

#include <errno.h>
#include <hiredis/hiredis.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "net/conn.h"
#include "test.h"

static void close_it(redisContext *ctx)
{
    close(ctx->fd);
    ctx->fd = -1;
}

static ssize_t write_it(redisContext *ctx)
{
    ssize_t n = send(ctx->fd, ctx->obuf, strlen(ctx->obuf), MSG_DONTWAIT);
    return n < 0 && errno == EAGAIN ? 0 : n;
}

static ssize_t read_it(redisContext *ctx, char *bytes, size_t room)
{
    ssize_t n = recv(ctx->fd, bytes, room, MSG_DONTWAIT), kept = 0;
    for (ssize_t i = 0; i < n; i++)
        if (bytes[i] != 't')
            bytes[kept++] = bytes[i];
    return n < 0 && errno == EAGAIN ? 0 : n <= 0 ? -1 : kept;
}

static rl_conn *connect_with_tls(int *peer)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    redisContext *ctx = redisConnectFd(fds[0]);
    EXPECT(ctx);
    static redisContextFuncs tls;
    tls = *ctx->funcs;
    tls.close = close_it;
    tls.read = read_it;
    tls.write = write_it;
    ctx->funcs = &tls;
    *peer = fds[1];
    rl_conn *c = rl_conn_new(rl_context_transport(ctx));
    EXPECT(c);
    return c;
}

static void say(int peer, const char *text)
{
    EXPECT_INT(write(peer, text, strlen(text)), strlen(text));
}

static void hang_up(rl_conn *c, int peer)
{
    close(peer);
    rl_conn_free(c);
}

TEST(context, with_tls_is_not_stale_because_of_a_session_ticket)
{
    int peer;
    rl_conn *c = connect_with_tls(&peer);
    say(peer, "ttt");
    EXPECT(!rl_conn_is_stale(c));
    struct pollfd p = {.fd = c->io.fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, 0), 0); /* it has been read */
    hang_up(c, peer);
}

TEST(context, with_tls_is_stale_when_something_came_behind_a_session_ticket)
{
    int peer;
    rl_conn *c = connect_with_tls(&peer);
    say(peer, "t+OK\r\n");
    EXPECT(rl_conn_is_stale(c));
    hang_up(c, peer);
}

TEST(context, with_tls_is_stale_when_the_server_has_closed_it)
{
    int peer;
    rl_conn *c = connect_with_tls(&peer);
    close(peer);
    EXPECT(rl_conn_is_stale(c));
    rl_conn_free(c);
}

static ssize_t read_reset(redisContext *ctx, char *bytes, size_t room)
{
    (void)bytes, (void)room;
    ctx->err = REDIS_ERR_IO;
    errno = ECONNRESET;
    return -1;
}

/* hiredis tells it by a text alone; the pool wants to know. */
TEST(context, with_tls_that_was_reset_says_so_by_its_number)
{
    int peer;
    rl_conn *c = connect_with_tls(&peer);
    redisContextFuncs resets = *c->io.context->funcs;
    resets.read = read_reset;
    c->io.context->funcs = &resets;
    EXPECT(!rl_conn_receive(c));
    EXPECT_INT(c->line.fault.sys_errno, ECONNRESET);
    hang_up(c, peer);
}

TEST(context, with_tls_asks_and_is_answered_behind_a_session_ticket)
{
    int peer;
    char sent[100];
    rl_reply r;
    rl_fault f;
    rl_conn *c = connect_with_tls(&peer);
    say(peer, "t+PONG\r\n");
    EXPECT_STATUS(rl_conn_ask(c, rl_after_ms(rl_now_us(), SOON), &r, &f, 1,
                              (const char *[]){"PING"}),
                  RLOCK_OK);
    EXPECT_STR(r.top.str, "PONG");
    EXPECT_INT(read(peer, sent, sizeof sent), 14);
    hang_up(c, peer);
}

#endif
