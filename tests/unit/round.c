/* When a part is asked, slow, silent or out of time, and a round is over. */
#include "op/round.h"
#include "hold/step.h"

#include "play.h"
#include "test.h"

#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"

enum { LIMIT = 10, PATIENCE = 100, PARTS = 3 };

/* Three parts of an op with a quorum of two, each with a way of its own. */
typedef struct stage {
    play p;
    rl_op op;
    rl_part *parts[PARTS];
    rl_part part[PARTS];
    rl_way way[PARTS];
    int suspected;
} stage;

static stage *on_stage; /* whose suspect() is called */

static void suspect(rl_way *w, const rl_fault *why)
{
    (void)w;
    EXPECT_CONTAINS(why->text, "no answer in time");
    on_stage->suspected++;
}

static void set(stage *s)
{
    play_open(&s->p, PARTS);
    rl_op_init(&s->op, s->parts);
    s->op.n = PARTS;
    s->op.quorum = 2;
    s->op.early = true;
    s->suspected = 0;
    on_stage = s;
    for (size_t i = 0; i < PARTS; i++) {
        rl_part *x = &s->part[i];
        rl_part_leave(x, play_core(&s->p, i), &play_job, s->p.now_us);
        x->op = &s->op;
        x->heap = false;
        x->due = x->awaited = true;
        x->limit_us = LIMIT * MS;
        x->patience_us = PATIENCE * MS;
        x->until_us = s->p.now_us + 1000 * MS;
        s->way[i] =
            (rl_way){.line = &s->p.client[i].line, .ready_us = s->p.now_us};
        x->way = &s->way[i];
        s->op.part[i] = x;
    }
    rl_round_begin(&s->op);
}

/* The kernel takes all of it. */
static void send(stage *s)
{
    for (size_t i = 0; i < PARTS; i++) {
        const char *bytes;
        rl_line *line = &s->p.client[i].line;
        rl_line_sent(line, rl_line_bytes(line, &bytes));
    }
}

static void answer(stage *s, size_t i)
{
    rl_line_feed(&s->p.client[i].line, LEFT, strlen(LEFT), s->p.now_us);
}

static void pass(stage *s, int64_t ms)
{
    s->p.now_us += ms * MS;
    rl_round_expire(&s->op, s->p.now_us, suspect);
}

static bool is_over(stage *s)
{
    return rl_round_is_over(&s->op, s->p.now_us);
}

/* What is left is failed by the lines. */
static void clear(stage *s)
{
    play_close(&s->p);
}

TEST(round, asks_what_has_a_connection_and_leaves_what_has_none)
{
    stage s;
    set(&s);
    s.way[1].line = NULL;
    rl_round_push(&s.op, s.p.now_us);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_WAITS);
    EXPECT_INT(s.part[1].ask.next, RL_ASK_IDLE);
    clear(&s);
}

TEST(round, asks_nothing_on_a_line_that_is_given_up)
{
    stage s;
    set(&s);
    s.p.client[0].line.retired = true;
    rl_round_push(&s.op, s.p.now_us);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_IDLE);
    clear(&s);
}

static bool only_the_second(rl_op *op, rl_part *x, int64_t now_us)
{
    (void)now_us;
    return x == op->part[1];
}

TEST(round, asks_nothing_that_may_not_be_asked)
{
    stage s;
    set(&s);
    s.op.may_ask = only_the_second;
    rl_round_push(&s.op, s.p.now_us);
    EXPECT(s.part[0].over && s.part[0].outcome == RL_NOT_EXECUTED);
    EXPECT_INT(s.p.client[0].line.pending, 0);
    EXPECT_INT(s.part[1].ask.next, RL_ASK_WAITS);
    clear(&s);
}

/* What has been asked may be answered yet. */
TEST(round, who_was_not_asked_when_it_is_over_is_not_asked_any_more)
{
    stage s;
    set(&s);
    s.way[1].line = NULL;
    rl_round_push(&s.op, s.p.now_us);
    rl_round_end(&s.op, s.p.now_us);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_WAITS);
    EXPECT(s.part[1].over && s.part[1].outcome == RL_NOT_EXECUTED);
    EXPECT_CONTAINS(s.part[1].fault.text, "no connection so far");
    EXPECT_INT(s.part[2].ask.next, RL_ASK_WAITS);
    clear(&s);
}

