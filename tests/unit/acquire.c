/* The wait for a lock on one server: the first try, and those after. */
#include <errno.h>

#include "shim.h"
#include "wait.h"

/* --- at once -------------------------------------------------------------- */

TEST(acquire, a_free_lock_is_asked_for_once_and_nobody_waits)
{
    wait_for w;
    open_wait(&w, 5000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_args(&w.p, 0), BRIEF); /* no bell */
    EXPECT(!w.a.waiter.room);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT(w.a.token == 123 && calls(&w) == 1 && w.p.client[0].listens == 0);
    EXPECT_INT(core(&w)->stats.acquires_contended, 0);
    EXPECT_INT(w.p.events[RLOCK_EVENT_CONTENDED], 0);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire, who_does_not_wait_is_told_that_it_is_busy)
{
    wait_for w;
    open_wait(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_DONE);
    EXPECT(calls(&w) == 1 && w.p.client[0].listens == 0);
    EXPECT_INT(w.p.events[RLOCK_EVENT_CONTENDED], 0);
    close_wait(&w, RLOCK_BUSY);
}

/* Who enters behind so many others: how long, in s, he sleeps if nobody wakes him, and
   until when. */
static int64_t sleeps_behind(int many, int64_t *until_us)
{
    wait_for w;
    static rl_waiter other[1000];
    open_wait(&w, 60000);
    for (int i = 0; i < many; i++)
        EXPECT(rl_room_enter(&core(&w)->rooms, &other[i], &play_job, NULL,
                             &w.p.waker, 0));
    EXPECT_INT(begin(&w), RL_SLEEP);
    *until_us = w.a.op.sleep_us;
    int64_t slept_us = *until_us - w.p.now_us;
    for (int i = 0; i < many; i++)
        rl_room_leave(&core(&w)->rooms, &other[i], false);
    EXPECT_INT(play_wake(&w.p), RL_ASK); /* he is the front now */
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
    return slept_us / (1000 * MS);
}

TEST(acquire, who_is_behind_many_looks_whether_he_is_the_front_more_rarely)
{
    int64_t us;
    EXPECT_BETWEEN(sleeps_behind(1, &us), 1, 2);
    EXPECT_BETWEEN(sleeps_behind(60, &us), 6, 10); /* four times as long */
    EXPECT_BETWEEN(sleeps_behind(1000, &us), 15, 25);
}

/* A loop wakes up once for all whose time has come. */
TEST(acquire, who_is_behind_many_looks_when_others_do)
{
    enum { WAITS = 40 };
    int64_t first_us, us;
    sleeps_behind(60, &first_us);
    for (int i = 0; i < WAITS; i++) {
        sleeps_behind(60, &us);
        EXPECT_INT((us - first_us) % (100 * MS), 0);
    }
}

TEST(acquire, who_does_not_wait_asks_though_others_wait)
{
    wait_for w;
    rl_waiter other;
    open_wait(&w, 0);
    EXPECT(rl_room_enter(&core(&w)->rooms, &other, &play_job, NULL, &w.p.waker,
                         0));
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_DONE);
    rl_room_leave(&core(&w)->rooms, &other, false);
    close_wait(&w, RLOCK_BUSY);
}

TEST(acquire, who_does_not_wait_is_told_of_a_failure)
{
    wait_for w;
    open_wait(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, NOPERM), RL_DONE);
    EXPECT_CONTAINS(w.a.fault.text, "NOPERM");
    close_wait(&w, RLOCK_ESERVER);
}

TEST(acquire, what_may_have_been_granted_is_left_to_the_keeper)
{
    wait_for w;
    open_wait(&w, 0);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(play_lose(&w.p, 0), RL_DONE);
    EXPECT_INT(core(&w)->holds.undoing, 1);
    close_wait(&w, RLOCK_EIO);
}

TEST(acquire, without_memory_the_server_is_not_asked)
{
    wait_for w;
    open_wait(&w, 0);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rl_next next = begin(&w);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_DONE);
    EXPECT_INT(calls(&w), 0);
    close_wait(&w, RLOCK_ENOMEM);
}

