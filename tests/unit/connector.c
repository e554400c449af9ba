/*
 * Who makes connections for those who must not wait: whom it tells, when it tries
 * again, and what it leaves. The program's callback connects, and gives nothing.
 */
#include "run/connector.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/engine.h"
#include "shim.h"
#include "test.h"

typedef struct station {
    rl_engine e;
    rl_node node;
    rl_signal signal;
    atomic_int calls;  /* of the callback */
    atomic_int passes; /* so many may come back */
} station;

static redisContext *come_back(void *arg)
{
    station *s = arg;
    int mine = atomic_fetch_add(&s->calls, 1);
    while (atomic_load(&s->passes) <= mine)
        test_pause_ms(1);
    return NULL;
}

/* Whose callback comes back so often by itself. */
static void open_station(station *s, int passes)
{
    rl_dialer d;
    memset(s, 0, sizeof *s);
    s->passes = passes;
    s->node.e = &s->e;
    s->e.core.set.connect_timeout_ms = SOON;
    s->e.core.set.command_timeout_ms = SOON;
    rl_dialer_init(&d);
    d.connect = come_back;
    d.connect_arg = s;
    s->node.pool = rl_pool_new(&d, 3);
    EXPECT(s->node.pool && rl_signal_init(&s->signal));
    rl_connector_init(&s->node.connector);
}

static void close_station(station *s)
{
    atomic_store(&s->passes, INT_MAX);
    rl_connector_stop(&s->node);
    EXPECT(!s->node.connector.runs);
    rl_connector_fini(&s->node.connector);
    rl_signal_fini(&s->signal);
    rl_pool_free(s->node.pool, false);
}

static bool has_news(station *s, rl_visitor *v)
{
    return rl_connector_has_news(&s->node.connector, v);
}

/* own: he wants one of his own. */
static void visit(station *s, rl_visitor *v, bool own)
{
    *v = (rl_visitor){.waiting = false};
    rl_connector_visit(&s->node, v, own ? rl_after_ms(rl_now_us(), SOON) : 0,
                       &s->signal);
}

static bool is_raised(station *s)
{
    struct pollfd p = {.fd = s->signal.fd, .events = POLLIN};
    bool raised = poll(&p, 1, 0) == 1;
    rl_signal_clear(&s->signal);
    return raised;
}

static void expect_told(station *s, rl_visitor *v, rlock_status status,
                        const char *text)
{
    EVENTUALLY(SOON, has_news(s, v));
    EXPECT_INT(v->fault.status, status);
    EXPECT_CONTAINS(v->fault.text, text);
    EXPECT(!v->conn);
}

/* The callback gives nothing. */
static void visit_in_vain(station *s, rl_visitor *v, bool own)
{
    visit(s, v, own);
    expect_told(s, v, RLOCK_EIO, "callback");
}

static bool runs(station *s)
{
    rl_mutex_lock(&s->node.connector.mutex);
    bool is = s->node.connector.runs;
    rl_mutex_unlock(&s->node.connector.mutex);
    return is;
}

static int64_t tries_since_us(station *s)
{
    rl_mutex_lock(&s->node.connector.mutex);
    int64_t us = s->node.connector.since_us;
    rl_mutex_unlock(&s->node.connector.mutex);
    return us;
}

static bool is_down(station *s)
{
    rl_fault why;
    return rl_connector_is_down(&s->node.connector, &why);
}

/* Whose thread is connecting for this visitor. */
static void open_serving(station *s, rl_visitor *served)
{
    open_station(s, 0);
    rl_connector_open(&s->node);
    visit(s, served, true);
    EVENTUALLY(SOON, s->calls == 1);
}

TEST(connector, that_is_closed_says_so_at_once_and_needs_no_thread)
{
    station s;
    rl_visitor v;
    open_station(&s, 0);
    for (int own = 0; own < 2; own++) {
        visit(&s, &v, own);
        EXPECT(has_news(&s, &v) && is_raised(&s));
        expect_told(&s, &v, RLOCK_EIO, "not asked any more");
        EXPECT(v.fault.transient);
    }
    EXPECT(!s.node.connector.thread.started && s.calls == 0);
    close_station(&s);
}

/* Of a server that does not let us in nothing follows for others. */
TEST(connector, who_wants_one_of_his_own_is_told_why_there_is_none)
{
    station s;
    rl_visitor v;
    open_station(&s, 0);
    rl_connector_open(&s.node);
    EXPECT(!s.node.connector.thread.started); /* there is nothing to do */
    visit(&s, &v, true);
    EVENTUALLY(SOON, s.calls == 1);
    EXPECT(!has_news(&s, &v) && !is_raised(&s));
    EXPECT(!rl_connector_is_slow(&s.node.connector, 0, rl_now_us()));
    atomic_store(&s.passes, 1);
    expect_told(&s, &v, RLOCK_EIO, "callback");
    EVENTUALLY(SOON, is_raised(&s));
    EXPECT(!is_down(&s) && s.calls == 1);
    close_station(&s);
}

