/* Connections that are made, or not: what is told, and what is closed again. */
#include "net/dial.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim.h"
#include "test.h"

typedef struct scene {
    rl_dialer d;
    rl_fault f;
    rl_conn *c;
    int last_opened, opened, closed, met, parted;
    redisContext *gives;
    bool owned;
} scene;

static void note_opened(void *arg, int fd)
{
    scene *s = arg;
    s->opened += fd >= 0;
    s->closed += fd < 0;
    s->last_opened = fd;
}

static void note_met(void *arg, rl_conn *c)
{
    scene *s = arg;
    EXPECT(c);
    s->met++;
}

static void note_parted(void *arg, rl_conn *c)
{
    scene *s = arg;
    EXPECT(c);
    s->parted++;
}

static void open_scene(scene *s, const char *uri)
{
    memset(s, 0, sizeof *s);
    rl_dialer_init(&s->d);
    EXPECT_INT(rl_uri_parse(&s->d.uri, uri, &s->f), RLOCK_OK);
    s->d.connect_timeout_ms = SOON;
    s->d.opened = note_opened;
    s->d.met = note_met;
    s->d.parted = note_parted;
    s->d.met_arg = s;
}

static rlock_status dial(scene *s)
{
    return rl_dial(&s->d, rl_after_ms(rl_now_us(), SOON), &s->c, &s->f);
}

static void close_scene(scene *s)
{
    if (s->c)
        rl_conn_break(s->c, &(rl_fault){.status = RLOCK_EIO});
    rl_conn_free(s->c);
    rl_dialer_fini(&s->d);
}

static void expect_fault(const scene *s, int err, const char *text)
{
    EXPECT_STR(s->f.text, text);
    EXPECT_INT(s->f.sys_errno, err);
    EXPECT(!s->c);
}

/* --- nobody is there --------------------------------------------------------- */

static void expect_nobody(const char *uri, int err)
{
    scene s;
    char text[100];
    open_scene(&s, uri);
    EXPECT_INT(dial(&s), RLOCK_EIO);
    snprintf(text, sizeof text, "cannot connect: %s", strerror(err));
    expect_fault(&s, err, text);
    EXPECT(s.opened == 1 && s.closed == 1 && s.last_opened == -1);
    EXPECT(s.f.transient && s.met == 0 && s.parted == 0);
    close_scene(&s);
}

TEST_CASE(dial, a_socket_that_is_not_there_is_told,
          expect_nobody("unix:///nowhere", ENOENT))
TEST_CASE(dial, a_port_at_which_nobody_listens_is_told,
          expect_nobody("redis://127.0.0.1:1", ECONNREFUSED))

static void expect_call_fails(shim_call call, int err, int opened)
{
    scene s;
    char text[100];
    open_scene(&s, "redis://127.0.0.1:1");
    shim_fail(shim_here(), call, 1, 1, err);
    rlock_status status = dial(&s);
    shim_clear(shim_here());
    EXPECT_INT(status, RLOCK_EIO);
    snprintf(text, sizeof text, "cannot connect: %s", strerror(err));
    expect_fault(&s, err, text);
    EXPECT(s.opened == opened && s.closed == opened);
    close_scene(&s);
}

TEST_CASE(dial, without_a_descriptor_it_says_so,
          expect_call_fails(SHIM_SOCKET, EMFILE, 0))
TEST_CASE(dial, that_no_port_is_left_is_told,
          expect_call_fails(SHIM_CONNECT, EADDRNOTAVAIL, 1))

/* --- somebody is ------------------------------------------------------------- */

#define ECHO "$5\r\nrlock\r\n"

typedef struct host {
    int fd, port;
    const char *says;
    size_t len;
} host;

/* Reads what is said first, answers, and hangs up when the other one does. */
static intptr_t answer(void *arg)
{
    host *h = arg;
    char bytes[200];
    int fd = accept(h->fd, NULL, NULL);
    EXPECT(fd >= 0);
    EXPECT(recv(fd, bytes, sizeof bytes, 0) > 0);
    if (h->len > 0) {
        EXPECT_INT(send(fd, h->says, h->len, MSG_NOSIGNAL), h->len);
        while (recv(fd, bytes, sizeof bytes, 0) > 0)
            ;
    }
    close(fd);
    return 0;
}

