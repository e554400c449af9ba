/*
 * Multi locks when members, servers and answers fail: row 45 of the catalogue,
 * and what other libraries got wrong.
 */
#include <signal.h>

#include "set.h"

/* Hold counts of all, each is the wanted one. */
static bool all_at(const set *m, int wanted)
{
    for (size_t i = 0; i < m->n; i++)
        if (levels(m->sv[i], m->name[i]) != wanted)
            return false;
    return true;
}

static bool is_at(const set *m, size_t i, int wanted)
{
    return levels(m->sv[i], m->name[i]) == wanted;
}

static rlock_status in_time(rlock_status status, int64_t began_ms,
                            int64_t limit_ms)
{
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, limit_ms + SLACK_MS);
    return status;
}

/* What a fault disturbs, without it. */
static void expect_undisturbed_set(const set *m)
{
    EXPECT_STATUS(rlock_lock(m->all), RLOCK_OK);
    EXPECT(all_at(m, 1));
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_OK);
    EXPECT(all_at(m, 0));
}

/* --- the k-th fails ------------------------------------------------------ */

/* A key of another type, on each of two servers and at each position. */
TEST(multi, fault_045_the_others_are_undone_whichever_fails)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "ca", &t, "db");
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
    set_end_across(&m, &s, &t);
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
    set m = set_of(&s, "abcde");
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
    set_end(&m, &s);
}

/* The fault passes; all is well then. */
TEST(multi, fault_045_a_passing_error_at_the_kth_is_asked_again)
{
    scene s = scene_proxied(0, 0);
    set m = set_of(&s, "abcde");
    expect_undisturbed_set(&m);
    for (int k = 1; k <= (int)m.n; k++) {
        proxy_rule(s.px, proxy_sha("acquire"), k, PROXY_ANSWER,
                   "-LOADING Redis is loading the dataset in memory\r\n");
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
        EXPECT(all_at(&m, 1));
        proxy_rule(s.px, proxy_sha("release"), k, PROXY_ANSWER,
                   "-LOADING Redis is loading the dataset in memory\r\n");
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        expect_nothing_left(s.sv);
    }
    set_end(&m, &s);
}

/* What cannot be undone at once is undone later, the rest at once. */
TEST(multi, fault_045_an_undo_that_fails_stops_no_other)
{
    scene s = scene_with_user(true);
    set m = set_of(&s, "eabcd");
    expect_undisturbed_set(&m);
    server_cmd(s.sv, "HSET e other 1");
    for (int k = 1; k <= 4; k++) {
        int asked = proxy_count(s.px, proxy_sha("acquire"));
        proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
        waiter *w = waiter_start(m.all, 0, RLOCK_WATCHDOG);
        EVENTUALLY(5000, proxy_fired(s.px));
        EVENTUALLY(5000, proxy_count(s.px, proxy_sha("acquire")) == asked + 5);
        EVENTUALLY(5000, is_at(&m, 4, 1)); /* the last but the busy one */
        deny(s.sv, k);
        proxy_let_go(s.px);
        EXPECT_STATUS(waiter_end(w), RLOCK_BUSY); /* of e, not of the undo */
        for (int i = 1; i <= 4; i++)
            EXPECT(is_at(&m, (size_t)i, i == k));
        deny(s.sv, 0);
        EVENTUALLY(20000, is_at(&m, (size_t)k, 0));
    }
    server_cmd(s.sv, "DEL e");
    expect_all_undone(s.sv);
    set_end(&m, &s);
}

TEST(multi, fault_045_a_server_that_is_down_undoes_what_the_other_gave)
{
    scene s = scene_start(0, 300), t = scene_start(0, 300);
    set m = set_across(&s, "ac", &t, "b");
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
    set_end_across(&m, &s, &t);
}

TEST(multi, fault_045_a_server_without_memory_undoes_what_the_other_gave)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "a", &t, "b");
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
    set_end_across(&m, &s, &t);
}

