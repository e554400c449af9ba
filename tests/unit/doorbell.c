/* How a doorbell takes leave. The test is its server, and gives it its turns. */
#include "run/doorbell.h"

#include <errno.h>

#include "outpost.h"
#include "shim.h"

#define BELL "rlock_bell:of client 1"

#define SUBSCRIBED   "*3\r\n$9\r\nsubscribe\r\n$22\r\n" BELL "\r\n:1\r\n"
#define UNSUBSCRIBED "*3\r\n$11\r\nunsubscribe\r\n$22\r\n" BELL "\r\n:0\r\n"
#define ONE_IS_LEFT  "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n"
#define RING         "*3\r\n$7\r\nmessage\r\n$22\r\n" BELL "\r\n$3\r\njob\r\n"
#define FAREWELL     "*1\r\n$11\r\nUNSUBSCRIBE\r\n"

typedef struct house {
    play p;
    outpost o;
    int keepers, server; /* the servers' ends of the two connections */
    int64_t now_us;      /* when the doorbell has its turn */
} house;

static rl_doorbell *bell(house *h)
{
    return &outpost_node(&h->o)->doorbell;
}

/* What the doorbell answers: when its next turn is due, or that it leaves. */
static int64_t take_turn(house *h)
{
    struct pollfd p = {.revents = POLLIN};
    bell(h)->watcher.polled = &p;
    bell(h)->watcher.n = 1;
    return bell(h)->watcher.turn(&bell(h)->watcher, h->now_us);
}

/* It has been given a connection, and hears. */
static void open_house(house *h)
{
    memset(h, 0, sizeof *h);
    play_open(&h->p, 1);
    outpost_open(&h->o, &h->p, 1, 3);
    outpost_node(&h->o)->keeper.conn = outpost_connect(&h->o);
    h->keepers = outpost_peer(&h->o);
    h->now_us = rl_now_us();
    take_turn(h);
    outpost_give(&h->o);
    h->server = outpost_peer(&h->o);
    take_turn(h);
    EXPECT_CONTAINS(outpost_read(&h->o), "$9\r\nSUBSCRIBE\r\n");
    outpost_say(&h->o, SUBSCRIBED);
    take_turn(h);
    EXPECT_INT(bell(h)->state, RL_HEARS);
}

static void close_house(house *h)
{
    shutdown(h->server, SHUT_RDWR);
    rl_doorbell_dismiss(outpost_node(&h->o));
    EXPECT_INT(take_turn(h), RL_LOOP_LEAVE);
    outpost_close(&h->o);
    play_close(&h->p);
}

/* It is told to leave, and says so. */
static void begin_to_leave(house *h)
{
    rl_doorbell_dismiss(outpost_node(&h->o));
    EXPECT_INT(take_turn(h), h->now_us + 250 * MS);
    EXPECT_STR(outpost_read_at(&h->o, h->server), FAREWELL);
}

TEST(doorbell, that_leaves_ends_when_the_server_rings_it_no_more)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    EXPECT_INT(take_turn(&h), h.now_us + 250 * MS);
    outpost_say_at(h.server, ONE_IS_LEFT);
    EXPECT_INT(take_turn(&h), h.now_us + 250 * MS);
    outpost_say_at(h.server, UNSUBSCRIBED);
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
    outpost_say_at(h.server, RING UNSUBSCRIBED);
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    outpost_expect_asked_at(&h.o, h.keepers);
    close_house(&h);
}

/* That the server lacks the script might be said to nobody. */
TEST(doorbell, that_leaves_passes_it_on_with_the_whole_script)
{
    house h;
    open_house(&h);
    outpost_say_at(h.server, RING);
    take_turn(&h);
    EXPECT_CONTAINS(outpost_read_at(&h.o, h.keepers), "\r\nEVALSHA\r\n");
    begin_to_leave(&h);
    outpost_say_at(h.server, RING);
    take_turn(&h);
    EXPECT_CONTAINS(outpost_read_at(&h.o, h.keepers), "\r\nEVAL\r\n");
    close_house(&h);
}

TEST(doorbell, that_leaves_passes_on_what_has_just_been_rung)
{
    house h;
    open_house(&h);
    outpost_say_at(h.server, RING);
    begin_to_leave(&h);
    outpost_expect_asked_at(&h.o, h.keepers);
    close_house(&h);
}