/* Leases do not wait. */
TEST(connector, the_keeper_is_served_before_who_came_earlier)
{
    station s;
    rl_visitor first, second;
    open_serving(&s, &first);
    rl_visitor *keeper = &s.node.keeper.visitor;
    visit(&s, &second, true);
    visit(&s, keeper, true);
    atomic_store(&s.passes, 2);
    expect_told(&s, keeper, RLOCK_EIO, "callback");
    EXPECT(!has_news(&s, &second));
    atomic_store(&s.passes, 3);
    expect_told(&s, &second, RLOCK_EIO, "callback");
    close_station(&s);
}

TEST(connector, a_server_that_is_down_is_tried_again_and_again)
{
    station s;
    rl_visitor v;
    rl_fault why;
    open_station(&s, INT_MAX);
    rl_connector_open(&s.node);
    visit_in_vain(&s, &v, false);
    EXPECT(rl_connector_is_down(&s.node.connector, &why));
    EXPECT_STR(why.text, v.fault.text);
    EVENTUALLY(SOON, s.calls >= 4);
    EXPECT(is_down(&s));
    rl_connector_close(&s.node);
    EVENTUALLY(SOON, !runs(&s));
    close_station(&s);
}

/* A try would outlast the end. */
TEST(connector,
     while_the_client_ends_a_server_that_is_down_is_asked_for_visitors)
{
    station s;
    rl_visitor v;
    rl_fault why;
    open_station(&s, INT_MAX);
    rl_connector_open(&s.node);
    rl_connector_rest(&s.node);
    rl_fault_set(&why, RLOCK_EIO, 0, "it hangs");
    rl_connector_suspect(&s.node, &why);
    EXPECT(!runs(&s));
    EXPECT(rl_connector_is_down(&s.node.connector, &why));
    visit(&s, &v, true);
    EVENTUALLY(SOON, has_news(&s, &v));
    EXPECT_INT(v.fault.status, RLOCK_EIO);
    EXPECT_INT(s.calls, 1);
    close_station(&s);
    EXPECT_INT(s.calls, 1);
}

TEST(connector, the_first_suspicion_counts_until_the_server_has_been_tried)
{
    station s;
    rl_fault first, second, why;
    open_station(&s, 0);
    rl_connector_open(&s.node);
    rl_fault_set(&first, RLOCK_EIO, 0, "first");
    rl_fault_set(&second, RLOCK_EIO, 0, "second");
    EXPECT(!is_down(&s));
    rl_connector_suspect(&s.node, &first);
    rl_connector_suspect(&s.node, &second);
    EXPECT(rl_connector_is_down(&s.node.connector, &why));
    EXPECT_STR(why.text, "first");
    EVENTUALLY(SOON, s.calls == 1);
    atomic_store(&s.passes, 1);
    EVENTUALLY(SOON, s.calls == 2);
    EXPECT(rl_connector_is_down(&s.node.connector, &why));
    EXPECT_CONTAINS(why.text, "callback");
    close_station(&s);
}

TEST(connector, a_try_that_takes_long_is_slow)
{
    station s;
    rl_visitor v;
    open_station(&s, 0);
    rl_connector_open(&s.node);
    EXPECT(!rl_connector_is_slow(&s.node.connector, 0, rl_now_us()));
    visit(&s, &v, false);
    EVENTUALLY(SOON, s.calls == 1);
    int64_t since_us = tries_since_us(&s);
    EXPECT_BETWEEN(since_us, 1, rl_now_us());
    EXPECT(rl_connector_is_slow(&s.node.connector, 5000, since_us + 5000));
    EXPECT(!rl_connector_is_slow(&s.node.connector, 5000, since_us + 4999));
    rl_connector_close(&s.node);
    atomic_store(&s.passes, 1);
    EVENTUALLY(SOON, has_news(&s, &v) && !runs(&s));
    EXPECT(!rl_connector_is_slow(&s.node.connector, 0, rl_now_us()));
    close_station(&s);
}

/* Whoever wants one of his own comes first: then the others. */
TEST(connector, all_who_wait_are_told_of_one_try)
{
    station s;
    rl_visitor first, own, other[2];
    open_serving(&s, &first);
    visit(&s, &other[0], false);
    visit(&s, &own, true);
    visit(&s, &other[1], false);
    atomic_store(&s.passes, 2);
    EVENTUALLY(SOON, has_news(&s, &first) && has_news(&s, &own));
    EVENTUALLY(SOON, s.calls == 3);
    EXPECT(!has_news(&s, &other[0]) && !has_news(&s, &other[1]));
    rl_connector_close(&s.node);
    atomic_store(&s.passes, 3);
    EVENTUALLY(SOON, has_news(&s, &other[0]) && has_news(&s, &other[1]));
    EXPECT_INT(s.calls, 3);
    close_station(&s);
}