TEST(multi, fault_045_a_closed_client_undoes_what_the_other_gave)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "ac", &t, "b");
    expect_undisturbed_set(&m);
    scene_free_client(&t);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_ECLOSED);
    expect_blame(3);
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_acquire(m.all, 1000, RLOCK_WATCHDOG), RLOCK_ECLOSED);
    expect_nothing_left(s.sv);
    set_end_across(&m, &s, &t);
}

/* A member that the thread had and lost cannot be entered again. */
TEST(multi, fault_045_a_member_that_was_lost_before_undoes_the_others)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "abc");
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
    set_end(&m, &s);
}

/* What is waited for is had, but meanwhile another member was lost. */
TEST(multi, fault_045_a_member_that_is_lost_during_the_wait_fails_it)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "ba");
    expect_undisturbed_set(&m);
    take_by_hand(s.sv, "b", 60000);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(s.sv, "b", s.cl);
    server_cmd(s.sv, "DEL a");
    EVENTUALLY(10000, stats_of(s.cl).lost == 1);
    EXPECT_STATUS(rlock_force_unlock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_LOST);
    EXPECT(all_at(&m, 0));
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_end_with_losses(&m, &s, 1);
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
    scene s = scene_start(300, 0);
    set m = set_of(&s, "ba");
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
    EXPECT(all_at(&m, 0));
    set_end(&m, &s);
}

/* It names the member as every failure does. */
TEST(multi, fault_045_the_member_that_was_lost_during_the_wait_is_named)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "ba");
    expect_undisturbed_set(&m);
    take_by_hand(s.sv, "b", 500);
    EXPECT_STATUS(rlock_acquire(m.all, 20000, 200), RLOCK_LOST);
    EXPECT(all_at(&m, 0));
    expect_blame(2);
    EXPECT_CONTAINS(rlock_last_error()->message, "'a'");
    set_end(&m, &s);
}

/* --- unlock -------------------------------------------------------------- */

/* Redisson #4050: the first failing unlock left the others locked. */
TEST(multi, fault_045_an_unlock_that_fails_stops_no_other)
{
    scene s = scene_with_user(false);
    set m = set_of(&s, "abcde");
    expect_undisturbed_set(&m);
    for (int k = 1; k <= 5; k++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        deny(s.sv, k);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ESERVER);
        expect_blame((size_t)k);
        for (int i = 1; i <= 5; i++)
            EXPECT(is_at(&m, (size_t)i - 1, i == k));
        EXPECT(!rlock_is_held(m.all));
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
        deny(s.sv, 0);
        EVENTUALLY(20000, all_at(&m, 0));
    }
    expect_all_undone(s.sv);
    set_end(&m, &s);
}

TEST(multi, unlock_releases_the_others_when_a_server_is_down)
{
    scene s = scene_start(0, 300), t = scene_start(0, 300);
    set m = set_across(&s, "b", &t, "ac");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_kill(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_unlock(m.all), began_ms, 2 * 300), RLOCK_EIO);
    expect_blame(1);
    EXPECT_INT(levels(t.sv, "a"), 0);
    EXPECT_INT(levels(t.sv, "c"), 0);
    set_end_across(&m, &s, &t);
}

/* The other answers, but takes its time: 80 ms. */
static void unlock_beside_a_hanging_one(const char *hanging, const char *other)
{
    scene s = scene_start(0, 300), t = scene_proxied(0, 300);
    set m = set_across(&s, hanging, &t, other);
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
    EVENTUALLY(10000, all_at(&m, 0));
    set_end_across(&m, &s, &t);
}

TEST_CASE(multi, unlock_releases_the_others_before_it_meets_a_hanging_server,
          unlock_beside_a_hanging_one("b", "a"))
TEST_CASE(multi, unlock_releases_the_others_after_it_met_a_hanging_server,
          unlock_beside_a_hanging_one("a", "b"))

TEST(multi, unlock_releases_the_others_when_a_client_is_closed)
{
    scene s = scene_start(300, 0), t = scene_start(300, 0);
    set m = set_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    scene_free_client(&s);
    EXPECT(!rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ECLOSED);
    expect_blame(1);
    expect_nothing_left(t.sv);
    EVENTUALLY(5000, levels(s.sv, "a") == 0); /* by its lease */
    set_end_across(&m, &s, &t);
}