TEST(acquire, without_randomness_the_server_is_not_asked)
{
    wait_for w;
    open_wait(&w, 0);
    shim_fail(shim_here(), SHIM_GETRANDOM, 1, SHIM_EVER, EIO);
    rl_next next = begin(&w);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_DONE);
    EXPECT_INT(calls(&w), 0);
    close_wait(&w, RLOCK_ENOMEM);
}

/* --- busy ----------------------------------------------------------------- */

TEST(acquire, a_busy_lock_is_waited_for)
{
    wait_for w;
    open_waiting(&w, 60000);
    EXPECT(w.a.waiter.room && w.p.client[0].listens == 1);
    EXPECT_INT(w.p.events[RLOCK_EVENT_CONTENDED], 1);
    EXPECT_INT(core(&w)->stats.waiting_now, 1);
    EXPECT_INT(core(&w)->stats.acquires_contended, 1);
    play_pass(&w.p, 500 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(core(&w)->stats.wait_us_total, 500 * MS);
    EXPECT_INT(core(&w)->stats.wakeups, 1);
    EXPECT_INT(core(&w)->stats.wakeups_futile, 0);
    EXPECT_INT(w.p.events[RLOCK_EVENT_CONTENDED], 1);
    close_wait(&w, RLOCK_OK);
}

/* A thread has no label. */
static void expect_told(const char *label, const char *owner)
{
    wait_for w;
    open_wait(&w, 60000);
    w.p.owner.label = label;
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(w.p.told.type, RLOCK_EVENT_CONTENDED);
    EXPECT_STR(w.p.told.name, "job");
    EXPECT_INT(w.p.told.name_len, 3);
    EXPECT_STR(w.p.told.owner, owner);
    EXPECT_INT(w.p.told.kind, RLOCK_KIND_LOCK);
    EXPECT_INT(w.p.told.status, RLOCK_OK);
    EXPECT(w.p.told.token == 0 && w.p.told.count == 0);
    EXPECT_INT(w.p.told.elapsed_ms, 0);
    EXPECT_STR(w.p.said, "");
    rl_rooms_cancel(&core(&w)->rooms, &play_job, &w);
    EXPECT_INT(play_wake(&w.p), RL_DONE);
    close_wait(&w, RLOCK_CANCELED);
}

TEST_CASE(acquire, that_a_thread_waits_is_told, expect_told(NULL, ""))
TEST_CASE(acquire, that_an_owner_waits_is_told_with_its_label,
          expect_told("job-7", "job-7"))

/* 2 s, more or less a quarter. */
TEST(acquire, who_waits_looks_by_itself_lest_it_missed_a_ring)
{
    wait_for w;
    open_waiting(&w, 60000);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 1500 * MS, 2500 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

static void expect_look_after(const char *reply, int64_t ms)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, reply), RL_SLEEP);
    EXPECT_INT(w.a.op.sleep_us, w.p.now_us + ms * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST_CASE(acquire, who_is_first_looks_when_the_lease_has_run_out,
          expect_look_after(BUSY(700, 500, 0), 701))
TEST_CASE(acquire, who_does_not_know_its_place_looks_as_the_first,
          expect_look_after(BUSY(700, 500, -1), 701))
TEST_CASE(acquire, who_stands_behind_others_leaves_them_time,
          expect_look_after(BUSY(700, 500, 3), 1001))

TEST(acquire, a_holder_that_rings_nobody_is_looked_at_more_often)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, "*5\r\n:0\r\n:-1\r\n$3\r\n500\r\n:1\r\n:0\r\n"),
               RL_SLEEP);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 187 * MS, 313 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* Only then can no ring be missed; so it asks once more, by name. */
