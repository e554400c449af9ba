/*
 * The rules of correctness that the library is built on, by their numbers.
 * Rule 9 (fork) and rule 10 (the order of mutexes) are not tested here.
 */
#include <stdatomic.h>

#include "scene.h"

/* --- 1. no mutex across I/O, callbacks, waits ---------------------------- */

typedef struct talker {
    rlock *lk, *other;
    rlock_client *cl;
    atomic_int called[RLOCK_EVENT_FAILOVER + 1];
} talker;

/* A callback may still run while the client is being freed. */
static bool worked(rlock_status status)
{
    if (status != RLOCK_ECLOSED)
        EXPECT_STATUS(status, RLOCK_OK);
    return status == RLOCK_OK;
}

/* Calls what takes every mutex of the library. */
static void talk(const rlock_event *ev, void *arg)
{
    talker *t = arg;
    int before = atomic_fetch_add(&t->called[ev->type], 1);
    rlock_stats st;
    bool locked;
    if (!t->lk || before > 0)
        return;
    EXPECT_STATUS(rlock_client_stats(t->cl, &st, sizeof st), RLOCK_OK);
    worked(rlock_is_locked(t->lk, &locked));
    rlock_is_held(t->lk);
    rlock_cancel(t->lk);
    if (worked(rlock_acquire(t->other, 5000, 5000)))
        worked(rlock_unlock(t->other));
}

TEST(rules, rule_01_callbacks_may_call_the_library)
{
    talker t = {0};
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    opts.on_event = talk;
    opts.event_arg = &t;
    t.cl = server_client(s.sv, &opts);
    t.other = test_lock(t.cl, "other");
    rlock *lk = test_lock(t.cl, SCENE_LOCK);
    t.lk = lk;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(10000, atomic_load(&t.called[RLOCK_EVENT_RENEWED]) > 1);
    waiter *w = waiter_start(lk, 50, RLOCK_WATCHDOG);
    rlock_status status = waiter_end(w); /* the callback may cancel it */
    EXPECT(status == RLOCK_TIMEOUT || status == RLOCK_CANCELED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(lk, 0, 100), RLOCK_OK);
    EVENTUALLY(10000, atomic_load(&t.called[RLOCK_EVENT_LOST]) == 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    EXPECT(atomic_load(&t.called[RLOCK_EVENT_ACQUIRED]) > 1);
    EXPECT(atomic_load(&t.called[RLOCK_EVENT_RELEASED]) > 1);
    EXPECT(atomic_load(&t.called[RLOCK_EVENT_CONTENDED]) > 0);
    rlock_client_free(t.cl); /* no callback after that */
    rlock_free(lk);
    rlock_free(t.other);
    scene_stop(&s);
}

typedef struct gate {
    atomic_bool entered, open;
} gate;

static void stay_inside(const rlock_event *ev, void *arg)
{
    gate *g = arg;
    if (ev->type != RLOCK_EVENT_RENEWED)
        return;
    atomic_store(&g->entered, true);
    while (!atomic_load(&g->open))
        test_pause_ms(1);
}

TEST(rules, rule_01_a_callback_that_hangs_delays_no_renewal)
{
    gate g = {0};
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    opts.on_event = stay_inside;
    opts.event_arg = &g;
    rlock_client *cl = server_client(s.sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(10000, atomic_load(&g.entered));
    uint64_t before = stats_of(cl).renewals;
    EVENTUALLY(10000, stats_of(cl).renewals >= before + 5);
    EXPECT(rlock_is_held(lk));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    atomic_store(&g.open, true);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    scene_stop(&s);
}

/* One call hangs in the network; all others go on. */
TEST(rules, rule_01_a_call_that_hangs_stops_no_other)
{
    scene s = scene_proxied(BRISK_MS, 20000);
    rlock *other = test_lock(s.cl, "other");
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, proxy_fired(s.px));
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_RENEWED, 2, 5000);
    EXPECT(rlock_is_held(other));
    rlock_cancel(s.lk); /* does not wait for it either */
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    EXPECT(!waiter_returned(w));
    proxy_let_go(s.px);
    waiter_end(w);
    rlock_free(other);
    scene_stop(&s);
}

/* --- 2. yes, a definite no, unknown -------------------------------------- */

TEST(rules, rule_02_a_definite_no_is_reported_and_nothing_is_undone)
{
    scene s = scene_proxied(0, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER,
               "-OOM command not allowed when used memory > 'maxmemory'.\r\n");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "OOM");
    scene_free_client(&s);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 1);
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 0);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(rules, rule_02_a_definite_no_that_passes_is_asked_again)
{
    scene s = scene_proxied(0, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER,
               "-LOADING Redis is loading the dataset in memory\r\n");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv); /* no tombstone: nothing was in doubt */
    scene_stop(&s);
}