static void open_host(host *h, scene *s, const char *says)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char uri[40];
    *h = (host){.says = says, .len = strlen(says)};
    h->fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_INT(bind(h->fd, (struct sockaddr *)&at, len), 0);
    EXPECT_INT(listen(h->fd, 5), 0);
    EXPECT_INT(getsockname(h->fd, (struct sockaddr *)&at, &len), 0);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    open_scene(s, uri);
}

static rlock_status dial_host(host *h, scene *s)
{
    test_thread *t = test_spawn(answer, h);
    rlock_status status = dial(s);
    if (s->c)
        shutdown(s->c->io.fd, SHUT_RDWR);
    test_join(t);
    close(h->fd);
    return status;
}

TEST(dial, who_answers_is_met_and_kept)
{
    scene s;
    host h;
    open_host(&h, &s, ECHO);
    EXPECT_INT(dial_host(&h, &s), RLOCK_OK);
    EXPECT(s.c && s.met == 1 && s.parted == 0);
    EXPECT(s.opened == 1 && s.closed == 1); /* as it is a connection by now */
    EXPECT(atomic_load(&s.d.worked) && s.c->expires_us == RL_NEVER);
    close_scene(&s);
}

static int hand_out(rlock_credentials *out, void *arg)
{
    *out = (rlock_credentials){.password = "p", .valid_ms = *(int64_t *)arg};
    return 1;
}

static void expect_life(int64_t valid_ms, int64_t life_ms)
{
    scene s;
    host h;
    rl_credentials from;
    rl_credentials_init(&from);
    from.callback = hand_out;
    from.arg = &valid_ms;
    open_host(&h, &s, "+OK\r\n" ECHO);
    s.d.credentials = &from;
    int64_t now_us = rl_now_us();
    EXPECT_INT(dial_host(&h, &s), RLOCK_OK);
    EXPECT_BETWEEN(s.c->expires_us - now_us, life_ms * 1000,
                   (life_ms + SOON) * 1000);
    close_scene(&s);
    rl_credentials_fini(&from);
}

/* However short a login lasts, no connection is made for nothing. */
TEST_CASE(dial, a_connection_lasts_for_a_second_at_least, expect_life(1, 1000))
TEST_CASE(dial, a_connection_lasts_as_long_as_its_login,
          expect_life(600000, 540000))

/* What is said behind "it may be for TLS"; where: the URI's scheme, or NULL. */
static void expect_suggestion(const char *says, const char *secure, bool worked,
                              const char *wanted)
{
    scene s;
    host h;
    open_host(&h, &s, says);
    s.d.uri.secure = secure;
    atomic_store(&s.d.worked, worked);
    EXPECT_INT(dial_host(&h, &s), RLOCK_EIO);
    EXPECT_STR(s.f.text, wanted);
    EXPECT(s.met == 1 && s.parted == 1 && s.f.transient && !s.c);
    EXPECT_INT(s.f.sys_errno, 0);
    close_scene(&s);
}

#define CLOSED "connection closed by the server"
#define ALERT  "\x15\x03\x01"
#define STRANGE                                                                \
    "not a Redis reply: Protocol error, got \"\\x15\" as reply type byte"

TEST_CASE(dial, who_hangs_up_may_want_tls,
          expect_suggestion("", NULL, false,
                            CLOSED " (if it is a port for TLS, use rediss://)"))
TEST_CASE(dial, who_hangs_up_and_has_a_scheme_of_its_own_may_want_that,
          expect_suggestion("", "rediss-cluster://", false,
                            CLOSED " (if it is a port for TLS, use "
                                   "rediss-cluster://)"))
TEST_CASE(dial, who_has_answered_once_wants_no_tls,
          expect_suggestion("", NULL, true, CLOSED))
TEST_CASE(dial, who_answers_by_an_alert_speaks_tls,
          expect_suggestion(ALERT, NULL, false,
                            STRANGE " (it speaks TLS: use rediss://)"))
