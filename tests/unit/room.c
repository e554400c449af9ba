/* Waiting rooms: first come, first served, and who is woken when. */
#include "room.h"

#include <errno.h>

#include "collide.h"
#include "shim.h"

TEST(room, who_came_first_is_in_front)
{
    rl_rooms r;
    guest g[3];
    open_with(&r, g, 3);
    EXPECT(rl_room_is_front(&r, &g[0].waiter));
    EXPECT(!rl_room_is_front(&r, &g[1].waiter));
    EXPECT(!rl_room_is_front(&r, &g[2].waiter));
    close_with(&r, g, 3);
}

TEST(room, the_next_is_woken_when_the_front_leaves)
{
    rl_rooms r;
    guest g[3];
    open_with(&r, g, 3);
    EXPECT(!leave(&r, &g[0], true));
    expect_woken(&g[1], 1, RL_WAKE_LOOK);
    EXPECT_INT(g[2].woken, 0);
    EXPECT(rl_room_is_front(&r, &g[1].waiter));
    close_with(&r, g, 3);
}

TEST(room, nobody_is_woken_when_one_behind_leaves)
{
    rl_rooms r;
    guest g[3];
    open_with(&r, g, 3);
    EXPECT(!leave(&r, &g[1], false));
    EXPECT(g[0].woken == 0 && g[2].woken == 0);
    EXPECT(!leave(&r, &g[0], false));
    expect_woken(&g[2], 1, RL_WAKE_LOOK);
    close_with(&r, g, 3);
}

TEST(room, locks_have_rooms_of_their_own)
{
    rl_rooms r;
    guest g[4];
    open_with(&r, g, 1);
    enter(&r, &g[1], &string_job);
    enter(&r, &g[2], &red_job);
    enter(&r, &g[3], &other);
    for (int i = 0; i < 4; i++)
        EXPECT(rl_room_is_front(&r, &g[i].waiter));
    close_with(&r, g, 4);
}

TEST(room, the_last_one_takes_the_client_out_of_the_queue_it_may_be_in)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 2);
    rl_room_ticket(&r, &g[0].waiter);
    EXPECT(!leave(&r, &g[0], false)); /* the next one goes on with it */
    EXPECT(leave(&r, &g[1], false));
    close_with(&r, g, 2);
}

TEST(room, who_never_gave_the_bell_need_not_leave_the_queue)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 1);
    rl_room_is_busy(&r, &g.waiter, 500, NOW_US);
    EXPECT(!leave(&r, &g, false));
    close_with(&r, &g, 1);
}

TEST(room, who_acquired_is_out_of_the_queue_already)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 1);
    rl_room_ticket(&r, &g.waiter);
    EXPECT(!leave(&r, &g, true));
    close_with(&r, &g, 1);
}

TEST(room, its_ticket_is_handed_on_until_somebody_acquires)
{
    rl_rooms r;
    guest g[3];
    open_with(&r, g, 3);
    EXPECT_INT(rl_room_ticket(&r, &g[0].waiter), 0);
    rl_room_is_busy(&r, &g[0].waiter, 500, NOW_US);
    leave(&r, &g[0], false);
    EXPECT_INT(rl_room_ticket(&r, &g[1].waiter), 500);
    rl_room_is_busy(&r, &g[1].waiter, 0, NOW_US); /* tried without a bell */
    EXPECT_INT(rl_room_ticket(&r, &g[1].waiter), 500);
    leave(&r, &g[1], true);
    EXPECT_INT(rl_room_ticket(&r, &g[2].waiter), 0);
    close_with(&r, g, 3);
}

TEST(room, knows_since_when_the_server_fails)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 2);
    EXPECT_INT(rl_room_failed(&r, &g[0].waiter, NOW_US), NOW_US);
    EXPECT_INT(rl_room_failed(&r, &g[0].waiter, NOW_US + 5), NOW_US);
    leave(&r, &g[0], false);
    EXPECT_INT(rl_room_failed(&r, &g[1].waiter, NOW_US + 9), NOW_US);
    close_with(&r, g, 2);
}

