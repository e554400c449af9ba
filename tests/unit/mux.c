/* A connection that threads share: who gets which reply, and who is told what
   when it ends. */
#include "net/mux.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

/* A command is a number and filling, so long; its reply is the number. */
#define RECORD 512

typedef struct scene {
    rl_mux *h;
    rl_conn *conn;
    int peer;
} scene;

static scene scene_start(int room)
{
    int fds[2];
    scene s;
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    if (room)
        for (int i = 0; i < 2; i++)
            setsockopt(fds[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    s.conn = rl_conn_new(rl_plain_transport(fds[0]));
    s.peer = fds[1];
    static const atomic_uint crowd = 1;
    s.h = rl_mux_new(&crowd);
    rl_mux_attach(s.h, s.conn);
    return s;
}

static void scene_stop(scene *s)
{
    EXPECT(rl_mux_detach(s->h) == s->conn);
    rl_mux_free(s->h);
    rl_conn_free(s->conn);
    if (s->peer >= 0)
        close(s->peer);
}

static int64_t in_ms(int64_t ms)
{
    return rl_after_ms(rl_now_us(), ms);
}

/* --- who asks ------------------------------------------------------------- */

typedef struct asker {
    rl_slot slot;
    rl_port *port;
    int64_t until_us;
    int first, rounds; /* numbers that it asks for */
    int answers, failures;
    long long number;
    int64_t told_us; /* when it was, as its line has it */
    bool whole;
    rl_fault fault;
    bool stays; /* when it is over */
} asker;

static void answered(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    asker *a = RL_CONTAINER(s, asker, slot);
    a->told_us = now_us;
    a->answers++;
    a->number = r->top.integer;
}

static void failed(rl_slot *s, bool whole, const rl_fault *why, int64_t now_us)
{
    asker *a = RL_CONTAINER(s, asker, slot);
    (void)now_us;
    a->failures++;
    a->whole = whole;
    a->fault = *why;
}

static asker asker_of(scene *s, int64_t until_us)
{
    asker a = {.slot = {.answered = answered,
                        .failed = failed,
                        .replies = RL_REPLY_BIT(REDIS_REPLY_INTEGER)},
               .port = rl_mux_join(s->h),
               .until_us = until_us};
    EXPECT(a.port);
    return a;
}

/* As a round does it: what is not answered in time has failed. */
static void ask(asker *a, int number)
{
    char record[RECORD] = "";
    snprintf(record, sizeof record, "%d", number);
    rl_put_raw(rl_line_begin(&a->port->line), record, sizeof record);
    EXPECT(rl_line_push(&a->port->line, &a->slot));
    rl_port_exchange(a->port, a->until_us, rl_now_us());
    if (a->port->line.pending > 0)
        rl_line_time_out(&a->port->line, rl_now_us());
}

static intptr_t run(void *arg)
{
    asker *a = arg;
    for (int i = 0; i < a->rounds && a->failures == 0; i++) {
        ask(a, a->first + i);
        EXPECT(a->failures || a->number == a->first + i);
    }
    return 0;
}

/* --- the other end -------------------------------------------------------- */

static void put(int fd, const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        ssize_t sent = send(fd, text, n, MSG_NOSIGNAL);
        if (sent > 0) {
            text += sent;
            n -= (size_t)sent;
        } else if (errno != EAGAIN || poll(&p, 1, 10000) <= 0) {
            return;
        }
    }
}

/* The next command's number; -1: there is none. */
static int take(int fd)
{
    char record[RECORD];
    size_t have = 0;
    while (have < sizeof record) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        ssize_t n = read(fd, record + have, sizeof record - have);
        if (n > 0)
            have += (size_t)n;
        else if (n == 0 || errno != EAGAIN || poll(&p, 1, 10000) <= 0)
            return -1;
    }
    return atoi(record);
}

static void answer(int fd, int number)
{
    char text[32];
    snprintf(text, sizeof text, ":%d\r\n", number);
    put(fd, text);
}

static intptr_t serve(void *arg)
{
    int fd = *(int *)arg, number;
    while ((number = take(fd)) >= 0)
        answer(fd, number);
    return 0;
}

/* Asks from threads, one after the other. */
static void start(asker *a, test_thread **t, int n, scene *s)
{
    for (int i = 0; i < n; i++) {
        a[i].first = i + 1;
        a[i].rounds = 1;
        t[i] = test_spawn(run, &a[i]);
        EXPECT_INT(take(s->peer), i + 1);
    }
}

