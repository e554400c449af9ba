/* A connection over a pair of sockets: a line, and what the kernel does. */
#include "net/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim.h"
#include "test.h"

/* A connection and the descriptor of its other end. */
static rl_conn *connect_to(int *peer)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    rl_conn *c = rl_conn_new(rl_plain_transport(fds[0]));
    EXPECT(c);
    *peer = fds[1];
    return c;
}

/*
 * The same over a transport that has records of its own, as TLS 1.3 sends
 * session tickets whenever it likes: a 't' is one, and no input. The peer
 * says this once one has been read; NULL: nothing.
 */
static const char *behind_ticket;
static int behind_peer;

static void say(int peer, const char *text)
{
    EXPECT_INT(write(peer, text, strlen(text)), strlen(text));
}

static ssize_t read_records(rl_transport *t, char *bytes, size_t room,
                            rl_fault *f)
{
    ssize_t n = rl_plain_read(t, bytes, room, f), kept = 0;
    for (ssize_t i = 0; i < n; i++)
        if (bytes[i] != 't')
            bytes[kept++] = bytes[i];
    if (kept < n && behind_ticket)
        say(behind_peer, behind_ticket);
    return n < 0 ? n : kept;
}

static void close_records(rl_transport *t)
{
    close(t->fd);
}

static rl_conn *connect_with_records(int *peer)
{
    static const rl_transport_ops records = {rl_plain_write, read_records,
                                             close_records};
    rl_conn *c = connect_to(peer);
    c->io.ops = &records;
    behind_peer = *peer;
    return c;
}

static void hang_up(rl_conn *c, int peer)
{
    rl_fault f = {.status = RLOCK_EIO};
    close(peer);
    rl_conn_break(c, &f);
    rl_conn_free(c);
}

static int64_t in_ms(int64_t ms)
{
    return rl_after_ms(rl_now_us(), ms);
}

static rlock_status ping(rl_conn *c, int64_t deadline_us, rl_reply *r,
                         rl_fault *f)
{
    return rl_conn_ask(c, deadline_us, r, f, 1, (const char *[]){"PING"});
}

TEST(conn, asks_and_is_answered)
{
    int peer;
    char sent[100];
    rl_reply r;
    rl_fault f;
    rl_conn *c = connect_to(&peer);
    /* The answer is there as soon as it looks; it looks after it has sent. */
    say(peer, "+PONG\r\n");
    EXPECT_STATUS(ping(c, in_ms(SOON), &r, &f), RLOCK_OK);
    EXPECT_STR(r.top.str, "PONG");
    EXPECT(r.top.str >= r.text && r.top.str < r.text + sizeof r.text);
    EXPECT_INT(read(peer, sent, sizeof sent), 14);
    hang_up(c, peer);
}

static void expect_ping(const char *answer, rlock_status status,
                        const char *text)
{
    int peer;
    rl_fault f = {.status = RLOCK_OK};
    rl_conn *c = connect_to(&peer);
    say(peer, answer);
    EXPECT_INT(rl_conn_ping(c, in_ms(SOON), &f), status);
    EXPECT_STR(f.text, text);
    EXPECT_INT(f.sys_errno, 0);
    hang_up(c, peer);
}

TEST_CASE(conn, that_is_pinged_is_alive, expect_ping("+PONG\r\n", RLOCK_OK, ""))
TEST_CASE(conn, that_is_pinged_tells_an_error,
          expect_ping("-ERR no\r\n", RLOCK_ESERVER,
                      "the server answered: ERR no"))

/* Its line has no memory for commands yet: UBSan of clang looks on. */
TEST(conn, one_that_was_never_written_to_has_nothing_to_send)
{
    int peer;
    const char *bytes = "";
    rl_conn *c = connect_to(&peer);
    EXPECT_INT(rl_line_bytes(&c->line, &bytes), 0);
    EXPECT(!bytes);
    EXPECT_INT(rl_conn_events(c), POLLIN);
    EXPECT(rl_conn_send(c));
    hang_up(c, peer);
}

