/* Who waits for long tells that, and who has the lock. */
#include "wait.h"

#define WARN_MS 700
#define TOLD_WHO                                                               \
    "*7\r\n:0\r\n:30000\r\n$1\r\n0\r\n:0\r\n:-1\r\n"                           \
    "$47\r\nweb3:18:19:1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52\r\n:2300\r\n"

/* It has been heard, so that tries give the bell, and is busy. */
static void open_long(wait_for *w, int64_t warn_ms, int64_t wait_ms)
{
    open_wait(w, wait_ms);
    core(w)->set.warn_wait_ms = warn_ms;
    rl_acquire_init(&w->a, w->p.now_us);
    hear_bell(w);
    EXPECT_INT(begin(w), RL_ASK);
    EXPECT_INT(answer(w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(w->p.events[RLOCK_EVENT_CONTENDED], 1);
}

/* It stands in the queue, and then asks who has the lock. */
static void look_for_long(wait_for *w)
{
    EXPECT_INT(play_sleep(&w->p), RL_ASK);
    EXPECT_STR(play_arg(&w->p, 0, BELL_ARG), core(w)->bell);
    EXPECT_INT(answer(w, IS_BUSY), RL_ASK);
    EXPECT_INT(play_args(&w->p, 0), BRIEF); /* no bell */
}

static int told(const wait_for *w)
{
    return w->p.events[RLOCK_EVENT_WAITED_LONG];
}

static uint64_t warnings(wait_for *w)
{
    return rl_count_of(&core(w)->stats.warned[RL_WARNED_WAIT]);
}

TEST(long_wait, who_waits_for_so_long_asks_who_has_it_and_tells)
{
    wait_for w;
    open_long(&w, WARN_MS, 60000);
    EXPECT_INT(w.a.op.sleep_us, w.p.now_us + WARN_MS * MS);
    look_for_long(&w);
    EXPECT_INT(told(&w), 0);
    play_pass(&w.p, 5 * MS);
    EXPECT_INT(answer(&w, TOLD_WHO), RL_SLEEP);
    EXPECT_INT(told(&w), 1);
    EXPECT_STR(w.p.said, "held by web3:18:19 for 2.3 s");
    EXPECT_INT(w.p.told.elapsed_ms, WARN_MS);
    EXPECT_INT(warnings(&w), 1);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(long_wait, is_told_once_and_the_bell_is_given_each_time)
{
    wait_for w;
    open_long(&w, WARN_MS, 60000);
    look_for_long(&w);
    EXPECT_INT(answer(&w, TOLD_WHO), RL_SLEEP);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(play_sleep(&w.p), RL_ASK);
        EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
        EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    }
    EXPECT_INT(told(&w), 1);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* The ring has taken the client out of the queue. */
TEST(long_wait, who_is_rung_in_vain_when_it_is_time_stands_before_it_asks)
{
    wait_for w;
    open_long(&w, WARN_MS, 60000);
    play_pass(&w.p, WARN_MS * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_INT(answer(&w, IS_BUSY), RL_ASK);
    EXPECT_INT(play_args(&w.p, 0), BRIEF);
    EXPECT_INT(answer(&w, TOLD_WHO), RL_SLEEP);
    EXPECT_INT(told(&w), 1);
    EXPECT_STR(w.p.said, "held by web3:18:19 for 2.3 s");
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(long_wait, without_the_option_nobody_tells)
{
    wait_for w;
    open_long(&w, 0, 60000);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 1500 * MS, 2500 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(told(&w), 0);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* The client is in the server's queue, as its try without a bell has not taken
   it out. */
TEST(long_wait, who_is_granted_it_then_has_nothing_to_tell)
{
    wait_for w;
    open_long(&w, WARN_MS, 60000);
    look_for_long(&w);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    EXPECT_STR(play_called(&w.p, 0), "leave");
    EXPECT_INT(told(&w), 0);
    EXPECT_INT(warnings(&w), 0);
    close_wait(&w, RLOCK_OK);
}

TEST(long_wait, a_wait_that_is_shorter_ends_first)
{
    wait_for w;
    open_long(&w, WARN_MS, WARN_MS - 1);
    EXPECT_INT(w.a.op.sleep_us, w.p.now_us + (WARN_MS - 1) * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, LEFT), RL_DONE);
    EXPECT_INT(told(&w), 0);
    close_wait(&w, RLOCK_TIMEOUT);
}

TEST(long_wait, who_is_not_the_first_here_tells_without_asking)
{
    wait_for w;
    rl_waiter other;
    open_wait(&w, 60000);
    core(&w)->set.warn_wait_ms = WARN_MS;
    rl_acquire_init(&w.a, w.p.now_us);
    EXPECT(rl_room_enter(&core(&w)->rooms, &other, &play_job, NULL, &w.p.waker,
                         0));
    hear_bell(&w);
    EXPECT_INT(begin(&w), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_SLEEP);
    EXPECT_INT(told(&w), 1);
    EXPECT_STR(w.p.said, "others of this client wait before it");
    rl_room_leave(&core(&w)->rooms, &other, false);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(long_wait, a_server_that_is_away_is_what_is_told)
{
    wait_for w;
    open_long(&w, WARN_MS, 60000);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    for (int i = 1; i < RL_ASK_TRIES; i++)
        EXPECT_INT(answer(&w, LOADING), RL_ASK);
    EXPECT_INT(answer(&w, LOADING), RL_SLEEP);
    EXPECT_INT(told(&w), 1);
    EXPECT_CONTAINS(w.p.said, "LOADING");
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(200)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}
