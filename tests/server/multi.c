/*
 * Multi locks: several locks that are taken, held and given back as one. Which
 * may be members; and that it takes all of them or none.
 */
#include "multi_scene.h"

/* --- making one ---------------------------------------------------------- */

static void expect_refused(rlock *const locks[], size_t n, const char *why)
{
    rlock *out = (rlock *)&out;
    EXPECT_STATUS(rlock_multi_new(locks, n, &out), RLOCK_EINVAL);
    EXPECT(!out);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
}

TEST(multi, bad_members_are_refused_by_their_position)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    rlock *out = (rlock *)&out;
    EXPECT_STATUS(rlock_multi_new(NULL, 2, &out), RLOCK_EINVAL);
    EXPECT(!out);
    EXPECT_STATUS(rlock_multi_new(m.lk, 3, NULL), RLOCK_EINVAL);
    expect_refused(m.lk, 0, "member");
    expect_refused((rlock *[]){NULL, m.lk[0]}, 2, "1");
    expect_refused((rlock *[]){m.lk[0], NULL, m.lk[1]}, 3, "2");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], NULL}, 3, "3");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], m.lk[0]}, 3, "3");
    multi_scene_end(&m, &s);
}

/* Two holds of it by one thread are one hold of two levels. */
TEST(multi, the_same_lock_by_another_handle_is_refused)
{
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    rlock *again = test_lock(s.cl, "b"), *otherwise;
    opts.layout = RLOCK_LAYOUT_STRING;
    EXPECT_STATUS(rlock_new_ex(s.cl, "b", 1, &opts, &otherwise), RLOCK_OK);
    expect_refused((rlock *[]){m.lk[0], m.lk[1], again}, 3, "3");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], otherwise}, 3, "3");
    rlock_free(otherwise);
    rlock_free(again);
    multi_scene_end(&m, &s);
}

TEST(multi, a_member_of_a_closed_client_is_refused)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    rlock_client *closed = server_client(s.sv, NULL);
    rlock *lk = test_lock(closed, "c");
    rlock_client_free(closed);
    expect_refused((rlock *[]){lk}, 1, "1");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], lk}, 3, "3");
    rlock_free(lk);
    multi_scene_end(&m, &s);
}

/* As many as allowed and one more, with names as long as allowed. */
TEST(multi, has_room_for_the_most_members_with_the_longest_names)
{
    enum { N = RLOCK_MULTI_MAX };
    scene s = scene_start(0, 0);
    rlock *lk[N + 1], *all, *half;
    char name[RLOCK_NAME_MAX];
    memset(name, 'n', sizeof name);
    for (int i = 0; i < N + 1; i++) {
        name[0] = (char)(1 + i * 37 % (N + 1)); /* in no order */
        EXPECT_STATUS(rlock_new_n(s.cl, name, sizeof name, &lk[i]), RLOCK_OK);
    }
    expect_refused(lk, N + 1, "65");
    EXPECT_STATUS(rlock_multi_new(lk, N / 2 + 1, &half), RLOCK_OK);
    rlock *replaced = lk[N / 2];
    lk[N / 2] = half; /* it and what follows */
    expect_refused(lk + N / 2, N / 2 + 1, "33");
    EXPECT_STATUS(rlock_multi_new(lk + N / 2, N / 2, &all), RLOCK_OK);
    rlock_free(replaced); /* the Multi locks have handles of their own */
    EXPECT_STATUS(rlock_trylock(all), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).held_now, N);
    EXPECT_STATUS(rlock_extend(all, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    expect_nothing_left(s.sv);
    rlock_free(all);
    for (int i = 0; i < N + 1; i++)
        rlock_free(lk[i]);
    scene_stop(&s);
}

TEST(multi, a_member_that_is_a_multi_lock_stands_for_its_members)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "bd"), more = multi_scene_of(&s, "ac");
    rlock *all;
    EXPECT_STATUS(
        rlock_multi_new((rlock *[]){m.all, more.lk[0], more.lk[1]}, 3, &all),
        RLOCK_OK);
    EXPECT_STATUS(rlock_lock(all), RLOCK_OK);
    expect_levels(&m, 1);
    expect_levels(&more, 1);
    EXPECT(rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    expect_nothing_left(s.sv);
    take_by_hand(s.sv, "d", 60000);
    EXPECT_STATUS(rlock_trylock(all), RLOCK_BUSY);
    expect_blame_of(1, "d"); /* it came with the first */
    rlock_free(all);
    multi_scene_free(&m);
    multi_scene_free(&more);
    scene_stop(&s);
}

