/* Waiting for all members of a Multi lock, and canceling that. */
#include "multi_scene.h"

TEST(multi_waiting, a_wait_ends_when_the_busy_member_is_free)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ca", &t, "b");
    for (size_t i = 0; i < m.n; i++) {
        rlock_client *rival = server_client(m.sv[i], NULL);
        rlock *lk = test_lock(rival, m.name[i]);
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
        asleep(m.sv[i], m.name[i], m.sv[i] == s.sv ? s.cl : t.cl);
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
        EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
        expect_levels(&m, 1);
        waiter_end(w);
        expect_levels(&m, 0);
        rlock_free(lk);
        rlock_client_free(rival);
    }
    multi_scene_end_across(&m, &s, &t);
}

/* Also when the list has it the other way round. */
TEST(multi_waiting,
     who_waits_holds_what_comes_before_and_nothing_that_comes_later)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "dca", &t, "eb");
    take_by_hand(s.sv, "c", 60000);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(s.sv, "c", s.cl);
    EXPECT_INT(levels(s.sv, "a"), 1);
    EXPECT_INT(levels(t.sv, "b"), 1);
    EXPECT_INT(levels(s.sv, "d"), 0);
    EXPECT_INT(levels(t.sv, "e"), 0);
    take_by_hand(t.sv, "e", 60000);
    EXPECT_STATUS(rlock_force_unlock(m.lk[1]), RLOCK_OK);
    asleep(t.sv, "e", t.cl);
    EXPECT_INT(levels(s.sv, "d"), 1);
    rlock_cancel(m.all);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    server_cmd(t.sv, "DEL e");
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_waiting, the_wait_is_one_for_all_members)
{
    scene s = scene_start(0, 200);
    multi_scene m = multi_scene_of(&s, "abc");
    int64_t began_ms = test_now_ms(), at_ms;
    take_by_hand(s.sv, "a", 250);
    take_by_hand(s.sv, "b", 60000);
    waiter *w = waiter_start(m.all, 500, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(at_ms - began_ms, 500, 500 + 200 + 500);
    waiter_end(w);
    EXPECT_INT(levels(s.sv, "a"), 0);
    multi_scene_end(&m, &s);
}

static void cancel_at(multi_scene *m, size_t i, rlock_client *cl)
{
    take_by_hand(m->sv[i], m->name[i], 60000);
    waiter *w = waiter_start(m->all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(m->sv[i], m->name[i], cl);
    rlock_cancel(m->all);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    server_cmd(m->sv[i], "DEL %s", m->name[i]);
    for (size_t k = 0; k < m->n; k++)
        expect_nothing_left(m->sv[k]);
}

TEST(multi_waiting, a_cancel_ends_the_wait_for_any_member)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ca", &t, "db");
    rlock_cancel(m.all); /* nobody waits */
    for (size_t i = 0; i < m.n; i++)
        cancel_at(&m, i, i < 2 ? s.cl : t.cl);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_waiting, a_cancel_is_for_the_handle_it_is_given)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    rlock *other;
    EXPECT_STATUS(rlock_multi_new(m.lk, m.n, &other), RLOCK_OK);
    take_by_hand(s.sv, "a", 60000);
    waiter *single = waiter_start(m.lk[0], RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiter *w2 = waiter_start(other, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(10000, stats_of(s.cl).waiting_now == 3);
    rlock_cancel(m.all);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EXPECT_INT(stats_of(s.cl).waiting_now, 2);
    EXPECT(!waiter_returned(single) && !waiter_returned(w2));
    rlock_cancel(m.lk[0]);
    EXPECT_STATUS(waiter_end(single), RLOCK_CANCELED);
    EXPECT_INT(stats_of(s.cl).waiting_now, 1);
    EXPECT(!waiter_returned(w2));
    rlock_cancel(other);
    EXPECT_STATUS(waiter_end(w2), RLOCK_CANCELED);
    rlock_free(other);
    multi_scene_end(&m, &s);
}

/*
 * One cancel, at any moment since the wait began: while the waiter sleeps, or
 * goes on from the first member to the second, which it never gets.
 */
TEST(multi_waiting, one_cancel_at_any_moment_ends_the_wait)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    rlock_client *rival = server_client(s.sv, NULL);
    rlock *a = test_lock(rival, "a"), *b = test_lock(rival, "b");
    EXPECT_STATUS(rlock_lock(b), RLOCK_OK);
    for (int i = 0; i < (SANITIZED ? 60 : 200); i++) {
        EXPECT_STATUS(rlock_lock(a), RLOCK_OK);
        int waits = events_count(s.ev, RLOCK_EVENT_CONTENDED);
        waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
        events_wait(s.ev, RLOCK_EVENT_CONTENDED, waits + 1, 10000);
        EXPECT_STATUS(rlock_unlock(a), RLOCK_OK);
        int64_t until_us = test_now_us() + rand() % 1500;
        while (test_now_us() < until_us)
            ;
        rlock_cancel(m.all);
        EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
        EXPECT_INT(levels(s.sv, "a"), 0);
    }
    EXPECT_STATUS(rlock_unlock(b), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_free(a);
    rlock_free(b);
    rlock_client_free(rival);
    multi_scene_end(&m, &s);
}

/* Lets a reply go when it has taken so long, and notes when that was. */
typedef struct delay {
    proxy *px;
    int ms;
    int64_t over_us;
} delay;

static intptr_t wait_and_let_go(void *arg)
{
    delay *d = arg;
    EVENTUALLY(SOON, proxy_fired(d->px));
    test_pause_ms(d->ms);
    d->over_us = test_now_us();
    proxy_let_go(d->px);
    return 0;
}

/*
 * The one that is rung cannot come, as its connections are frozen. Whoever
 * released gives it as long as the release took, but no more than 20 ms, and
 * takes the lock only then. Load makes that longer, never shorter.
 */
static void expect_way_made(scene *s, proxy *px, rlock_client *cl, rlock *mine,
                            rlock *theirs, const char *script)
{
    delay d = {.px = s->px, .ms = 50};
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(s->sv, "a", cl);
    proxy_freeze(px, true);
    proxy_rule(s->px, proxy_sha(script), 1, PROXY_HOLD_REPLY, NULL);
    test_thread *t = test_spawn(wait_and_let_go, &d);
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(mine, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    int64_t taken_us = test_now_us();
    test_join(t);
    EXPECT(taken_us - d.over_us >= 20000);
    proxy_freeze(px, false);
    EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
}

/* Takes it and gives it back until the other one has it. */
static void expect_handed_over(server *sv, rlock_client *cl, rlock *mine,
                               rlock *theirs)
{
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(sv, "a", cl);
    do
        EXPECT_STATUS(rlock_unlock(mine), RLOCK_OK);
    while (rlock_acquire(mine, 300, RLOCK_WATCHDOG) == RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    waiter_end(w);
}

/* Whoever releases makes way for the client that it has woken. */
TEST(multi_waiting, who_takes_it_again_and_again_keeps_nobody_waiting)
{
    scene s = scene_proxied(0, 0);
    proxy *px = proxy_start(s.sv);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = proxy_uri(px);
    rlock_client *cl = server_client(s.sv, &opts);
    multi_scene mine = multi_scene_of(&s, "ab"),
                theirs = multi_scene_of_client(s.sv, cl, "ab");
    expect_way_made(&s, px, cl, mine.lk[0], theirs.lk[0], "release");
    expect_way_made(&s, px, cl, mine.all, theirs.all, "free_many");
    for (int i = 0; i < 5; i++)
        expect_handed_over(s.sv, cl, mine.all, theirs.all);
    multi_scene_free(&mine);
    multi_scene_free(&theirs);
    rlock_client_free(cl);
    proxy_stop(px);
    scene_stop(&s);
}
