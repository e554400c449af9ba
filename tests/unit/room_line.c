/* Those who stand in the one line of a name, in several rooms: who hears of what. */
#include "base/clock.h"
#include "room.h"

static const rl_target reading = {
    .name = "job", .len = 3, .scope = RL_LAYOUT_READ, .layout = RL_LAYOUT_READ};
static const rl_target writing = {.name = "job",
                                  .len = 3,
                                  .scope = RL_LAYOUT_WRITE,
                                  .layout = RL_LAYOUT_WRITE};
static const rl_target elsewhere = {.name = "else",
                                    .len = 4,
                                    .scope = RL_LAYOUT_READ,
                                    .layout = RL_LAYOUT_READ};

/* Two read, one writes, one reads another lock; each stands, and sleeps. */
enum { FIRST, SECOND, WRITER, OTHER, GUESTS };

static rl_uuid id_of(int i)
{
    rl_uuid id = {.bytes = {(unsigned char)(i + 1)}};
    return id;
}

static void open_standing(rl_rooms *r, guest *g)
{
    open_with(r, g, 0);
    for (int i = 0; i < GUESTS; i++) {
        rl_uuid id = id_of(i);
        enter(r, &g[i],
              i == WRITER  ? &writing
              : i == OTHER ? &elsewhere
                           : &reading);
        rl_room_stand(r, &g[i].waiter, &id);
        rl_room_rest(r, &g[i].waiter, NULL, true, RL_NEVER);
    }
}

static void expect_woken_only(const guest *g, bool first, bool second,
                              bool writer)
{
    EXPECT_INT(g[FIRST].woken, first);
    EXPECT_INT(g[SECOND].woken, second);
    EXPECT_INT(g[WRITER].woken, writer);
    EXPECT_INT(g[OTHER].woken, 0);
}

static void expect_granted_to(int i)
{
    rl_rooms r;
    guest g[GUESTS];
    open_standing(&r, g);
    rl_notice n = {.name = "job",
                   .len = 3,
                   .id = id_of(i),
                   .token = 7,
                   .beat_us = 5,
                   .claim_ms = 3};
    rl_rooms_grant(&r, &n);
    expect_woken_only(g, i == FIRST, i == SECOND, i == WRITER);
    EXPECT_INT(rl_room_rise(&r, &g[i].waiter, RL_WAKE_NONE), RL_HANDED);
    EXPECT_INT(g[i].waiter.token, 7);
    EXPECT(g[i].waiter.sent_us == 5 && g[i].waiter.claim_ms == 3);
    expect_woken(&g[i], 1, RL_WAKE_LOOK);
    close_with(&r, g, GUESTS);
}

TEST_CASE(room_line, a_grant_finds_the_first, expect_granted_to(FIRST))
TEST_CASE(room_line, a_grant_finds_one_behind, expect_granted_to(SECOND))
TEST_CASE(room_line, a_grant_finds_one_of_the_other_side,
          expect_granted_to(WRITER))

/* The script that granted it has taken the client out of the queue. */
static void expect_granted_to_front(const rl_target *what, bool queued)
{
    rl_rooms r;
    guest g[2];
    rl_uuid id = id_of(0);
    rl_notice n = {.name = "job", .len = 3, .id = id, .token = 7};
    open_with(&r, g, 0);
    enter(&r, &g[0], what);
    enter(&r, &g[1], what);
    rl_room_ticket(&r, &g[0].waiter);
    rl_room_is_busy(&r, &g[0].waiter, 500, NOW_US);
    rl_room_stand(&r, &g[0].waiter, &id);
    rl_room_rest(&r, &g[0].waiter, NULL, true, RL_NEVER);
    rl_rooms_grant(&r, &n);
    expect_woken(&g[0], 1, RL_WAKE_LOOK);
    EXPECT_INT(g[1].woken, 0);
    EXPECT_INT(g[0].waiter.room->queued, queued);
    EXPECT_INT(g[0].waiter.room->ticket, queued ? 500 : 0);
    EXPECT_INT(rl_room_rise(&r, &g[0].waiter, RL_WAKE_NONE), RL_HANDED);
    close_with(&r, g, 2);
}