TEST(rules, rule_02_an_unknown_acquire_is_asked_again_and_counted_once)
{
    scene s = scene_proxied(0, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_INT(server_int(s.sv, "HLEN %s", SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(rules, rule_02_an_unknown_acquire_without_an_answer_is_undone)
{
    scene s = scene_proxied(0, 1000);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    EXPECT_INT(server_cmd(s.sv, "KEYS rlock_undone:*")->elements, 1);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(rules, rule_02_an_acquire_that_was_undone_may_arrive_later)
{
    scene s = scene_proxied(0, 1000);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EVENTUALLY(5000, server_cmd(s.sv, "KEYS rlock_undone:*")->elements == 1);
    proxy_let_go(s.px);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

TEST(rules, rule_02_undoing_goes_on_until_the_server_is_back)
{
    scene s = scene_proxied(0, 1000);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_SWALLOW_REPLY, NULL);
    waiter *w = waiter_start(s.lk, 0, RLOCK_WATCHDOG);
    EVENTUALLY(5000, proxy_fired(s.px));
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EXPECT_STATUS(waiter_end(w), RLOCK_EIO);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    proxy_refuse(s.px, false);
    EVENTUALLY(10000, levels(s.sv, SCENE_LOCK) == 0);
    scene_stop(&s);
}

/* --- 3. local state changes after a definite reply ----------------------- */

TEST(rules, rule_03_a_reentry_without_an_answer_is_no_level)
{
    scene s = scene_proxied(0, 1000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_EIO);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(rules, rule_03_an_unlock_undoes_its_level_whatever_is_answered)
{
    scene s = scene_proxied(0, 1000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    EXPECT_INT(rlock_hold_count(s.lk), 1);
    EXPECT(rlock_is_held(s.lk));
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_ANSWER,
               "-ERR something\r\n");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_ESERVER);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    EVENTUALLY(5000, levels(s.sv, SCENE_LOCK) == 0);
    scene_stop(&s);
}

TEST(rules, rule_03_an_extend_without_an_answer_relies_on_the_shorter_lease)
{
    scene s = scene_proxied(0, 1000);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 20000), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_EIO);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 20000);
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, 10000), RLOCK_EIO);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 10000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- 4. past the deadline it is lost ------------------------------------- */

TEST(rules, rule_04_past_its_deadline_it_is_lost_whatever_the_server_has)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 300), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "PEXPIRE %s 60000", SCENE_LOCK), 1);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(rlock_valid_ms(s.lk), 0);
    EXPECT_INT(rlock_token(s.lk), 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_extend(s.lk, 10000), RLOCK_LOST);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* Holder id of the lock as stored. */
static char *holder_of(server *sv, const char *name)
{
    redisReply *r = server_cmd(sv, "HKEYS %s", name);
    EXPECT_INT(r->elements, 1);
    return strdup(r->element[0]->str);
}

/* The client of a hold that was lost renews others, but never that one. */
TEST(rules, rule_04_no_renewal_is_sent_after_the_deadline)
{
    scene s = scene_proxied(BRISK_MS, 200);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    char *holder = holder_of(s.sv, SCENE_LOCK);
    server_cmd(s.sv, "PEXPIRE %s 60000", SCENE_LOCK);
    server_pause(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    int sent = proxy_count(s.px, holder);
    server_resume(s.sv);
    EVENTUALLY(10000, rlock_acquire(other, 1000, 0) == RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_RENEWED,
                events_count(s.ev, RLOCK_EVENT_RENEWED) + 2, 10000);
    EXPECT_INT(proxy_count(s.px, holder), sent);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    free(holder);
    rlock_free(other);
    scene_stop(&s);
}

/* The answer comes 300 ms late; returns when it was on its way. */
static int64_t answer_late(scene *s)
{
    EVENTUALLY(10000, proxy_fired(s->px));
    int64_t asked_ms = test_now_ms();
    test_pause_ms(300);
    proxy_let_go(s->px);
    return asked_ms;
}

static intptr_t late_lock(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    int64_t until_ms = test_now_ms() + rlock_valid_ms(arg);
    EXPECT_STATUS(rlock_unlock(arg), RLOCK_OK);
    return (intptr_t)until_ms;
}

TEST(rules, rule_04_a_lease_counts_from_when_it_was_asked_for)
{
    scene s = scene_proxied(6000, 0);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    test_thread *t = test_spawn(late_lock, s.lk);
    int64_t asked_ms = answer_late(&s);
    EXPECT_BETWEEN(test_join(t) - asked_ms, 0, 6000);
    EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REPLY, NULL);
    asked_ms = answer_late(&s);
    events_wait(s.ev, RLOCK_EVENT_RENEWED, 1, 10000);
    int64_t until_ms = test_now_ms() + rlock_valid_ms(s.lk);
    if (stats_of(s.cl).renew_failures == 0)
        EXPECT_BETWEEN(until_ms - asked_ms, 0, 6000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(rules, rule_04_three_renewals_are_tried_before_the_deadline)
{
    scene s = scene_start(1800, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_pause(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT(stats_of(s.cl).renew_failures >= 3);
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}
