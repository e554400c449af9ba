/* Turns: when a hold is passed on without the server, and to whom. */
#include "op/turn.h"

#include "alarm.h"
#include "pair.h"

#define TURN_MS 100
#define KEPT    63
#define KEEPS(token)                                                           \
    "*2\r\n:3\r\n$3\r\n" #token "\r\n" /* and as many as were asked for */

/* --- a turn begins -------------------------------------------------------- */

static void begin_turn_by(pair *t, const char *reply)
{
    play_open(&t->p, 1);
    core(t)->set.turn_us = TURN_MS * MS;
    wait_behind_hold(t, &play_job, 60000, RLOCK_WATCHDOG);
    EXPECT(unlock(t));
    EXPECT_INT(answer(t, reply), RL_DONE);
    EXPECT_INT(t->a.status, RLOCK_OK);
}

/* The rival's hold has a turn, and is t->next. */
static void begin_turn(pair *t)
{
    begin_turn_by(t, KEEPS(200));
    EXPECT_INT(t->next->token, 200);
    EXPECT(t->next->extra->starter);
}

static void end_turn(pair *t)
{
    close_pair(t, RLOCK_OK);
}

TEST(turn, a_hand_over_has_tokens_kept_for_those_behind)
{
    pair t;
    begin_turn(&t);
    EXPECT_STR(play_arg(&t.p, 0, KEEP_ARG), "63");
    EXPECT_INT(t.next->extra->left, KEPT);
    end_turn(&t);
}

TEST(turn, without_the_option_no_token_is_kept)
{
    pair t;
    open_pair(&t);
    EXPECT(unlock(&t));
    EXPECT_INT(play_args(&t.p, 0), HAND_BELL);
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    EXPECT(!t.next->extra);
    close_pair(&t, RLOCK_OK);
}