TEST_CASE(dial, an_alert_of_who_has_answered_once_suggests_nothing,
          expect_suggestion(ALERT, NULL, true, STRANGE))
TEST_CASE(dial, who_answers_something_else_wants_no_tls,
          expect_suggestion("+PONG\r\n", NULL, false,
                            "not a Redis server: it does not answer PING"))

/* --- by a callback -------------------------------------------------------------- */

static redisContext *give(void *arg)
{
    return ((scene *)arg)->gives;
}

static bool owns(void *arg, const redisContext *ctx)
{
    const scene *s = arg;
    return s->owned && ctx == s->gives;
}

/* One end of a pair of sockets, as hiredis would have connected it. */
static redisContext *context_of(int *peer)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    redisContext *ctx = redisConnectFd(fds[0]);
    EXPECT(ctx && !ctx->err);
    *peer = fds[1];
    return ctx;
}

static void open_called(scene *s, redisContext *ctx)
{
    open_scene(s, "redis://h");
    s->gives = ctx;
    s->d.connect = give;
    s->d.is_ours = owns;
    s->d.connect_arg = s->d.is_ours_arg = s;
}

static void expect_called(scene *s, rlock_status status, const char *text)
{
    EXPECT_INT(dial(s), status);
    expect_fault(s, 0, text);
    EXPECT_INT(s->f.transient, status == RLOCK_EIO);
    EXPECT(s->met == 0 && s->opened == 0);
    close_scene(s);
}

TEST(dial, a_callback_may_have_no_context)
{
    scene s;
    open_called(&s, NULL);
    expect_called(&s, RLOCK_EIO, "the connect callback returned NULL");
}

TEST(dial, a_callback_may_have_one_that_failed)
{
    scene s;
    int peer;
    redisContext *ctx = context_of(&peer);
    ctx->err = REDIS_ERR_IO;
    strcpy(ctx->errstr, "no way");
    open_called(&s, ctx);
    expect_called(&s, RLOCK_EIO, "the connect callback failed: no way");
    close(peer);
}

TEST(dial, a_context_is_given_once)
{
    scene s;
    int peer;
    redisContext *ctx = context_of(&peer);
    open_called(&s, ctx);
    s.owned = true;
    expect_called(&s, RLOCK_EINVAL,
                  "the connect callback returned a context that the library "
                  "owns already");
    redisFree(ctx); /* it is still its owner's */
    close(peer);
}

TEST(dial, a_context_has_to_be_connected)
{
    scene s;
    int peer;
    redisContext *ctx = context_of(&peer);
    close(ctx->fd);
    ctx->fd = -1;
    open_called(&s, ctx);
    expect_called(&s, RLOCK_EINVAL,
                  "the connect callback returned a context that is not "
                  "connected");
    close(peer);
}

TEST(dial, a_context_has_to_block)
{
    scene s;
    int peer;
    redisContext *ctx = context_of(&peer);
    ctx->flags &= ~REDIS_BLOCK;
    open_called(&s, ctx);
    expect_called(&s, RLOCK_EINVAL,
                  "the connect callback returned a non-blocking context");
    close(peer);
}

TEST(dial, a_context_has_to_be_read_to_its_end)
{
    scene s;
    int peer;
    redisContext *ctx = context_of(&peer);
    EXPECT_INT(redisReaderFeed(ctx->reader, "+OK\r\n", 5), REDIS_OK);
    open_called(&s, ctx);
    expect_called(&s, RLOCK_EINVAL,
                  "the connect callback returned a context with unread "
                  "replies");
    close(peer);
}

TEST(dial, a_context_whose_server_has_gone_is_parted_with)
{
    scene s;
    int peer;
    open_called(&s, context_of(&peer));
    close(peer);
    EXPECT_INT(dial(&s), RLOCK_EIO);
    EXPECT(!s.c && s.met == 1 && s.parted == 1 && s.opened == 0);
    EXPECT(!strstr(s.f.text, "TLS"));
    close_scene(&s);
}
