/*
 * Sentinels that listen on the loopback and say what they are told to: what becomes
 * known of the master, what is told of those who do not name one, and what a child
 * closes. One thread plays them, and has the turns.
 */
#include "route/sentinel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "route/era.h"
#include "shim.h"
#include "test.h"

enum { CONNS = 8, STEP_MS = 5 };

#define MASTER(port, epoch)                                                    \
    "*8\r\n$2\r\nip\r\n$8\r\n10.0.0.1\r\n$4\r\nport\r\n$4\r\n" port            \
    "\r\n$19\r\nnum-other-sentinels\r\n$1\r\n0\r\n$12\r\nconfig-epoch\r\n"     \
    "$1\r\n" epoch "\r\n"
#define UNKNOWN "-ERR No such master with that name\r\n"

/* A master in office, at which one looks when it is disputed. */
typedef struct office {
    int listener, port, looks;
    int conn;         /* -1: nobody looks */
    const char *says; /* to whoever looks; twice, as two things are asked */
} office;

typedef struct scene {
    int listener, conn[CONNS], conns;
    const char *master; /* its answer; NULL: it hangs up */
    bool silent;        /* it says nothing at all, */
    bool alone;         /* or nothing of other Sentinels */
    int hears;          /* who is told what it says by itself; 0: nobody */
    int asked, others;  /* so often for the master, and for other Sentinels */
    rl_uri uri;
    rl_signal signal;
    atomic_uint_fast64_t refreshes;
    rl_sentinels *s;
    uint64_t nth;
    int failovers, nudges, port;
    office *office; /* or NULL */
} scene;

static void leave(void *arg, uint64_t nth, const char *name)
{
    scene *p = arg;
    p->nth = nth;
    EXPECT_CONTAINS(name, "redis://");
}

static void fail_over(void *arg, const rl_place *was, const rl_place *is)
{
    EXPECT(was->nth > 0 && is->nth == was->nth + 1);
    ((scene *)arg)->failovers++;
}

static void warn(void *arg, const char *text)
{
    (void)arg, (void)text;
}

static void nudge(void *arg)
{
    ((scene *)arg)->nudges++;
}

/* Returns its port. */
static int listen_on(int *fd)
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    *fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT_INT(bind(*fd, (struct sockaddr *)&at, len), 0);
    EXPECT_INT(listen(*fd, 5), 0);
    EXPECT_INT(getsockname(*fd, (struct sockaddr *)&at, &len), 0);
    return ntohs(at.sin_port);
}

static void open_scene(scene *p, const char *master)
{
    char text[80];
    rl_fault f;
    *p = (scene){.master = master};
    p->port = listen_on(&p->listener);
    snprintf(text, sizeof text, "redis-sentinel://127.0.0.1:%d/main", p->port);
    EXPECT_INT(rl_uri_parse(&p->uri, text, &f), RLOCK_OK);
    EXPECT(rl_signal_init(&p->signal));
    rl_sentinels_options o = {.uri = &p->uri,
                              .connect_timeout_ms = SOON,
                              .leave = leave,
                              .failed_over = fail_over,
                              .warn = warn,
                              .nudge = nudge,
                              .arg = p,
                              .signal = &p->signal,
                              .refreshes = &p->refreshes};
    p->s = rl_sentinels_new(&o);
    EXPECT(p->s);
}

static void close_scene(scene *p)
{
    rl_sentinels_stop(p->s);
    rl_sentinels_free(p->s, false);
    for (int i = 0; i < p->conns; i++)
        close(p->conn[i]);
    close(p->listener);
    rl_uri_fini(&p->uri);
    rl_signal_fini(&p->signal);
}