TEST(room, an_answer_ends_an_outage)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 1);
    rl_room_failed(&r, &g.waiter, NOW_US);
    rl_room_answered(&r, &g.waiter);
    EXPECT_INT(rl_room_failed(&r, &g.waiter, NOW_US + 5), NOW_US + 5);
    rl_room_is_busy(&r, &g.waiter, 0, NOW_US + 6);
    EXPECT_INT(rl_room_failed(&r, &g.waiter, NOW_US + 7), NOW_US + 7);
    close_with(&r, &g, 1);
}

TEST(room, knows_when_the_lock_was_last_busy)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 2);
    EXPECT(!rl_room_was_busy(&r, &g[1].waiter, NOW_US));
    rl_room_is_busy(&r, &g[0].waiter, 500, NOW_US);
    EXPECT(rl_room_was_busy(&r, &g[1].waiter, NOW_US));
    EXPECT(!rl_room_was_busy(&r, &g[1].waiter, NOW_US + 1));
    close_with(&r, g, 2);
}

TEST(room, a_ring_wakes_the_front_of_each_single_lock_of_that_name)
{
    rl_rooms r;
    guest g[5];
    open_with(&r, g, 2);
    enter(&r, &g[2], &string_job);
    enter(&r, &g[3], &red_job);
    enter(&r, &g[4], &other);
    EXPECT(rl_rooms_wake(&r, "job", 3, RL_WAKE_RUNG));
    expect_woken(&g[0], 1, RL_WAKE_RUNG);
    expect_woken(&g[2], 1, RL_WAKE_RUNG);
    EXPECT(g[1].woken == 0 && g[3].woken == 0 && g[4].woken == 0);
    close_with(&r, g, 5);
}

TEST(room, a_ring_that_nobody_wants_is_said_to_be_unheard)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 1);
    EXPECT(!rl_rooms_wake(&r, "another", 7, RL_WAKE_RUNG));
    EXPECT(!rl_rooms_wake(&r, "jo", 2, RL_WAKE_RUNG));
    leave(&r, &g[0], false);
    EXPECT(!rl_rooms_wake(&r, "job", 3, RL_WAKE_RUNG));
    enter(&r, &g[1], &red_job); /* is rung through its listeners only */
    EXPECT(!rl_rooms_wake(&r, "job", 3, RL_WAKE_RUNG));
    close_with(&r, g, 2);
}

TEST(room, everybody_in_front_looks_again_when_rings_may_have_been_missed)
{
    rl_rooms r;
    guest g[4];
    open_with(&r, g, 2);
    enter(&r, &g[2], &other);
    enter(&r, &g[3], &red_job);
    rl_rooms_hear(&r);
    expect_woken(&g[0], 1, RL_WAKE_LOOK);
    expect_woken(&g[2], 1, RL_WAKE_LOOK);
    expect_woken(&g[3], 1, RL_WAKE_LOOK);
    EXPECT_INT(g[1].woken, 0);
    close_with(&r, g, 4);
}

TEST(room, who_enters_is_woken_by_the_bell_or_knows_that_it_is_heard)
{
    rl_rooms r;
    guest g[3];
    open_with(&r, g, 1);
    rl_rooms_hear(&r);
    enter(&r, &g[1], &other);
    expect_woken(&g[0], 1, RL_WAKE_LOOK);
    EXPECT_INT(g[1].woken, 0);
    EXPECT(!g[0].waiter.heard && g[1].waiter.heard);
    rl_rooms_hear_no_more(&r);
    enter(&r, &g[2], &red_job);
    EXPECT(!g[2].waiter.heard);
    close_with(&r, g, 3);
}

TEST(room, a_cancel_wakes_all_waits_of_its_handle_and_no_others)
{
    rl_rooms r;
    guest g[4];
    int mine, others;
    open_with(&r, g, 0);
    enter_as(&r, &g[0], &job, &others);
    enter_as(&r, &g[1], &job, &mine);
    enter_as(&r, &g[2], &job, &mine);
    enter_as(&r, &g[3], &other, &mine);
    rl_rooms_cancel(&r, &job, &mine);
    expect_woken(&g[1], 1, RL_WAKE_CANCEL);
    expect_woken(&g[2], 1, RL_WAKE_CANCEL);
    EXPECT(g[0].woken == 0 && g[3].woken == 0);
    close_with(&r, g, 4);
}

