/* What is asked about a lock, whoever has it, and what its answer tells. */
#include <rlock/rw.h>

#include "deed.h"

/* --- leave ---------------------------------------------------------------- */

TEST(verb_query, a_leave_takes_the_bell_out_of_the_queue)
{
    deed d;
    open_deed(&d);
    rl_part_leave(d.x, core(&d), &play_job, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_STR(play_called(&d.p, 0), "leave");
    EXPECT_STR(play_key(&d.p, 0, 1), "job");
    EXPECT_STR(play_key(&d.p, 0, 2), "rlock_queue:{job}");
    EXPECT_STR(play_arg(&d.p, 0, 1), core(&d)->bell);
    EXPECT_INT(answer(&d, LEFT), RL_DONE);
    EXPECT(d.x->ok);
    close_deed(&d);
}

/* Who has queued by the same bell meanwhile was taken out with it. */
TEST(verb_query, a_leave_has_those_look_who_came_meanwhile)
{
    deed d;
    rl_waiter w;
    open_deed(&d);
    rl_part_leave(d.x, core(&d), &play_job, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT(rl_room_enter(&core(&d)->rooms, &w, &play_job, NULL, &d.p.waker, 0));
    EXPECT_INT(answer(&d, LEFT), RL_DONE);
    EXPECT_INT(d.p.why, RL_WAKE_LOOK);
    rl_room_leave(&core(&d)->rooms, &w, false);
    close_deed(&d);
}

/* For who has waited in vain: who has the lock, and for how long. */
static void expect_left(const char *reply, const char *text)
{
    deed d;
    open_deed(&d);
    rl_part_leave(d.x, core(&d), &play_job, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(answer(&d, reply), RL_DONE);
    EXPECT(d.x->ok);
    EXPECT_INT(d.x->fault.status, RLOCK_BUSY);
    EXPECT_STR(d.x->fault.text, text);
    close_deed(&d);
}

#define LEFT_BY(name, reply, text)                                             \
    TEST_CASE(verb_query, name, expect_left(reply, text))

LEFT_BY(a_leave_is_told_who_has_the_lock_and_for_how_long,
        "*3\r\n:1\r\n$3\r\nwho\r\n:2360\r\n", "held by who for 2.3 s")
LEFT_BY(a_leave_of_who_had_been_rung_is_told_the_same,
        "*3\r\n:0\r\n$3\r\nwho\r\n:2360\r\n", "held by who for 2.3 s")
LEFT_BY(a_leave_may_not_be_told_for_how_long,
        "*3\r\n:1\r\n$3\r\nwho\r\n:-1\r\n", "held by who")
LEFT_BY(a_leave_may_not_be_told_by_whom, LEFT,
        "free by now, or held by somebody who is not told")

/* --- by force ------------------------------------------------------------- */

/* Again, it could free the lock of whoever was woken by the first. */
TEST(verb_query, a_force_is_not_asked_again_when_its_outcome_is_unknown)
{
    deed d;
    open_deed(&d);
    rl_part_force(d.x, core(&d), &play_job, NULL, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_STR(play_called(&d.p, 0), "hash/force_release");
    EXPECT_INT(play_cut(&d.p, 0), RL_DONE);
    EXPECT(!d.x->ok && d.x->outcome == RL_UNKNOWN);
    EXPECT_INT(d.p.client[0].calls, 1);
    close_deed(&d);
}

TEST(verb_query, a_force_tells_whether_anybody_held_it)
{
    deed d;
    open_deed(&d);
    rl_part_force(d.x, core(&d), &play_job, NULL, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    EXPECT(d.x->ok && d.x->code == 1);
    close_deed(&d);
}

/* It says whose hold it means, so it frees no other. */
TEST(verb_query, a_force_of_one_hold_is_asked_again)
{
    deed d;
    open_deed(&d);
    rl_part_force(d.x, core(&d), &play_job, "a:1:2:b", d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_STR(play_called(&d.p, 0), "hash/release");
    EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    EXPECT_INT(answer(&d, ":2\r\n"), RL_DONE);
    EXPECT(d.x->ok && d.x->code == 1);
    EXPECT_INT(d.p.client[0].calls, 2);
    close_deed(&d);
}

TEST(verb_query, a_force_of_one_hold_may_have_been_the_lost_one)
{
    deed d;
    open_deed(&d);
    rl_part_force(d.x, core(&d), &play_job, "a:1:2:b", d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    EXPECT_INT(answer(&d, NO), RL_DONE);
    EXPECT(!d.x->ok && d.x->fault.status == RLOCK_EIO);
    close_deed(&d);
}

TEST(verb_query, a_force_of_one_hold_tells_that_it_has_not_got_it)
{
    deed d;
    open_deed(&d);
    rl_part_force(d.x, core(&d), &play_job, "a:1:2:b", d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(answer(&d, NO), RL_DONE);
    EXPECT(d.x->ok && d.x->code == 0);
    close_deed(&d);
}

/* --- who holds it --------------------------------------------------------- */

#define UUID "01234567-89ab-4def-8123-456789abcdef"

TEST(verb_query, an_inspect_tells_who_holds_it)
{
    deed d;
    rlock_holder who = {0};
    open_deed(&d);
    rl_part_inspect(d.x, core(&d), &play_job, &who, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_STR(play_called(&d.p, 0), "hash/inspect");
    EXPECT_INT(
        answer(&d, "*3\r\n$47\r\nhost:42:43:" UUID "\r\n$1\r\n2\r\n:5000\r\n"),
        RL_DONE);
    EXPECT(d.x->ok && d.x->code == 1);
    EXPECT_STR(who.host, "host");
    EXPECT(who.pid == 42 && who.tid == 43 && who.count == 2);
    EXPECT_INT(who.ttl_ms, 5000);
    EXPECT_STR(who.hold_id, UUID);
    close_deed(&d);
}

TEST(verb_query, an_inspect_of_a_free_lock_finds_nobody)
{
    deed d;
    rlock_holder who = {0};
    open_deed(&d);
    rl_part_inspect(d.x, core(&d), &play_job, &who, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(answer(&d, "*0\r\n"), RL_DONE);
    EXPECT(d.x->ok && d.x->code == 0);
    close_deed(&d);
}

/* Of both sides; its size is the caller's. */
static void open_state(deed *d, rlock_rw_state *now, const char *reply)
{
    open_deed(d);
    *now = (rlock_rw_state){.size = 7};
    rl_part_rw_state(d->x, core(d), &play_job, now, d->p.now_us);
    EXPECT_INT(go(d), RL_ASK);
    EXPECT_STR(play_called(&d->p, 0), "rw/state");
    EXPECT_INT(answer(d, reply), RL_DONE);
    EXPECT_INT(now->size, 7);
}

TEST(verb_query, a_state_tells_how_both_sides_are_had)
{
    deed d;
    rlock_rw_state now;
    open_state(&d, &now, "*4\r\n:1\r\n:2\r\n:3\r\n:4000\r\n");
    EXPECT(d.x->ok);
    EXPECT(now.mode == 1 && now.holders == 2 && now.waiting == 3);
    EXPECT_INT(now.ttl_ms, 4000);
    close_deed(&d);
}

static void expect_no_state(const char *reply, rlock_status status,
                            const char *text)
{
    deed d;
    rlock_rw_state now;
    open_state(&d, &now, reply);
    expect_fault(&d, status, text);
    EXPECT(now.mode == 0 && now.holders == 0 && now.waiting == 0);
    EXPECT_INT(now.ttl_ms, 0);
    close_deed(&d);
}

TEST_CASE(verb_query, a_state_of_three_words_is_none,
          expect_no_state("*3\r\n:1\r\n:2\r\n:3\r\n", RLOCK_EIO,
                          "unexpected reply to inspect"))
TEST_CASE(verb_query, a_state_of_five_words_is_none,
          expect_no_state("*5\r\n:1\r\n:2\r\n:3\r\n:4\r\n:5\r\n", RLOCK_EIO,
                          "unexpected reply to inspect"))
TEST_CASE(verb_query, a_state_that_is_refused_says_why,
          expect_no_state(NOPERM, RLOCK_ESERVER, "NOPERM"))

/* Whether somebody holds it is told, also to who does not ask who that is. */
static void expect_inspected(const char *reply, bool ok, bool held)
{
    deed d;
    open_deed(&d);
    rl_part_inspect(d.x, core(&d), &play_job, NULL, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(answer(&d, reply), RL_DONE);
    EXPECT(d.x->ok == ok && d.x->code == held);
    EXPECT_INT(d.x->fault.status, ok ? RLOCK_OK : RLOCK_EIO);
    close_deed(&d);
}

TEST_CASE(verb_query, an_inspect_may_only_ask_whether_it_is_held,
          expect_inspected("*3\r\n$3\r\nwho\r\n$1\r\n2\r\n:5000\r\n", true,
                           true))
TEST_CASE(verb_query, an_inspect_may_only_ask_whether_it_is_free,
          expect_inspected("*0\r\n", true, false))
TEST_CASE(verb_query, an_inspect_of_two_words_is_none,
          expect_inspected("*2\r\n$3\r\nwho\r\n$1\r\n2\r\n", false, false))

/* --- a token -------------------------------------------------------------- */

TEST(verb_query, a_raise_writes_a_token_back)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    rl_part_raise(d.x, core(&d), d.h, 4711, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_STR(play_called(&d.p, 0), "raise");
    EXPECT_STR(play_word(&d.p, 0, 3), "rlock_token:{job}");
    EXPECT_STR(play_word(&d.p, 0, 4), "4711");
    EXPECT_INT(answer(&d, YES), RL_DONE);
    EXPECT(d.x->ok);
    close_with_hold(&d);
}
