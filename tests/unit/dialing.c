/* A connection that is made on a thread of its own: ended, left, reaped. */
#include "net/dialing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim.h"
#include "test.h"

#define ECHO "$5\r\nrlock\r\n"

/* Somebody listens, and says nothing by himself. */
typedef struct scene {
    rl_dialing d;
    rl_signal signal;
    int listener, peer; /* -1: none */
} scene;

static void open_scene(scene *s, const char *uri)
{
    rl_fault f;
    *s = (scene){.listener = -1, .peer = -1};
    rl_dialing_init(&s->d);
    EXPECT(rl_signal_init(&s->signal));
    EXPECT_INT(rl_uri_parse(&s->d.dialer.uri, uri, &f), RLOCK_OK);
    s->d.dialer.connect_timeout_ms = SOON;
}

static void open_with_host(scene *s)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    char uri[40];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_INT(bind(fd, (struct sockaddr *)&at, len), 0);
    EXPECT_INT(listen(fd, 5), 0);
    EXPECT_INT(getsockname(fd, (struct sockaddr *)&at, &len), 0);
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", ntohs(at.sin_port));
    open_scene(s, uri);
    s->listener = fd;
}

static void close_scene(scene *s)
{
    EXPECT(!rl_dialing_is_under_way(&s->d) && s->d.fd == -1);
    rl_dialing_fini(&s->d, false);
    rl_signal_fini(&s->signal);
    if (s->listener >= 0)
        close(s->listener);
    if (s->peer >= 0)
        close(s->peer);
}

static void begin(scene *s)
{
    EXPECT(rl_dialing_begin(&s->d, rl_after_ms(rl_now_us(), SOON), &s->signal));
    EXPECT(rl_dialing_is_under_way(&s->d));
}

/* Until its signal is raised, which comes when it is over. */
static void await_end(scene *s)
{
    struct pollfd p = {.fd = s->signal.fd, .events = POLLIN};
    EXPECT_INT(poll(&p, 1, SOON), 1);
    rl_signal_clear(&s->signal);
    EXPECT(atomic_load(&s->d.over));
}

/* The other one has been connected to, and has read what is said first. */
static void meet(scene *s)
{
    char bytes[200];
    s->peer = accept(s->listener, NULL, NULL);
    EXPECT(s->peer >= 0);
    EXPECT(recv(s->peer, bytes, sizeof bytes, 0) > 0);
}

static void greet(scene *s)
{
    EXPECT_INT(send(s->peer, ECHO, sizeof ECHO - 1, MSG_NOSIGNAL),
               sizeof ECHO - 1);
}

TEST(dialing, that_fails_says_why_and_may_be_begun_again)
{
    scene s;
    open_scene(&s, "unix:///nowhere");
    EXPECT(!rl_dialing_is_under_way(&s.d));
    for (int i = 0; i < 2; i++) {
        int64_t began_us = rl_now_us();
        begin(&s);
        await_end(&s);
        EXPECT(rl_dialing_is_over(&s.d));
        EXPECT(!rl_dialing_reap(&s.d)); /* it is still wanted */
        EXPECT(!rl_dialing_end(&s.d));
        EXPECT_INT(s.d.fault.status, RLOCK_EIO);
        EXPECT_INT(s.d.fault.sys_errno, ENOENT);
        EXPECT_BETWEEN(s.d.began_us, began_us, rl_now_us());
        EXPECT_BETWEEN(s.d.took_us, 0, rl_now_us() - began_us);
        EXPECT(!rl_dialing_is_over(&s.d));
    }
    close_scene(&s);
}

TEST(dialing, gives_the_connection_once)
{
    scene s;
    open_with_host(&s);
    begin(&s);
    meet(&s);
    EXPECT(!rl_dialing_is_over(&s.d) && !rl_dialing_reap(&s.d));
    greet(&s);
    await_end(&s);
    EXPECT(rl_dialing_is_over(&s.d));
    rl_conn *c = rl_dialing_end(&s.d);
    EXPECT(c && !s.d.conn && !rl_conn_is_broken(c));
    rl_conn_free(c);
    close_scene(&s);
}

TEST(dialing, that_is_left_ends_soon_and_is_reaped)
{
    scene s;
    open_with_host(&s);
    begin(&s);
    meet(&s);
    EXPECT(!rl_dialing_reap(&s.d));
    rl_dialing_leave(&s.d);
    rl_dialing_leave(&s.d);
    await_end(&s);
    EXPECT(!rl_dialing_is_over(&s.d)); /* for who still wants it */
    EXPECT(rl_dialing_is_under_way(&s.d));
    EXPECT(rl_dialing_reap(&s.d) && !rl_dialing_reap(&s.d));
    close_scene(&s);
}

TEST(dialing, that_is_left_when_it_has_been_made_is_freed)
{
    scene s;
    open_with_host(&s);
    begin(&s);
    meet(&s);
    greet(&s);
    await_end(&s);
    rl_dialing_leave(&s.d);
    EXPECT(rl_dialing_reap(&s.d));
    close_scene(&s);
}

/* Whatever it is at: the socket may be there, or not yet. */
TEST(dialing, that_is_called_off_has_ended)
{
    for (int i = 0; i < 20; i++) {
        scene s;
        open_with_host(&s);
        begin(&s);
        for (volatile int k = 0; k < i * 2000; k++)
            ;
        int64_t began_us = rl_now_us();
        rl_dialing_call_off(&s.d);
        EXPECT(rl_now_us() - began_us < SOON * 1000 / 2);
        close_scene(&s);
    }
}

TEST(dialing, that_was_left_may_be_begun_again)
{
    scene s;
    open_with_host(&s);
    begin(&s);
    meet(&s);
    rl_dialing_call_off(&s.d);
    rl_signal_clear(&s.signal);
    close(s.peer);
    begin(&s);
    meet(&s);
    greet(&s);
    await_end(&s);
    rl_conn *c = rl_dialing_end(&s.d);
    EXPECT(c);
    rl_conn_free(c);
    close_scene(&s);
}

TEST(dialing, that_is_not_under_way_is_neither_left_nor_reaped)
{
    scene s;
    open_scene(&s, "unix:///nowhere");
    rl_dialing_leave(&s.d);
    EXPECT(!s.d.off && !rl_dialing_reap(&s.d));
    rl_dialing_call_off(&s.d);
    close_scene(&s);
}

TEST(dialing, needs_a_thread)
{
    scene s;
    open_scene(&s, "unix:///nowhere");
    shim_fail(shim_here(), SHIM_THREAD, 1, 1, EAGAIN);
    bool begun = rl_dialing_begin(&s.d, RL_NEVER, &s.signal);
    shim_clear(shim_here());
    EXPECT(!begun && !rl_dialing_is_under_way(&s.d));
    close_scene(&s);
}

/* The thread is not there; what it waited on is. */
TEST(dialing, in_a_child_closes_what_it_was_waiting_on)
{
    rl_dialing d;
    int fds[2];
    EXPECT_INT(pipe(fds), 0);
    rl_dialing_init(&d);
    d.fd = fds[0];
    rl_dialing_fini(&d, true);
    EXPECT(fcntl(fds[0], F_GETFD) == -1 && fcntl(fds[1], F_GETFD) >= 0);
    close(fds[1]);
    rl_dialing_fini(&d, false); /* a child does without */
}