TEST(turn, for_an_explicit_lease_no_token_is_kept)
{
    pair t;
    play_open(&t.p, 1);
    core(&t)->set.turn_us = TURN_MS * MS;
    wait_behind_hold(&t, &play_job, 60000, LEASE_MS);
    EXPECT(unlock(&t));
    EXPECT_INT(play_args(&t.p, 0), HAND_BELL);
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

TEST(turn, a_server_that_keeps_no_tokens_begins_none)
{
    pair t;
    begin_turn_by(&t, HANDED(200));
    EXPECT(!t.next->extra);
    end_turn(&t);
}

/* --- who passes it on ----------------------------------------------------- */

/* A third one's wait; it is the play's operation from then on. */
typedef struct third {
    rl_acquire a;
    rl_owner owner;
    atomic_uint cancels;
} third;

static void line_up_for(pair *t, third *w, const rl_target *what)
{
    w->owner = (rl_owner){.serial = 77, .tid = 77};
    begin_acquire(t, &w->a, &w->owner, w, &w->cancels, what, 60000,
                  RLOCK_WATCHDOG);
    EXPECT_INT(play_answer(&t->p, 0, IS_BUSY), RL_SLEEP);
    t->p.why = RL_WAKE_NONE;
}

static void line_up(pair *t, third *w)
{
    line_up_for(t, w, &play_job);
}

static void give_up_waiting(pair *t, third *w)
{
    rl_rooms_cancel(rooms(t), &play_job, w);
    EXPECT_INT(play_wake(&t->p), RL_DONE);
    EXPECT_INT(w->a.status, RLOCK_CANCELED);
}

static int64_t stage_us;

static int64_t stage_clock(void)
{
    return stage_us;
}

static bool pass(pair *t)
{
    stage_us = t->p.now_us;
    return rl_turn_pass(core(t), t->next, stage_clock);
}

/* A turn begins, and is passed on to the third, whose thread sleeps yet. */
static void pass_to(pair *t, third *w)
{
    begin_turn(t);
    line_up(t, w);
    EXPECT(pass(t));
}

TEST(turn, an_unlock_gives_the_hold_itself_to_the_next)
{
    pair t;
    third w;
    begin_turn(&t);
    play_id before = play_holder(t.next);
    line_up(&t, &w);
    int calls = t.p.client[0].calls;
    int64_t until_us = t.next->expiry.due_us;
    play_pass(&t.p, 10 * MS);
    EXPECT(pass(&t));
    EXPECT_INT(t.p.why, RL_WAKE_LOOK);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(t.p.client[0].calls, calls);
    EXPECT_INT(w.a.status, RLOCK_OK);
    EXPECT_INT(w.a.token, 201);
    EXPECT_INT(w.owner.holds, 1);
    EXPECT_STR(play_holder(t.next).text, before.text);
    EXPECT_INT(t.next->expiry.due_us, until_us);
    EXPECT_INT(rl_hold_owner(t.next), w.owner.serial);
    EXPECT_INT(core(&t)->stats.held_now, 1);
    EXPECT(!w.a.draft && !w.a.waiter.room);
    end_turn(&t);
}

TEST(turn, without_tokens_none_is_kept_and_it_is_passed_on_as_often)
{
    pair t;
    third w;
    play_open(&t.p, 1);
    core(&t)->set.turn_us = TURN_MS * MS;
    wait_behind_hold(&t, &play_tokenless, 60000, RLOCK_WATCHDOG);
    EXPECT(unlock(&t));
    EXPECT_STR(play_arg(&t.p, 0, KEEP_ARG), "-");
    EXPECT_INT(answer(&t, "$1\r\n1\r\n"), RL_DONE);
    EXPECT(t.next->extra && t.next->extra->left == KEPT && t.next->token == 0);
    line_up_for(&t, &w, &play_tokenless);
    EXPECT(pass(&t));
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT(t.next->extra->left == KEPT - 1 && t.next->token == 0);
    EXPECT_INT(w.a.token, 0);
    end_turn(&t);
}

/* Of the one before; the next one's begins with the pass. */
TEST(turn, how_long_it_was_held_is_counted_for_each)
{
    pair t;
    third w;
    begin_turn(&t);
    line_up(&t, &w);
    uint64_t before_us = core(&t)->stats.hold_us_total;
    int64_t began_us = t.next->began_us;
    play_pass(&t.p, 10 * MS);
    int64_t held_us = t.p.now_us - began_us;
    EXPECT(pass(&t));
    EXPECT_INT(core(&t)->stats.hold_us_total - before_us, held_us);
    EXPECT_INT(t.next->began_us, t.p.now_us);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    end_turn(&t);
}

/* A turn may have as many sections as it has tokens. */
TEST(turn, passes_count_as_sections_in_a_row)
{
    pair t;
    third w;
    begin_turn(&t);
    EXPECT_STR(play_arg(&t.p, 0, PATIENCE_ARG), "10000");
    EXPECT_INT(t.next->in_a_row, 1);
    line_up(&t, &w);
    EXPECT(pass(&t));
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(t.next->in_a_row, 2);
    end_turn(&t);
}

TEST(turn, after_so_many_sections_whoever_waits_elsewhere_is_next)
{
    pair t;
    for (int before = 60; before < 66; before++) {
        play_open(&t.p, 1);
        core(&t)->set.turn_us = TURN_MS * MS;
        wait_behind_hold(&t, &play_job, 60000, RLOCK_WATCHDOG);
        t.h->in_a_row = (uint8_t)before;
        EXPECT(unlock(&t));
        EXPECT_STR(play_arg(&t.p, 0, PATIENCE_ARG),
                   before < 63 ? "10000" : "0");
        EXPECT_INT(answer(&t, KEEPS(200)), RL_DONE);
        end_turn(&t);
    }
}

TEST(turn, the_alarm_of_the_one_before_is_closed_and_never_raised)
{
    pair t;
    third w;
    tally b;
    begin_turn(&t);
    line_up(&t, &w);
    hang(&t.next->extra->alarms, &b, &t.next->id, false);
    EXPECT(pass(&t));
    EXPECT(b.closed == 1 && !t.next->extra->alarms.first);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(b.raised, 0);
    end_turn(&t);
}

TEST(turn, the_next_finds_the_hold_and_the_one_before_does_not)
{
    pair t;
    third w;
    bool valid;
    pass_to(&t, &w);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    rl_hold *h = rl_holds_pick(&core(&t)->holds, &play_job, &w.owner,
                               t.p.now_us, &valid, NULL);
    EXPECT(h == t.next && valid);
    rl_holds_put(&core(&t)->holds, h);
    EXPECT(!rl_holds_pick(&core(&t)->holds, &play_job, &t.p.rival, t.p.now_us,
                          &valid, NULL));
    end_turn(&t);
}

TEST(turn, the_lease_of_what_was_passed_on_is_renewed)
{
    pair t;
    third w;
    begin_turn(&t);
    line_up(&t, &w);
    int64_t due_us = t.next->work.due_us;
    EXPECT(pass(&t));
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(t.next->work.due_us, due_us);
    EXPECT(t.next->renewed);
    end_turn(&t);
}

/* Whoever waits behind is woken by the next unlock. */
TEST(turn, one_that_was_canceled_in_the_same_moment_owns_it)
{
    pair t;
    third w;
    pass_to(&t, &w);
    rl_rooms_cancel(rooms(&t), &play_job, &w);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(w.a.status, RLOCK_OK);
    end_turn(&t);
}

/* Before its thread wakes; nobody was told that it was there. */
static void lose_passed(pair *t, third *w)
{
    pass_to(t, w);
    rl_mutex_lock(&core(t)->holds.mutex);
    rl_hold_lose_locked(&core(t)->holds, t->next, RL_LOSS_GONE, t->p.now_us);
    rl_mutex_unlock(&core(t)->holds.mutex);
}

TEST(turn, what_is_lost_before_its_thread_wakes_is_looked_for)
{
    pair t;
    third w;
    lose_passed(&t, &w);
    EXPECT_INT(play_wake(&t.p), RL_SLEEP);
    EXPECT_INT(play_losses(&core(&t)->stats), 0);
    EXPECT_INT(core(&t)->stats.held_now, 0);
    EXPECT_INT(w.owner.holds, 0);
    EXPECT_INT(play_sleep(&t.p), RL_ASK);
    EXPECT_STR(play_arg(&t.p, 0, HOLDER_ARG), play_holder(w.a.draft).text);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(300)), RL_DONE);
    EXPECT_INT(w.a.status, RLOCK_OK);
    end_turn(&t);
}