TEST(round, is_over_when_a_quorum_has_answered)
{
    stage s;
    set(&s);
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    answer(&s, 0);
    EXPECT(!is_over(&s));
    answer(&s, 1);
    EXPECT(is_over(&s));
    clear(&s);
}

/* The more hold a Red lock the better. */
TEST(round, waits_a_moment_for_a_node_whose_connection_is_being_made)
{
    stage s;
    set(&s);
    s.way[2] = (rl_way){.expecting = true, .ready_us = s.p.now_us};
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    answer(&s, 0);
    answer(&s, 1);
    EXPECT(!is_over(&s));
    EXPECT_INT(rl_round_wait_end(&s.op), s.p.now_us + RL_GRACE_US);
    pass(&s, RL_GRACE_US / MS);
    EXPECT(is_over(&s));
    clear(&s);
}

TEST(round, waits_no_longer_for_it_than_a_connection_mostly_takes)
{
    stage s;
    set(&s);
    s.way[2] = (rl_way){.expecting = true, .ready_us = s.p.now_us};
    int64_t hope_us = s.p.now_us + RL_GRACE_US;
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    pass(&s, 4);
    answer(&s, 0);
    answer(&s, 1);
    EXPECT(!is_over(&s));
    EXPECT_INT(rl_round_wait_end(&s.op), hope_us);
    pass(&s, 1);
    EXPECT(is_over(&s));
    clear(&s);
}

TEST(round, does_not_wait_for_a_connection_that_takes_long_already)
{
    stage s;
    set(&s);
    s.way[2] = (rl_way){.expecting = true, .slow = true};
    s.way[2].ready_us = s.p.now_us;
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    answer(&s, 0);
    answer(&s, 1);
    EXPECT(is_over(&s));
    clear(&s);
}

TEST(round, waits_no_moment_for_a_node_that_is_down)
{
    stage s;
    set(&s);
    s.way[2] = (rl_way){.expecting = true, .down = true};
    s.way[2].ready_us = s.p.now_us;
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    answer(&s, 0);
    answer(&s, 1);
    EXPECT(is_over(&s));
    clear(&s);
}

/* Two were silent, which decides it, and one of them answers all the same. */
TEST(round, who_answers_after_all_ends_the_grace)
{
    stage s;
    set(&s);
    s.way[2] = (rl_way){.expecting = true, .ready_us = s.p.now_us};
    s.part[2].way_us = 300 * MS;
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    pass(&s, PATIENCE);
    EXPECT(!is_over(&s));
    EXPECT_INT(rl_round_wait_end(&s.op), s.p.now_us + RL_GRACE_US);
    answer(&s, 0);
    pass(&s, RL_GRACE_US / MS);
    EXPECT(!is_over(&s));
    EXPECT(rl_round_wait_end(&s.op) > s.p.now_us);
    clear(&s);
}

TEST(round, a_part_is_slow_after_its_limit_and_silent_after_its_patience)
{
    stage s;
    set(&s);
    rl_round_push(&s.op, s.p.now_us);
    EXPECT_INT(rl_round_wait_end(&s.op), s.p.now_us + LIMIT * MS);
    pass(&s, LIMIT);
    EXPECT(s.part[0].slow && !s.part[0].silent);
    EXPECT_INT(s.suspected, 0);
    pass(&s, PATIENCE - LIMIT);
    EXPECT(s.part[0].silent);
    EXPECT_INT(s.suspected, PARTS);
    clear(&s);
}

TEST(round, a_silent_server_is_suspected_once)
{
    stage s;
    set(&s);
    rl_round_push(&s.op, s.p.now_us);
    pass(&s, PATIENCE);
    pass(&s, PATIENCE);
    EXPECT_INT(s.suspected, PARTS);
    clear(&s);
}

/* Who stands in line for a connection has not been kept waiting by a server. */
TEST(round, a_server_that_was_not_asked_is_not_suspected)
{
    stage s;
    set(&s);
    for (size_t i = 0; i < PARTS; i++)
        s.way[i] = (rl_way){.expecting = true, .ready_us = s.p.now_us};
    rl_round_push(&s.op, s.p.now_us);
    pass(&s, PATIENCE);
    EXPECT(s.part[0].slow && s.part[0].silent);
    EXPECT_INT(s.suspected, 0);
    clear(&s);
}