static bool has_bytes(rl_mux *h)
{
    const char *bytes;
    rl_mutex_lock(&h->mutex);
    bool has = rl_line_bytes(&h->conn->line, &bytes) > 0;
    rl_mutex_unlock(&h->mutex);
    return has;
}

/* --- tests ---------------------------------------------------------------- */

TEST(mux, a_thread_that_is_alone_gets_its_reply)
{
    scene s = scene_start(0);
    test_thread *t = test_spawn(serve, &s.peer);
    asker a = asker_of(&s, in_ms(10000));
    ask(&a, 7);
    EXPECT(a.answers == 1 && a.number == 7);
    EXPECT(s.conn->arrivals > 0 && s.conn->heard_us > 0);
    EXPECT(rl_port_leave(a.port));
    shutdown(s.conn->io.fd, SHUT_RDWR);
    test_join(t);
    scene_stop(&s);
}

/* Both the one that reads for all and the one that sleeps. */
TEST(mux, an_answer_is_told_by_a_clock_that_was_read_after_it)
{
    scene s = scene_start(0);
    test_thread *t[2];
    asker a[2];
    for (int i = 0; i < 2; i++)
        a[i] = asker_of(&s, in_ms(60000));
    start(a, t, 2, &s);
    for (int i = 0; i < 2; i++) {
        int64_t before_us = rl_now_us();
        answer(s.peer, i + 1);
        test_join(t[i]);
        EXPECT(a[i].answers == 1 && a[i].told_us >= before_us);
        EXPECT(rl_port_leave(a[i].port));
    }
    scene_stop(&s);
}

enum { MANY = 32, ROUNDS = 200 };

static void expect_each_gets_its_own(int room)
{
    scene s = scene_start(room);
    asker a[MANY];
    test_thread *t[MANY], *server = test_spawn(serve, &s.peer);
    for (int i = 0; i < MANY; i++) {
        a[i] = asker_of(&s, in_ms(60000));
        a[i].first = i * ROUNDS;
        a[i].rounds = ROUNDS;
        t[i] = test_spawn(run, &a[i]);
    }
    for (int i = 0; i < MANY; i++) {
        test_join(t[i]);
        EXPECT(a[i].answers == ROUNDS && a[i].failures == 0);
        EXPECT(rl_port_leave(a[i].port));
    }
    shutdown(s.conn->io.fd, SHUT_RDWR);
    test_join(server);
    scene_stop(&s);
}

TEST(mux, of_many_threads_each_gets_its_own_replies)
{
    expect_each_gets_its_own(0);
}

/* Who finds the socket full sleeps; another one may send meanwhile. */
TEST(mux, a_full_socket_sends_no_byte_twice)
{
    expect_each_gets_its_own(1);
}

static void find_odd(rl_slot *s, const rl_reply *r, int64_t now_us)
{
    asker *a = RL_CONTAINER(s, asker, slot);
    a->port->line.odd = true;
    answered(s, r, now_us);
}

/* Whose answer says nothing to him; the others may have been given his. */
static void find_one_odd(int which)
{
    scene s = scene_start(0);
    test_thread *t[3];
    asker a[3];
    for (int i = 0; i < 3; i++)
        a[i] = asker_of(&s, in_ms(60000));
    a[which].slot.answered = find_odd;
    start(a, t, 3, &s);
    for (int i = 0; i <= which; i++)
        answer(s.peer, i + 1);
    for (int i = 0; i < 3; i++) {
        test_join(t[i]);
        EXPECT_INT(a[i].answers, i <= which);
        EXPECT_INT(a[i].failures, i > which);
        EXPECT(i <= which || a[i].whole);
    }
    for (int i = 0; i < 3; i++)
        EXPECT(!rl_port_leave(a[i].port));
    EXPECT(s.conn->line.failed);
    scene_stop(&s);
}

TEST_CASE(mux, an_odd_answer_to_the_first_ends_it, find_one_odd(0))
TEST_CASE(mux, an_odd_answer_to_one_in_between_ends_it, find_one_odd(1))

TEST(mux, one_that_cannot_wait_leaves_and_the_others_get_their_replies)
{
    scene s = scene_start(0);
    test_thread *t[3];
    asker a[3];
    for (int i = 0; i < 3; i++)
        a[i] = asker_of(&s, in_ms(i == 0 ? 1000 : 60000));
    start(a, t, 3, &s);
    test_join(t[0]);
    EXPECT(a[0].failures == 1 && a[0].whole);
    EXPECT(!rl_port_leave(a[0].port));
    for (int i = 0; i < 3; i++)
        answer(s.peer, i + 1);
    for (int i = 1; i < 3; i++) {
        test_join(t[i]);
        EXPECT(a[i].answers == 1 && a[i].number == i + 1);
        EXPECT(!rl_port_leave(a[i].port));
    }
    scene_stop(&s);
}