TEST(multi, unlock_touches_no_lock_that_another_owner_has_meanwhile)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    take_by_hand(s.sv, "b", 60000);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, "a"), 0);
    EXPECT_INT(levels(s.sv, "b"), 1);
    EXPECT_INT(levels(s.sv, "c"), 0);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL b"), 30000, 60000);
    set_end(&m, &s);
}

/* Redisson #4456: leases were prolonged whoever held the lock. */
TEST(multi, extend_touches_no_lock_that_another_owner_has_meanwhile)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    take_by_hand(s.sv, "b", 60000);
    EXPECT_STATUS(rlock_extend(m.all, 120000), RLOCK_LOST);
    expect_blame(2);
    EXPECT_BETWEEN(server_int(s.sv, "PTTL b"), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, "b"), 1);
    set_end(&m, &s);
}

/* --- lost answers -------------------------------------------------------- */

/* The reply to the k-th is lost with its connection, and asked for again. */
static void answers_lost(proxy_action action)
{
    scene s = scene_proxied(0, 0);
    set m = set_of(&s, "abcde");
    for (int k = 1; k <= 5; k++) {
        for (int level = 1; level <= 2; level++) {
            proxy_rule(s.px, proxy_sha("acquire"), k, action, NULL);
            EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
            EXPECT(proxy_fired(s.px));
            EXPECT(all_at(&m, level));
            EXPECT_INT(rlock_hold_count(m.all), level);
        }
        proxy_rule(s.px, proxy_sha("extend"), k, action, NULL);
        EXPECT_STATUS(rlock_extend(m.all, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT(proxy_fired(s.px));
        for (int level = 1; level >= 0; level--) {
            proxy_rule(s.px, proxy_sha("release"), k, action, NULL);
            EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
            EXPECT(proxy_fired(s.px));
            EXPECT(all_at(&m, level));
        }
    }
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    set_end_undone(&m, &s);
}

TEST_CASE(multi, a_connection_that_breaks_before_the_kth_request_counts_once,
          answers_lost(PROXY_CUT_BEFORE))
TEST_CASE(multi, a_connection_that_breaks_before_the_kth_reply_counts_once,
          answers_lost(PROXY_CUT_AFTER))
TEST_CASE(multi, a_connection_that_breaks_in_the_kth_reply_counts_once,
          answers_lost(PROXY_CUT_IN_REPLY))

/* From now on there is only the connection that is open already. */
static void keep_one_connection(scene *s)
{
    EXPECT_STATUS(rlock_client_ping(s->cl), RLOCK_OK);
    proxy_refuse(s->px, true);
}

TEST(multi, a_reply_that_never_comes_leaves_nothing)
{
    scene s = scene_proxied(0, 150);
    set m = set_of(&s, "abcde");
    for (int k = 1; k <= 5; k++) {
        keep_one_connection(&s);
        proxy_rule(s.px, proxy_sha("acquire"), k, PROXY_SWALLOW_REPLY, NULL);
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(in_time(rlock_trylock(m.all), began_ms, 150), RLOCK_EIO);
        proxy_refuse(s.px, false);
        expect_blame((size_t)k);
        EXPECT(!rlock_is_held(m.all));
        EVENTUALLY(10000, all_at(&m, 0));
    }
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    set_end_undone(&m, &s);
}

TEST(multi, a_wait_gets_over_a_reply_that_never_comes)
{
    scene s = scene_proxied(0, 150);
    set m = set_of(&s, "abcde");
    for (int k = 1; k <= 5; k++) {
        proxy_rule(s.px, proxy_sha("acquire"), k, PROXY_SWALLOW_REPLY, NULL);
        EXPECT_STATUS(rlock_acquire(m.all, 20000, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT(proxy_fired(s.px));
        EXPECT(all_at(&m, 1));
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        EVENTUALLY(10000, all_at(&m, 0));
    }
    set_end_undone(&m, &s);
}

TEST(multi, a_level_more_without_an_answer_is_no_level)
{
    scene s = scene_proxied(0, 150);
    set m = set_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    keep_one_connection(&s);
    proxy_rule(s.px, proxy_sha("acquire"), 2, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_EIO);
    proxy_refuse(s.px, false);
    expect_blame(2);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_INT(rlock_hold_count(m.lk[i]), 1);
    EXPECT(rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EVENTUALLY(10000, all_at(&m, 0));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    set_end_undone(&m, &s);
}

TEST(multi, an_unlock_without_an_answer_is_made_good_later)
{
    scene s = scene_proxied(0, 150);
    set m = set_of(&s, "abc");
    for (int k = 1; k <= 3; k++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        keep_one_connection(&s);
        proxy_rule(s.px, proxy_sha("release"), k, PROXY_HOLD_REQUEST, NULL);
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(in_time(rlock_unlock(m.all), began_ms, 150), RLOCK_EIO);
        proxy_refuse(s.px, false);
        EXPECT(!rlock_is_held(m.all));
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
        EVENTUALLY(10000, all_at(&m, 0));
        proxy_let_go(s.px);
    }
    set_end_undone(&m, &s);
}

/* Longer than one command may take, and shorter than two. */
static intptr_t resume_later(void *sv)
{
    test_pause_ms(900);
    server_resume(sv);
    return 0;
}

/* Still one lock after that: one event when all of it is lost. */
TEST(multi, a_level_more_that_a_wait_brought_makes_no_second_lock_of_it)
{
    scene s = scene_start(0, 600);
    set m = set_of(&s, "ab");
    rlock_status status = RLOCK_EIO;
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    for (int i = 0; i < 5 && status != RLOCK_OK; i++) {
        server_pause(s.sv);
        test_thread *t = test_spawn(resume_later, s.sv);
        status = rlock_acquire(m.all, 10000, RLOCK_WATCHDOG);
        test_join(t);
    }
    EXPECT_STATUS(status, RLOCK_OK);
    EXPECT_INT(rlock_hold_count(m.all), 2);
    EXPECT(all_at(&m, 2));
    server_cmd(s.sv, "FLUSHALL");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    set_end_with_losses(&m, &s, 1);
}

/* A grant of an earlier try that comes late must not stay. */
TEST(multi, a_request_that_comes_late_leaves_nothing)
{
    for (int k = 1; k <= 3; k++) {
        scene s = scene_proxied(0, 150);
        set m = set_of(&s, "abc");
        keep_one_connection(&s);
        proxy_rule(s.px, proxy_sha("acquire"), k, PROXY_HOLD_REQUEST, NULL);
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_EIO);
        proxy_refuse(s.px, false);
        EVENTUALLY(10000, server_cmd(s.sv, "KEYS rlock_undone:*")->elements ==
                              (size_t)(4 - k));
        EVENTUALLY(10000, all_at(&m, 0));
        proxy_let_go(s.px);
        EXPECT(all_at(&m, 0));
        set_end_undone(&m, &s);
    }
}

/* The scripts go while they are used. */
TEST(multi, a_server_that_lost_its_scripts_is_told_them_again)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "abcde");
    for (int level = 1; level <= 2; level++) {
        server_cmd(s.sv, "SCRIPT FLUSH");
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
        EXPECT(all_at(&m, level));
    }
    server_cmd(s.sv, "SCRIPT FLUSH");
    EXPECT_STATUS(rlock_extend(m.all, 60000), RLOCK_OK);
    for (int level = 1; level >= 0; level--) {
        server_cmd(s.sv, "SCRIPT FLUSH");
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        EXPECT(all_at(&m, level));
    }
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

/* The k-th of a round trip only. */
TEST(multi, a_script_that_is_missing_in_the_middle_is_told_again)
{
    scene s = scene_proxied(0, 0);
    set m = set_of(&s, "abcde");
    for (int k = 1; k <= 5; k++) {
        proxy_rule(s.px, proxy_sha("acquire"), k, PROXY_ANSWER,
                   "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
        EXPECT(all_at(&m, 1));
        proxy_rule(s.px, proxy_sha("release"), k, PROXY_ANSWER,
                   "-NOSCRIPT No matching script. Please use EVAL.\r\n");
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        expect_nothing_left(s.sv);
    }
    set_end(&m, &s);
}

/* --- time limits --------------------------------------------------------- */

/* One command timeout in all, or the wait and one; one for each client. */
TEST(multi, every_call_ends_in_time_when_servers_hang)
{
    enum { TIMEOUT_MS = 300 };
    scene s = scene_start(0, TIMEOUT_MS), t = scene_start(0, TIMEOUT_MS);
    set m = set_across(&s, "ac", &t, "bd");
    server_pause(s.sv);
    server_pause(t.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_trylock(m.all), began_ms, TIMEOUT_MS),
                  RLOCK_EIO);
    began_ms = test_now_ms();
    EXPECT_STATUS(
        in_time(rlock_acquire(m.all, 400, 0), began_ms, 400 + TIMEOUT_MS),
        RLOCK_EIO);
    EXPECT(test_now_ms() - began_ms >= 400);
    server_resume(s.sv);
    server_resume(t.sv);
    EVENTUALLY(10000, all_at(&m, 0));
    EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    server_pause(s.sv);
    server_pause(t.sv);
    began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_lock(m.all), began_ms, 30000), RLOCK_EIO);
    began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_extend(m.all, 60000), began_ms, 2 * TIMEOUT_MS),
                  RLOCK_EIO);
    began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_unlock(m.all), began_ms, 2 * TIMEOUT_MS),
                  RLOCK_EIO);
    server_resume(s.sv);
    server_resume(t.sv);
    EVENTUALLY(10000, all_at(&m, 0));
    set_end_across(&m, &s, &t);
}