TEST(turn, a_close_that_came_with_what_was_lost_ends_the_wait)
{
    pair t;
    third w;
    lose_passed(&t, &w);
    rl_rooms_close(rooms(&t));
    EXPECT_INT(play_wake(&t.p), RL_SLEEP);
    EXPECT_INT(t.p.why, RL_WAKE_CLOSE);
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    EXPECT_INT(w.a.status, RLOCK_ECLOSED);
    end_turn(&t);
}

/* A callback of its thread, say, may look for it. */
TEST(turn, until_its_thread_has_woken_nobody_finds_it)
{
    pair t;
    third w;
    bool valid;
    pass_to(&t, &w);
    EXPECT(!rl_holds_pick(&core(&t)->holds, &play_job, &w.owner, t.p.now_us,
                          &valid, NULL));
    EXPECT_INT(play_wake(&t.p), RL_DONE);
    end_turn(&t);
}

/* --- when the server is asked instead ------------------------------------- */

static void expect_asked(void (*spoil)(pair *t, third *w))
{
    pair t;
    third w;
    begin_turn(&t);
    line_up(&t, &w);
    spoil(&t, &w);
    uint64_t token = t.next->token;
    EXPECT(!pass(&t));
    EXPECT_INT(t.next->token, token);
    EXPECT_INT(t.p.why, RL_WAKE_NONE);
    w.a.waiter.room->queued = false;
    give_up_waiting(&t, &w);
    end_turn(&t);
}

static void let_turn_end(pair *t, third *w)
{
    (void)w;
    play_pass(&t->p, TURN_MS * MS);
}

static void want_no_token(pair *t, third *w)
{
    (void)t;
    w->a.draft->layout = RL_LAYOUT_TOKENLESS;
}

static void use_up_tokens(pair *t, third *w)
{
    (void)w;
    t->next->extra->left = 0;
}

static void leave_a_command_behind(pair *t, third *w)
{
    (void)w;
    t->next->astray = true;
}

static void leave_an_extend_behind(pair *t, third *w)
{
    (void)w;
    t->next->extra->cap_ms = 1000000;
}

static void be_in_doubt(pair *t, third *w)
{
    (void)w;
    t->next->unknown = true;
}

static void pause_renewal(pair *t, third *w)
{
    (void)w;
    t->next->paused = true;
}

static void stand_in_the_servers_queue(pair *t, third *w)
{
    (void)t;
    w->a.waiter.room->queued = true;
}

static void want_an_explicit_lease(pair *t, third *w)
{
    (void)t;
    w->a.waiter.renewed = false;
}

static void doubt_the_draft(pair *t, third *w)
{
    (void)t;
    w->a.draft->unknown = true;
}

/* As when renewals have failed for a while. */
static void let_the_lease_run_down(pair *t, third *w)
{
    (void)w;
    t->next->extra->turn_us += 20000 * MS;
    play_pass(&t->p, 20000 * MS);
}

