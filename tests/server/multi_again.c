/*
 * Multi locks whose try fails: what was taken and is lost while another member
 * is waited for, or cannot be had for the moment, is tried again until the wait
 * is over; and nobody is told of a loss who never had the whole.
 */
#include "lock/lock.h"
#include "multi_scene.h"
#include "nodes.h"

/* --- lost while others are waited for ------------------------------------- */

/* A thread waits for b, and has a. */
static waiter *wait_with_a(scene *s, multi_scene *m, int64_t wait_ms,
                           int64_t lease_ms)
{
    take_by_hand(s->sv, "b", 0);
    waiter *w = waiter_start(m->all, wait_ms, lease_ms);
    asleep(s->sv, "b", s->cl);
    EVENTUALLY(SOON, multi_scene_is_at(m, 0, 1));
    return w;
}

static void expect_taken(waiter *w, multi_scene *m)
{
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    expect_levels(m, 1);
    waiter_end(w);
    expect_levels(m, 0);
}

static void lose_a_member(int64_t lease_ms)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    waiter *w = wait_with_a(&s, &m, RLOCK_FOREVER, lease_ms);
    server_cmd(s.sv, "DEL a");
    EVENTUALLY(SOON, stats_of(s.cl).lost == 1);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(rlock_force_unlock(m.lk[1]), RLOCK_OK);
    expect_taken(w, &m);
    multi_scene_end_with_losses(&m, &s, 0);
}

TEST_CASE(multi_again, a_member_that_is_lost_during_the_wait_is_taken_again,
          lose_a_member(RLOCK_WATCHDOG))
TEST_CASE(multi_again, the_same_with_a_lease_of_its_own, lose_a_member(60000))

/* It is found only when all others are held. */
TEST(multi_again, a_member_that_another_one_has_by_then_is_waited_for)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    waiter *w = wait_with_a(&s, &m, RLOCK_FOREVER, RLOCK_WATCHDOG);
    server_cmd(s.sv, "DEL a");
    take_by_hand(s.sv, "a", 0);
    EVENTUALLY(SOON, stats_of(s.cl).lost == 1);
    EXPECT_STATUS(rlock_force_unlock(m.lk[1]), RLOCK_OK);
    asleep(s.sv, "a", s.cl);
    EXPECT_INT(levels(s.sv, "b") + levels(s.sv, "c"), 0);
    EXPECT_STATUS(rlock_force_unlock(m.lk[0]), RLOCK_OK);
    expect_taken(w, &m);
    multi_scene_end_with_losses(&m, &s, 0);
}

TEST(multi_again, a_member_whose_lease_ends_in_a_hang_is_taken_again)
{
    scene s = scene_start(BRISK_MS, 300), t = scene_start(BRISK_MS, 300);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    take_by_hand(t.sv, "b", 0);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(t.sv, "b", t.cl);
    EXPECT_INT(levels(s.sv, "a"), 1);
    server_pause(s.sv);
    EVENTUALLY(SOON, stats_of(s.cl).lost == 1);
    server_resume(s.sv);
    EXPECT_STATUS(rlock_force_unlock(m.lk[1]), RLOCK_OK);
    expect_taken(w, &m);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 0);
    multi_scene_end_across(&m, &s, &t);
}

/* A Red lock, and one of the first node behind it, which somebody has. */
typedef struct pair {
    nodes ns;
    party p;
    rlock *one, *all;
} pair;

static pair pair_start(void)
{
    pair x = {.ns = nodes_start(3)};
    x.p = party_join(&x.ns, BRISK_MS, 0);
    x.one = test_lock(x.p.cl[0], "zoo");
    rlock *both[] = {x.p.lk, x.one};
    EXPECT_STATUS(rlock_multi_new(both, 2, &x.all), RLOCK_OK);
    take_by_hand(x.ns.sv[0], "zoo", 0);
    return x;
}

/* Without its clients, nothing more can be told. */
static void pair_end_with_losses(pair *x, int losses)
{
    rlock_free(x->all);
    rlock_free(x->one);
    rlock_free(x->p.lk);
    x->p.lk = NULL;
    for (size_t i = 0; i < x->p.n; i++)
        party_free_client(&x->p, i);
    EXPECT_INT(party_events(&x->p, RLOCK_EVENT_LOST), losses);
    party_end(&x->p, &x->ns);
}

static void lose_the_red_one(pair *x)
{
    EVENTUALLY(SOON, nodes_having(&x->ns) == x->ns.n);
    for (size_t i = 0; i < x->ns.n; i++)
        server_cmd(x->ns.sv[i], "DEL " SCENE_LOCK);
    EVENTUALLY(SOON, stats_of(x->p.cl[0]).lost == 1);
}

