/*
 * How a doorbell takes leave. The test is the server at the other end of its
 * connection, and gives it its turns.
 */
#include "run/doorbell.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engine.h"

#define ID   "6f1e1e0c-5d07-4f36-9a4e-f123456789ab"
#define BELL "rlock_bell:" ID

#define SUBSCRIBED   "*3\r\n$9\r\nsubscribe\r\n$47\r\n" BELL "\r\n:1\r\n"
#define UNSUBSCRIBED "*3\r\n$11\r\nunsubscribe\r\n$47\r\n" BELL "\r\n:0\r\n"
#define ONE_IS_LEFT  "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define RING         "*3\r\n$7\r\nmessage\r\n$47\r\n" BELL "\r\n$3\r\njob\r\n"
#define FAREWELL     "*1\r\n$11\r\nUNSUBSCRIBE\r\n"

typedef struct house {
    play p;
    rl_engine e;
    int server;     /* the other end of the doorbell's connection, */
    int keepers;    /* and of the keeper's */
    int64_t now_us; /* when the doorbell has its turn */
    char said[1000];
} house;

static rl_conn *connect_to(int *peer)
{
    int fds[2];
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    rl_conn *c = rl_conn_new(rl_plain_transport(fds[0]));
    EXPECT(c);
    *peer = fds[1];
    return c;
}

static rl_doorbell *bell(house *h)
{
    return &h->e.node.doorbell;
}

/* What the doorbell answers: when its next turn is due, or that it leaves. */
static int64_t take_turn(house *h)
{
    struct pollfd p = {.revents = POLLIN};
    bell(h)->watcher.polled = &p;
    bell(h)->watcher.n = 1;
    return bell(h)->watcher.turn(&bell(h)->watcher, h->now_us);
}

static void say(house *h, const char *text)
{
    EXPECT_INT(write(h->server, text, strlen(text)), strlen(text));
}

static const char *read_all(house *h, int peer)
{
    ssize_t n = read(peer, h->said, sizeof h->said - 1);
    h->said[n < 0 ? 0 : n] = '\0';
    return h->said;
}

/* It has been given a connection, and hears. */
static void open_house(house *h)
{
    rl_dialer d;
    memset(h, 0, sizeof *h);
    engine_open(&h->e, &h->p);
    rl_conn_free(h->e.node.keeper.conn);
    h->e.node.keeper.conn = connect_to(&h->keepers);
    rl_dialer_init(&d);
    h->e.node.pool = rl_pool_new(&d, 3);
    rl_connector_init(&h->e.node.connector);
    EXPECT(h->e.node.pool && rl_doorbell_init(bell(h)));
    snprintf(h->e.core.bell, sizeof h->e.core.bell, "%s", BELL);
    h->now_us = h->p.now_us;
    bell(h)->state = RL_CONNECTS;
    bell(h)->visitor.conn = connect_to(&h->server);
    take_turn(h);
    EXPECT_CONTAINS(read_all(h, h->server), "$9\r\nSUBSCRIBE\r\n");
    say(h, SUBSCRIBED);
    take_turn(h);
    EXPECT_INT(bell(h)->state, RL_HEARS);
}

static void close_house(house *h)
{
    close(h->server);
    if (bell(h)->conn)
        EXPECT_INT(take_turn(h), RL_LOOP_LEAVE);
    close(h->keepers);
    rl_doorbell_fini(bell(h), false);
    rl_connector_stop(&h->e.node);
    rl_connector_fini(&h->e.node.connector);
    rl_pool_free(h->e.node.pool, false);
    engine_close(&h->e, h->p.now_us);
    play_close_core(&h->e.core);
    play_close(&h->p);
}

/* It is told to leave, and says so. */
static void begin_to_leave(house *h)
{
    rl_doorbell_dismiss(&h->e.node);
    EXPECT_INT(take_turn(h), h->now_us + 250 * MS);
    EXPECT_STR(read_all(h, h->server), FAREWELL);
}

TEST(doorbell, that_leaves_ends_when_the_server_rings_it_no_more)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    EXPECT_INT(take_turn(&h), h.now_us + 250 * MS);
    say(&h, ONE_IS_LEFT);
    EXPECT_INT(take_turn(&h), h.now_us + 250 * MS);
    say(&h, UNSUBSCRIBED);
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    EXPECT_INT(bell(&h)->state, RL_RESTS);
    EXPECT(!bell(&h)->conn);
    close_house(&h);
}

TEST(doorbell, that_leaves_passes_on_what_is_rung_until_then)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    say(&h, RING UNSUBSCRIBED);
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    EXPECT_CONTAINS(read_all(&h, h.keepers), "$3\r\njob\r\n");
    close_house(&h);
}

TEST(doorbell, that_leaves_passes_on_what_has_just_been_rung)
{
    house h;
    open_house(&h);
    say(&h, RING);
    begin_to_leave(&h);
    EXPECT_CONTAINS(read_all(&h, h.keepers), "$3\r\njob\r\n");
    close_house(&h);
}

/* By an ACL without that command, or a cluster of before 7.0. */
TEST(doorbell, that_may_not_take_leave_goes)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    say(&h, "-NOPERM this user has no permissions\r\n");
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    close_house(&h);
}

TEST(doorbell, that_leaves_waits_for_a_quarter_of_a_second)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    h.now_us += 250 * MS - 1;
    EXPECT_INT(take_turn(&h), h.now_us + 1);
    h.now_us++;
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    close_house(&h);
}

TEST(doorbell, that_leaves_waits_for_no_longer_than_for_a_command)
{
    house h;
    open_house(&h);
    h.e.core.set.command_timeout_ms = 30;
    rl_doorbell_dismiss(&h.e.node);
    EXPECT_INT(take_turn(&h), h.now_us + 30 * MS);
    close_house(&h);
}

TEST(doorbell, whose_server_has_gone_has_nobody_to_take_leave_of)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    EXPECT_INT(shutdown(h.server, SHUT_RDWR), 0);
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    close_house(&h);
}

TEST(doorbell, that_hears_nothing_yet_leaves_at_once)
{
    house h;
    open_house(&h);
    bell(&h)->state = RL_SUBSCRIBES;
    rl_doorbell_dismiss(&h.e.node);
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    EXPECT_STR(read_all(&h, h.server), "");
    close_house(&h);
}

/* Its subscription is given up already. */
TEST(doorbell, that_is_to_stay_after_all_connects_anew)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    atomic_store(&bell(&h)->leaving, false);
    EXPECT_INT(take_turn(&h), RL_NEVER);
    EXPECT_INT(bell(&h)->state, RL_CONNECTS);
    EXPECT(!bell(&h)->conn);
    close_house(&h);
}