TEST(multi, a_lock_that_hides_in_a_multi_lock_is_found_to_be_the_same)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc"), more = multi_scene_of(&s, "cd");
    expect_refused((rlock *[]){more.lk[1], more.lk[0], m.all}, 3, "3");
    expect_refused((rlock *[]){m.all, more.all}, 2, "2");
    expect_refused((rlock *[]){m.all, m.all}, 2, "2");
    expect_refused((rlock *[]){m.all, m.lk[1]}, 2, "2");
    multi_scene_free(&m);
    multi_scene_free(&more);
    scene_stop(&s);
}

/* The Multi lock within may go first. */
TEST(multi, a_multi_lock_inside_of_another_may_be_freed)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    rlock *all;
    EXPECT_STATUS(rlock_multi_new(&m.all, 1, &all), RLOCK_OK);
    rlock_cancel(all);
    rlock_free(m.all);
    m.all = NULL;
    EXPECT_STATUS(rlock_lock(all), RLOCK_OK);
    expect_levels(&m, 1);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    rlock_free(all);
    multi_scene_end(&m, &s);
}

TEST(multi, making_one_asks_no_server)
{
    scene s = scene_proxied(0, 0);
    int sent = proxy_count(s.px, "");
    multi_scene m = multi_scene_of(&s, "abc");
    multi_scene_free(&m);
    EXPECT_INT(proxy_count(s.px, ""), sent);
    scene_stop(&s);
}

TEST(multi, one_member_is_enough)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "a");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT(rlock_token(m.all) == rlock_token(m.lk[0]));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_free(&m);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(multi, what_only_a_single_lock_can_tell_is_not_supported)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    bool locked;
    int64_t ttl_ms;
    rlock_holder holder;
    for (int i = 0; i < 2; i++) {
        EXPECT_STATUS(rlock_is_locked(m.all, &locked), RLOCK_ENOTSUP);
        EXPECT_STATUS(rlock_ttl(m.all, &ttl_ms), RLOCK_ENOTSUP);
        EXPECT_STATUS(rlock_holder_info(m.all, &holder, sizeof holder),
                      RLOCK_ENOTSUP);
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    }
    multi_scene_end(&m, &s);
}

TEST(multi, arguments_out_of_range_are_refused)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_acquire(m.all, -2, 0), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(m.all, 0, -1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(m.all, 0, RLOCK_LEASE_MAX_MS + 1),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(m.all, -1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend(m.all, RLOCK_LEASE_MAX_MS + 1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    multi_scene_end(&m, &s);
}

/* --- all or nothing ------------------------------------------------------ */

TEST(multi, takes_all_members_and_gives_all_back)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "cab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    expect_levels(&m, 1);
    EXPECT_STATUS(on_another_thread(rlock_trylock, m.lk[1]), RLOCK_BUSY);
    EXPECT_STATUS(on_another_thread(rlock_trylock, m.all), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    EXPECT_INT(stats_of(s.cl).acquires, 3);
    EXPECT_INT(stats_of(s.cl).releases, 3);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ACQUIRED), 3);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RELEASED), 3);
    multi_scene_end(&m, &s);
}

TEST(multi, one_name_on_two_servers_is_two_members)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ab", &t, "ba");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    expect_levels(&m, 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    multi_scene_end_across(&m, &s, &t);
}

