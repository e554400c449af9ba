/*
 * Who waits for a latch: all are woken, at once, by one look of each client;
 * and nobody waits for ever when nobody rings.
 */
#include <pthread.h>

#include "gate.h"
#include "loop.h"

/* --- waking --------------------------------------------------------------- */

static void expect_woken_at_once(gate_waiter *w, int64_t opened_ms)
{
    int64_t at_ms;
    EXPECT_STATUS(gate_end(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - opened_ms, 0, WELL_BEFORE_POLL_MS);
}

TEST(latch_waiting, every_client_is_woken_at_once)
{
    enum { CLIENTS = 4 };
    scene s = scene_start(0, 0);
    rlock_client *cl[CLIENTS];
    rlock_latch *l = test_latch(s.cl, GATE), *of[CLIENTS];
    gate_waiter *w[CLIENTS];
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    for (int i = 0; i < CLIENTS; i++) {
        cl[i] = server_client(s.sv, NULL);
        of[i] = test_latch(cl[i], GATE);
        w[i] = gate_wait(of[i], RLOCK_FOREVER);
    }
    gate_await_queue(s.sv, GATE, CLIENTS);
    int64_t opened_ms = test_now_ms();
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    for (int i = 0; i < CLIENTS; i++) {
        expect_woken_at_once(w[i], opened_ms);
        rlock_latch_free(of[i]);
        rlock_client_free(cl[i]);
    }
    expect_gate_gone(s.sv, GATE);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, threads_of_one_client_ask_as_one)
{
    enum { THREADS = 20 };
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    gate_waiter *w[THREADS];
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    for (int i = 0; i < THREADS; i++)
        w[i] = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    rlock_client *other = server_client(s.sv, NULL);
    rlock_latch *theirs = test_latch(other, GATE);
    long long before = script_calls(s.sv);
    int64_t opened_ms = test_now_ms();
    EXPECT_STATUS(rlock_latch_count_down(theirs, 1), RLOCK_OK);
    for (int i = 0; i < THREADS; i++)
        expect_woken_at_once(w[i], opened_ms);
    /* the count-down, a look, and perhaps one that was due by itself; who had
       not begun to wait by then looks for himself */
    EXPECT_BETWEEN(script_calls(s.sv) - before, 2, 2 + THREADS / 2);
    rlock_latch_free(theirs);
    rlock_client_free(other);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, who_waits_is_let_go_when_it_is_deleted)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    int64_t opened_ms = test_now_ms();
    EXPECT_STATUS(rlock_latch_delete(l), RLOCK_OK);
    expect_woken_at_once(w, opened_ms);
    EXPECT_STATUS(rlock_latch_delete(l), RLOCK_NOT_HELD);
    EXPECT_CONTAINS(rlock_last_error()->message, "it is open");
    expect_gate_gone(s.sv, GATE);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, a_server_that_has_lost_its_data_has_no_closed_latch)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    server_cmd(s.sv, "FLUSHALL");
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, a_restarted_server_is_asked_again)
{
    scene s = scene_server(SERVER_DURABLE);
    scene_client(&s, 0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 2, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    server_restart(s.sv);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT(!gate_has_returned(w));
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* By a right that is missing, the library has no subscriber. */
TEST(latch_waiting, without_pub_sub_who_waits_looks_four_times_a_second)
{
    scene s = scene_server(NULL);
    server_cmd(s.sv, "ACL SETUSER default -subscribe");
    scene_client(&s, 0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    long long before = script_calls(s.sv);
    EVENTUALLY(SOON, script_calls(s.sv) - before >= 3);
    EXPECT_INT(queued(s.sv, GATE), 0);
    int64_t opened_ms = test_now_ms();
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    expect_woken_at_once(w, opened_ms);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* --- the end of a wait ---------------------------------------------------- */

TEST(latch_waiting, a_wait_that_runs_out_says_what_is_left)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 3, 0), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_latch_wait(l, 100), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_since_ms(began_ms), 100, 100 + SLACK_MS);
    EXPECT_CONTAINS(rlock_last_error()->message, "3 left to count down");
    EXPECT_INT(queued(s.sv, GATE), 0);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, a_cancel_ends_the_waits_of_its_handle)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE), *same = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    gate_waiter *a = gate_wait(l, RLOCK_FOREVER);
    gate_waiter *b = gate_wait(l, RLOCK_FOREVER);
    gate_waiter *c = gate_wait(same, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    EVENTUALLY(SOON, (rlock_latch_cancel(l),
                      gate_has_returned(a) && gate_has_returned(b)));
    EXPECT_STATUS(gate_end(a, NULL), RLOCK_CANCELED);
    EXPECT_STATUS(gate_end(b, NULL), RLOCK_CANCELED);
    EXPECT(!gate_has_returned(c));
    EXPECT_STATUS(rlock_client_cancel(s.cl, true), RLOCK_OK);
    EXPECT_STATUS(gate_end(c, NULL), RLOCK_CANCELED);
    EXPECT_STATUS(rlock_latch_wait(l, 1000), RLOCK_CANCELED);
    EXPECT_STATUS(rlock_latch_wait(l, 0), RLOCK_BUSY);
    rlock_latch_free(l);
    rlock_latch_free(same);
    scene_stop(&s);
}

