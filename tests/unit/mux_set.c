/*
 * Which connections that threads share are kept, and what a child does with those
 * that it inherits. They lead to sockets that say nothing, and are put into the set
 * as its pool would.
 */
#include "route/mux_set.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "test.h"

typedef struct scene {
    rl_pool *pool;
    rl_mux_set set;
    rl_mux *h; /* its only one, at rest */
    int peer;
} scene;

static rl_conn *borrowed(scene *s)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    rl_conn *c = rl_conn_new(rl_plain_transport(fds[0]));
    EXPECT(c);
    s->peer = fds[1];
    c->heard_us = rl_now_us();
    s->pool->dialer.met(s->pool->dialer.met_arg, c);
    s->pool->places++;
    return c;
}

static void open_scene(scene *s)
{
    rl_dialer d;
    rl_fault f;
    rl_dialer_init(&d);
    EXPECT_INT(rl_uri_parse(&d.uri, "unix:///nowhere", &f), RLOCK_OK);
    s->pool = rl_pool_new(&d, 1);
    EXPECT(s->pool);
    rl_mux_set_init(&s->set);
    s->set.pool = s->pool;
    s->h = rl_mux_new(&s->set.crowd);
    EXPECT(s->h);
    rl_mux_attach(s->h, borrowed(s));
    s->h->placed = true;
    rl_list_add_last(&s->set.open, &s->h->link);
    s->set.n++;
}

static void close_scene(scene *s)
{
    rl_mux_set_fini(&s->set, false);
    rl_pool_free(s->pool, false);
    close(s->peer);
}

static rl_port *join(scene *s)
{
    rl_fault f;
    int64_t now_us = rl_now_us();
    rl_port *port =
        rl_mux_set_join(&s->set, rl_after_ms(now_us, SOON), now_us, &f);
    EXPECT(port);
    return port;
}

/* So many had a port at a time, and the last one leaves. */
static void expect_kept(int ports, bool forsaken, bool kept)
{
    scene s;
    rl_port *port[33];
    open_scene(&s);
    for (int i = 0; i < ports; i++)
        port[i] = join(&s);
    EXPECT_INT(s.set.n, 1);
    atomic_store(&s.h->conn->forsaken, forsaken);
    for (int i = 0; i < ports; i++) {
        EXPECT_INT(s.set.n, 1);
        rl_mux_set_leave(&s.set, port[i]);
    }
    EXPECT_INT(s.set.n, kept);
    EXPECT_INT(s.set.crowd, 0);
    close_scene(&s);
}

TEST_CASE(mux_set, a_connection_that_nobody_uses_any_more_is_kept,
          expect_kept(1, false, true))
TEST_CASE(mux_set, one_that_32_have_used_at_a_time_is_kept,
          expect_kept(32, false, true))
TEST_CASE(mux_set, one_that_more_have_used_at_a_time_is_given_back,
          expect_kept(33, false, false))
TEST_CASE(mux_set, one_that_is_forsaken_is_given_back,
          expect_kept(1, true, false))

/* Of what wakes the threads of the parent, when a child has ended its own. */
static void expect_open_in_a_child(scene *s, bool open)
{
    int status, fd = s->h->signal.fd;
    EXPECT(fd >= 0);
    pid_t child = fork();
    if (child == 0) {
        rl_mux_set_fini(&s->set, true);
        _exit((fcntl(fd, F_GETFD) >= 0) != open);
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
}

TEST(mux_set, a_child_closes_what_wakes_the_parents_threads)
{
    scene s;
    open_scene(&s);
    expect_open_in_a_child(&s, false);
    close_scene(&s);
}

TEST(mux_set, a_child_leaves_alone_what_a_thread_of_the_parent_was_using)
{
    scene s;
    open_scene(&s);
    rl_mutex_lock(&s.set.mutex);
    expect_open_in_a_child(&s, true);
    rl_mutex_unlock(&s.set.mutex);
    close_scene(&s);
}