static void reply(int fd, const char *text)
{
    EXPECT_INT(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What comes, which are whole commands. */
static void hear(scene *p, int i)
{
    char text[1000];
    ssize_t n = recv(p->conn[i], text, sizeof text - 1, MSG_DONTWAIT);
    if (n <= 0)
        return;
    text[n] = '\0';
    if (strstr(text, "PING"))
        reply(p->conn[i], "$5\r\nrlock\r\n");
    if (strstr(text, "SUBSCRIBE")) {
        p->hears = p->conn[i];
        reply(p->hears, "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n"
                        ":1\r\n");
    }
    if (strstr(text, "\r\nSENTINELS\r\n"))
        p->others++;
    if (strstr(text, "\r\nSENTINELS\r\n") && !p->alone)
        reply(p->conn[i], "*0\r\n");
    if (!strstr(text, "\r\nMASTER\r\n"))
        return;
    p->asked++;
    if (p->master)
        reply(p->conn[i], p->master);
    else
        shutdown(p->conn[i], SHUT_RDWR);
}

/* Whoever looks is told, and left. */
static void be_in_office(office *o)
{
    char text[1000];
    int fd = accept(o->listener, NULL, NULL);
    if (fd >= 0)
        o->conn = fd;
    if (o->conn < 0 || recv(o->conn, text, sizeof text, MSG_DONTWAIT) <= 0)
        return;
    reply(o->conn, o->says);
    reply(o->conn, o->says);
    close(o->conn);
    o->conn = -1;
    o->looks++;
}

static void play(scene *p)
{
    int fd;
    while (p->conns < CONNS && (fd = accept(p->listener, NULL, NULL)) >= 0)
        p->conn[p->conns++] = fd;
    for (int i = 0; i < p->conns && !p->silent; i++)
        hear(p, i);
    if (p->office)
        be_in_office(p->office);
}

static void turn(scene *p)
{
    bool signaled;
    rl_sentinels_turn(p->s, rl_now_us(), &signaled);
}

static void step(scene *p)
{
    turn(p);
    play(p);
    poll(NULL, 0, STEP_MS);
}

/* Why nobody knows where the master is. */
static void expect_why(scene *p, const char *text)
{
    char who[60];
    rl_place at;
    rl_fault f;
    EXPECT_INT(rl_sentinels_locate(p->s, 0, &at, &f), RLOCK_EIO);
    snprintf(who, sizeof who, "Sentinel 127.0.0.1:%d: ", p->port);
    EXPECT_CONTAINS(f.text, who);
    EXPECT_CONTAINS(f.text, text);
}

static void expect_master(scene *p, int port, uint64_t nth)
{
    rl_place at;
    rl_fault f;
    EXPECT_INT(rl_sentinels_locate(p->s, 0, &at, &f), RLOCK_OK);
    EXPECT_STR(at.host, "10.0.0.1");
    EXPECT(at.port == port && at.nth == nth && p->nth == nth);
}

TEST(sentinel, the_master_that_one_names_is_known_and_what_it_names_next)
{
    scene p;
    open_scene(&p, MASTER("6379", "1"));
    EVENTUALLY(SOON, (step(&p), p.nth == 1));
    expect_master(&p, 6379, 1);
    EXPECT_INT(p.failovers, 0);
    EXPECT_INT(p.refreshes, p.asked);
    p.master = MASTER("6380", "2");
    rl_sentinels_suspect(p.s);
    EVENTUALLY(SOON, (step(&p), p.nth == 2));
    expect_master(&p, 6380, 2);
    EXPECT_INT(p.failovers, 1);
    close_scene(&p);
}

TEST(sentinel, what_one_answers_instead_is_told_in_that_turn)
{
    scene p;
    open_scene(&p, UNKNOWN);
    p.alone = true;
    EVENTUALLY(SOON, (step(&p), p.asked == 1));
    turn(&p);
    expect_why(&p, "No such master");
    close_scene(&p);
}

TEST(sentinel, without_a_thread_none_is_asked_and_that_is_told_in_that_turn)
{
    scene p;
    open_scene(&p, NULL);
    shim_fail(shim_here(), SHIM_THREAD, 1, SHIM_EVER, EAGAIN);
    turn(&p);
    shim_clear(shim_here());
    expect_why(&p, "no thread to connect with");
    EXPECT_INT(p.conns, 0);
    close_scene(&p);
}

TEST(sentinel, one_that_hangs_up_is_told_in_that_turn)
{
    scene p;
    open_scene(&p, NULL);
    p.alone = true;
    EVENTUALLY(SOON, (step(&p), p.asked == 1));
    turn(&p);
    expect_why(&p, "closed by the server");
    close_scene(&p);
}

TEST(sentinel, one_that_hangs_up_is_connected_to_again)
{
    scene p;
    open_scene(&p, NULL);
    EVENTUALLY(SOON, (step(&p), p.asked == 1));
    p.master = MASTER("6379", "1");
    EVENTUALLY(SOON, (step(&p), p.nth == 1));
    EXPECT(p.conns > 2);
    close_scene(&p);
}

TEST(sentinel, a_suspicion_asks_for_a_turn_once)
{
    scene p;
    open_scene(&p, MASTER("6379", "1"));
    rl_sentinels_suspect(p.s);
    rl_sentinels_suspect(p.s);
    EXPECT_INT(p.nudges, 1);
    close_scene(&p);
}

#define SWITCHED(name)                                                         \
    "*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$31\r\n" name             \
    " 10.0.0.1 6379 10.0.0.1 638\r\n"

/* A turn reads it, and asks all of them, or none. */
static void expect_asked(const char *message, bool asked)
{
    scene p;
    open_scene(&p, MASTER("6379", "1"));
    /* For each of the two connections that come. */
    EVENTUALLY(SOON, (step(&p), p.hears && p.others == 2));
    turn(&p);
    uint64_t before = p.refreshes;
    reply(p.hears, message);
    turn(&p);
    EXPECT_INT(p.refreshes, before + asked);
    close_scene(&p);
}

TEST_CASE(sentinel, another_master_that_one_tells_of_is_asked_about,
          expect_asked(SWITCHED("main"), true))
TEST_CASE(sentinel, of_another_name_nothing_is_asked,
          expect_asked(SWITCHED("mine"), false))

/* By an epoch of one digit. */
static void name_master(char *out, size_t size, int port, int epoch)
{
    char digits[8];
    snprintf(digits, sizeof digits, "%05d", port);
    snprintf(out, size,
             "*8\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$5\r\n%s\r\n"
             "$19\r\nnum-other-sentinels\r\n$1\r\n0\r\n$12\r\nconfig-epoch"
             "\r\n$1\r\n%d\r\n",
             digits, epoch);
}

/* They name another one, as of an era before; it is looked several times whether
   the one in office is there still, who says that. */
static void expect_replaced(const char *says, bool replaced)
{
    scene p;
    office o = {.conn = -1, .says = says};
    char in_office[200] = "", another[200];
    open_scene(&p, in_office);
    p.office = &o;
    o.port = listen_on(&o.listener);
    name_master(in_office, sizeof in_office, o.port, 5);
    name_master(another, sizeof another, p.port, 1);
    EVENTUALLY(SOON, (step(&p), p.nth == 1));
    p.master = another;
    EVENTUALLY(SOON, (rl_sentinels_suspect(p.s), step(&p),
                      p.nth == 2 || o.looks > RL_ERA_ASKINGS));
    EXPECT_INT(p.nth, replaced ? 2 : 1);
    close_scene(&p);
    close(o.listener);
}

TEST_CASE(sentinel, a_master_that_will_not_have_us_is_replaced,
          expect_replaced("-NOAUTH Authentication required.\r\n", true))
TEST_CASE(sentinel, a_master_that_will_not_have_us_for_the_moment_stays,
          expect_replaced("-LOADING Redis is loading\r\n", false))

/* Sockets that lead to the Sentinel. */
static int count_connections(const scene *p)
{
    int n = 0;
    for (int fd = 3; fd < 1000; fd++) {
        struct sockaddr_in at;
        socklen_t len = sizeof at;
        if (getpeername(fd, (struct sockaddr *)&at, &len) == 0 &&
            at.sin_family == AF_INET && ntohs(at.sin_port) == p->port)
            n++;
    }
    return n;
}

static void expect_none_in_a_child(scene *p)
{
    int status;
    EXPECT(count_connections(p) > 0);
    pid_t child = fork();
    if (child == 0) {
        rl_sentinels_free(p->s, true);
        /* Past TSan, which would ask for the parent's threads. */
        syscall(SYS_exit_group, count_connections(p));
    }
    EXPECT_INT(waitpid(child, &status, 0), child);
    EXPECT_INT(status, 0);
}

TEST(sentinel, a_child_closes_connections_to_them)
{
    scene p;
    open_scene(&p, MASTER("6379", "1"));
    EVENTUALLY(SOON, (step(&p), p.others == 1));
    expect_none_in_a_child(&p);
    close_scene(&p);
}

TEST(sentinel, a_child_closes_connections_that_are_being_made)
{
    scene p;
    open_scene(&p, NULL);
    p.silent = true;
    EVENTUALLY(SOON, (step(&p), p.conns == 1));
    poll(NULL, 0, 4 * STEP_MS);
    expect_none_in_a_child(&p);
    close_scene(&p);
}
