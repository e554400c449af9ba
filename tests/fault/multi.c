/*
 * Multi locks when a member fails, at acquire and at unlock: row 45 of the
 * catalogue, and what other libraries got wrong.
 */
#include "multi_scene.h"

/* What a fault disturbs, without it. */
static void expect_undisturbed_set(const multi_scene *m)
{
    EXPECT_STATUS(rlock_lock(m->all), RLOCK_OK);
    EXPECT(multi_scene_all_at(m, 1));
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_OK);
    EXPECT(multi_scene_all_at(m, 0));
}

/* --- the k-th fails ------------------------------------------------------ */

/* A key of another type, on each of two servers and at each position. */
TEST(multi, fault_045_the_others_are_undone_whichever_fails)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ca", &t, "db");
    expect_undisturbed_set(&m);
    for (size_t i = 0; i < m.n; i++) {
        server_cmd(m.sv[i], "SET %s x", m.name[i]);
        for (int wait_ms = 0; wait_ms <= 5000; wait_ms += 5000) {
            EXPECT_STATUS(rlock_acquire(m.all, wait_ms, RLOCK_WATCHDOG),
                          RLOCK_EWRONGTYPE);
            expect_blame(i + 1);
        }
        EXPECT_STR(server_str(m.sv[i], "GET %s", m.name[i]), "x");
        server_cmd(m.sv[i], "DEL %s", m.name[i]);
        expect_nothing_left(s.sv);
        expect_nothing_left(t.sv);
    }
    multi_scene_end_across(&m, &s, &t);
}

/*
 * A client whose user may be denied a key: an answer that stays the same when
 * it is asked again.
 */
static scene scene_with_user(bool proxied)
{
    static char uri[256];
    scene s = scene_server(NULL);
    proxy *px = proxied ? proxy_start(s.sv) : NULL;
    server_cmd(s.sv, "ACL SETUSER guest on >secret ~* &* +@all");
    snprintf(uri, sizeof uri, "unix://guest:secret@%s",
             px ? proxy_path(px) : server_path(s.sv));
    s.opts.uri = uri;
    scene_client(&s, 0, 0);
    s.px = px;
    return s;
}

/* Of five, by position; 0: none. */
static void deny(server *sv, int k)
{
    const char *allowed[] = {"[abcde]", "[bcde]", "[acde]",
                             "[abde]",  "[abce]", "[abcd]"};
    EXPECT_STR(server_str(sv, "ACL SETUSER guest resetkeys ~%s ~*{%s}*",
                          allowed[k], allowed[k]),
               "OK");
}

TEST(multi, fault_045_an_error_reply_to_the_kth_undoes_the_others)
{
    scene s = scene_with_user(false);
    multi_scene m = multi_scene_of(&s, "abcde");
    expect_undisturbed_set(&m);
    for (int k = 1; k <= 5; k++) {
        deny(s.sv, k);
        for (int wait_ms = 0; wait_ms <= 5000; wait_ms += 5000) {
            EXPECT_STATUS(rlock_acquire(m.all, wait_ms, RLOCK_WATCHDOG),
                          RLOCK_ESERVER);
            expect_blame((size_t)k);
            expect_nothing_left(s.sv);
        }
    }
    deny(s.sv, 0);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end(&m, &s);
}

/* The fault passes; all is well then. */
TEST(multi, fault_045_a_passing_error_at_the_kth_is_asked_again)
{
    scene s = scene_proxied(0, 0);
    multi_scene m = multi_scene_of(&s, "abcde");
    expect_undisturbed_set(&m);
    const char *loading = "-LOADING Redis is loading the dataset in memory\r\n";
    proxy_rule(s.px, proxy_sha("take_many"), 1, PROXY_ANSWER, loading);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 1));
    for (int k = 1; k <= (int)m.n; k++) {
        proxy_rule(s.px, proxy_sha("acquire"), k, PROXY_ANSWER, loading);
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
        EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 2));
        proxy_rule(s.px, proxy_sha("release"), k, PROXY_ANSWER, loading);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        EXPECT(proxy_fired(s.px) && multi_scene_all_at(&m, 1));
    }
    proxy_rule(s.px, proxy_sha("free_many"), 1, PROXY_ANSWER, loading);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* What cannot be undone at once is undone later, the rest at once. */
TEST(multi, fault_045_an_undo_that_fails_stops_no_other)
{
    scene s = scene_with_user(true);
    multi_scene m = multi_scene_of(&s, "eabcd");
    expect_undisturbed_set(&m);
    server_cmd(s.sv, "HSET e other 1");
    for (int k = 1; k <= 4; k++) {
        waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(5000,
                   multi_scene_is_at(&m, 4, 1)); /* the last but the busy one */
        deny(s.sv, k);
        rlock_cancel(m.all);
        EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED); /* not of the undo */
        for (int i = 1; i <= 4; i++)
            EXPECT(multi_scene_is_at(&m, (size_t)i, i == k));
        deny(s.sv, 0);
        EVENTUALLY(20000, multi_scene_is_at(&m, (size_t)k, 0));
    }
    server_cmd(s.sv, "DEL e");
    expect_all_undone(s.sv);
    multi_scene_end(&m, &s);
}