TEST(latch_waiting, freeing_the_client_ends_them)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    scene_free_client(&s);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_ECLOSED);
    EXPECT_INT(queued(s.sv, GATE), 0);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, a_wait_is_no_wait_for_a_lock_in_the_figures)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    rlock_stats before = stats_of(s.cl);
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    EXPECT_INT(stats_of(s.cl).waiting_now, 0);
    EXPECT_STATUS(rlock_latch_count_down(l, 1), RLOCK_OK);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    rlock_stats st = stats_of(s.cl);
    EXPECT_INT(st.acquires, before.acquires);
    EXPECT_INT(st.wakeups, before.wakeups);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 0);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* --- with Redisson -------------------------------------------------------- */

/* As RCountDownLatch.countDown() does it, at the last one. */
static void count_down_in_java(server *sv)
{
    server_cmd(sv, "DEL " GATE);
    server_cmd(sv, "PUBLISH redisson_countdownlatch__channel__{" GATE "} 0");
}

TEST(latch_waiting, what_java_opens_is_found_by_a_look)
{
    scene s = scene_start(0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    server_cmd(s.sv, "SET " GATE " 1");
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    count_down_in_java(s.sv);
    EXPECT_STATUS(gate_end(w, NULL), RLOCK_OK);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, what_java_opens_wakes_who_listens_to_its_channel)
{
    scene s = scene_server(NULL);
    s.opts.redisson_channel = true;
    scene_client(&s, 0, 0);
    rlock_latch *l = test_latch(s.cl, GATE);
    server_cmd(s.sv, "SET " GATE " 1");
    gate_waiter *w = gate_wait(l, RLOCK_FOREVER);
    gate_await_queue(s.sv, GATE, 1);
    EVENTUALLY(SOON,
               server_cmd(s.sv, "PUBSUB CHANNELS redisson_count*")->elements ==
                   1);
    int64_t opened_ms = test_now_ms();
    count_down_in_java(s.sv);
    expect_woken_at_once(w, opened_ms);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* --- on a loop ------------------------------------------------------------ */

typedef struct started {
    rlock_latch *l;
    int told, ok;
    rlock_status last;
    pthread_t by;
} started;

static void count_told(rlock_latch *l, rlock_status status, void *arg)
{
    started *t = arg;
    EXPECT(l == t->l);
    EXPECT(pthread_equal(pthread_self(), t->by));
    t->told++;
    t->ok += status == RLOCK_OK;
    t->last = status;
    if (status != RLOCK_OK)
        EXPECT_STATUS(rlock_last_error()->status, status);
}

static void start_waits(rlock_latch *l, int n, int64_t wait_ms, started *t)
{
    *t = (started){.l = l, .by = pthread_self()};
    for (int i = 0; i < n; i++)
        EXPECT_STATUS(rlock_latch_wait_start(l, wait_ms, count_told, t),
                      RLOCK_OK);
}

TEST(latch_waiting, a_thousand_started_waits_are_told_after_one_look)
{
    enum { WAITS = 1000 };
    scene s = scene_start(0, 0);
    started t;
    rlock_client *other = server_client(s.sv, NULL);
    rlock_latch *l = test_latch(s.cl, GATE), *theirs = test_latch(other, GATE);
    EXPECT(rlock_client_fd(s.cl) >= 0);
    EXPECT_STATUS(rlock_latch_set(theirs, 1, 0), RLOCK_OK);
    start_waits(l, WAITS, RLOCK_FOREVER, &t);
    gate_await_queue(s.sv, GATE, 1);
    EXPECT_STATUS(rlock_client_dispatch(s.cl), RLOCK_OK);
    EXPECT_INT(t.told, 0);
    long long before = script_calls(s.sv);
    EXPECT_STATUS(rlock_latch_count_down(theirs, 1), RLOCK_OK);
    LOOP_UNTIL(s.cl, t.told == WAITS);
    EXPECT_INT(t.ok, WAITS);
    EXPECT_BETWEEN(script_calls(s.sv) - before, 2, 4);
    expect_gate_gone(s.sv, GATE);
    rlock_latch_free(theirs);
    rlock_client_free(other);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, a_started_wait_needs_no_owner_and_outlives_its_handle)
{
    scene s = scene_start(0, 0);
    started t;
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT(rlock_client_fd(s.cl) >= 0);
    start_waits(l, 2, 0, &t);
    rlock_latch_free(l);
    LOOP_UNTIL(s.cl, t.told == 2);
    EXPECT_INT(t.ok, 2);
    scene_stop(&s);
}

TEST(latch_waiting, a_started_wait_runs_out_or_is_canceled)
{
    scene s = scene_start(0, 0);
    started t;
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT(rlock_client_fd(s.cl) >= 0);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    start_waits(l, 1, 0, &t);
    LOOP_UNTIL(s.cl, t.told == 1);
    EXPECT_STATUS(t.last, RLOCK_BUSY);
    start_waits(l, 1, 50, &t);
    LOOP_UNTIL(s.cl, t.told == 1);
    EXPECT_STATUS(t.last, RLOCK_TIMEOUT);
    start_waits(l, 3, RLOCK_FOREVER, &t);
    rlock_latch_cancel(l);
    LOOP_UNTIL(s.cl, t.told == 3);
    EXPECT_STATUS(t.last, RLOCK_CANCELED);
    rlock_latch_free(l);
    scene_stop(&s);
}

TEST(latch_waiting, freeing_the_client_tells_started_waits)
{
    scene s = scene_start(0, 0);
    started t;
    rlock_latch *l = test_latch(s.cl, GATE);
    EXPECT(rlock_client_fd(s.cl) >= 0);
    EXPECT_STATUS(rlock_latch_set(l, 1, 0), RLOCK_OK);
    start_waits(l, 5, RLOCK_FOREVER, &t);
    scene_free_client(&s);
    EXPECT_INT(t.told, 5);
    EXPECT_STATUS(t.last, RLOCK_ECLOSED);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* --- processes ------------------------------------------------------------ */

static void run_when_it_opens(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    (void)arg;
    opts.uri = child_take_uri(c);
    rlock_client *cl = server_client(NULL, &opts);
    rlock_latch *ready = test_latch(cl, "ready"), *go = test_latch(cl, "go");
    EXPECT_STATUS(rlock_latch_count_down(ready, 1), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_wait(go, SOON), RLOCK_OK);
    child_tell(c, 'r');
    rlock_latch_free(ready);
    rlock_latch_free(go);
    rlock_client_free(cl);
}

TEST(latch_waiting, eight_processes_start_together)
{
    enum { RUNNERS = 8 };
    child *c[RUNNERS];
    for (int i = 0; i < RUNNERS; i++)
        c[i] = child_start(run_when_it_opens, NULL);
    scene s = scene_start(0, 0);
    rlock_latch *ready = test_latch(s.cl, "ready"),
                *go = test_latch(s.cl, "go");
    EXPECT_STATUS(rlock_latch_set(ready, RUNNERS, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(go, 1, 0), RLOCK_OK);
    for (int i = 0; i < RUNNERS; i++)
        child_give_uri(c[i], s.sv);
    EXPECT_STATUS(rlock_latch_wait(ready, SOON), RLOCK_OK);
    gate_await_queue(s.sv, "go", RUNNERS);
    int64_t opened_ms = test_now_ms();
    EXPECT_STATUS(rlock_latch_count_down(go, 1), RLOCK_OK);
    for (int i = 0; i < RUNNERS; i++)
        child_expect(c[i], 'r');
    EXPECT_BETWEEN(test_since_ms(opened_ms), 0, WELL_BEFORE_POLL_MS);
    for (int i = 0; i < RUNNERS; i++)
        child_end(c[i]);
    expect_gate_gone(s.sv, "go");
    rlock_latch_free(ready);
    rlock_latch_free(go);
    scene_stop(&s);
}