static void lose_a_red_member(bool waited_for)
{
    pair x = pair_start();
    if (waited_for)
        nodes_take(&x.ns, 0, x.ns.n);
    waiter *w = waiter_start(x.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    if (waited_for) {
        waiters_settle(x.ns.sv[0], 1, x.p.cl[0], 1);
        nodes_give_back(&x.ns, 0, x.ns.n);
    }
    asleep(x.ns.sv[0], "zoo", x.p.cl[0]);
    lose_the_red_one(&x);
    EXPECT(!waiter_returned(w));
    EXPECT_STATUS(rlock_force_unlock(x.one), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EVENTUALLY(SOON, nodes_having(&x.ns) == x.ns.n);
    waiter_end(w);
    pair_end_with_losses(&x, 0);
}

TEST_CASE(multi_again, a_red_member_that_is_lost_during_the_wait_is_taken_again,
          lose_a_red_member(false))
TEST_CASE(multi_again, the_same_of_a_red_member_that_was_waited_for,
          lose_a_red_member(true))

/* Of the whole, it is told as by itself. */
TEST(multi_again, the_loss_of_a_red_member_of_the_whole_is_told)
{
    pair x = pair_start();
    EXPECT_STATUS(rlock_force_unlock(x.one), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(x.all), RLOCK_OK);
    lose_the_red_one(&x);
    events_wait(x.p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(x.all), RLOCK_LOST);
    pair_end_with_losses(&x, 1);
}

static intptr_t wait_with_a_red_level(void *arg)
{
    const pair *x = arg;
    EXPECT_STATUS(rlock_lock(x->p.lk), RLOCK_OK);
    rlock_status s = rlock_acquire(x->all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    expect_blame_of(1, SCENE_LOCK);
    EXPECT_STATUS(rlock_unlock(x->p.lk), RLOCK_LOST);
    return s;
}

TEST(multi_again, the_loss_of_a_red_one_that_was_held_before_is_told)
{
    pair x = pair_start();
    test_thread *t = test_spawn(wait_with_a_red_level, &x);
    asleep(x.ns.sv[0], "zoo", x.p.cl[0]);
    lose_the_red_one(&x);
    events_wait(x.p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_force_unlock(x.one), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_LOST);
    pair_end_with_losses(&x, 1);
}

/* A level that was there before the call. */
TEST(multi_again, the_loss_of_what_was_held_before_is_told)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.lk[0]), RLOCK_OK);
    server_cmd(s.sv, "DEL a");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_LOST);
    expect_blame_of(1, "a");
    EXPECT_INT(levels(s.sv, "b"), 0);
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_LOST);
    multi_scene_end_with_losses(&m, &s, 1);
}

static intptr_t wait_with_a_level(void *arg)
{
    multi_scene *m = arg;
    EXPECT_STATUS(rlock_lock(m->lk[0]), RLOCK_OK);
    rlock_status s = rlock_acquire(m->all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    expect_blame_of(1, "a");
    EXPECT_STATUS(rlock_unlock(m->lk[0]), RLOCK_LOST);
    return s;
}

TEST(multi_again, the_loss_of_what_was_held_before_ends_the_wait_for_others)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    take_by_hand(s.sv, "b", 0);
    test_thread *t = test_spawn(wait_with_a_level, &m);
    asleep(s.sv, "b", s.cl);
    server_cmd(s.sv, "DEL a");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_force_unlock(m.lk[1]), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, "b"), 0);
    multi_scene_end_with_losses(&m, &s, 1);
}

/* The lease of the first has run out when the second one's server answers. */
static rlock_status try_with_a_late_one(scene *s, scene *t, multi_scene *m,
                                        int64_t wait_ms)
{
    enum { LEASE_MS = 200 };
    EXPECT_STATUS(rlock_client_ping(t->cl), RLOCK_OK); /* it is connected */
    server_pause(t->sv);
    long long calls = script_calls(s->sv);
    waiter *w = waiter_start(m->all, wait_ms, LEASE_MS);
    EVENTUALLY(SOON, script_calls(s->sv) > calls);
    EVENTUALLY(SOON, levels(s->sv, "a") == 0);
    server_resume(t->sv);
    return waiter_end(w);
}

