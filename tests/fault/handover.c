/*
 * Faults while a thread hands a lock over to another one of its client. In each
 * test a hand-over without a fault comes first.
 */
#include "busy.h"
#include "other_client.h"

enum { TIMEOUT_MS = 400, PATIENT_MS = 8000, WAIT_MS = 2000 };

/* The test's thread has the lock, and a thread waits for it, and sleeps. */
static waiter *begin_wait(scene *s, int64_t wait_ms)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    waiter *w = waiter_start(s->lk, wait_ms, RLOCK_WATCHDOG);
    waiters_settle(s->sv, 1, s->cl, 1);
    return w;
}

/*
 * The control: the other one has it at once. The first time it may look once
 * more just then, because the doorbell has come up; the lock is freed for it.
 */
static void hand_over(scene *s)
{
    waiter *w = begin_wait(s, RLOCK_FOREVER);
    int64_t before_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    waiter_expect_rung(w, before_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s->sv);
}

static scene scene_handing_over(int64_t timeout_ms)
{
    scene s = scene_proxied(0, timeout_ms);
    hand_over(&s);
    proxy_forget(s.px);
    hand_over(&s);
    EXPECT_INT(proxy_count(s.px, proxy_sha("handover")), 1);
    return s;
}

static void rule(scene *s, int nth, proxy_action action)
{
    proxy_rule(s->px, proxy_sha("handover"), nth, action, NULL);
}

/* The lock is free again, and works. */
static void expect_well(scene *s)
{
    proxy_rule(s->px, NULL, 0, PROXY_CUT_BEFORE, NULL);
    EVENTUALLY(SOON, levels(s->sv, SCENE_LOCK) == 0);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_INT(stats_of(s->cl).held_now, 0);
    EXPECT_INT(stats_of(s->cl).lost, 0);
    expect_all_undone(s->sv);
    scene_stop(s);
}

/* --- 118 -------------------------------------------------------------------
 */

static void asked_again(proxy_action action)
{
    scene s = scene_handing_over(TIMEOUT_MS);
    waiter *w = begin_wait(&s, RLOCK_FOREVER);
    rule(&s, 1, action);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_well(&s);
}

TEST_CASE(handover, fault_118_a_hand_over_that_was_cut_off_is_asked_again,
          asked_again(PROXY_CUT_BEFORE))
TEST_CASE(handover, fault_118_a_hand_over_whose_reply_is_lost_is_asked_again,
          asked_again(PROXY_CUT_AFTER))
TEST_CASE(handover, fault_118_a_hand_over_with_half_a_reply_is_asked_again,
          asked_again(PROXY_CUT_IN_REPLY))