TEST(connector, who_has_gone_is_not_told)
{
    station s;
    rl_visitor served, waiting;
    open_serving(&s, &served);
    visit(&s, &waiting, true);
    rl_connector_forget(&s.node, &waiting);
    rl_connector_forget(&s.node, &served);
    EXPECT(has_news(&s, &served) && !served.fault.status);
    atomic_store(&s.passes, INT_MAX);
    rl_connector_stop(&s.node);
    EXPECT(!is_raised(&s) && s.calls == 1);
    close_station(&s);
}

TEST(connector, that_is_closed_meanwhile_tells_those_who_wait)
{
    station s;
    rl_visitor served, own, other;
    open_serving(&s, &served);
    visit(&s, &own, true);
    visit(&s, &other, false);
    rl_connector_close(&s.node);
    EXPECT(!has_news(&s, &own));
    atomic_store(&s.passes, 1);
    expect_told(&s, &own, RLOCK_EIO, "not asked any more");
    expect_told(&s, &other, RLOCK_EIO, "not asked any more");
    EXPECT_INT(s.calls, 1);
    EVENTUALLY(SOON, !runs(&s));
    rl_connector_open(&s.node); /* a new thread serves the next one */
    atomic_store(&s.passes, 2);
    visit(&s, &own, true);
    expect_told(&s, &own, RLOCK_EIO, "callback");
    close_station(&s);
}

TEST(connector, without_a_thread_visitors_are_told_and_nobody_is_down)
{
    station s;
    rl_visitor own, other;
    rl_fault why;
    open_station(&s, INT_MAX);
    rl_connector_open(&s.node);
    rl_fault_set(&why, RLOCK_EIO, 0, "silent");
    shim_fail(shim_here(), SHIM_THREAD, 1, SHIM_EVER, EAGAIN);
    visit(&s, &own, true);
    visit(&s, &other, false);
    rl_connector_suspect(&s.node, &why);
    shim_clear(shim_here());
    expect_told(&s, &own, RLOCK_ENOMEM, "no thread to connect with: ");
    expect_told(&s, &other, RLOCK_ENOMEM, strerror(EAGAIN));
    EXPECT(own.fault.transient && own.fault.sys_errno == EAGAIN);
    EXPECT(!is_down(&s) && !runs(&s) && s.calls == 0);
    close_station(&s);
}

/* --- what a try finds ----------------------------------------------------- */

/* In the pool; the server says that when it is asked, or has said it. */
static int add_idle(station *s, const char *text)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    rl_conn *c = rl_conn_new(rl_plain_transport(fds[0]));
    EXPECT(c);
    c->heard_us = rl_now_us();
    s->node.pool->dialer.met(s->node.pool->dialer.met_arg, c);
    s->node.pool->places++;
    rl_pool_give_back(s->node.pool, c);
    EXPECT_INT(write(fds[1], text, strlen(text)), strlen(text));
    return fds[1];
}

static unsigned places(station *s)
{
    rl_mutex_lock(&s->node.pool->mutex);
    unsigned n = s->node.pool->places;
    rl_mutex_unlock(&s->node.pool->mutex);
    return n;
}

TEST(connector, a_server_that_answers_is_not_down_and_its_connection_is_idle)
{
    station s;
    rl_visitor v;
    rl_fault why;
    open_station(&s, INT_MAX);
    int server = add_idle(&s, "+PONG\r\n");
    rl_fault_set(&why, RLOCK_EIO, 0, "it hung");
    rl_connector_suspect(&s.node, &why); /* it is not open: nobody tries */
    EXPECT(is_down(&s) && !runs(&s));
    rl_connector_open(&s.node);
    EVENTUALLY(SOON, !is_down(&s));
    EXPECT(s.calls == 0 && places(&s) == 0);
    EXPECT_INT(write(server, "+PONG\r\n", 7), 7);
    visit(&s, &v, false);
    EVENTUALLY(SOON, has_news(&s, &v));
    EXPECT_INT(v.fault.status, RLOCK_OK);
    EXPECT(!v.conn && places(&s) == 0 && s.calls == 0 && !is_down(&s));
    rl_conn *c = rl_pool_borrow_idle(s.node.pool, NULL);
    EXPECT(c);
    rl_pool_give_back(s.node.pool, c);
    close_station(&s);
    close(server);
}

TEST(connector, a_server_that_answers_with_an_error_is_down)
{
    station s;
    rl_visitor v;
    open_station(&s, INT_MAX);
    int server = add_idle(&s, "-NOAUTH Authentication required.\r\n");
    rl_connector_open(&s.node);
    visit(&s, &v, false);
    expect_told(&s, &v, RLOCK_ESERVER, "NOAUTH");
    EVENTUALLY(SOON, s.calls > 0 || is_down(&s));
    close_station(&s);
    close(server);
}