TEST(multi_again, a_member_that_expires_before_all_are_held_is_no_loss)
{
    scene s = scene_start(0, SOON), t = scene_start(0, SOON);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(try_with_a_late_one(&s, &t, &m, 0), RLOCK_EIO);
    EVENTUALLY(SOON, multi_scene_all_at(&m, 0));
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_acquire(m.all, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_again, a_member_that_expires_before_all_are_held_is_taken_again)
{
    scene s = scene_start(0, SOON), t = scene_start(0, SOON);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(try_with_a_late_one(&s, &t, &m, SOON), RLOCK_OK);
    EVENTUALLY(SOON, multi_scene_all_at(&m, 0));
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 0);
    multi_scene_end_across(&m, &s, &t);
}

/* --- what is said of a try that failed ------------------------------------ */

TEST(multi_again, a_wait_that_ends_at_a_server_that_hangs_says_so)
{
    scene s = scene_start(0, 400);
    multi_scene m = multi_scene_of(&s, "ab");
    server_pause(s.sv);
    EXPECT_STATUS(rlock_acquire(m.lk[0], 100, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_STATUS(rlock_acquire(m.all, 100, RLOCK_WATCHDOG), RLOCK_EIO);
    expect_blame_of(1, "a");
    server_resume(s.sv);
    EVENTUALLY(SOON, multi_scene_all_at(&m, 0));
    multi_scene_end(&m, &s);
}

TEST(multi_again, a_wait_that_ends_at_a_busy_member_says_so)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    take_by_hand(s.sv, "b", 0);
    EXPECT_STATUS(rlock_acquire(m.all, 100, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    expect_blame_of(2, "b");
    multi_scene_end(&m, &s);
}

/*
 * Of one name, the others are kept for a short time first. (Which of the two
 * comes first, the servers' runs decide.)
 */
TEST(multi_again, a_member_of_the_same_name_that_hangs_is_tried_until_the_end)
{
    scene s = scene_start(0, 50), t = scene_start(0, 50);
    multi_scene m = multi_scene_across(&s, "a", &t, "a");
    for (int i = 0; i < 2; i++) {
        server *hangs = i ? s.sv : t.sv;
        server_pause(hangs);
        waiter *w = waiter_start(m.all, SOON, RLOCK_WATCHDOG);
        test_pause_ms(600); /* longer than they are kept, and a command */
        EXPECT(!waiter_returned(w));
        server_resume(hangs);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
        EVENTUALLY(SOON, multi_scene_all_at(&m, 0));
    }
    multi_scene_end_across(&m, &s, &t);
}

/* --- a level more --------------------------------------------------------- */

TEST(multi_again, a_level_more_is_answered_at_once)
{
    enum { TIMEOUT_MS = 1500 };
    scene s = scene_start(0, TIMEOUT_MS);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(m.lk[0], 10000, RLOCK_WATCHDOG), RLOCK_EIO);
    int64_t one_ms = test_since_ms(began_ms);
    began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(m.all, 10000, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, one_ms + SLACK_MS);
    expect_blame_of(1, "a");
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EVENTUALLY(SOON, multi_scene_all_at(&m, 0));
    multi_scene_end(&m, &s);
}

/* Also beside one that is busy, which a wait would be for. */
TEST(multi_again, a_level_more_that_is_lost_is_told_beside_one_that_is_busy)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.lk[1]), RLOCK_OK);
    take_by_hand(s.sv, "a", 0);
    server_cmd(s.sv, "DEL b");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(m.all, 10000, RLOCK_WATCHDOG), RLOCK_LOST);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, SLACK_MS);
    expect_blame_of(2, "b");
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_LOST);
    multi_scene_end(&m, &s);
}

/* The call that fails has had it renewed meanwhile. */
static void expect_renewed_afterwards(int64_t lease_ms, bool renewed)
{
    pair x = pair_start();
    EXPECT_STATUS(rlock_acquire(x.p.lk, SOON, lease_ms), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(x.all, 0, RLOCK_WATCHDOG), RLOCK_BUSY);
    EXPECT_INT(rl_lock_view(x.p.lk).count, 1);
    EXPECT_INT(rl_lock_view(x.p.lk).renewed, renewed);
    EXPECT_STATUS(rlock_unlock(x.p.lk), RLOCK_OK);
    pair_end_with_losses(&x, 0);
}

TEST_CASE(multi_again, a_red_lock_with_a_lease_keeps_it_when_the_whole_is_busy,
          expect_renewed_afterwards(60000, false))
TEST_CASE(multi_again, a_red_lock_is_still_renewed_when_the_whole_is_busy,
          expect_renewed_afterwards(RLOCK_WATCHDOG, true))