/* With each of the members busy in turn. */
static void expect_all_or_nothing(multi_scene *m, int64_t wait_ms)
{
    for (size_t i = 0; i < m->n; i++) {
        take_by_hand(m->sv[i], m->name[i], 60000);
        EXPECT_STATUS(rlock_acquire(m->all, wait_ms, RLOCK_WATCHDOG),
                      wait_ms ? RLOCK_TIMEOUT : RLOCK_BUSY);
        expect_blame_of(i + 1, m->name[i]);
        expect_unheld(m->all);
        for (size_t k = 0; k < m->n; k++)
            expect_unheld(m->lk[k]);
        server_cmd(m->sv[i], "DEL %s", m->name[i]);
        for (size_t k = 0; k < m->n; k++)
            expect_nothing_left(m->sv[k]);
    }
}

static void all_or_nothing_on_one(int64_t wait_ms)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "cadb");
    expect_all_or_nothing(&m, wait_ms);
    multi_scene_end(&m, &s);
}

static void all_or_nothing_on_several(int64_t wait_ms)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock_client *third = server_client(s.sv, NULL);
    multi_scene m = {0};
    multi_scene_add(&m, s.sv, s.cl, "ca");
    multi_scene_add(&m, t.sv, t.cl, "db");
    multi_scene_add(&m, s.sv, third, "e");
    multi_scene_join(&m);
    expect_all_or_nothing(&m, wait_ms);
    multi_scene_free(&m);
    rlock_client_free(third);
    scene_stop(&s);
    scene_stop(&t);
}

TEST_CASE(multi, a_try_that_finds_one_busy_takes_nothing,
          all_or_nothing_on_one(0))
TEST_CASE(multi, a_try_on_several_servers_that_finds_one_busy_takes_nothing,
          all_or_nothing_on_several(0))
TEST_CASE(multi, a_wait_that_runs_out_leaves_nothing, all_or_nothing_on_one(60))
TEST_CASE(multi, a_wait_on_several_servers_that_runs_out_leaves_nothing,
          all_or_nothing_on_several(60))

static void failure_leaves_levels(int64_t wait_ms, rlock_status status)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ac", &t, "bd");
    rlock *lk_b = m.lk[2];
    EXPECT_STATUS(rlock_lock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk_b), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk_b), RLOCK_OK);
    take_by_hand(s.sv, "c", 60000);
    EXPECT_STATUS(rlock_acquire(m.all, wait_ms, RLOCK_WATCHDOG), status);
    EXPECT_INT(rlock_hold_count(m.lk[0]), 1);
    EXPECT_INT(rlock_hold_count(lk_b), 2);
    EXPECT_INT(levels(s.sv, "a"), 1);
    EXPECT_INT(levels(t.sv, "b"), 2);
    EXPECT_INT(levels(t.sv, "d"), 0);
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk_b), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk_b), RLOCK_OK);
    server_cmd(s.sv, "DEL c");
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    multi_scene_end_across(&m, &s, &t);
}

TEST_CASE(multi, what_the_thread_held_before_a_failed_try_stays_at_its_level,
          failure_leaves_levels(0, RLOCK_BUSY))
TEST_CASE(multi, what_the_thread_held_before_a_failed_wait_stays_at_its_level,
          failure_leaves_levels(60, RLOCK_TIMEOUT))

TEST(multi, members_may_be_of_different_layouts)
{
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    scene s = scene_start(0, 0);
    multi_scene m = {0};
    rlock *other = test_lock(s.cl, "d");
    for (; m.n < 3; m.n++) {
        opts.layout = (rlock_layout)m.n;
        m.name[m.n][0] = (char)('a' + m.n);
        EXPECT_STATUS(rlock_new_ex(s.cl, m.name[m.n], 1, &opts, &m.lk[m.n]),
                      RLOCK_OK);
    }
    m.lk[m.n++] = other;
    multi_scene_join(&m);
    for (int i = 0; i < 2; i++)
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(m.all, 20000), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "EXISTS a b c d"), 4);
    EXPECT_INT(rlock_hold_count(m.all), 2);
    for (int i = 0; i < 2; i++)
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    take_by_hand(s.sv, "d", 60000);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_BUSY);
    EXPECT_INT(server_int(s.sv, "EXISTS a b c"), 0);
    multi_scene_end(&m, &s);
}
