/* A connection that rests: is it still what it was? */
#include "net/conn.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "test.h"

/* A connection and the descriptor of its other end. */
static rl_conn *connect_to(int *peer)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    redisContext *ctx = redisConnectFd(fds[0]);
    EXPECT(ctx);
    rl_conn *c = rl_conn_new(ctx);
    EXPECT(c);
    *peer = fds[1];
    return c;
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
    EXPECT_INT(write(peer, "+OK\r\n", 5), 5);
    EXPECT(rl_conn_is_stale(c));
    close(peer);
    rl_conn_free(c);
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
    int64_t until = test_now_ms() + 1000;
    while (test_now_ms() < until) {
        for (int i = 0; i < 1000; i++)
            EXPECT(!rl_conn_is_stale(c));
    }
    tick_every(0);
    EXPECT(ticks > 100);
    close(peer);
    rl_conn_free(c);
}
