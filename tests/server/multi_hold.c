/*
 * A Multi lock that is held: its levels, its token and its lease, and what it
 * answers when a member is not held any more; round trips.
 */
#include <stdatomic.h>

#include "multi_scene.h"

/* --- what the thread holds ----------------------------------------------- */

TEST(multi_hold, an_acquire_inside_of_another_is_one_level_more)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    for (int i = 1; i <= 3; i++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        expect_levels(&m, i);
        EXPECT_INT(rlock_hold_count(m.all), i);
    }
    for (int i = 2; i >= 0; i--) {
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        expect_levels(&m, i);
        EXPECT_INT(rlock_hold_count(m.all), i);
    }
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_hold, a_member_that_the_thread_holds_gets_one_level_more)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.lk[1]), RLOCK_OK);
    uint64_t token = rlock_token(m.lk[1]);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_INT(levels(s.sv, "a"), 1);
    EXPECT_INT(levels(s.sv, "b"), 2);
    EXPECT(rlock_token(m.lk[1]) == token);
    EXPECT_INT(rlock_hold_count(m.all), 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT_INT(levels(s.sv, "a"), 0);
    EXPECT_INT(levels(s.sv, "b"), 1);
    EXPECT(rlock_is_held(m.lk[1]));
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

TEST(multi_hold, a_handle_of_a_member_enters_once_more)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(m.lk[0]), 1);
    EXPECT_STATUS(rlock_lock(m.lk[0]), RLOCK_OK);
    EXPECT_INT(levels(s.sv, "a"), 2);
    EXPECT_INT(rlock_hold_count(m.all), 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(rlock_is_held(m.lk[0]));
    expect_unheld(m.lk[1]);
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

TEST(multi_hold, two_sets_that_overlap_are_held_side_by_side)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab"), more = multi_scene_of(&s, "bc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(more.all), RLOCK_OK);
    EXPECT_INT(levels(s.sv, "b"), 2);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(rlock_is_held(more.all));
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_unlock(more.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_free(&m);
    multi_scene_free(&more);
    scene_stop(&s);
}

TEST(multi_hold, it_is_held_by_the_thread_that_took_it)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    waiter *w = waiter_start(m.all, 0, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_extend(m.all, 1000), RLOCK_NOT_HELD);
    expect_levels(&m, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

TEST(multi_hold, valid_and_count_are_those_of_the_worst_member)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ab", &t, "c");
    EXPECT_STATUS(rlock_acquire(m.lk[0], 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(m.lk[2], 0, 10000), RLOCK_OK);
    expect_unheld(m.all); /* not every member is held */
    EXPECT_STATUS(rlock_acquire(m.lk[1], 0, 30000), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(m.all), 1, 10000 - 100);
    EXPECT(rlock_is_held(m.all)); /* taken one by one, it is held as well */
    EXPECT_STATUS(rlock_acquire(m.lk[1], 0, 30000), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(m.all), 1);
    for (int i = 0; i < 2; i++)
        EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    expect_unheld(m.all);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_hold, the_token_is_the_largest_and_grows)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "bc");
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_lock(m.lk[i % 3]), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(m.lk[i % 3]), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        uint64_t token = rlock_token(m.all), largest = 0;
        for (size_t k = 0; k < m.n; k++)
            if (rlock_token(m.lk[k]) > largest)
                largest = rlock_token(m.lk[k]);
        EXPECT(token == largest);
        EXPECT(token > last);
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        EXPECT(rlock_token(m.all) == token);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        last = token;
    }
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_hold, all_members_are_renewed)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "ab", &t, "cd");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EVENTUALLY(20000,
               stats_of(s.cl).renewals >= 10 && stats_of(t.cl).renewals >= 10);
    EXPECT(rlock_is_held(m.all));
    expect_levels(&m, 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    uint64_t renewals = stats_of(s.cl).renewals;
    EXPECT_INT(stats_of(s.cl).lost + stats_of(t.cl).lost, 0);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    EXPECT_INT(stats_of(s.cl).renewals, renewals);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_hold, an_explicit_lease_is_that_of_all_members_and_not_renewed)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    EXPECT_STATUS(rlock_acquire(m.all, 0, 400), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(m.all), 0, 394);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", m.name[i]), 1, 400);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_end(&m, &s);
}

