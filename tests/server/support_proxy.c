/*
 * What the other tests rely on: that the proxy does what its rules say. Plain
 * hiredis only, so that a defect of the library cannot show up here.
 */
#include <errno.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "direct.h"
#include "proxy.h"
#include "wire/script.h"

static redisContext *connect_through(const proxy *px, int limit_ms)
{
    const char *port = strrchr(proxy_uri(px), ':') + 1;
    return *proxy_path(px)
               ? connect_to(proxy_path(px), limit_ms)
               : ready(redisConnect("127.0.0.1", atoi(port)), limit_ms);
}

/* A server, a proxy before it, and a connection through the proxy. */
typedef struct rig {
    server *sv;
    proxy *px;
    redisContext *cx;
} rig;

typedef proxy *start_fn(server *sv);

static rig rig_start_by(start_fn *start, int limit_ms)
{
    rig r = {.sv = server_start(NULL)};
    r.px = start(r.sv);
    r.cx = connect_through(r.px, limit_ms);
    return r;
}

static rig rig_start(int limit_ms)
{
    return rig_start_by(proxy_start, limit_ms);
}

static void rig_stop(rig *r)
{
    if (r->cx)
        redisFree(r->cx);
    proxy_stop(r->px);
    server_stop(r->sv);
}

static void hang_up(rig *r)
{
    redisFree(r->cx);
    r->cx = NULL;
}

/* The next reply of a pipeline is this integer; -1: there is none. */
static void expect_next(redisContext *cx, long long wanted)
{
    redisReply *reply = NULL;
    redisGetReply(cx, (void **)&reply);
    EXPECT_INT(reply ? reply->integer : -1, wanted);
    if (reply)
        freeReplyObject(reply);
}

TEST(support_proxy, proxy_passes_what_no_rule_is_about)
{
    rig r = rig_start(20000);
    static char big[30000];
    memset(big, 'x', sizeof big - 1);
    for (int i = 1; i <= 100; i++)
        redisAppendCommand(r.cx, "APPEND k %s", big);
    for (int i = 1; i <= 100; i++)
        expect_next(r.cx, i * (long long)(sizeof big - 1));
    redisReply *reply = redisCommand(r.cx, "GET k");
    EXPECT_INT(reply->len, 100 * (sizeof big - 1));
    freeReplyObject(reply);
    EXPECT_INT(proxy_count(r.px, "append"), 100);
    EXPECT_INT(proxy_count(r.px, "GET"), 1);
    rig_stop(&r);
}

/* INCR twice in one write; the rule is about the second. */
static void cut_second(proxy_action action, int executed)
{
    rig r = rig_start(20000);
    proxy_rule(r.px, "INCR", 2, action, NULL);
    for (int i = 0; i < 3; i++)
        redisAppendCommand(r.cx, "INCR n");
    expect_next(r.cx, 1);
    expect_next(r.cx, -1);
    EXPECT(proxy_fired(r.px));
    EXPECT(r.cx->err == REDIS_ERR_EOF || r.cx->err == REDIS_ERR_IO);
    EXPECT_INT(atoi(server_str(r.sv, "GET n")), executed);
    hang_up(&r);
    r.cx = connect_to(proxy_path(r.px), 20000);
    redisAppendCommand(r.cx, "INCR n");
    expect_next(r.cx, executed + 1);
    rig_stop(&r);
}

TEST(support_proxy, proxy_cuts_before_the_server_sees_it)
{
    cut_second(PROXY_CUT_BEFORE, 1);
}

TEST(support_proxy, proxy_cuts_after_the_server_executed_it)
{
    cut_second(PROXY_CUT_AFTER, 2);
}

TEST(support_proxy, proxy_cuts_in_the_middle_of_a_reply)
{
    cut_second(PROXY_CUT_IN_REPLY, 2);
    rig r = rig_start(20000);
    char buf[16];
    proxy_rule(r.px, "PING", 1, PROXY_CUT_IN_REPLY, NULL);
    EXPECT_INT(write(r.cx->fd, "PING\r\n", 6), 6);
    EXPECT_INT(recv(r.cx->fd, buf, sizeof buf, MSG_WAITALL), 4);
    EXPECT(memcmp(buf, "+PON", 4) == 0);
    rig_stop(&r);
}