/* The one that reads for all is the first. */
static void expect_all_fail(const char *last_words, const char *why)
{
    scene s = scene_start(0);
    test_thread *t[3];
    asker a[3];
    for (int i = 0; i < 3; i++)
        a[i] = asker_of(&s, in_ms(60000));
    start(a, t, 3, &s);
    put(s.peer, last_words);
    close(s.peer);
    s.peer = -1;
    for (int i = 0; i < 3; i++) {
        test_join(t[i]);
        EXPECT(a[i].failures == 1 && a[i].answers == 0 && a[i].whole);
        EXPECT_INT(a[i].fault.status, RLOCK_EIO);
        EXPECT_CONTAINS(a[i].fault.text, why);
        EXPECT(!rl_port_leave(a[i].port));
    }
    EXPECT(*last_words || s.conn->arrivals == 0);
    scene_stop(&s);
}

TEST(mux, a_connection_that_ends_tells_everybody)
{
    expect_all_fail("", "connection closed by the server");
}

TEST(mux, half_a_reply_and_the_end_tells_everybody)
{
    expect_all_fail(":1", "connection closed by the server");
}

TEST(mux, what_is_no_reply_tells_everybody)
{
    expect_all_fail("HTTP/1.1 400 Bad Request\r\n", "not a Redis reply");
}

/* After it, the others' would be each other's. */
TEST(mux, a_reply_of_another_kind_tells_everybody)
{
    expect_all_fail("$2\r\nno\r\n:1\r\n:2\r\n", "unexpected reply");
}

TEST(mux, a_reply_too_many_is_nobodys)
{
    scene s = scene_start(0);
    asker a = asker_of(&s, in_ms(60000)), b = asker_of(&s, in_ms(60000));
    test_thread *t;
    start(&a, &t, 1, &s);
    put(s.peer, ":1\r\n:666\r\n");
    test_join(t);
    EXPECT(a.answers == 1 && a.number == 1);
    ask(&b, 2);
    EXPECT(b.answers == 0 && b.failures == 1);
    EXPECT(!rl_port_leave(b.port));
    EXPECT(!rl_port_leave(a.port));
    scene_stop(&s);
}

/* What the kernel has not taken has not been executed. */
TEST(mux, a_command_that_was_not_sent_is_certainly_not_executed)
{
    scene s = scene_start(0);
    asker a = asker_of(&s, in_ms(60000)), b = asker_of(&s, in_ms(60000));
    close(s.peer);
    s.peer = -1;
    ask(&a, 1);
    EXPECT(a.failures == 1 && !a.whole);
    EXPECT_STR(a.fault.text, "cannot send: Broken pipe");
    ask(&b, 2); /* for the same reason */
    EXPECT(b.failures == 1 && !b.whole);
    EXPECT_STR(b.fault.text, "cannot send: Broken pipe");
    EXPECT_INT(b.fault.sys_errno, EPIPE);
    EXPECT(!rl_port_leave(a.port) && !rl_port_leave(b.port));
    scene_stop(&s);
}

TEST(mux, a_socket_that_stays_full_tells_who_was_not_sent)
{
    int unsent = 0;
    scene s = scene_start(1);
    asker a[MANY];
    test_thread *t[MANY];
    for (int i = 0; i < MANY; i++) {
        a[i] = asker_of(&s, in_ms(200));
        a[i].first = i + 1;
        a[i].rounds = 1;
        t[i] = test_spawn(run, &a[i]);
    }
    for (int i = 0; i < MANY; i++) {
        test_join(t[i]);
        EXPECT(a[i].failures == 1 && a[i].answers == 0);
        unsent += !a[i].whole;
        EXPECT_CONTAINS(a[i].fault.text, strerror(ETIMEDOUT));
        EXPECT_INT(a[i].fault.sys_errno, ETIMEDOUT);
        EXPECT(!rl_port_leave(a[i].port));
    }
    EXPECT(unsent > 0 && unsent < MANY);
    scene_stop(&s);
}