/* --- unlock, extend, force_unlock ---------------------------------------- */

TEST(multi_hold, unlock_goes_through_all_and_reports_the_worst)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "bacd");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    expect_blame_of(2, "a");
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    expect_blame_of(1, "b");
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    server_cmd(s.sv, "DEL d");
    server_cmd(s.sv, "SET d x");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_EWRONGTYPE);
    expect_blame_of(4, "d");
    EXPECT_STR(server_str(s.sv, "GET d"), "x");
    server_cmd(s.sv, "DEL d");
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    multi_scene_end(&m, &s);
}

TEST(multi_hold, extend_sets_the_lease_of_all)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "ab", &t, "c");
    EXPECT_STATUS(rlock_extend(m.all, 1000), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(m.all, 60000), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(m.all), 30000, 60000 - 600);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_BETWEEN(server_int(m.sv[i], "PTTL %s", m.name[i]), 30000, 60000);
    EXPECT_STATUS(rlock_extend(m.all, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(m.all), 0, BRISK_MS);
    EVENTUALLY(20000,
               stats_of(s.cl).renewals >= 4 && stats_of(t.cl).renewals >= 2);
    EXPECT(rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end_across(&m, &s, &t);
}

TEST(multi_hold, extend_reports_the_member_that_is_not_held_any_more)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "cab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.lk[1]), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(m.all, 60000), RLOCK_NOT_HELD);
    expect_blame_of(2, "a");
    server_cmd(s.sv, "DEL c");
    EXPECT_STATUS(rlock_extend(m.all, 60000), RLOCK_LOST);
    expect_blame_of(1, "c");
    expect_unheld(m.all);
    EXPECT_INT(levels(s.sv, "c"), 0);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

TEST(multi_hold, force_unlock_frees_what_anybody_holds)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ab", &t, "c");
    EXPECT_STATUS(rlock_force_unlock(m.all), RLOCK_NOT_HELD);
    take_by_hand(t.sv, "c", 60000);
    EXPECT_STATUS(rlock_force_unlock(m.all), RLOCK_OK);
    expect_levels(&m, 0);
    take_by_hand(s.sv, "a", 60000);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(s.sv, "a", s.cl);
    EXPECT_STATUS(rlock_force_unlock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(m.all), RLOCK_OK);
    waiter_end(w);
    server_cmd(s.sv, "SET a x");
    take_by_hand(t.sv, "c", 60000);
    EXPECT_STATUS(rlock_force_unlock(m.all), RLOCK_EWRONGTYPE);
    expect_blame_of(1, "a");
    EXPECT_INT(levels(t.sv, "c"), 0);
    multi_scene_end_across(&m, &s, &t);
}

/* --- round trips --------------------------------------------------------- */

typedef rlock_status verb(rlock *lk);

static rlock_status extend_long(rlock *lk)
{
    return rlock_extend(lk, 60000);
}

typedef struct errand {
    verb *verb;
    rlock *lk;
    atomic_int *turn;
    int when;
} errand;

/* On one thread: the verbs one after the other, each when it is its turn. */
static intptr_t run_errands(void *arg)
{
    for (errand *e = arg; e->verb; e++) {
        while (atomic_load(e->turn) < e->when)
            test_pause_ms(1);
        EXPECT_STATUS(e->verb(e->lk), RLOCK_OK);
    }
    return 0;
}