TEST(multi, a_force_unlock_ends_in_time_when_a_server_hangs)
{
    enum { TIMEOUT_MS = 300 };
    scene s = scene_start(0, TIMEOUT_MS);
    set m = set_of(&s, "abcdef");
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(rlock_force_unlock(m.all), began_ms, TIMEOUT_MS),
                  RLOCK_EIO);
    server_resume(s.sv);
    set_end(&m, &s);
}

/* Two servers; only one hangs, the first or the second to be asked. */
static void try_beside_a_hanging_one(const char *hanging, const char *other)
{
    enum { TIMEOUT_MS = 300 };
    scene s = scene_start(0, TIMEOUT_MS), t = scene_start(0, TIMEOUT_MS);
    set m = set_across(&s, hanging, &t, other);
    server_pause(s.sv);
    for (int wait_ms = 0; wait_ms <= 400; wait_ms += 400) {
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(in_time(rlock_acquire(m.all, wait_ms, RLOCK_WATCHDOG),
                              began_ms, wait_ms + TIMEOUT_MS),
                      RLOCK_EIO);
        expect_blame(1);
        EXPECT(!rlock_is_held(m.lk[1]));
        EVENTUALLY(5000, is_at(&m, 1, 0));
    }
    server_resume(s.sv);
    EVENTUALLY(10000, all_at(&m, 0));
    set_end_across(&m, &s, &t);
}