TEST_CASE(room_line, a_grant_to_the_front_takes_its_client_out_of_the_queue,
          expect_granted_to_front(&job, false))
TEST_CASE(room_line, a_grant_to_one_in_line_leaves_the_others_there,
          expect_granted_to_front(&reading, true))

/* It is just asking, perhaps for the last time before the grant. */
static void expect_to_ask_again(const rl_target *what, bool stands)
{
    rl_rooms r;
    guest g;
    rl_uuid id = id_of(0), others = id_of(1);
    rl_notice n = {.name = "job", .len = 3, .id = others, .token = 7};
    open_with(&r, &g, 0);
    enter(&r, &g, what);
    rl_room_stand(&r, &g.waiter, &id);
    rl_rooms_grant(&r, &n);
    EXPECT_INT(g.woken, 0); /* the control */
    n.id = id;
    rl_rooms_grant(&r, &n);
    expect_woken(&g, 1, RL_WAKE_LOOK);
    EXPECT_INT(g.waiter.stands, stands);
    EXPECT_INT(rl_room_rise(&r, &g.waiter, RL_WAKE_LOOK), RL_AWAKE);
    EXPECT_INT(g.waiter.token, 0);
    close_with(&r, &g, 1);
}

TEST_CASE(room_line, a_grant_to_one_in_line_who_is_awake_has_it_ask_again,
          expect_to_ask_again(&reading, false))
TEST_CASE(room_line, a_grant_to_the_front_that_is_awake_has_it_look,
          expect_to_ask_again(&job, true))

TEST(room_line, who_was_taken_for_dead_has_all_of_that_name_ask_again)
{
    rl_rooms r;
    guest g[GUESTS];
    open_standing(&r, g);
    rl_room_stand_anew(&r, &g[SECOND].waiter);
    expect_woken_only(g, true, false, true);
    EXPECT(!g[FIRST].waiter.stands && !g[WRITER].waiter.stands);
    EXPECT(g[SECOND].waiter.stands && g[OTHER].waiter.stands);
    close_with(&r, g, GUESTS);
}

/* What is freed is not known to be wanted by one of them only. */
TEST(room_line, when_a_side_ends_the_front_of_each_looks)
{
    rl_rooms r;
    guest g[GUESTS];
    open_standing(&r, g);
    rl_rooms_look(&r, "job", 3, RL_LAYOUT_READ, false);
    expect_woken_only(g, true, false, true);
    close_with(&r, g, GUESTS);
}

TEST(room_line, a_ring_wakes_the_front_of_each)
{
    rl_rooms r;
    guest g[GUESTS];
    open_standing(&r, g);
    EXPECT(rl_rooms_wake(&r, "job", 3, RL_WAKE_RUNG));
    expect_woken_only(g, true, false, true);
    close_with(&r, g, GUESTS);
}

/* A ring that goes elsewhere is nothing to wait for by who is in no queue. */
TEST(room_line, a_plain_acquire_takes_the_bell_of_who_stands_in_line_too)
{
    rl_rooms r;
    guest g[GUESTS], plain;
    open_standing(&r, g);
    rl_room_ticket(&r, &g[FIRST].waiter);
    enter(&r, &plain, &job);
    rl_rooms_look(&r, "job", 3, 0, true);
    EXPECT_INT(g[FIRST].woken, 0); /* the control */
    leave(&r, &plain, true);
    rl_rooms_look(&r, "job", 3, 0, true);
    expect_woken(&g[FIRST], 1, RL_WAKE_LOOK);
    EXPECT(!g[FIRST].waiter.room->queued);
    close_with(&r, g, GUESTS);
}