TEST(doorbell, without_memory_passes_nothing_on_and_hears)
{
    house h;
    open_house(&h);
    outpost_say_at(h.server, RING);
    shim_fail(shim_here(), SHIM_ALLOC, 2, 2, ENOMEM); /* behind the bytes */
    take_turn(&h);
    EXPECT_INT(shim_failed(shim_here(), SHIM_ALLOC), 1);
    shim_clear(shim_here());
    EXPECT_STR(outpost_read_at(&h.o, h.keepers), "");
    EXPECT_INT(bell(&h)->state, RL_HEARS);
    close_house(&h);
}

/* By an ACL without that command, or a cluster of before 7.0. */
TEST(doorbell, that_may_not_take_leave_goes)
{
    house h;
    open_house(&h);
    begin_to_leave(&h);
    outpost_say_at(h.server, "-NOPERM this user has no permissions\r\n");
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
    h.o.e.core.set.command_timeout_ms = 30;
    rl_doorbell_dismiss(outpost_node(&h.o));
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

/* Its bell may be heard by nobody any more. */
TEST(doorbell, whose_server_has_lost_another_connection_asks_for_a_sign_of_life)
{
    house h;
    open_house(&h);
    int64_t silent_us = take_turn(&h);
    h.now_us = rl_now_us();
    EXPECT(silent_us > h.now_us);
    outpost_lose_another(&h.o, h.now_us);
    EXPECT(take_turn(&h) > h.now_us);
    EXPECT_CONTAINS(outpost_read_at(&h.o, h.server), "PING");
    outpost_say_at(h.server, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    EXPECT(take_turn(&h) > h.now_us);
    EXPECT_STR(outpost_read_at(&h.o, h.server), "");
    EXPECT_INT(bell(&h)->state, RL_HEARS);
    close_house(&h);
}

/* It had lasted; something is held, or not, and the keeper is cut off, too. */
static rl_conn *cut_off(house *h, bool holds)
{
    rl_node *node = outpost_node(&h->o);
    rl_conn *keepers = node->keeper.conn;
    h->now_us += 2000 * MS;
    EXPECT_INT(shutdown(h->server, SHUT_RDWR), 0);
    node->keeper.conn = NULL;
    node->keeper.holds = holds;
    return keepers;
}

static void close_cut_off(house *h, rl_conn *keepers)
{
    outpost_node(&h->o)->keeper.conn = keepers;
    close_house(h);
}

static void expect_to_connect(house *h)
{
    EXPECT_INT(take_turn(h), RL_NEVER);
    EXPECT(outpost_visitor(&h->o) == &bell(h)->visitor);
}

/* The connector opens one at a time, and a lease may be short. */
TEST(doorbell, that_lost_its_server_waits_until_the_keeper_has_connected)
{
    house h;
    open_house(&h);
    rl_conn *keepers = cut_off(&h, true);
    int64_t us = h.now_us + 1000 * MS;
    EXPECT_INT(take_turn(&h), us);
    h.now_us = us - 1;
    EXPECT_INT(take_turn(&h), us);
    EXPECT(!outpost_visitor(&h.o));
    outpost_node(&h.o)->keeper.conn = keepers;
    expect_to_connect(&h);
    close_cut_off(&h, keepers);
}

TEST(doorbell, that_lost_its_server_waits_for_the_keeper_for_a_second)
{
    house h;
    open_house(&h);
    rl_conn *keepers = cut_off(&h, true);
    h.now_us = take_turn(&h);
    expect_to_connect(&h);
    close_cut_off(&h, keepers);
}

TEST(doorbell, that_lost_its_server_where_nothing_is_held_hardly_waits)
{
    house h;
    open_house(&h);
    rl_conn *keepers = cut_off(&h, false);
    EXPECT_INT(take_turn(&h), h.now_us + 10 * MS);
    h.now_us += 10 * MS;
    expect_to_connect(&h);
    close_cut_off(&h, keepers);
}

TEST(doorbell, that_hears_nothing_yet_leaves_at_once)
{
    house h;
    open_house(&h);
    bell(&h)->state = RL_SUBSCRIBES;
    rl_doorbell_dismiss(outpost_node(&h.o));
    EXPECT_INT(take_turn(&h), RL_LOOP_LEAVE);
    EXPECT_STR(outpost_read_at(&h.o, h.server), "");
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