TEST(conn, an_answer_that_does_not_come_breaks_it)
{
    int peer;
    rl_reply r;
    rl_fault f;
    rl_conn *c = connect_to(&peer);
    EXPECT_INT(ping(c, rl_now_us(), &r, &f), RLOCK_EIO);
    EXPECT(rl_conn_is_broken(c));
    EXPECT_INT(f.sys_errno, ETIMEDOUT);
    EXPECT_CONTAINS(f.text, "no reply");
    hang_up(c, peer);
}

TEST(conn, a_broken_one_answers_nothing_and_says_why)
{
    int peer;
    rl_reply r;
    rl_fault f;
    rl_conn *c = connect_to(&peer);
    close(peer);
    EXPECT(!rl_conn_receive(c));
    EXPECT_INT(ping(c, in_ms(SOON), &r, &f), RLOCK_EIO);
    EXPECT_CONTAINS(f.text, "closed");
    rl_conn_free(c);
}

TEST(conn, what_the_kernel_does_not_take_waits)
{
    static char large[4000000];
    int peer;
    const char *bytes;
    rl_conn *c = connect_to(&peer);
    rl_put_bytes(rl_line_begin(&c->line), large, sizeof large);
    EXPECT(rl_line_push(&c->line, NULL));
    EXPECT(rl_conn_send(c));
    size_t left = rl_line_bytes(&c->line, &bytes);
    EXPECT(left > 0 && left < sizeof large);
    EXPECT_INT(rl_conn_events(c), POLLIN | POLLOUT);
    while (read(peer, large, sizeof large) > 0)
        EXPECT(rl_conn_send(c));
    EXPECT_INT(rl_line_bytes(&c->line, &bytes), 0);
    EXPECT_INT(rl_conn_events(c), POLLIN);
    hang_up(c, peer);
}

TEST(conn, cannot_send_is_told_from_no_reply)
{
    static char large[4000000];
    int peer;
    rl_conn *c = connect_to(&peer);
    rl_put_bytes(rl_line_begin(&c->line), large, sizeof large);
    EXPECT(rl_line_push(&c->line, NULL));
    EXPECT(rl_conn_send(c));
    rl_conn_time_out(c);
    EXPECT_CONTAINS(c->line.fault.text, "cannot send");
    hang_up(c, peer);
}

/* A server that is full says so, closes, and reads nothing. */
TEST(conn, the_last_words_of_a_server_are_read_before_it_is_given_up)
{
    int peer;
    rl_reply r;
    rl_fault f;
    rl_conn *c = connect_to(&peer);
    say(peer, "-ERR max number of clients reached\r\n");
    close(peer);
    EXPECT_INT(ping(c, in_ms(SOON), &r, &f), RLOCK_ESERVER);
    EXPECT(rl_conn_is_broken(c) && f.transient);
    EXPECT_CONTAINS(f.text, "max number of clients");
    rl_conn_free(c);
}

TEST(conn, writing_to_a_closed_one_raises_no_signal)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    close(peer);
    rl_put_text(rl_line_begin(&c->line), "word");
    EXPECT(rl_line_push(&c->line, NULL));
    EXPECT(!rl_conn_send(c)); /* SIGPIPE would have ended the test */
    rl_conn_free(c);
}

TEST(conn, all_that_has_come_is_read)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    static char many[40000];
    int len = snprintf(many, sizeof many, "$30000\r\n%030000d\r\n", 1);
    EXPECT_INT(write(peer, many, (size_t)len - 2), len - 2);
    EXPECT(rl_conn_receive(c));
    EXPECT(rl_line_is_mid_reply(&c->line));
    EXPECT_INT(recv(c->io.fd, many, 1, MSG_DONTWAIT), -1);
    hang_up(c, peer);
}