static void expect_told_in_time(int64_t connect_ms, int64_t command_ms)
{
    station s;
    rl_visitor v;
    open_station(&s, INT_MAX);
    s.e.core.set.connect_timeout_ms = connect_ms;
    s.e.core.set.command_timeout_ms = command_ms;
    int server = add_idle(&s, "");
    rl_connector_open(&s.node);
    int64_t began_us = rl_now_us();
    visit(&s, &v, false);
    expect_told(&s, &v, RLOCK_EIO, "");
    EXPECT_BETWEEN(rl_now_us() - began_us, 60000, 1000 * SOON / 2);
    EXPECT(s.calls == 0 || is_down(&s));
    close_station(&s);
    close(server);
}

TEST_CASE(connector, a_silent_server_has_as_long_as_a_command,
          expect_told_in_time(SOON, 60))
TEST_CASE(connector, a_silent_server_has_as_long_as_to_connect,
          expect_told_in_time(60, SOON))

/* They are all ours. */
TEST(connector, a_server_is_not_down_because_all_connections_are_in_use)
{
    station s;
    rl_visitor v;
    open_station(&s, INT_MAX);
    s.e.core.set.connect_timeout_ms = 20;
    s.node.pool->places = s.node.pool->limit;
    rl_connector_open(&s.node);
    visit(&s, &v, false);
    expect_told(&s, &v, RLOCK_EIO, "all 3 connections are in use");
    EXPECT(!is_down(&s) && s.calls == 0);
    s.node.pool->places = 0;
    close_station(&s);
}

static int64_t pause_us(station *s)
{
    rl_mutex_lock(&s->node.connector.mutex);
    int64_t us = s->node.connector.pause_us;
    rl_mutex_unlock(&s->node.connector.mutex);
    return us;
}

TEST(connector, its_pauses_grow_while_the_server_is_down)
{
    station s;
    rl_visitor v;
    open_station(&s, INT_MAX);
    rl_connector_open(&s.node);
    visit_in_vain(&s, &v, false);
    int64_t first_us = pause_us(&s);
    EXPECT(first_us >= 15000);
    EVENTUALLY(SOON, s.calls >= 5);
    EVENTUALLY(SOON, pause_us(&s) > 3 * 15000);
    EXPECT(pause_us(&s) <= 1250000);
    close_station(&s);
}

/* To start one costs less than one that is there all the while. */
TEST(connector, its_thread_ends_when_it_has_had_nothing_to_do_for_a_while)
{
    station s;
    rl_visitor v;
    open_station(&s, INT_MAX);
    rl_connector_open(&s.node);
    visit_in_vain(&s, &v, true);
    int64_t told_us = rl_now_us();
    EXPECT(runs(&s));
    EVENTUALLY(SOON, !runs(&s));
    EXPECT_BETWEEN(rl_now_us() - told_us, 500000, 1000 * SOON / 2);
    visit_in_vain(&s, &v, true);
    EXPECT_INT(s.calls, 2);
    close_station(&s);
}

TEST(connector, that_is_closed_ends_its_thread_at_once)
{
    station s;
    rl_visitor v;
    open_station(&s, INT_MAX);
    rl_connector_open(&s.node);
    visit_in_vain(&s, &v, true);
    int64_t told_us = rl_now_us();
    rl_connector_close(&s.node);
    EVENTUALLY(SOON, !runs(&s));
    EXPECT_BETWEEN(rl_now_us() - told_us, 0, 1000 * SLACK_MS);
    close_station(&s);
}

static bool is_starting(station *s)
{
    rl_mutex_lock(&s->node.connector.mutex);
    bool is = s->node.connector.starting;
    rl_mutex_unlock(&s->node.connector.mutex);
    return is;
}

/* Its thread takes a while to be started. */
static intptr_t visit_late(void *arg)
{
    station *s = arg;
    rl_visitor v;
    shim_fail(shim_here(), SHIM_THREAD, 1, 1, SHIM_LATE);
    visit(s, &v, true);
    shim_clear(shim_here());
    EVENTUALLY(SOON, has_news(s, &v));
    return 0;
}

TEST(connector, to_stop_it_waits_for_who_starts_its_thread_and_no_longer)
{
    station s;
    open_station(&s, INT_MAX);
    rl_connector_open(&s.node);
    test_thread *t = test_spawn(visit_late, &s);
    EVENTUALLY(SOON, is_starting(&s) || test_done(t));
    rl_connector_stop(&s.node);
    EXPECT(!is_starting(&s) && !runs(&s));
    test_join(t);
    close_station(&s);
}