static void expect_connection(stage *s, bool down)
{
    set(s);
    for (size_t i = 0; i < PARTS; i++) {
        s->part[i].way_us = 3 * PATIENCE * MS;
        s->way[i] =
            (rl_way){.expecting = true, .down = down, .ready_us = s->p.now_us};
    }
    rl_round_push(&s->op, s->p.now_us);
    pass(s, PATIENCE);
}

TEST(round, a_connection_that_is_being_made_has_a_time_of_its_own)
{
    stage s;
    expect_connection(&s, false);
    EXPECT(!s.part[0].slow && !s.part[0].silent);
    EXPECT_INT(rl_round_wait_end(&s.op), s.p.now_us + 2 * PATIENCE * MS);
    pass(&s, 2 * PATIENCE);
    EXPECT(s.part[0].slow && s.part[0].silent);
    EXPECT_INT(s.suspected, 0);
    clear(&s);
}

TEST(round, patience_begins_with_the_connection)
{
    stage s;
    expect_connection(&s, false);
    s.way[0] = (rl_way){.line = &s.p.client[0].line, .ready_us = s.p.now_us};
    rl_round_push(&s.op, s.p.now_us);
    pass(&s, PATIENCE - 1);
    EXPECT(!s.part[0].silent);
    pass(&s, 1);
    EXPECT(s.part[0].silent);
    EXPECT_INT(s.suspected, 1);
    clear(&s);
}

TEST(round, a_server_that_is_down_has_no_more_time_than_patience)
{
    stage s;
    expect_connection(&s, true);
    EXPECT(s.part[0].slow && s.part[0].silent);
    clear(&s);
}

TEST(round, time_in_line_for_a_connection_is_nobodys_silence)
{
    stage s;
    set(&s);
    s.way[0] = (rl_way){.expecting = true, .ready_us = RL_NEVER};
    rl_round_push(&s.op, s.p.now_us);
    pass(&s, PATIENCE);
    EXPECT(!s.part[0].slow && !s.part[0].silent);
    clear(&s);
}

TEST(round, what_is_out_of_time_fails_with_its_line)
{
    stage s;
    set(&s);
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    pass(&s, 1000);
    EXPECT(s.part[0].over && !s.part[0].ok);
    EXPECT_CONTAINS(s.part[0].fault.text, "no reply");
    EXPECT(is_over(&s));
    clear(&s);
}

/* Others wait for answers there; nobody else is to begin. */
TEST(round, what_is_out_of_time_leaves_the_others_on_its_line)
{
    stage s;
    set(&s);
    s.way[0].shared = true;
    s.part[1].way = &s.way[0];
    s.part[0].until_us = s.p.now_us + 500 * MS;
    rl_round_push(&s.op, s.p.now_us);
    send(&s);
    pass(&s, 500);
    EXPECT(s.part[0].over && !s.part[0].ok);
    EXPECT_CONTAINS(s.part[0].fault.text, "no reply");
    EXPECT(s.way[0].line->retired && !s.way[0].line->failed);
    EXPECT_INT(s.part[1].ask.next, RL_ASK_WAITS);
    answer(&s, 0);
    EXPECT(!s.part[1].over); /* that was the first one's */
    answer(&s, 0);
    EXPECT(s.part[1].over && s.part[1].ok);
    clear(&s);
}

static int notes;

static void count_note(rl_part *x, const rl_reply *r, int64_t now_us)
{
    (void)x;
    (void)r;
    (void)now_us;
    notes++;
}

/* With so many tries left, and some of it, or nothing, sent. */
static void expect_one_end(uint8_t tries, bool sent)
{
    stage s;
    set(&s);
    rl_verb counted = *s.part[0].verb;
    counted.note = count_note;
    notes = 0;
    s.part[0].verb = &counted;
    s.part[0].ask.tries = tries;
    rl_round_push(&s.op, s.p.now_us);
    if (sent)
        send(&s);
    pass(&s, 1000);
    EXPECT(s.part[0].over);
    EXPECT_INT(notes, 1);
    clear(&s);
    EXPECT_INT(notes, 1);
}