TEST(conn, remembers_when_something_came)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    int64_t before_us = rl_now_us();
    EXPECT(rl_conn_receive(c));
    EXPECT_INT(c->heard_us, 0);
    say(peer, "+");
    EXPECT(rl_conn_receive(c));
    EXPECT(c->heard_us >= before_us);
    hang_up(c, peer);
}

TEST(conn, a_look_out_reads_what_is_there)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    say(peer, "+");
    EXPECT(rl_conn_spin(c));
    EXPECT(rl_line_is_mid_reply(&c->line));
    hang_up(c, peer);
}

/*
 * The clock counts microseconds, and two answers may come in one. The transport
 * takes as long as it needs for that.
 */
static int64_t heard_at_us;

static ssize_t read_then(rl_transport *t, char *bytes, size_t room, rl_fault *f)
{
    ssize_t n = rl_plain_read(t, bytes, room, f);
    while (rl_now_us() < heard_at_us)
        ;
    return n;
}

TEST(conn, a_look_out_notices_what_comes_in_the_microsecond_of_what_came_before)
{
    static const rl_transport_ops slow = {rl_plain_write, read_then,
                                          close_records};
    int peer;
    rl_conn *c = connect_to(&peer);
    c->io.ops = &slow;
    for (int i = 0; i < 100; i++) {
        say(peer, "+");
        c->heard_us = heard_at_us = rl_now_us() + 5;
        EXPECT(rl_conn_spin(c));
    }
    heard_at_us = 0;
    hang_up(c, peer);
}

/* That a peer has hung up is noticed by whoever looks. */
TEST(conn, a_look_out_notices_that_the_peer_has_hung_up)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    close(peer);
    EXPECT(rl_conn_spin(c));
    EXPECT(rl_conn_is_broken(c));
    rl_conn_free(c);
}

TEST(conn, after_a_look_out_in_vain_the_next_one_is_not_worth_it)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    EXPECT(!rl_conn_spin(c));
    EXPECT(!rl_spin_is_worth_it(&c->spin));
    hang_up(c, peer);
}

/* The server may have needed our processor for it. */
TEST(conn, an_answer_at_the_first_look_makes_look_outs_no_more_frequent)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    c->spin.in_vain = 7;
    say(peer, "+");
    EXPECT(rl_conn_spin(c));
    EXPECT_INT(c->spin.in_vain, 7);
    hang_up(c, peer);
}

/* A transport on which a byte comes at the second look, and late. */
static int looks;

static ssize_t read_late(rl_transport *t, char *bytes, size_t room, rl_fault *f)
{
    (void)t;
    (void)room;
    (void)f;
    if (++looks == 1)
        return 0;
    shim_clock(shim_everywhere(), CLOCK_BOOTTIME, 2);
    *bytes = '+';
    return 1;
}

static void close_nothing(rl_transport *t)
{
    (void)t;
}

/* It slept all the same, only longer: somebody else wants the processor. */
TEST(conn, an_answer_that_was_there_after_a_time_slice_makes_look_outs_rare)
{
    static const rl_transport_ops late = {.read = read_late,
                                          .close = close_nothing};
    rl_conn *c = rl_conn_new((rl_transport){.ops = &late, .fd = -1});
    EXPECT(c);
    EXPECT(rl_conn_spin(c));
    EXPECT(c->spin.sleeps >= 64);
    rl_conn_free(c);
    shim_clear(shim_everywhere());
}

TEST(conn, is_stale_when_the_server_has_closed_it)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    EXPECT(!rl_conn_is_stale(c));
    close(peer);
    EXPECT(rl_conn_is_stale(c));
    rl_conn_free(c);
}

TEST(conn, is_stale_when_something_came_that_nobody_asked_for)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    say(peer, "+OK\r\n");
    EXPECT(rl_conn_is_stale(c));
    hang_up(c, peer);
}