/* All have been sent before the answer to the first is let through. */
static void expect_one_trip(scene *s, const char *script, atomic_int *turn,
                            int seen)
{
    int before = proxy_count(s->px, proxy_sha(script));
    proxy_rule(s->px, proxy_sha(script), 1, PROXY_HOLD_REPLY, NULL);
    atomic_fetch_add(turn, 1);
    EVENTUALLY(10000, proxy_count(s->px, proxy_sha(script)) == before + seen);
    EVENTUALLY(10000, proxy_fired(s->px));
    proxy_let_go(s->px);
}

TEST(multi_hold, members_of_one_client_are_asked_in_one_round_trip)
{
    scene s = scene_proxied(0, 20000);
    multi_scene m = multi_scene_of(&s, "ebadc");
    atomic_int turn = 0;
    errand list[] = {
        {rlock_lock, m.all, &turn, 1},   {rlock_lock, m.all, &turn, 2},
        {extend_long, m.all, &turn, 3},  {rlock_unlock, m.all, &turn, 4},
        {rlock_unlock, m.all, &turn, 5}, {0}};
    test_thread *t = test_spawn(run_errands, list);
    expect_one_trip(&s, "take_many", &turn, 1);
    expect_one_trip(&s, "acquire", &turn, 5);
    expect_one_trip(&s, "extend", &turn, 5);
    expect_one_trip(&s, "release", &turn, 5);
    expect_one_trip(&s, "free_many", &turn, 1);
    test_join(t);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 5);
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 5);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* One call, and nothing to undo. */
TEST(multi_hold, a_failed_try_takes_nothing)
{
    scene s = scene_proxied(0, 20000);
    multi_scene m = multi_scene_of(&s, "abcde");
    take_by_hand(s.sv, "c", 60000);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_BUSY);
    EXPECT_STR(strstr(rlock_last_error()->message, "member"),
               strstr(rlock_last_error()->message, "member 3"));
    EXPECT_INT(proxy_count(s.px, proxy_sha("take_many")), 1);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 0);
    EXPECT_INT(proxy_count(s.px, proxy_sha("free_many")), 0);
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 0);
    server_cmd(s.sv, "DEL c");
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* A round trip for what was taken of the one server, whatever the others do. */
TEST(multi_hold, what_a_failed_try_took_elsewhere_goes_back_in_one_call)
{
    scene s = scene_proxied(0, 20000), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ace", &t, "bd");
    take_by_hand(t.sv, "d", 60000);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_BUSY);
    EXPECT_INT(proxy_count(s.px, proxy_sha("take_many")), 1);
    EXPECT_INT(proxy_count(s.px, proxy_sha("free_many")), 1);
    EXPECT(multi_scene_is_at(&m, 0, 0) && multi_scene_is_at(&m, 1, 0) &&
           multi_scene_is_at(&m, 2, 0));
    server_cmd(t.sv, "DEL d");
    multi_scene_end_across(&m, &s, &t);
}

/* Those before the first that is busy, which were left at first because of it;
   twice, as another one is busy by the time that they are asked for. */
TEST(multi_hold, a_wait_holds_what_stands_before_the_first_that_is_busy)
{
    scene s = scene_proxied(0, 20000);
    multi_scene m = multi_scene_of(&s, "abcde");
    take_by_hand(s.sv, "e", 60000);
    proxy_rule(s.px, proxy_sha("take_many"), 1, PROXY_HOLD_REPLY, NULL);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(10000, proxy_fired(s.px));
    take_by_hand(s.sv, "c", 60000);
    proxy_let_go(s.px);
    EVENTUALLY(10000,
               multi_scene_is_at(&m, 0, 1) && multi_scene_is_at(&m, 1, 1));
    asleep(s.sv, "c", s.cl);
    EXPECT(multi_scene_is_at(&m, 3, 0));
    EXPECT_INT(proxy_count(s.px, proxy_sha("take_many")), 3);
    server_cmd(s.sv, "DEL c");
    EVENTUALLY(20000, multi_scene_is_at(&m, 3, 1));
    server_cmd(s.sv, "DEL e");
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT(multi_scene_all_at(&m, 1));
    waiter_end(w);
    multi_scene_end(&m, &s);
}