/* As after a nested acquire with a lease of an hour. */
static void have_a_longer_lease(pair *t, third *w)
{
    rl_holds *table = &core(t)->holds;
    (void)w;
    rl_mutex_lock(&table->mutex);
    rl_hold_prolong_locked(table, t->next, t->p.now_us, 3600000, t->p.now_us);
    rl_mutex_unlock(&table->mutex);
}

static void let_the_server_count_more(pair *t, third *w)
{
    (void)w;
    t->next->deep = true;
}

TEST_CASE(turn, with_more_than_a_lease_left_the_server_is_asked,
          expect_asked(have_a_longer_lease))
TEST_CASE(turn, while_the_server_counts_more_levels_it_is_asked,
          expect_asked(let_the_server_count_more))
TEST_CASE(turn, after_its_time_the_server_is_asked, expect_asked(let_turn_end))
TEST_CASE(turn, without_a_token_the_server_is_asked,
          expect_asked(use_up_tokens))
TEST_CASE(turn, for_who_wants_no_token_the_server_is_asked,
          expect_asked(want_no_token))
TEST_CASE(turn, while_a_command_may_come_late_the_server_is_asked,
          expect_asked(leave_a_command_behind))
TEST_CASE(turn, while_an_extend_may_come_late_the_server_is_asked,
          expect_asked(leave_an_extend_behind))
TEST_CASE(turn, for_a_hold_in_doubt_the_server_is_asked,
          expect_asked(be_in_doubt))
TEST_CASE(turn, for_a_hold_that_is_not_renewed_now_the_server_is_asked,
          expect_asked(pause_renewal))
TEST_CASE(turn, while_this_client_is_queued_the_server_is_asked,
          expect_asked(stand_in_the_servers_queue))
TEST_CASE(turn, for_an_explicit_lease_the_server_is_asked,
          expect_asked(want_an_explicit_lease))
TEST_CASE(turn, for_a_draft_in_doubt_the_server_is_asked,
          expect_asked(doubt_the_draft))
TEST_CASE(turn, with_little_of_the_lease_left_the_server_is_asked,
          expect_asked(let_the_lease_run_down))

TEST(turn, nobody_waits_and_nothing_is_passed_on)
{
    pair t;
    begin_turn(&t);
    EXPECT(!pass(&t));
    end_turn(&t);
}

static void begin_reentry(pair *t, rl_part *x, rl_op *op)
{
    begin_turn(t);
    EXPECT(rl_part_reenter(x, core(t), t->next, RLOCK_WATCHDOG, t->p.now_us));
    play_one(&t->p, op, x);
    EXPECT_INT(play_begin(&t->p, op), RL_ASK);
}

TEST(turn, a_call_that_may_come_late_is_remembered)
{
    pair t;
    rl_part x = {.heap = false};
    rl_op op;
    begin_reentry(&t, &x, &op);
    EXPECT_INT(play_cut(&t.p, 0), RL_ASK);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(200)), RL_DONE);
    EXPECT(x.ok && t.next->astray);
    end_turn(&t);
}

/* The server may have counted the level, or not yet. */
TEST(turn, a_reentry_that_was_answered_nonsense_is_remembered)
{
    pair t;
    rl_part x = {.heap = false};
    rl_op op;
    begin_reentry(&t, &x, &op);
    EXPECT_INT(play_answer(&t.p, 0, "*2\r\n:7\r\n:7\r\n"), RL_DONE);
    EXPECT(!x.ok && t.next->count == 1);
    EXPECT(t.next->deep && t.next->astray);
    end_turn(&t);
}

/* To the microsecond: 60 % of the lease, or the server is asked. */
static void expect_passed_with(int64_t left_us, bool passes)
{
    pair t;
    third w;
    begin_turn(&t);
    line_up(&t, &w);
    t.next->extra->turn_us += PLAY_LEASE_MS * MS;
    t.p.now_us = t.next->expiry.due_us - left_us;
    EXPECT_INT(pass(&t), passes);
    if (passes)
        EXPECT_INT(play_wake(&t.p), RL_DONE);
    else
        give_up_waiting(&t, &w);
    end_turn(&t);
}

TEST_CASE(turn, with_enough_of_the_lease_left_the_hold_is_passed_on,
          expect_passed_with(PLAY_LEASE_MS *MS / 100 * 60, true))
TEST_CASE(turn, with_a_moment_less_the_server_is_asked,
          expect_passed_with(PLAY_LEASE_MS *MS / 100 * 60 - 1, false))