TEST_CASE(multi, a_try_in_which_the_first_server_hangs_ends_in_time,
          try_beside_a_hanging_one("a", "b"))
TEST_CASE(multi, a_try_in_which_the_last_server_hangs_ends_in_time,
          try_beside_a_hanging_one("b", "a"))

TEST(multi, extend_reaches_the_others_when_a_server_hangs)
{
    scene s = scene_start(0, 300), t = scene_proxied(0, 300);
    set m = set_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_pause(s.sv);
    proxy_rule(t.px, proxy_sha("extend"), 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(m.all, 100000), RLOCK_EIO);
    expect_blame(1);
    EXPECT_BETWEEN(server_int(t.sv, "PTTL b"), 60000, 100000);
    EXPECT_BETWEEN(rlock_valid_ms(m.lk[1]), 60000, 100000);
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_end_across(&m, &s, &t);
}

/* The one that hangs is given more time than the other's lease has. */
TEST(multi, an_extend_that_hangs_at_one_server_loses_nothing_at_another)
{
    scene s = scene_start(0, 2000), t = scene_start(500, 0);
    set m = set_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_pause(s.sv);
    EXPECT_STATUS(rlock_extend(m.all, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT_INT(stats_of(t.cl).lost, 0);
    EXPECT(rlock_is_held(m.lk[1]));
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_end_across(&m, &s, &t);
}

/* --- losses -------------------------------------------------------------- */

static rlock_status lose(scene *s, set *m, void (*how)(server *sv))
{
    EXPECT_STATUS(rlock_lock(m->all), RLOCK_OK);
    how(s->sv);
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT(!rlock_is_held(m->all));
    EXPECT_INT(rlock_hold_count(m->all), 0);
    EVENTUALLY(10000, stats_of(s->cl).held_now == 0);
    EXPECT_INT(stats_of(s->cl).lost, m->n);
    return rlock_unlock(m->all);
}

static void restart_empty(server *sv)
{
    server_kill(sv);
    server_restart(sv);
}

TEST(multi, an_outage_is_one_loss)
{
    scene s = scene_start(400, 100);
    set m = set_of(&s, "abcde");
    EXPECT_STATUS(lose(&s, &m, server_kill), RLOCK_LOST);
    set_end_with_losses(&m, &s, 1);
}

TEST(multi, a_server_that_comes_back_empty_is_one_loss)
{
    scene s = scene_start(3000, 300);
    set m = set_of(&s, "abcde");
    EXPECT_STATUS(lose(&s, &m, restart_empty), RLOCK_LOST);
    EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_end_with_losses(&m, &s, 1);
}

/* Both at the same moment, found by two clients side by side. */
TEST(multi, losses_on_two_servers_at_once_are_one_event)
{
    scene s = scene_start(300, 0), t = scene_start(300, 0);
    set m = set_across(&s, "a", &t, "b");
    for (int i = 1; i <= 5; i++) {
        EXPECT_STATUS(rlock_acquire(m.all, 5000, RLOCK_WATCHDOG), RLOCK_OK);
        server_cmd(s.sv, "FLUSHALL");
        server_cmd(t.sv, "FLUSHALL");
        EVENTUALLY(10000, stats_of(s.cl).lost == (uint64_t)i &&
                              stats_of(t.cl).lost == (uint64_t)i);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
        events_wait(s.ev, RLOCK_EVENT_LOST, i, 10000);
    }
    set_free(&m);
    scene_free_client(&t);
    scene_free_client(&s);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 5);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
    scene_stop(&t);
}

/* The first member's client is not there any more. */
TEST(multi, a_loss_is_told_when_the_first_client_is_gone)
{
    scene s = scene_start(300, 0), t = scene_start(300, 0);
    set m = set_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    scene_free_client(&s);
    server_cmd(t.sv, "DEL b");
    events_wait(t.ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ECLOSED);
    set_end_across(&m, &s, &t);
}

/* The losses are told at a client that is being freed. */
TEST(multi, a_loss_while_the_first_client_is_freed_does_no_harm)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    scene_free_client(&s);
    for (int i = 0; i < 20; i++) {
        events_free(s.ev);
        scene_client(&s, 0, 0);
        set m = set_across(&s, "a", &t, "b");
        EXPECT_STATUS(rlock_acquire(m.all, 0, 5000), RLOCK_OK);
        rlock_extend(m.lk[1], 3 + i % 5); /* it may be late */
        scene_free_client(&s);
        EVENTUALLY(10000, !rlock_is_held(m.lk[1]));
        rlock_unlock(m.all);
        server_cmd(s.sv, "DEL a");
        EVENTUALLY(10000, levels(t.sv, "b") == 0);
        set_free(&m);
    }
    scene_stop(&s);
    scene_stop(&t);
}

/* Released in part, it is still told once when the rest is lost. */
TEST(multi, the_loss_of_what_is_left_after_a_members_unlock_is_one_event)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(10000, stats_of(s.cl).lost == 2);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    set_end_with_losses(&m, &s, 1);
}