TEST(room, a_cancel_of_what_nobody_waits_for_does_nothing)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 1);
    rl_rooms_cancel(&r, &other, &g);
    EXPECT_INT(g.woken, 0);
    close_with(&r, &g, 1);
}

TEST(room, a_cancel_of_the_client_wakes_everybody)
{
    rl_rooms r;
    guest g[3];
    open_with(&r, g, 2);
    enter(&r, &g[2], &red_job);
    rl_rooms_cancel_all(&r);
    for (int i = 0; i < 3; i++)
        expect_woken(&g[i], 1, RL_WAKE_CANCEL);
    close_with(&r, g, 3);
}

TEST(room, a_close_wakes_everybody_now_and_later)
{
    rl_rooms r;
    guest g[3];
    open_with(&r, g, 2);
    rl_rooms_close(&r);
    expect_woken(&g[0], 1, RL_WAKE_CLOSE);
    expect_woken(&g[1], 1, RL_WAKE_CLOSE);
    enter(&r, &g[2], &other);
    expect_woken(&g[2], 1, RL_WAKE_CLOSE);
    close_with(&r, g, 3);
}

/* It was handed something in vain, and sleeps again. */
TEST(room, who_sleeps_again_has_nothing_of_what_it_was_handed)
{
    rl_rooms r;
    guest g;
    struct rl_hold *draft = (void *)&r, *passed = (void *)&g;
    open_with(&r, &g, 1);
    g.waiter.rest = RL_HANDED;
    g.waiter.passed = passed;
    g.waiter.claim_ms = 3;
    EXPECT_INT(rl_room_rise(&r, &g.waiter, RL_WAKE_LOOK), RL_HANDED);
    rl_room_rest(&r, &g.waiter, draft, true, NOW_US);
    EXPECT(g.waiter.rest == RL_ASLEEP && g.waiter.draft == draft);
    EXPECT(!g.waiter.passed && g.waiter.claim_ms == 0);
    EXPECT(g.waiter.renewed && g.waiter.until_us == NOW_US);
    rl_room_rest(&r, &g.waiter, NULL, false, NOW_US + 1);
    EXPECT(!g.waiter.draft && !g.waiter.renewed);
    EXPECT_INT(g.waiter.until_us, NOW_US + 1);
    close_with(&r, &g, 1);
}

static const rl_target gate = {
    .name = "gate", .len = 4, .scope = RL_LATCH_SCOPE};
static const rl_target next_gate = {
    .name = "next", .len = 4, .scope = RL_LATCH_SCOPE};

TEST(room, who_finds_a_latch_open_wakes_all_others_who_wait_for_it)
{
    rl_rooms r;
    guest g[4];
    open_with(&r, g, 0);
    for (int i = 0; i < 4; i++)
        enter(&r, &g[i], i == 3 ? &next_gate : &gate);
    rl_room_failed(&r, &g[0].waiter, NOW_US);
    rl_room_is_open(&r, &g[0].waiter, NOW_US);
    for (int i = 1; i < 3; i++) {
        expect_woken(&g[i], 1, RL_WAKE_LOOK);
        EXPECT(rl_room_was_open(&r, &g[i].waiter));
    }
    EXPECT(g[0].woken == 0 && g[3].woken == 0);
    EXPECT(!rl_room_was_open(&r, &g[3].waiter));
    EXPECT_INT(rl_room_failed(&r, &g[0].waiter, NOW_US + 5), NOW_US + 5);
    close_with(&r, g, 4);
}

static rl_listener listener_of(guest *g, const rl_target *what, unsigned index)
{
    *g = (guest){.waker = {wake}};
    return (rl_listener){.what = what, .waker = &g->waker, .index = index};
}