TEST(multi, fault_045_a_server_that_is_down_undoes_what_the_other_gave)
{
    scene s = scene_start(0, 300), t = scene_start(0, 300);
    multi_scene m = multi_scene_across(&s, "ac", &t, "b");
    expect_undisturbed_set(&m);
    server_kill(t.sv);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_EIO);
    expect_blame(3);
    EXPECT_INT(levels(s.sv, "a"), 0);
    EXPECT_INT(levels(s.sv, "c"), 0);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_acquire(m.all, 300, 0), began_ms, 300 + 300),
                  RLOCK_EIO);
    EXPECT_INT(levels(s.sv, "a"), 0);
    EXPECT_INT(levels(s.sv, "c"), 0);
    server_restart(t.sv);
    EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_all_undone(s.sv);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi, fault_045_a_server_without_memory_undoes_what_the_other_gave)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    expect_undisturbed_set(&m);
    server_cmd(t.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_ESERVER);
    expect_blame(2);
    EXPECT_CONTAINS(rlock_last_error()->message, "OOM");
    expect_nothing_left(s.sv);
    server_cmd(t.sv, "CONFIG SET maxmemory 0");
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    server_cmd(t.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi, fault_045_a_closed_client_undoes_what_the_other_gave)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ac", &t, "b");
    expect_undisturbed_set(&m);
    scene_free_client(&t);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_ECLOSED);
    expect_blame(3);
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_acquire(m.all, 1000, RLOCK_WATCHDOG), RLOCK_ECLOSED);
    expect_nothing_left(s.sv);
    multi_scene_end_across(&m, &s, &t);
}

/* A member that the thread had and lost cannot be entered again. */
TEST(multi, fault_045_a_member_that_was_lost_before_undoes_the_others)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    expect_undisturbed_set(&m);
    EXPECT_STATUS(rlock_lock(m.lk[1]), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_LOST);
    expect_blame(2);
    EXPECT_STATUS(rlock_acquire(m.all, 1000, RLOCK_WATCHDOG), RLOCK_LOST);
    expect_blame(2);
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_LOST);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end(&m, &s);
}

/* What is waited for is had, but meanwhile another member was lost. */
TEST(multi, fault_045_a_member_that_is_lost_during_the_wait_is_taken_again)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ba");
    expect_undisturbed_set(&m);
    take_by_hand(s.sv, "b", 60000);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(s.sv, "b", s.cl);
    server_cmd(s.sv, "DEL a");
    EVENTUALLY(10000, stats_of(s.cl).lost == 1);
    EXPECT_STATUS(rlock_force_unlock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT(multi_scene_all_at(&m, 1));
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT(multi_scene_all_at(&m, 0));
    multi_scene_end_with_losses(&m, &s, 0);
}

/* Takes b itself, then waits for a and the rest; returns what came of it. */
typedef struct nested {
    rlock *own, *all;
    rlock_status status, at_unlock;
    bool held;
    char message[256];
} nested;

static intptr_t hold_one_and_wait(void *arg)
{
    nested *n = arg;
    EXPECT_STATUS(rlock_lock(n->own), RLOCK_OK);
    n->status = rlock_acquire(n->all, 20000, RLOCK_WATCHDOG);
    snprintf(n->message, sizeof n->message, "%s", rlock_last_error()->message);
    n->held = rlock_is_held(n->all);
    if (n->status == RLOCK_OK)
        rlock_unlock(n->all);
    n->at_unlock = rlock_unlock(n->own);
    return 0;
}

/* The same, of one that the thread held before. */
TEST(multi, fault_045_a_member_held_before_and_lost_during_the_wait_fails_it)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ba");
    expect_undisturbed_set(&m);
    nested n = {.own = m.lk[1], .all = m.all};
    take_by_hand(s.sv, "b", 60000);
    test_thread *t = test_spawn(hold_one_and_wait, &n);
    asleep(s.sv, "b", s.cl);
    EXPECT_INT(levels(s.sv, "a"), 2);
    server_cmd(s.sv, "DEL a");
    EVENTUALLY(10000, stats_of(s.cl).lost == 1);
    EXPECT_STATUS(rlock_force_unlock(m.lk[0]), RLOCK_OK);
    test_join(t);
    EXPECT(!n.held);
    EXPECT_STATUS(n.status, RLOCK_LOST);
    EXPECT_STATUS(n.at_unlock, RLOCK_LOST);
    EXPECT(multi_scene_all_at(&m, 0));
    multi_scene_end(&m, &s);
}

/* It names the member as every failure does. */
static intptr_t acquire_all(void *all)
{
    rlock_status s = rlock_acquire(all, 3000, 200);
    expect_blame_of(2, "a");
    return s;
}

