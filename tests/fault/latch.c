/*
 * Latches, when answers are lost, and servers stop: a count-down is counted
 * once, however often it is asked for, and by whomever.
 */
#include "gate.h"

#define DOWN "latch/count_down"

typedef struct play {
    scene s; /* its client is behind the proxy */
    rlock_client *other;
    rlock_latch *l, *theirs;
} play;

/* A latch of three, and a client that reaches the server by itself. */
static play play_start(int64_t timeout_ms)
{
    play p = {.s = scene_proxied(0, timeout_ms)};
    p.other = server_client(p.s.sv, NULL);
    p.l = test_latch(p.s.cl, GATE);
    p.theirs = test_latch(p.other, GATE);
    EXPECT_STATUS(rlock_latch_set(p.theirs, 3, 0), RLOCK_OK);
    return p;
}

static void play_stop(play *p)
{
    rlock_latch_free(p->l);
    rlock_latch_free(p->theirs);
    rlock_client_free(p->other);
    scene_stop(&p->s);
}

static void meet(play *p, const char *script, int nth, proxy_action action)
{
    proxy_rule(p->s.px, proxy_sha(script), nth, action, NULL);
}

/* It has been counted, and is not once more when its copies have come. */
static void expect_counted_once(play *p)
{
    EVENTUALLY(SOON, left_of(p->theirs) < 3);
    EXPECT_INT(left_of(p->theirs), 2);
    int asked = proxy_count(p->s.px, proxy_sha(DOWN));
    EXPECT_STATUS(rlock_latch_count_down(p->l, 1), RLOCK_OK);
    EXPECT_INT(left_of(p->theirs), 1);
    /* The keeper has an answer, and asks no more. */
    EXPECT_INT(proxy_count(p->s.px, proxy_sha(DOWN)), asked + 1);
}

/* --- answers that are lost ------------------------------------------------ */

static void count_with_a_fault(proxy_action action)
{
    play p = play_start(5000);
    meet(&p, DOWN, 1, action);
    EXPECT_STATUS(rlock_latch_count_down(p.l, 1), RLOCK_OK);
    EXPECT(proxy_fired(p.s.px));
    EXPECT_INT(left_of(p.theirs), 2);
    expect_counted_once(&p);
    play_stop(&p);
}

TEST_CASE(latch, a_count_down_whose_answer_is_cut_off_is_counted_once,
          count_with_a_fault(PROXY_CUT_AFTER))
TEST_CASE(latch, a_count_down_whose_answer_is_cut_in_half_is_counted_once,
          count_with_a_fault(PROXY_CUT_IN_REPLY))
TEST_CASE(latch, a_count_down_that_never_arrives_is_sent_again,
          count_with_a_fault(PROXY_CUT_BEFORE))

/* It blocks for no longer than it may, and says that the keeper goes on. */
static void expect_owed(play *p)
{
    int64_t began_ms = test_now_ms();
    rlock_status s = rlock_latch_count_down(p->l, 1);
    EXPECT_STATUS(in_time(s, began_ms, 300 + SLACK_MS), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message,
                    "to be counted down in the background");
}

TEST(latch, a_count_down_without_answers_is_counted_in_the_background)
{
    play p = play_start(300);
    meet(&p, DOWN, PROXY_EVERY, PROXY_SWALLOW_REPLY);
    expect_owed(&p);
    EXPECT_INT(left_of(p.theirs), 2);
    int asked = proxy_count(p.s.px, proxy_sha(DOWN));
    EVENTUALLY(SOON, proxy_count(p.s.px, proxy_sha(DOWN)) >= asked + 2);
    proxy_rule(p.s.px, NULL, 1, PROXY_CUT_BEFORE, NULL);
    asked = proxy_count(p.s.px, proxy_sha(DOWN));
    EVENTUALLY(SOON, proxy_count(p.s.px, proxy_sha(DOWN)) > asked);
    expect_counted_once(&p);
    play_stop(&p);
}

TEST(latch, a_count_down_that_comes_after_the_keepers_is_not_counted)
{
    play p = play_start(300);
    meet(&p, DOWN, 1, PROXY_HOLD_REQUEST);
    rlock_status s = rlock_latch_count_down(p.l, 1);
    EXPECT(s == RLOCK_OK || s == RLOCK_EIO);
    EVENTUALLY(SOON, left_of(p.theirs) == 2);
    proxy_let_go(p.s.px);
    expect_counted_once(&p);
    play_stop(&p);
}

/* The next round is not counted down by what has opened this one. */
TEST(latch, a_copy_that_comes_in_the_next_round_is_not_counted)
{
    play p = play_start(300);
    EXPECT_STATUS(rlock_latch_count_down(p.theirs, 2), RLOCK_OK);
    meet(&p, DOWN, 1, PROXY_HOLD_REQUEST);
    rlock_latch_count_down(p.l, 1);
    EXPECT_STATUS(rlock_latch_wait(p.theirs, SOON), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(p.theirs, 3, 0), RLOCK_OK);
    proxy_let_go(p.s.px);
    EXPECT_INT(left_of(p.theirs), 3);
    play_stop(&p);
}