/* A readable socket is no input there; only a read tells. */
TEST(conn, is_not_stale_because_of_records_that_are_no_input)
{
    int peer;
    rl_conn *c = connect_with_records(&peer);
    say(peer, "tt");
    EXPECT(!rl_conn_is_stale(c));
    struct pollfd p = {.fd = c->io.fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, 0), 0); /* they have been read */
    say(peer, "t+OK\r\n");
    EXPECT(rl_conn_is_stale(c));
    hang_up(c, peer);
}

TEST(conn, an_answer_behind_records_that_are_no_input_is_waited_for)
{
    int peer;
    rl_reply r;
    rl_fault f;
    rl_conn *c = connect_with_records(&peer);
    say(peer, "t");
    behind_ticket = "+PONG\r\n";
    EXPECT_STATUS(ping(c, in_ms(SOON), &r, &f), RLOCK_OK);
    EXPECT_STR(r.top.str, "PONG");
    hang_up(c, peer);
}

static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
    (void)sig;
    ticks = ticks + 1;
}

static void tick_every(int us)
{
    struct sigaction act = {.sa_handler = on_tick};
    struct itimerval timer = {{0, us}, {0, us}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

TEST(conn, is_not_stale_because_a_signal_came)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    tick_every(50);
    int64_t until = test_now_ms() + SOON;
    while (ticks < 300 && test_now_ms() < until)
        EXPECT(!rl_conn_is_stale(c));
    tick_every(0);
    EXPECT_INT(ticks >= 300, 1);
    hang_up(c, peer);
}

/* Whatever it is that memory lacks for. */
TEST(conn, closes_its_socket_when_there_is_no_memory_for_it)
{
    rl_conn *c = NULL;
    for (int nth = 1; !c; nth++) {
        int fds[2];
        EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        c = rl_conn_new(rl_plain_transport(fds[0]));
        bool failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
        shim_clear(shim_here());
        EXPECT_INT(!c, failed);
        EXPECT_INT(fcntl(fds[0], F_GETFD) < 0, failed);
        close(fds[1]);
    }
    EXPECT(rl_now_us() - c->made_us < 60 * 1000000LL);
    rl_conn_free(c);
}

/* It lies in the socket already when the master is found to be elsewhere. */
TEST(conn, what_a_forsaken_server_has_said_is_not_believed)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    rl_reply r;
    rl_fault f;
    say(peer, "+OK\r\n");
    atomic_store(&c->forsaken, true);
    EXPECT_INT(rl_conn_ask(c, rl_after_ms(rl_now_us(), SOON), &r, &f, 1,
                           (const char *[]){"PING"}),
               RLOCK_EIO);
    EXPECT_CONTAINS(f.text, "not the master any more");
    EXPECT(rl_conn_is_outdated(c, 0));
    rl_conn_free(c);
    close(peer);
}

TEST(conn, what_cannot_be_waited_for_ends_it_at_once)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    int64_t began_us = rl_now_us();
    shim_fail(shim_here(), SHIM_POLL, 1, SHIM_EVER, ENOMEM);
    EXPECT(!rl_conn_step(c, rl_after_ms(began_us, SOON)));
    shim_clear(shim_here());
    EXPECT(rl_now_us() < rl_after_ms(began_us, SOON / 2));
    EXPECT(rl_conn_is_broken(c));
    EXPECT_INT(c->line.fault.status, RLOCK_EIO);
    EXPECT_INT(c->line.fault.sys_errno, ENOMEM);
    hang_up(c, peer);
}

TEST(conn, an_interrupted_wait_goes_on)
{
    int peer;
    rl_conn *c = connect_to(&peer);
    say(peer, "+OK\r\n");
    shim_fail(shim_here(), SHIM_POLL, 1, 3, EINTR);
    rl_conn_step(c, rl_after_ms(rl_now_us(), SOON));
    EXPECT_INT(shim_failed(shim_here(), SHIM_POLL), 3);
    shim_clear(shim_here());
    EXPECT(c->line.fault.sys_errno != EINTR);
    hang_up(c, peer);
}