TEST(room, a_listener_hears_the_rings_for_its_name)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 0);
    rl_listener a = listener_of(&g[0], &red_job, 2);
    rl_listener b = listener_of(&g[1], &other, 0);
    rl_rooms_attend(&r, &a);
    rl_rooms_attend(&r, &b);
    rl_rooms_listen(&r, &a);
    rl_rooms_listen(&r, &b);
    EXPECT(a.listens);
    EXPECT(rl_rooms_wake(&r, "job", 3, RL_WAKE_RUNG));
    expect_woken(&g[0], 1, RL_WAKE_RUNG);
    EXPECT_INT(g[0].node, 2);
    EXPECT_INT(g[1].woken, 0);
    rl_rooms_unlisten(&r, &a);
    rl_rooms_unlisten(&r, &b);
    rl_rooms_fini(&r, false);
}

TEST(room, a_listener_looks_again_when_rings_may_have_been_missed)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 0);
    rl_listener l = listener_of(&g, &red_job, 1);
    rl_rooms_attend(&r, &l);
    rl_rooms_listen(&r, &l);
    rl_rooms_hear(&r);
    expect_woken(&g, 1, RL_WAKE_LOOK);
    rl_rooms_unlisten(&r, &l);
    rl_rooms_fini(&r, false);
}

static void expect_unheard(const char *name)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 0);
    rl_listener l = listener_of(&g, &red_job, 1);
    rl_rooms_attend(&r, &l);
    rl_rooms_listen(&r, &l);
    collide(&r.listeners, rl_hash(name, strlen(name), 0));
    EXPECT(!rl_rooms_wake(&r, name, strlen(name), RL_WAKE_RUNG));
    EXPECT_INT(g.woken, 0);
    rl_rooms_unlisten(&r, &l);
    rl_rooms_fini(&r, false);
}

TEST_CASE(room, a_listener_does_not_hear_a_name_of_the_same_hash,
          expect_unheard("jot"))
TEST_CASE(room, nor_what_its_name_begins_with, expect_unheard("jo"))

TEST(room, who_listens_no_more_hears_nothing)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 0);
    rl_listener l = listener_of(&g, &red_job, 1);
    rl_rooms_unlisten(&r, &l); /* it never did */
    rl_rooms_attend(&r, &l);
    rl_rooms_listen(&r, &l);
    rl_rooms_unlisten(&r, &l);
    EXPECT(!l.listens);
    EXPECT(!rl_rooms_wake(&r, "job", 3, RL_WAKE_RUNG));
    EXPECT_INT(g.woken, 0);
    rl_rooms_fini(&r, false);
}

TEST(room, who_attends_hears_no_ring_but_looks_when_it_is_closed)
{
    rl_rooms r;
    guest g, late;
    open_with(&r, &g, 0);
    rl_listener l = listener_of(&g, &red_job, 1);
    rl_rooms_attend(&r, &l);
    EXPECT(!rl_rooms_wake(&r, "job", 3, RL_WAKE_RUNG));
    rl_rooms_hear(&r);
    EXPECT_INT(g.woken, 0);
    EXPECT(!rl_rooms_is_closed(&r));
    rl_rooms_close(&r);
    EXPECT(rl_rooms_is_closed(&r));
    expect_woken(&g, 1, RL_WAKE_LOOK);
    rl_listener comer = listener_of(&late, &red_job, 1);
    rl_rooms_attend(&r, &comer);
    expect_woken(&late, 1, RL_WAKE_LOOK);
    rl_rooms_unlisten(&r, &l);
    rl_rooms_unlisten(&r, &comer);
    rl_rooms_fini(&r, false);
}

TEST(room, a_lock_is_owed_to_who_waits_for_it_already)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 0);
    EXPECT(rl_rooms_are_empty(&r));
    EXPECT(!rl_rooms_is_owed(&r, &job, NOW_US));
    enter(&r, &g, &job);
    EXPECT(!rl_rooms_are_empty(&r));
    EXPECT(rl_rooms_is_owed(&r, &job, NOW_US));
    EXPECT(!rl_rooms_is_owed(&r, &string_job, NOW_US));
    EXPECT(!rl_rooms_is_owed(&r, &other, NOW_US));
    leave(&r, &g, true);
    EXPECT(rl_rooms_are_empty(&r));
    EXPECT(!rl_rooms_is_owed(&r, &job, NOW_US));
    rl_rooms_close(&r); /* to be woken and told so */
    EXPECT(rl_rooms_is_owed(&r, &job, NOW_US));
    rl_rooms_fini(&r, false);
}