TEST_CASE(round, what_is_out_of_time_ends_once, expect_one_end(3, true))
TEST_CASE(round, what_is_out_of_time_at_its_last_try_ends_once,
          expect_one_end(1, true))
TEST_CASE(round, what_could_not_be_sent_in_time_ends_once,
          expect_one_end(1, false))

TEST(round, what_was_never_asked_says_that_no_time_is_left)
{
    stage s;
    set(&s);
    for (size_t i = 0; i < PARTS; i++) {
        s.way[i] = (rl_way){.expecting = true, .ready_us = RL_NEVER};
        s.part[i].limit_us = s.part[i].patience_us = RL_NEVER;
    }
    rl_round_push(&s.op, s.p.now_us);
    pass(&s, 1000);
    EXPECT(s.part[0].over);
    EXPECT_CONTAINS(s.part[0].fault.text, "no time is left");
    clear(&s);
}

TEST(round, has_work_while_a_broken_connection_is_not_replaced)
{
    stage s;
    set(&s);
    rl_round_push(&s.op, s.p.now_us);
    EXPECT(!rl_round_has_work(&s.op));
    rl_line_time_out(s.way[0].line, s.p.now_us); /* unsent: is asked again */
    EXPECT(rl_round_has_work(&s.op));
    s.way[0] = (rl_way){.expecting = true};
    EXPECT(!rl_round_has_work(&s.op));
    clear(&s);
}

TEST(round, a_way_is_wanted_until_its_part_is_asked)
{
    stage s;
    set(&s);
    EXPECT(rl_way_is_wanted(&s.op, &s.way[0]));
    rl_round_push(&s.op, s.p.now_us);
    EXPECT(!rl_way_is_wanted(&s.op, &s.way[0]));
    clear(&s);
}

TEST(round, who_has_no_way_is_told_why)
{
    stage s;
    rl_fault f;
    set(&s);
    rl_fault_set(&f, RLOCK_EIO, 0, "the bridge is up");
    rl_way_fail(&s.op, &s.way[0], &f, rl_ask_refuse, s.p.now_us);
    EXPECT(s.part[0].over && !s.part[1].over);
    EXPECT_CONTAINS(s.part[0].fault.text, "the bridge is up");
    clear(&s);
}

TEST(round, a_way_is_needed_until_the_last_of_its_parts_stops_asking)
{
    stage s;
    set(&s);
    s.part[1].way = &s.way[0];
    s.part[1].until_us += 5 * MS;
    EXPECT_INT(rl_way_until(&s.op, &s.way[0]), s.part[1].until_us);
    clear(&s);
}

TEST(round, a_part_follows_the_line_that_it_must_not_overtake)
{
    stage s;
    set(&s);
    EXPECT(rl_way_behind(&s.op, &s.way[0]) == NULL);
    s.part[0].behind = &s.p.client[2].line;
    EXPECT(rl_way_behind(&s.op, &s.way[0]) == &s.p.client[2].line);
    clear(&s);
}

/* One that is lent by its caller has no hold that a late one could be about. */
TEST(round, a_part_that_may_be_late_follows_the_latest_call_of_its_hold)
{
    stage s;
    set(&s);
    rl_hold *h = play_hold(&s.p, 0, "job", LEASE_MS);
    rl_holds *t = &play_core(&s.p, 0)->holds;
    rl_hold_set_line(t, h, &s.p.client[1].line);
    s.part[0].hold = h;
    EXPECT(!rl_way_behind(&s.op, &s.way[0]));
    s.part[0].heap = true;
    EXPECT(rl_way_behind(&s.op, &s.way[0]) == &s.p.client[1].line);
    EXPECT(!rl_way_behind(&s.op, &s.way[1]));
    s.part[0].behind = &s.p.client[2].line;
    EXPECT(rl_way_behind(&s.op, &s.way[0]) == &s.p.client[2].line);
    clear(&s);
}

/* --- in a cluster --------------------------------------------------------- */

