/* Clients whose connections a callback of the program makes. */
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "client.h"
#include "fake.h"

typedef struct dialer {
    server *sv;
    atomic_int calls;
    void (*spoil)(redisContext *cx); /* what is wrong with the context */
    redisContext *again;             /* returned instead of a new one */
} dialer;

static redisContext *dial(void *arg)
{
    dialer *d = arg;
    atomic_fetch_add(&d->calls, 1);
    if (d->again)
        return d->again;
    redisContext *cx = redisConnectUnix(server_path(d->sv));
    EXPECT(cx && !cx->err);
    if (d->spoil)
        d->spoil(cx);
    return cx;
}

static rlock_options options_of(dialer *d)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = dial;
    opts.connect_arg = d;
    return opts;
}

static scene scene_dialed(dialer *d)
{
    rlock_options opts = options_of(d);
    return scene_with(d->sv, &opts);
}

static void ask(redisContext *cx, const char *cmd)
{
    redisReply *reply = redisCommand(cx, cmd);
    EXPECT(reply && reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

static void ask_without_reading(redisContext *cx, const char *cmd)
{
    int done = 0;
    EXPECT_INT(redisAppendCommand(cx, cmd), REDIS_OK);
    while (!done)
        EXPECT_INT(redisBufferWrite(cx, &done), REDIS_OK);
}

static void select_2(redisContext *cx)
{
    ask(cx, "SELECT 2");
}

TEST(client_callback, the_callbacks_context_is_used_as_it_is)
{
    dialer d = {.sv = server_start(NULL), .spoil = select_2};
    scene s = scene_dialed(&d);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(d.sv, "SELECT 2");
    EXPECT_INT(server_int(d.sv, "HLEN job"), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(atomic_load(&d.calls) >= 1);
    scene_stop(&s);
}

TEST(client_callback, the_callback_is_called_again_after_a_break)
{
    dialer d = {.sv = server_start(NULL)};
    scene s = scene_dialed(&d);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int calls = atomic_load(&d.calls);
    EXPECT(server_int(d.sv, "CLIENT KILL TYPE normal") > 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(atomic_load(&d.calls) > calls);
    EXPECT(stats_of(s.cl).reconnects >= 1);
    events_wait(s.ev, RLOCK_EVENT_RECONNECTED, 1, SOON);
    EXPECT_INT(server_int(d.sv, "EXISTS job"), 0);
    scene_stop(&s);
}

TEST(client_callback, waiters_survive_a_break_of_all_connections)
{
    dialer d = {.sv = server_start(NULL)};
    scene s = scene_dialed(&d);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *t = test_spawn(wait_and_unlock, s.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    server_cmd(d.sv, "CLIENT KILL TYPE pubsub");
    server_cmd(d.sv, "CLIENT KILL TYPE normal");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    scene_stop(&s);
}

static void expect_context_refused(void (*spoil)(redisContext *))
{
    dialer d = {.sv = server_start(NULL), .spoil = spoil};
    rlock_options opts = options_of(&d);
    expect_refused(&opts, RLOCK_EINVAL);
    EXPECT_INT(atomic_load(&d.calls), 1);
    EXPECT_CONTAINS(message(), "callback");
    EXPECT_INT(server_int(d.sv, "DBSIZE"), 0);
    server_stop(d.sv);
}

static void begin_multi(redisContext *cx)
{
    ask(cx, "MULTI");
}

static void subscribe(redisContext *cx)
{
    ask(cx, "SUBSCRIBE news");
}

static void psubscribe(redisContext *cx)
{
    ask(cx, "PSUBSCRIBE n*");
}

static void leave_ok_unread(redisContext *cx)
{
    ask_without_reading(cx, "CLIENT SETNAME x");
}

static void leave_pong_in_the_reader(redisContext *cx)
{
    static const char pong[] = "+PONG\r\n";
    EXPECT_INT(redisReaderFeed(cx->reader, pong, sizeof pong - 1), REDIS_OK);
}

static void make_non_blocking(redisContext *cx)
{
    cx->flags &= ~REDIS_BLOCK;
}

TEST(client_callback, a_context_inside_multi_is_refused)
{
    expect_context_refused(begin_multi);
}

TEST(client_callback, a_subscribed_context_is_refused)
{
    expect_context_refused(subscribe);
    expect_context_refused(psubscribe);
}

TEST(client_callback, a_context_with_an_unread_reply_is_refused)
{
    expect_context_refused(leave_ok_unread);
    expect_context_refused(leave_pong_in_the_reader);
}

static redisContext *dial_and_leave_pong(void *arg)
{
    const fake *f = arg;
    redisContext *cx = redisConnect("127.0.0.1", f->port);
    EXPECT(cx && !cx->err);
    struct pollfd p = {.fd = cx->fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, SOON), 1);
    return cx;
}

/* It looks like the answer to the library's own first question. */
TEST(client_callback, a_context_with_an_unread_pong_is_refused)
{
    fake f = {
        .greeting = "+PONG\r\n", .answers = ANSWERS(ECHO), .delay_ms = 100};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    fake_start(&f);
    opts.connect = dial_and_leave_pong;
    opts.connect_arg = &f;
    expect_refused(&opts, RLOCK_EINVAL);
    EXPECT_CONTAINS(message(), "callback");
    fake_stop(&f);
}

TEST(client_callback, a_non_blocking_context_is_refused)
{
    expect_context_refused(make_non_blocking);
}

TEST(client_callback, a_context_returned_twice_is_refused)
{
    dialer d = {.sv = server_start(NULL)};
    d.again = redisConnectUnix(server_path(d.sv));
    rlock_client *cl = NULL;
    rlock_options opts = options_of(&d);
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    EXPECT_CONTAINS(message(), "owns already");
    d.again = NULL;
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(d.sv);
}

static redisContext *dial_nothing(void *arg)
{
    (void)arg;
    return NULL;
}

static redisContext *dial_nowhere(void *arg)
{
    (void)arg;
    return redisConnectUnix("/nowhere/at/all");
}

static redisContext *dial_and_break(void *arg)
{
    redisContext *cx = redisConnectUnix(server_path(arg));
    EXPECT(cx && !cx->err);
    shutdown(cx->fd, SHUT_RDWR);
    return cx;
}

TEST(client_callback, a_callback_that_fails_is_an_io_error)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = dial_nothing;
    expect_refused(&opts, RLOCK_EIO);
    EXPECT_CONTAINS(message(), "callback");
    opts.connect = dial_nowhere;
    expect_refused(&opts, RLOCK_EIO);
    EXPECT_CONTAINS(message(), "callback");
}

TEST(client_callback, a_context_that_is_closed_is_an_io_error)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = dial_and_break;
    opts.connect_arg = sv;
    expect_refused(&opts, RLOCK_EIO);
    server_stop(sv);
}