TEST(room, the_next_comer_is_held_back_for_who_was_rung)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 0);
    rl_rooms_hold_back(&r, "job", 3, NOW_US + 500);
    EXPECT(rl_rooms_is_owed(&r, &job, NOW_US + 499));
    EXPECT(!rl_rooms_is_owed(&r, &job, NOW_US + 500));
    EXPECT(!rl_rooms_is_owed(&r, &other, NOW_US));
    EXPECT(rl_rooms_are_empty(&r)); /* to who looks for somebody who waits */
    enter(&r, &g, &job);
    EXPECT_INT(rl_room_held_back_until(&r, &g.waiter), NOW_US + 500);
    close_with(&r, &g, 1);
}

static void expect_other_room(const char *name)
{
    rl_rooms r;
    guest g;
    rl_target what = {.name = name, .len = (uint16_t)strlen(name)};
    open_with(&r, &g, 1);
    collide(&r.map, rl_hash(name, strlen(name), 0));
    EXPECT(!rl_rooms_have(&r, &what));
    EXPECT(!rl_rooms_wake(&r, name, strlen(name), RL_WAKE_RUNG));
    EXPECT_INT(g.woken, 0);
    close_with(&r, &g, 1);
}

TEST_CASE(room, another_name_of_the_same_hash_is_another,
          expect_other_room("jot"))
TEST_CASE(room, what_a_name_begins_with_is_another_though_of_the_same_hash,
          expect_other_room("jo"))

TEST(room, entering_says_when_there_is_no_memory)
{
    rl_rooms r;
    guest g = {.waker = {wake}};
    open_with(&r, &g, 0);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool entered = rl_room_enter(&r, &g.waiter, &job, &g, &g.waker, 0);
    shim_clear(shim_here());
    EXPECT(!entered && !g.waiter.room);
    EXPECT(!rl_rooms_is_owed(&r, &job, NOW_US));
    rl_rooms_fini(&r, false);
}

/* --- the next one looks --------------------------------------------------- */

/* Those in line may wait for the same lock as others do, and there is one line for
   a name. */
static bool looks(uint64_t room, uint64_t scope)
{
    return room == scope || rl_room_lines_up(room);
}

/* In the rooms of each layout one waits, and may be queued. */
static void expect_look(uint64_t scope, bool queued, bool rings, bool woken)
{
    rl_rooms r;
    guest g[RL_SINGLE_SCOPES];
    rl_target what[RL_SINGLE_SCOPES];
    open_with(&r, g, 0);
    for (uint64_t i = 0; i < RL_SINGLE_SCOPES; i++) {
        what[i] = job;
        what[i].scope = i;
        enter(&r, &g[i], &what[i]);
        g[i].waiter.room->queued = queued;
    }
    rl_rooms_look(&r, "job", 3, scope, rings);
    for (uint64_t i = 0; i < RL_SINGLE_SCOPES; i++)
        EXPECT_INT(g[i].woken, woken && looks(i, scope));
    close_with(&r, g, RL_SINGLE_SCOPES);
}

TEST(room, the_front_of_the_lock_that_has_ended_looks_and_of_no_other)
{
    for (uint64_t scope = 0; scope < RL_SINGLE_SCOPES; scope++) {
        expect_look(scope, false, false, true);
        expect_look(scope, false, true, true);
        expect_look(scope, true, false, true);
        expect_look(scope, true, true, false); /* it will be rung */
    }
    expect_look(RL_SINGLE_SCOPES, false, false, false);
}

TEST(room, all_in_front_look_when_they_are_told_to)
{
    rl_rooms r;
    guest g[4];
    open_with(&r, g, 2);
    enter(&r, &g[2], &other);
    enter(&r, &g[3], &red_job);
    rl_rooms_look_all(&r);
    EXPECT(g[0].woken == 1 && g[1].woken == 0);
    expect_woken(&g[2], 1, RL_WAKE_LOOK);
    expect_woken(&g[3], 1, RL_WAKE_LOOK);
    close_with(&r, g, 4);
}