TEST(latch, a_set_whose_answer_is_lost_is_done_once)
{
    play p = play_start(5000);
    EXPECT_STATUS(rlock_latch_delete(p.theirs), RLOCK_OK);
    meet(&p, "latch/set", 1, PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_latch_set(p.l, 5, 0), RLOCK_OK);
    EXPECT(proxy_fired(p.s.px));
    EXPECT_INT(left_of(p.theirs), 5);
    EXPECT_STATUS(rlock_latch_set(p.l, 7, 0), RLOCK_BUSY);
    play_stop(&p);
}

TEST(latch, a_delete_whose_answer_is_lost_is_not_sent_again)
{
    play p = play_start(5000);
    meet(&p, "latch/delete", 1, PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_latch_delete(p.l), RLOCK_EIO);
    EXPECT_INT(proxy_count(p.s.px, proxy_sha("latch/delete")), 1);
    EXPECT_INT(left_of(p.theirs), 0);
    play_stop(&p);
}

TEST(latch, a_wait_whose_look_is_not_answered_looks_again)
{
    play p = play_start(5000);
    gate_waiter *w = gate_wait(p.l, RLOCK_FOREVER);
    gate_await_queue(p.s.sv, GATE, 1);
    meet(&p, "latch/look", 1, PROXY_CUT_AFTER);
    EXPECT_STATUS(rlock_latch_count_down(p.theirs, 3), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    EXPECT(proxy_fired(p.s.px));
    play_stop(&p);
}

/* --- servers that are away ------------------------------------------------ */

TEST(latch, a_count_down_at_a_server_that_stands_still_is_counted_once)
{
    play p = play_start(300);
    server_pause(p.s.sv);
    expect_owed(&p);
    server_resume(p.s.sv);
    expect_counted_once(&p);
    play_stop(&p);
}

TEST(latch, a_count_down_at_a_server_that_is_down_is_counted_when_it_is_back)
{
    scene s = scene_server(SERVER_DURABLE);
    scene_client(&s, 0, 300);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 3, 0), RLOCK_OK);
    server_kill(s.sv);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_EIO);
    server_restart(s.sv);
    EVENTUALLY(SOON, strcmp(server_str(s.sv, "GET " GATE), "2") == 0);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_INT(left_of(l), 1);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch, who_waits_at_a_server_that_stands_still_goes_on_when_it_does)
{
    play p = play_start(300);
    gate_waiter *w = gate_wait(p.l, RLOCK_FOREVER);
    gate_await_queue(p.s.sv, GATE, 1);
    server_pause(p.s.sv);
    expect_owed(&p);
    server_resume(p.s.sv);
    EVENTUALLY(SOON, left_of(p.theirs) == 2);
    EXPECT(!gate_has_returned(w));
    EXPECT_STATUS(rlock_latch_count_down(p.l, 2), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    play_stop(&p);
}

/* --- the end of the client ------------------------------------------------ */

TEST(latch, a_client_that_is_freed_counts_down_what_it_owes)
{
    play p = play_start(5000);
    meet(&p, DOWN, PROXY_EVERY, PROXY_CUT_BEFORE);
    expect_owed(&p);
    EXPECT_INT(left_of(p.theirs), 3);
    proxy_rule(p.s.px, NULL, 1, PROXY_CUT_BEFORE, NULL);
    scene_free_client(&p.s);
    EXPECT_INT(left_of(p.theirs), 2);
    play_stop(&p);
}

TEST(latch, closing_tells_of_a_count_down_that_is_left)
{
    play p = play_start(300);
    meet(&p, DOWN, PROXY_EVERY, PROXY_SENT | PROXY_TIMEOUT);
    expect_owed(&p);
    rlock_free(p.s.lk);
    EXPECT_STATUS(rlock_client_close(p.s.cl, 0), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "1 count-down was not");
    p.s.cl = NULL;
    p.s.lk = NULL;
    play_stop(&p);
}

TEST(latch, closing_tells_of_locks_and_of_count_downs)
{
    play p = play_start(300);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    meet(&p, DOWN, PROXY_EVERY, PROXY_SENT | PROXY_TIMEOUT);
    expect_owed(&p);
    server_pause(p.s.sv);
    rlock_free(p.s.lk);
    EXPECT_STATUS(rlock_client_close(p.s.cl, RLOCK_CLOSE_RELEASE_HELD),
                  RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "1 lock was not released");
    EXPECT_CONTAINS(rlock_last_error()->message, "1 count-down was not made");
    server_resume(p.s.sv);
    p.s.cl = NULL;
    p.s.lk = NULL;
    play_stop(&p);
}

/* --- out of memory -------------------------------------------------------- */

/* Nobody can be queued, and nothing counted; but it opens. */
TEST(latch, at_a_server_out_of_memory_who_waits_looks)
{
    play p = play_start(5000);
    server_cmd(p.s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_latch_count_down(p.l, 1), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "OOM");
    EXPECT_INT(left_of(p.theirs), 3);
    gate_waiter *w = gate_wait(p.l, RLOCK_FOREVER);
    int before = proxy_count(p.s.px, proxy_sha("latch/look"));
    EVENTUALLY(SOON, proxy_count(p.s.px, proxy_sha("latch/look")) > before + 2);
    int64_t opened_ms = test_now_ms(), at_ms;
    EXPECT_STATUS(rlock_latch_delete(p.theirs), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - opened_ms, 0, WELL_BEFORE_POLL_MS);
    server_cmd(p.s.sv, "CONFIG SET maxmemory 0");
    play_stop(&p);
}
