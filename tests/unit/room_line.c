/* Those who stand in the one line of a name, in several rooms: who hears of what. */
#include "base/clock.h"
#include "room.h"

static const rl_target reading = {.name = "job",
                                  .len = 3,
                                  .scope = RL_LAYOUT_READ,
                                  .layout = &rl_layouts[RL_LAYOUT_READ]};
static const rl_target writing = {.name = "job",
                                  .len = 3,
                                  .scope = RL_LAYOUT_WRITE,
                                  .layout = &rl_layouts[RL_LAYOUT_WRITE]};
static const rl_target elsewhere = {.name = "else",
                                    .len = 4,
                                    .scope = RL_LAYOUT_READ,
                                    .layout = &rl_layouts[RL_LAYOUT_READ]};

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
    close_with(&r, g, GUESTS);
}

TEST_CASE(room_line, a_grant_finds_the_first, expect_granted_to(FIRST))
TEST_CASE(room_line, a_grant_finds_one_behind, expect_granted_to(SECOND))
TEST_CASE(room_line, a_grant_finds_one_of_the_other_side,
          expect_granted_to(WRITER))

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