TEST(mux, a_port_is_used_again)
{
    scene s = scene_start(0);
    asker a = asker_of(&s, 0);
    EXPECT(rl_port_leave(a.port));
    asker b = asker_of(&s, 0);
    EXPECT(b.port == a.port);
    rl_port_leave(b.port);
    EXPECT_INT(s.h->port_count, 1);
    scene_stop(&s);
}

/* It failed when it had just been told to, say. */
TEST(mux, who_leaves_and_was_to_lead_lets_another_one_lead)
{
    scene s = scene_start(0);
    asker a = asker_of(&s, in_ms(60000)), b = asker_of(&s, in_ms(60000));
    a.first = a.rounds = 1;
    s.h->leader = b.port;
    atomic_store(&b.port->leads, true);
    test_thread *t = test_spawn(run, &a);
    EVENTUALLY(10000, has_bytes(s.h));
    EXPECT(rl_port_leave(b.port));
    EXPECT_INT(take(s.peer), 1);
    answer(s.peer, 1);
    test_join(t);
    EXPECT_INT(a.answers, 1);
    EXPECT(rl_port_leave(a.port));
    scene_stop(&s);
}

/* --- one that is given up ------------------------------------------------- */

TEST(mux, nobody_stands_behind_one_that_could_not_wait)
{
    scene s = scene_start(0);
    asker a = asker_of(&s, in_ms(20)), b = asker_of(&s, in_ms(60000));
    ask(&a, 1);
    EXPECT(a.failures == 1);
    EXPECT(!rl_port_leave(a.port));
    ask(&b, 2);
    EXPECT(b.failures == 1 && !b.whole && b.fault.transient);
    EXPECT_STR(b.fault.text, "the connection is given up");
    EXPECT_INT(b.fault.sys_errno, 0);
    EXPECT(!rl_port_leave(b.port));
    scene_stop(&s);
}

TEST(mux, one_that_comes_too_late_asks_nothing_and_disturbs_nobody)
{
    scene s = scene_start(0);
    asker a = asker_of(&s, in_ms(60000)), b = asker_of(&s, rl_now_us() - 1);
    test_thread *t;
    start(&a, &t, 1, &s);
    ask(&b, 2);
    EXPECT(b.failures == 1 && !b.whole);
    answer(s.peer, 1);
    test_join(t);
    EXPECT(a.answers == 1);
    EXPECT(rl_port_leave(b.port));
    EXPECT(rl_port_leave(a.port));
    scene_stop(&s);
}

/* A transport whose next write takes long, once it is to. */
static atomic_bool is_slow, writes, may_go;

static ssize_t write_slowly(rl_transport *t, const char *bytes, size_t n,
                            rl_fault *f)
{
    if (atomic_exchange(&is_slow, false)) {
        atomic_store(&writes, true);
        EVENTUALLY(10000, atomic_load(&may_go));
    }
    return rl_plain_write(t, bytes, n, f);
}

static void close_plain(rl_transport *t)
{
    close(t->fd);
}

static bool is_asleep(rl_mux *h)
{
    rl_mutex_lock(&h->mutex);
    bool asleep = h->asleep;
    rl_mutex_unlock(&h->mutex);
    return asleep;
}

/* The first one's reply is wrong; the second's write is under way, and the
   third's bytes are behind it. */
TEST(mux, what_was_said_to_be_unsent_is_not_sent_later)
{
    static const rl_transport_ops slow = {write_slowly, rl_plain_read,
                                          close_plain};
    scene s = scene_start(0);
    asker a[3];
    test_thread *t[3];
    s.conn->io.ops = &slow;
    for (int i = 0; i < 3; i++) {
        a[i] = asker_of(&s, in_ms(20000));
        a[i].first = i + 1;
        a[i].rounds = 1;
    }
    start(a, t, 1, &s);
    EVENTUALLY(10000, is_asleep(s.h));
    atomic_store(&is_slow, true);
    t[1] = test_spawn(run, &a[1]);
    EVENTUALLY(10000, atomic_load(&writes));
    t[2] = test_spawn(run, &a[2]);
    EVENTUALLY(10000, has_bytes(s.h));
    put(s.peer, "$2\r\nno\r\n");
    test_join(t[0]);
    test_join(t[2]);
    EXPECT(a[2].failures == 1 && !a[2].whole);
    atomic_store(&may_go, true);
    test_join(t[1]);
    for (int i = 0; i < 3; i++)
        EXPECT(!rl_port_leave(a[i].port));
    EXPECT_INT(take(s.peer), 2);
    scene_stop(&(scene){s.h, s.conn, -1});
    EXPECT_INT(take(s.peer), -1);
    close(s.peer);
}