/* Another one has it by then. */
TEST(multi, fault_045_the_member_that_was_lost_during_the_wait_is_named)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ba");
    expect_undisturbed_set(&m);
    take_by_hand(s.sv, "b", 60000);
    test_thread *t = test_spawn(acquire_all, m.all);
    asleep(s.sv, "b", s.cl);
    server_cmd(s.sv, "DEL a");
    take_by_hand(s.sv, "a", 60000);
    EVENTUALLY(10000, stats_of(s.cl).lost == 1);
    EXPECT_STATUS(rlock_force_unlock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_force_unlock(m.lk[1]), RLOCK_OK);
    EXPECT(multi_scene_all_at(&m, 0));
    multi_scene_end(&m, &s);
}

/* The lease that was asked for begins when all members are held. */
TEST(multi, a_lease_does_not_run_out_during_the_wait)
{
    scene s = scene_start(6000, 0);
    multi_scene m = multi_scene_of(&s, "ba");
    take_by_hand(s.sv, "b", 1500);
    EXPECT_STATUS(rlock_acquire(m.all, 20000, 1000), RLOCK_OK);
    EXPECT(rlock_valid_ms(m.all) > 800);
    EXPECT(rlock_valid_ms(m.all) <= 1000);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(multi_scene_all_at(&m, 0));
    multi_scene_end(&m, &s);
}

/* --- unlock -------------------------------------------------------------- */

/* Redisson #4050: the first failing unlock left the others locked. */
TEST(multi, fault_045_an_unlock_that_fails_stops_no_other)
{
    scene s = scene_with_user(false);
    multi_scene m = multi_scene_of(&s, "abcde");
    expect_undisturbed_set(&m);
    for (int k = 1; k <= 5; k++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        deny(s.sv, k);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ESERVER);
        expect_blame((size_t)k);
        for (int i = 1; i <= 5; i++)
            EXPECT(multi_scene_is_at(&m, (size_t)i - 1, i == k));
        EXPECT(!rlock_is_held(m.all));
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
        deny(s.sv, 0);
        EVENTUALLY(20000, multi_scene_all_at(&m, 0));
    }
    expect_all_undone(s.sv);
    multi_scene_end(&m, &s);
}

TEST(multi, unlock_releases_the_others_when_a_server_is_down)
{
    scene s = scene_start(0, 300), t = scene_start(0, 300);
    multi_scene m = multi_scene_across(&s, "b", &t, "ac");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_kill(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_unlock(m.all), began_ms, 2 * 300), RLOCK_EIO);
    expect_blame(1);
    EXPECT_INT(levels(t.sv, "a"), 0);
    EXPECT_INT(levels(t.sv, "c"), 0);
    multi_scene_end_across(&m, &s, &t);
}

/* The other answers, but takes its time: 80 ms. */
static void unlock_beside_a_hanging_one(const char *hanging, const char *other)
{
    scene s = scene_start(0, 300), t = scene_proxied(0, 300);
    multi_scene m = multi_scene_across(&s, hanging, &t, other);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_pause(s.sv);
    for (int i = 1; i >= 0; i--) {
        int64_t began_ms = test_now_ms();
        proxy_rule(t.px, proxy_sha("release"), 1, PROXY_DRIP_REPLY, NULL);
        EXPECT_STATUS(in_time(rlock_unlock(m.all), began_ms, 2 * 300),
                      RLOCK_EIO);
        expect_blame(1);
        EXPECT_INT(levels(t.sv, other), i);
    }
    EXPECT_INT(stats_of(t.cl).releases, 2); /* and it is known */
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    server_resume(s.sv);
    EVENTUALLY(10000, multi_scene_all_at(&m, 0));
    multi_scene_end_across(&m, &s, &t);
}

TEST_CASE(multi, unlock_releases_the_others_before_it_meets_a_hanging_server,
          unlock_beside_a_hanging_one("b", "a"))
TEST_CASE(multi, unlock_releases_the_others_after_it_met_a_hanging_server,
          unlock_beside_a_hanging_one("a", "b"))

TEST(multi, unlock_releases_the_others_when_a_client_is_closed)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    scene_free_client(&s);
    EXPECT(!rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ECLOSED);
    expect_blame(1);
    expect_nothing_left(t.sv);
    EVENTUALLY(5000, levels(s.sv, "a") == 0); /* by its lease */
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi, unlock_touches_no_lock_that_another_owner_has_meanwhile)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    take_by_hand(s.sv, "b", 60000);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, "a"), 0);
    EXPECT_INT(levels(s.sv, "b"), 1);
    EXPECT_INT(levels(s.sv, "c"), 0);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL b"), 30000, 60000);
    multi_scene_end(&m, &s);
}

/* Redisson #4456: leases were prolonged whoever held the lock. */
TEST(multi, extend_touches_no_lock_that_another_owner_has_meanwhile)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    take_by_hand(s.sv, "b", 60000);
    EXPECT_STATUS(rlock_extend(m.all, 120000), RLOCK_LOST);
    expect_blame(2);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL b"), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, "b"), 1);
    multi_scene_end(&m, &s);
}