TEST(round, waits_until_the_first_rest_is_over)
{
    stage s;
    set(&s);
    EXPECT(!rl_round_rests(&s.op));
    for (size_t i = 0; i < PARTS; i++) {
        s.part[i].ask.next = RL_ASK_RESTS;
        s.part[i].ask.rest_until_us = s.p.now_us + (3 + (int64_t)i) * MS;
    }
    EXPECT(rl_round_rests(&s.op));
    EXPECT_INT(rl_round_wait_end(&s.op), s.p.now_us + 3 * MS);
    s.p.now_us += 4 * MS;
    rl_round_wake(&s.op, s.p.now_us);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_AGAIN);
    EXPECT_INT(s.part[1].ask.next, RL_ASK_AGAIN);
    EXPECT_INT(s.part[2].ask.next, RL_ASK_RESTS);
    rl_round_push(&s.op, s.p.now_us);
    EXPECT_INT(s.part[1].ask.next, RL_ASK_WAITS);
    EXPECT_INT(s.part[2].ask.next, RL_ASK_RESTS);
    clear(&s);
}

/* It would be in vain: nobody waits for the answer. */
TEST(round, asks_nothing_again_when_its_time_is_over)
{
    stage s;
    set(&s);
    s.part[0].ask.next = RL_ASK_AGAIN;
    s.p.now_us = s.part[0].until_us;
    rl_round_push(&s.op, s.p.now_us);
    EXPECT(s.part[0].over);
    EXPECT_INT(s.part[0].outcome, RL_NOT_EXECUTED);
    EXPECT_INT(s.p.client[0].line.pending, 0);
    clear(&s);
}

/* --- once more ------------------------------------------------------------ */

/* The first part was refused for the moment, and may ask again so long before
   its time is over, which is so long in all. */
static void ask_again(stage *s, bool guarded, int64_t ms, int64_t ms_before_end)
{
    rl_part *x = &s->part[0];
    set(s);
    x->until_us = s->p.now_us + ms * MS;
    rl_round_push(&s->op, s->p.now_us);
    send(s);
    if (guarded)
        x->ask.script = RL_SCRIPT_COUNT;
    x->ask.patient = true;
    rl_line_feed(&s->p.client[0].line, LOADING, strlen(LOADING), s->p.now_us);
    EXPECT_INT(x->ask.next, RL_ASK_RESTS);
    s->p.now_us = x->until_us - ms_before_end * MS;
    rl_round_wake(&s->op, s->p.now_us);
    EXPECT_INT(x->ask.next, RL_ASK_AGAIN);
    rl_round_push(&s->op, s->p.now_us);
}

static void expect_asked_again(bool guarded, int64_t ms, int64_t ms_before_end)
{
    stage s;
    ask_again(&s, guarded, ms, ms_before_end);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_WAITS);
    clear(&s);
}

/* Without an answer in time nobody would know whether it was executed. */
static void expect_given_up(int64_t ms, int64_t ms_before_end)
{
    stage s;
    ask_again(&s, true, ms, ms_before_end);
    EXPECT_INT(s.part[0].ask.next, RL_ASK_FINAL);
    EXPECT_INT(s.part[0].outcome, RL_NOT_EXECUTED);
    EXPECT_CONTAINS(s.part[0].fault.text, "LOADING");
    clear(&s);
}

TEST_CASE(round, what_must_not_run_twice_is_begun_again_while_there_is_time,
          expect_asked_again(true, 1500, 101))
TEST_CASE(round, what_must_not_run_twice_is_not_begun_in_the_last_100_ms,
          expect_given_up(1500, 100))
TEST_CASE(round, of_little_time_the_most_is_time_to_begin_again,
          expect_asked_again(true, 200, 21))
TEST_CASE(round, of_little_time_the_last_tenth_is_not_time_to_begin_again,
          expect_given_up(200, 20))
TEST_CASE(round, what_may_run_twice_is_begun_again_at_the_last_moment,
          expect_asked_again(false, 1000, 1))

/* --- silence -------------------------------------------------------------- */

/* The round does without it, whatever it is asked once more; by itself it has its
   patience anew. */
TEST(round, a_part_that_was_silent_stays_so_among_several)
{
    stage s;
    set(&s);
    s.part[1].limit_us = RL_NEVER;
    for (int i = 0; i < 2; i++) {
        s.part[i].silent = true;
        rl_part_push(&s.part[i], s.way[i].line, s.p.now_us);
    }
    EXPECT(s.part[0].silent && !s.part[1].silent);
    clear(&s);
}