/* Executed or not: the waiter asks by its holder id, and owns it. */
static void never_answered(proxy_action action)
{
    scene s = scene_handing_over(TIMEOUT_MS);
    waiter *w = begin_wait(&s, RLOCK_FOREVER);
    rule(&s, PROXY_EVERY, action);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EVENTUALLY(SOON, levels(s.sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    proxy_let_go(s.px); /* what was held is executed now */
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_well(&s);
}

TEST_CASE(handover,
          fault_118_a_hand_over_that_is_never_answered_gives_it_to_one,
          never_answered(PROXY_SWALLOW_REPLY))
TEST_CASE(handover, fault_118_a_hand_over_that_comes_late_gives_it_to_one,
          never_answered(PROXY_HOLD_REQUEST))

/* It comes when all is over, and takes nothing for anybody. */
TEST(handover, fault_118_a_hand_over_that_comes_after_all_changes_nothing)
{
    scene s = scene_handing_over(TIMEOUT_MS);
    waiter *w = begin_wait(&s, RLOCK_FOREVER);
    rule(&s, 1, PROXY_HOLD_REQUEST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EVENTUALLY(SOON, levels(s.sv, SCENE_LOCK) == 0);
    proxy_let_go(s.px);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    expect_well(&s);
}

/* --- 119 -------------------------------------------------------------------
 */

typedef struct unlocking {
    scene *s;
    waiter *w;
    void (*end)(scene *s);
} unlocking;

/* On a thread beside that which unlocks. */
static intptr_t interfere(void *arg)
{
    unlocking *u = arg;
    EVENTUALLY(SOON, proxy_fired(u->s->px));
    u->end(u->s);
    EXPECT(!waiter_returned(u->w)); /* it stays until that is resolved */
    proxy_let_go(u->s->px);
    return 0;
}

static void cancel(scene *s)
{
    rlock_cancel(s->lk);
}

static void wait_until_time_is_up(scene *s)
{
    EXPECT_INT(stats_of(s->cl).waiting_now, 1);
    test_pause_ms(WAIT_MS);
}

/* The server has executed it: whatever came meanwhile, it is the waiter's. */
static void granted_though(void (*end)(scene *s), int64_t wait_ms)
{
    scene s = scene_handing_over(PATIENT_MS);
    waiter *w = begin_wait(&s, wait_ms);
    unlocking u = {&s, w, end};
    rule(&s, 1, PROXY_HOLD_REPLY);
    test_thread *t = test_spawn(interfere, &u);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    test_join(t);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_well(&s);
}

TEST_CASE(handover, fault_119_who_is_canceled_during_an_offer_may_own_it,
          granted_though(cancel, RLOCK_FOREVER))
TEST_CASE(handover, fault_119_who_runs_out_of_time_during_an_offer_may_own_it,
          granted_though(wait_until_time_is_up, WAIT_MS))

/* Nobody knows whether the server has: it is undone, also when it comes late.
 */
TEST(handover, fault_119_who_is_canceled_before_an_answer_leaves_nothing)
{
    scene s = scene_handing_over(TIMEOUT_MS);
    waiter *w = begin_wait(&s, RLOCK_FOREVER);
    rule(&s, PROXY_EVERY, PROXY_SWALLOW_REPLY);
    int64_t began_ms = test_now_ms();
    test_thread *t = test_spawn(interfere, &(unlocking){&s, w, cancel});
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    test_join(t);
    EXPECT_STATUS(in_time(waiter_end(w), began_ms, TIMEOUT_MS + SLACK_MS),
                  RLOCK_CANCELED);
    expect_well(&s);
}

static intptr_t acquire(void *lk)
{
    return rlock_lock(lk);
}

static intptr_t free_client(void *cl)
{
    rlock_client_free(cl);
    return 0;
}

/* On a thread beside that which unlocks. */
static intptr_t close_during_offer(void *arg)
{
    scene *s = arg;
    rlock *look = test_lock(s->cl, "look");
    EVENTUALLY(SOON, proxy_fired(s->px));
    test_thread *closer = test_spawn(free_client, s->cl);
    EVENTUALLY(SOON, rlock_trylock(look) == RLOCK_ECLOSED);
    proxy_let_go(s->px);
    test_join(closer);
    rlock_free(look);
    return 0;
}

/* As if it had acquired a moment before. */
TEST(handover, fault_119_whose_client_closes_during_an_offer_may_own_it)
{
    scene s = scene_handing_over(PATIENT_MS);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    test_thread *next = test_spawn(acquire, s.lk);
    waiters_settle(s.sv, 1, s.cl, 1);
    rule(&s, 1, PROXY_HOLD_REPLY);
    test_thread *t = test_spawn(close_during_offer, &s);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    test_join(t);
    EXPECT_STATUS((rlock_status)test_join(next), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    rlock_free(s.lk);
    s.lk = NULL;
    s.cl = NULL;
    scene_stop(&s);
}

/* --- 120 -------------------------------------------------------------------
 */

enum { ROUNDS = 20 };

TEST(handover, fault_120_who_waits_elsewhere_gets_the_lock_that_is_handed_over)
{
    scene s = scene_handing_over(TIMEOUT_MS);
    other_client r = other_client_join(&s, NULL);
    busy b = {.lk = s.lk};
    proxy_forget(s.px);
    busy_start(&b, 200);
    /* The control: by themselves they hand it over, and hardly ever free it, once
       all of them run. */
    EVENTUALLY(SOON, proxy_count(s.px, proxy_sha("release")) <
                         proxy_count(s.px, proxy_sha("handover")));
    for (int i = 0; i < ROUNDS; i++) {
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(in_time(rlock_lock(r.lk), began_ms, WELL_BEFORE_POLL_MS),
                      RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    }
    busy_stop(&b);
    other_client_leave(&r);
    expect_well(&s);
}