TEST(acquire, who_begins_to_wait_queues_at_once_when_the_bell_is_heard)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    hear_bell(&w); /* meanwhile */
    EXPECT_INT(answer(&w, IS_BUSY), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* The doorbell begins to hear as soon as it is started. */
static void listen_at_once(rl_core *c, const rl_target *what)
{
    (void)what;
    rl_rooms_hear(&c->rooms);
}

/* What a client that is none of ours may have made of the queue. */
TEST(acquire, who_stands_behind_ever_so_many_looks_by_itself_as_well)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, BUSY(700, 500, 184467440737096)), RL_SLEEP);
    EXPECT_BETWEEN(w.a.op.sleep_us - w.p.now_us, 1500 * MS, 2500 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* The server says that the lease ends now; in how many ms it is asked again. */
static int64_t asked_again_in(wait_for *w)
{
    EXPECT_INT(answer(w, BUSY(0, 500, 0)), RL_SLEEP);
    int64_t us = w->a.op.sleep_us - w->p.now_us;
    EXPECT_INT(play_sleep(&w->p), RL_ASK);
    return us / MS;
}

TEST(acquire, a_lease_that_ends_now_and_does_not_is_looked_at_ever_less_often)
{
    wait_for w;
    open_wait(&w, 60000);
    EXPECT_INT(begin(&w), RL_ASK);
    for (int64_t ms = 1; ms <= 64; ms *= 2)
        EXPECT_INT(asked_again_in(&w), ms);
    EXPECT_INT(asked_again_in(&w), 64);
    EXPECT_INT(answer(&w, BUSY(700, 500, 0)), RL_SLEEP);
    EXPECT_INT(w.a.op.sleep_us - w.p.now_us, 701 * MS);
    EXPECT_INT(play_sleep(&w.p), RL_ASK);
    EXPECT_INT(asked_again_in(&w), 1);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

/* Not once for the bell that is heard, and once more for being woken by it. */
TEST(acquire, who_is_woken_by_the_bell_asks_by_name_once)
{
    wait_for w;
    open_wait(&w, 60000);
    w.a.listen = listen_at_once;
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(play_wake(&w.p), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(calls(&w), 3);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire, where_the_bell_is_heard_the_first_try_queues)
{
    wait_for w;
    open_wait(&w, 60000);
    hear_bell(&w);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, BELL_ARG), core(&w)->bell);
    EXPECT_STR(play_arg(&w.p, 0, TICKET_ARG), "0");
    EXPECT_INT(answer(&w, BUSY(30000, 501, 0)), RL_SLEEP);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, TICKET_ARG), "501"); /* keeps its place */
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    EXPECT_INT(calls(&w), 2); /* it need not leave the queue */
    close_wait(&w, RLOCK_OK);
}

TEST(acquire, who_has_waited_for_a_second_says_who_it_is)
{
    wait_for w;
    open_wait(&w, 60000);
    hear_bell(&w);
    EXPECT_INT(begin(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    play_pass(&w.p, 999 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_STR(play_word(&w.p, 0, 2), "4");
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    play_pass(&w.p, 1 * MS);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_STR(play_word(&w.p, 0, 2), "5");
    EXPECT_STR(play_key(&w.p, 0, 5), "rlock_undone:{job}:who");
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire, a_try_with_the_bell_keeps_the_holder_id_of_the_first)
{
    wait_for w;
    char holder[128];
    open_waiting(&w, 60000);
    snprintf(holder, sizeof holder, "%s", play_arg(&w.p, 0, HOLDER_ARG));
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_STR(play_arg(&w.p, 0, HOLDER_ARG), holder);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}

TEST(acquire, a_ring_in_vain_is_counted)
{
    wait_for w;
    open_waiting(&w, 60000);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(play_sleep(&w.p), RL_ASK); /* that was none */
    EXPECT_INT(answer(&w, IS_BUSY), RL_SLEEP);
    EXPECT_INT(core(&w)->stats.wakeups, 1);
    EXPECT_INT(core(&w)->stats.wakeups_futile, 1);
    EXPECT_INT(ring(&w), RL_ASK);
    EXPECT_INT(answer(&w, GRANTED(123)), RL_DONE);
    close_wait(&w, RLOCK_OK);
}