TEST(support_proxy, proxy_has_a_held_request_executed_after_the_client_left)
{
    rig r = rig_start(50);
    proxy_rule(r.px, "n", 1, PROXY_HOLD_REQUEST, NULL);
    redisAppendCommand(r.cx, "INCR n");
    redisAppendCommand(r.cx, "INCR m");
    expect_next(r.cx, -1); /* in time */
    EVENTUALLY(5000, proxy_fired(r.px));
    hang_up(&r);
    EXPECT_STR(server_str(r.sv, "GET n"), "");
    proxy_let_go(r.px);
    EXPECT_STR(server_str(r.sv, "GET n"), "1");
    EVENTUALLY(5000, strcmp(server_str(r.sv, "GET m"), "1") == 0);
    EVENTUALLY(5000, server_info(r.sv, "connected_clients") == 1);
    rig_stop(&r);
}

TEST(support_proxy, proxy_cuts_all_and_still_has_a_held_request_executed)
{
    rig r = rig_start(20000);
    redisContext *other = connect_to(proxy_path(r.px), 20000);
    expect_reply(other, "PING", "PONG");
    proxy_rule(r.px, "incr", 1, PROXY_HOLD_REQUEST, NULL);
    test_thread *t = test_spawn(incr_slowly, r.cx);
    EVENTUALLY(5000, proxy_fired(r.px));
    proxy_cut_all(r.px);
    EXPECT_INT(test_join(t), -1);
    expect_reply(other, "PING", NULL);
    proxy_let_go(r.px);
    EXPECT_STR(server_str(r.sv, "GET n"), "1");
    redisFree(other);
    rig_stop(&r);
}

TEST(support_proxy, proxy_holds_a_reply)
{
    rig r = rig_start(20000);
    proxy_rule(r.px, "INCR", 1, PROXY_HOLD_REPLY, NULL);
    test_thread *t = test_spawn(incr_slowly, r.cx);
    EVENTUALLY(5000, proxy_fired(r.px));
    EXPECT_STR(server_str(r.sv, "GET n"), "1");
    EXPECT(!test_done(t));
    proxy_let_go(r.px);
    EXPECT_INT(test_join(t), 1);
    rig_stop(&r);
}

TEST(support_proxy, proxy_swallows_replies)
{
    rig r = rig_start(20000);
    proxy_rule(r.px, "INCR", 2, PROXY_SWALLOW_REPLY, NULL);
    for (int i = 0; i < 3; i++)
        redisAppendCommand(r.cx, "INCR n");
    expect_next(r.cx, 1);
    redisSetTimeout(r.cx, (struct timeval){.tv_usec = 50000});
    expect_next(r.cx, -1);
    EXPECT_INT(r.cx->err, REDIS_ERR_IO); /* no answer, but still open */
    EVENTUALLY(5000, strcmp(server_str(r.sv, "GET n"), "3") == 0);
    rig_stop(&r);
}

TEST(support_proxy, proxy_drips_a_reply)
{
    rig r = rig_start(20000);
    proxy_rule(r.px, "PING", 1, PROXY_DRIP_REPLY, NULL);
    int64_t began = test_now_ms();
    expect_reply(r.cx, "PING", "PONG");
    EXPECT_BETWEEN(test_now_ms() - began, 100, 5000); /* 7 bytes */
    expect_reply(r.cx, "PING", "PONG");
    rig_stop(&r);
}

TEST(support_proxy, proxy_answers_in_its_turn)
{
    rig r = rig_start(20000);
    proxy_rule(r.px, "INCR", 2, PROXY_ANSWER, ":42\r\n");
    for (int i = 0; i < 3; i++)
        redisAppendCommand(r.cx, "INCR n");
    expect_next(r.cx, 1);
    expect_next(r.cx, 42);
    expect_next(r.cx, 2);
    rig_stop(&r);
}

TEST(support_proxy, proxy_freezes_and_refuses)
{
    rig r = rig_start(20000);
    proxy_freeze(r.px, true);
    test_thread *t = test_spawn(incr_slowly, r.cx);
    test_pause_ms(20);
    EXPECT_STR(server_str(r.sv, "GET n"), "");
    proxy_freeze(r.px, false);
    EXPECT_INT(test_join(t), 1);
    proxy_refuse(r.px, true);
    redisContext *other = connect_to(proxy_path(r.px), 20000);
    expect_reply(other, "PING", NULL);
    expect_reply(r.cx, "PING", "PONG");
    redisFree(other);
    rig_stop(&r);
}

/* The text of element i of the next reply. */
static void expect_push(redisContext *cx, int i, const char *wanted)
{
    redisReply *reply = NULL;
    redisGetReply(cx, (void **)&reply);
    EXPECT(reply && reply->type == REDIS_REPLY_ARRAY);
    EXPECT_STR(reply->element[i]->str, wanted);
    freeReplyObject(reply);
}

TEST(support_proxy, proxy_tells_messages_from_replies)
{
    rig r = rig_start(20000);
    redisAppendCommand(r.cx, "SUBSCRIBE a b");
    expect_push(r.cx, 1, "a");
    expect_push(r.cx, 1, "b");
    proxy_rule(r.px, "PING", 1, PROXY_HOLD_REPLY, NULL);
    EXPECT_INT(server_int(r.sv, "PUBLISH a 1"), 1);
    redisAppendCommand(r.cx, "PING x");
    expect_push(r.cx, 2, "1");
    EVENTUALLY(5000, proxy_fired(r.px));
    EXPECT_INT(server_int(r.sv, "PUBLISH b 2"), 1);
    proxy_let_go(r.px);
    expect_push(r.cx, 1, "x");
    expect_push(r.cx, 2, "2");
    rig_stop(&r);
}

TEST(support_proxy, proxy_knows_a_script_by_its_sha1)
{
    rig r = rig_start(20000);
    const rl_script *s = &rl_scripts[RL_SCRIPT_HASH_RENEW];
    const char *sha1 = proxy_sha("renew");
    EXPECT_STR(sha1, s->sha1);
    redisReply *reply = redisCommand(r.cx, "EVALSHA %s 1 k h 1", sha1);
    EXPECT_CONTAINS(reply->str, "NOSCRIPT");
    freeReplyObject(reply);
    proxy_rule(r.px, sha1, 1, PROXY_ANSWER, ":7\r\n");
    reply = redisCommand(r.cx, "EVAL %b 1 k h 1", s->body, s->len);
    EXPECT_INT(reply->integer, 7);
    freeReplyObject(reply);
    EXPECT_INT(proxy_count(r.px, sha1), 2);
    EXPECT_INT(proxy_count(r.px, proxy_sha("acquire")), 0);
    server_load_scripts(r.sv);
    reply = redisCommand(r.cx, "EVALSHA %s 1 k h 1000", sha1);
    EXPECT_INT(reply->type, REDIS_REPLY_INTEGER);
    freeReplyObject(reply);
    rig_stop(&r);
}

/* --- points and ways ----------------------------------------------------- */

/* What is there of "+PONG", and how the connection then ends: 0 or an errno. */
static void expect_end(redisContext *cx, const char *part, int err)
{
    char got[8];
    size_t n = 0, wanted = strlen(part);
    ssize_t more = 0;
    while (n <= wanted && (more = recv(cx->fd, got + n, sizeof got - n, 0)) > 0)
        n += (size_t)more;
    EXPECT_INT(n, wanted);
    EXPECT(memcmp(got, part, n) == 0);
    EXPECT_INT(more < 0 ? errno : 0, err);
}

static void ping_meets(start_fn *start, int action, const char *part, int err)
{
    rig r = rig_start_by(start, 20000);
    expect_reply(r.cx, "PING", "PONG"); /* the control */
    redisSetTimeout(r.cx, (struct timeval){.tv_usec = 50000});
    proxy_rule(r.px, "PING", 1, action, "+OWN\r\n");
    EXPECT_INT(write(r.cx->fd, "PING\r\n", 6), 6);
    EVENTUALLY(5000, proxy_fired(r.px));
    expect_end(r.cx, part, err);
    rig_stop(&r);
}

static void ping_meets_both(int action, const char *part, int err)
{
    ping_meets(proxy_start, action, part, err);
    ping_meets(proxy_start_tcp, action, part, err);
}

TEST(support_proxy, proxy_closes_at_each_point)
{
    ping_meets_both(PROXY_SENT | PROXY_CLOSED, "", 0);
    ping_meets_both(PROXY_EXECUTED | PROXY_CLOSED, "", 0);
    ping_meets_both(PROXY_MID_REPLY | PROXY_CLOSED, "+PON", 0);
    ping_meets_both(PROXY_ANSWERED | PROXY_CLOSED, "+PONG\r\n", 0);
    ping_meets_both(PROXY_ANSWER | PROXY_CLOSED, "+OWN\r\n", 0);
}

TEST(support_proxy, proxy_resets_at_each_point)
{
    ping_meets_both(PROXY_SENT | PROXY_RESET, "", ECONNRESET);
    ping_meets_both(PROXY_EXECUTED | PROXY_RESET, "", ECONNRESET);
    ping_meets_both(PROXY_MID_REPLY | PROXY_RESET, "+PON", ECONNRESET);
    ping_meets_both(PROXY_ANSWERED | PROXY_RESET, "+PONG\r\n", ECONNRESET);
    ping_meets_both(PROXY_ANSWER | PROXY_RESET, "+OWN\r\n", ECONNRESET);
}

TEST(support_proxy, proxy_falls_silent_at_each_point)
{
    static const int ways[] = {PROXY_STALLED, PROXY_TIMEOUT};
    for (int i = 0; i < 2; i++) {
        ping_meets_both(PROXY_SENT | ways[i], "", EAGAIN);
        ping_meets_both(PROXY_EXECUTED | ways[i], "", EAGAIN);
        ping_meets_both(PROXY_MID_REPLY | ways[i], "+PON", EAGAIN);
        ping_meets_both(PROXY_ANSWERED | ways[i], "+PONG\r\n", EAGAIN);
        ping_meets_both(PROXY_ANSWER | ways[i], "+OWN\r\n", EAGAIN);
    }
}

/* INCR, the fault, and INCR once more; then the client hangs up. */
static void expect_increments(int action, int executed, int clients_left)
{
    rig r = rig_start(20000);
    int done = 0;
    proxy_rule(r.px, "INCR", 1, action, NULL);
    redisAppendCommand(r.cx, "INCR n");
    redisAppendCommand(r.cx, "INCR n");
    while (!done)
        EXPECT_INT(redisBufferWrite(r.cx, &done), REDIS_OK);
    EVENTUALLY(5000, proxy_fired(r.px));
    hang_up(&r);
    EVENTUALLY(5000, server_info(r.sv, "connected_clients") ==
                         1 + clients_left); /* the test's own is one */
    EXPECT_INT(atoi(server_str(r.sv, "GET n")), executed);
    rig_stop(&r);
}

TEST(support_proxy, proxy_that_timed_out_closes_after_the_client)
{
    expect_increments(PROXY_SENT | PROXY_TIMEOUT, 0, 0);
    expect_increments(PROXY_EXECUTED | PROXY_TIMEOUT, 2, 0);
    expect_increments(PROXY_MID_REPLY | PROXY_TIMEOUT, 2, 0);
}

TEST(support_proxy, proxy_that_stalls_notices_nothing)
{
    expect_increments(PROXY_SENT | PROXY_STALLED, 0, 1);
    expect_increments(PROXY_EXECUTED | PROXY_STALLED, 1, 1);
    expect_increments(PROXY_MID_REPLY | PROXY_STALLED, 1, 1);
}

TEST(support_proxy, proxy_holds_what_comes_after_an_answer)
{
    rig r = rig_start(20000);
    proxy_rule(r.px, "INCR", 1, PROXY_ANSWERED | PROXY_LATE, NULL);
    redisAppendCommand(r.cx, "INCR n");
    expect_next(r.cx, 1);
    EXPECT_INT(write(r.cx->fd, "INCR n\r\n", 8), 8);
    EVENTUALLY(5000, proxy_fired(r.px));
    hang_up(&r);
    EXPECT_STR(server_str(r.sv, "GET n"), "1");
    proxy_let_go(r.px);
    EXPECT_STR(server_str(r.sv, "GET n"), "2");
    rig_stop(&r);
}

TEST(support_proxy, proxy_holds_the_rest_of_a_reply)
{
    rig r = rig_start(20000);
    char part[3];
    proxy_rule_at(r.px, "PING", 1, sizeof part, PROXY_LATE);
    EXPECT_INT(write(r.cx->fd, "PING\r\nPING\r\n", 12), 12);
    EXPECT_INT(recv(r.cx->fd, part, sizeof part, MSG_WAITALL), 3);
    EXPECT(memcmp(part, "+PO", 3) == 0);
    EVENTUALLY(5000, proxy_fired(r.px));
    EXPECT_INT(recv(r.cx->fd, part, 1, MSG_DONTWAIT), -1);
    proxy_let_go(r.px);
    char rest[11];
    EXPECT_INT(recv(r.cx->fd, rest, sizeof rest, MSG_WAITALL), 11);
    EXPECT(memcmp(rest, "NG\r\n+PONG\r\n", 11) == 0);
    rig_stop(&r);
}

TEST(support_proxy, proxy_cuts_a_reply_at_a_byte)
{
    for (size_t n = 0; n <= 7; n++) {
        rig r = rig_start(20000);
        char part[8] = "";
        proxy_rule_at(r.px, "PING", 1, n, PROXY_CLOSED);
        EXPECT_INT(write(r.cx->fd, "PING\r\n", 6), 6);
        memcpy(part, "+PONG\r\n", n);
        expect_end(r.cx, part, 0);
        rig_stop(&r);
    }
}

TEST(support_proxy, proxy_greets_before_it_is_asked)
{
    rig r = rig_start(20000);
    expect_reply(r.cx, "PING", "PONG"); /* the control: no greeting */
    proxy_greet(r.px, "+GO\r\n");
    proxy_refuse(r.px, true);
    hang_up(&r);
    r.cx = connect_through(r.px, 20000);
    expect_end(r.cx, "+GO\r\n", 0);
    rig_stop(&r);
}
