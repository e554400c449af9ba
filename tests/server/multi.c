/*
 * Multi locks: several locks that are taken, held and given back as one.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "set.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOW = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
enum { SLOW = 1 };
#else
enum { SLOW = 0 };
#endif
#else
enum { SLOW = 0 };
#endif

static void expect_levels(const set *m, int wanted)
{
    for (size_t i = 0; i < m->n; i++)
        EXPECT_INT(levels(m->sv[i], m->name[i]), wanted);
}

static void expect_unheld(const rlock *lk)
{
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_INT(rlock_valid_ms(lk), 0);
    EXPECT(rlock_token(lk) == 0);
}

/* The last error is about this member, and names its lock. */
static void expect_blame_of(size_t position, const char *name)
{
    char quoted[32];
    snprintf(quoted, sizeof quoted, "'%s'", name);
    expect_blame(position);
    EXPECT_CONTAINS(rlock_last_error()->message, quoted);
}

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
    set m = set_of(&s, "abc");
    rlock *out = (rlock *)&out;
    EXPECT_STATUS(rlock_multi_new(NULL, 2, &out), RLOCK_EINVAL);
    EXPECT(!out);
    EXPECT_STATUS(rlock_multi_new(m.lk, 3, NULL), RLOCK_EINVAL);
    expect_refused(m.lk, 0, "member");
    expect_refused((rlock *[]){NULL, m.lk[0]}, 2, "1");
    expect_refused((rlock *[]){m.lk[0], NULL, m.lk[1]}, 3, "2");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], NULL}, 3, "3");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], m.lk[0]}, 3, "3");
    set_end(&m, &s);
}

/* Two holds of it by one thread are one hold of two levels. */
TEST(multi, the_same_lock_by_another_handle_is_refused)
{
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    rlock *again = test_lock(s.cl, "b"), *otherwise;
    opts.layout = RLOCK_LAYOUT_STRING;
    EXPECT_STATUS(rlock_new_ex(s.cl, "b", 1, &opts, &otherwise), RLOCK_OK);
    expect_refused((rlock *[]){m.lk[0], m.lk[1], again}, 3, "3");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], otherwise}, 3, "3");
    rlock_free(otherwise);
    rlock_free(again);
    set_end(&m, &s);
}

TEST(multi, a_member_of_a_closed_client_is_refused)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    rlock_client *closed = server_client(s.sv, NULL);
    rlock *lk = test_lock(closed, "c");
    rlock_client_free(closed);
    expect_refused((rlock *[]){lk}, 1, "1");
    expect_refused((rlock *[]){m.lk[0], m.lk[1], lk}, 3, "3");
    rlock_free(lk);
    set_end(&m, &s);
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
    set m = set_of(&s, "bd"), more = set_of(&s, "ac");
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
    set_free(&m);
    set_free(&more);
    scene_stop(&s);
}

TEST(multi, a_lock_that_hides_in_a_multi_lock_is_found_to_be_the_same)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "abc"), more = set_of(&s, "cd");
    expect_refused((rlock *[]){more.lk[1], more.lk[0], m.all}, 3, "3");
    expect_refused((rlock *[]){m.all, more.all}, 2, "2");
    expect_refused((rlock *[]){m.all, m.all}, 2, "2");
    expect_refused((rlock *[]){m.all, m.lk[1]}, 2, "2");
    set_free(&m);
    set_free(&more);
    scene_stop(&s);
}

/* The Multi lock within may go first. */
TEST(multi, a_multi_lock_inside_of_another_may_be_freed)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    rlock *all;
    EXPECT_STATUS(rlock_multi_new(&m.all, 1, &all), RLOCK_OK);
    rlock_cancel(all);
    rlock_free(m.all);
    m.all = NULL;
    EXPECT_STATUS(rlock_lock(all), RLOCK_OK);
    expect_levels(&m, 1);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    rlock_free(all);
    set_end(&m, &s);
}

TEST(multi, making_one_asks_no_server)
{
    scene s = scene_proxied(0, 0);
    int sent = proxy_count(s.px, "");
    set m = set_of(&s, "abc");
    set_free(&m);
    EXPECT_INT(proxy_count(s.px, ""), sent);
    scene_stop(&s);
}

TEST(multi, one_member_is_enough)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "a");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT(rlock_token(m.all) == rlock_token(m.lk[0]));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_free(&m);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(multi, what_only_a_single_lock_can_tell_is_not_supported)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    bool locked;
    int64_t ttl_ms;
    rlock_holder holder;
    for (int i = 0; i < 2; i++) {
        EXPECT_STATUS(rlock_is_locked(m.all, &locked), RLOCK_ENOTSUP);
        EXPECT_STATUS(rlock_ttl(m.all, &ttl_ms), RLOCK_ENOTSUP);
        EXPECT_STATUS(rlock_holder_info(m.all, &holder), RLOCK_ENOTSUP);
        EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    }
    set_end(&m, &s);
}

TEST(multi, arguments_out_of_range_are_refused)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    EXPECT_STATUS(rlock_acquire(m.all, -2, 0), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(m.all, 0, -1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_acquire(m.all, 0, RLOCK_LEASE_MAX_MS + 1),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(m.all, -1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend(m.all, RLOCK_LEASE_MAX_MS + 1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

/* --- all or nothing ------------------------------------------------------ */

TEST(multi, takes_all_members_and_gives_all_back)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "cab");
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
    set_end(&m, &s);
}

TEST(multi, one_name_on_two_servers_is_two_members)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "ab", &t, "ba");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    expect_levels(&m, 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    set_end_across(&m, &s, &t);
}

/* With each of the members busy in turn. */
static void expect_all_or_nothing(set *m, int64_t wait_ms)
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
    set m = set_of(&s, "cadb");
    expect_all_or_nothing(&m, wait_ms);
    set_end(&m, &s);
}

static void all_or_nothing_on_several(int64_t wait_ms)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock_client *third = server_client(s.sv, NULL);
    set m = {0};
    set_add(&m, s.sv, s.cl, "ca");
    set_add(&m, t.sv, t.cl, "db");
    set_add(&m, s.sv, third, "e");
    set_join(&m);
    expect_all_or_nothing(&m, wait_ms);
    set_free(&m);
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
    set m = set_across(&s, "ac", &t, "bd");
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
    set_end_across(&m, &s, &t);
}

TEST_CASE(multi, what_the_thread_held_before_a_failed_try_stays_at_its_level,
          failure_leaves_levels(0, RLOCK_BUSY))
TEST_CASE(multi, what_the_thread_held_before_a_failed_wait_stays_at_its_level,
          failure_leaves_levels(60, RLOCK_TIMEOUT))

TEST(multi, members_may_be_of_different_layouts)
{
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    scene s = scene_start(0, 0);
    set m = {0};
    rlock *other = test_lock(s.cl, "d");
    for (; m.n < 3; m.n++) {
        opts.layout = (rlock_layout)m.n;
        m.name[m.n][0] = (char)('a' + m.n);
        EXPECT_STATUS(rlock_new_ex(s.cl, m.name[m.n], 1, &opts, &m.lk[m.n]),
                      RLOCK_OK);
    }
    m.lk[m.n++] = other;
    set_join(&m);
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
    set_end(&m, &s);
}

/* --- waiting ------------------------------------------------------------- */

TEST(multi, a_wait_ends_when_the_busy_member_is_free)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "ca", &t, "b");
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
    set_end_across(&m, &s, &t);
}

/* Also when the list has it the other way round. */
TEST(multi, who_waits_holds_what_comes_before_and_nothing_that_comes_later)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "dca", &t, "eb");
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
    set_end_across(&m, &s, &t);
}

TEST(multi, the_wait_is_one_for_all_members)
{
    scene s = scene_start(0, 200);
    set m = set_of(&s, "abc");
    int64_t began_ms = test_now_ms(), at_ms;
    take_by_hand(s.sv, "a", 250);
    take_by_hand(s.sv, "b", 60000);
    waiter *w = waiter_start(m.all, 500, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(at_ms - began_ms, 500, 500 + 200 + 500);
    waiter_end(w);
    EXPECT_INT(levels(s.sv, "a"), 0);
    set_end(&m, &s);
}

static void cancel_at(set *m, size_t i, rlock_client *cl)
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

TEST(multi, a_cancel_ends_the_wait_for_any_member)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "ca", &t, "db");
    rlock_cancel(m.all); /* nobody waits */
    for (size_t i = 0; i < m.n; i++)
        cancel_at(&m, i, i < 2 ? s.cl : t.cl);
    set_end_across(&m, &s, &t);
}

TEST(multi, a_cancel_is_for_the_handle_it_is_given)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
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
    set_end(&m, &s);
}

/*
 * One cancel, at any moment since the wait began: while the waiter sleeps, or
 * goes on from the first member to the second, which it never gets.
 */
TEST(multi, one_cancel_at_any_moment_ends_the_wait)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    rlock_client *rival = server_client(s.sv, NULL);
    rlock *a = test_lock(rival, "a"), *b = test_lock(rival, "b");
    EXPECT_STATUS(rlock_lock(b), RLOCK_OK);
    for (int i = 0; i < (SLOW ? 60 : 200); i++) {
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
    set_end(&m, &s);
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
                            rlock *theirs)
{
    delay d = {.px = s->px, .ms = 50};
    EXPECT_STATUS(rlock_lock(mine), RLOCK_OK);
    waiter *w = waiter_start(theirs, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(s->sv, "a", cl);
    proxy_freeze(px, true);
    proxy_rule(s->px, proxy_sha("release"), 1, PROXY_HOLD_REPLY, NULL);
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
TEST(multi, who_takes_it_again_and_again_keeps_nobody_waiting)
{
    scene s = scene_proxied(0, 0);
    proxy *px = proxy_start(s.sv);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = proxy_uri(px);
    rlock_client *cl = server_client(s.sv, &opts);
    set mine = set_of(&s, "ab"), theirs = set_of_client(s.sv, cl, "ab");
    expect_way_made(&s, px, cl, mine.lk[0], theirs.lk[0]);
    expect_way_made(&s, px, cl, mine.all, theirs.all);
    for (int i = 0; i < 5; i++)
        expect_handed_over(s.sv, cl, mine.all, theirs.all);
    set_free(&mine);
    set_free(&theirs);
    rlock_client_free(cl);
    proxy_stop(px);
    scene_stop(&s);
}

/* --- opposite orders ----------------------------------------------------- */

enum { LOCKS = 5 };

/* Who is inside of which lock; shared between processes where there are some.
 */
typedef struct hall {
    atomic_int inside[LOCKS];
    atomic_int clashes;
} hall;

static void walk_through(hall *h, const set *m)
{
    for (size_t i = 0; i < m->n; i++)
        atomic_fetch_add(&h->clashes,
                         atomic_fetch_add(&h->inside[m->name[i][0] - 'a'], 1));
    for (size_t i = 0; i < m->n; i++)
        atomic_fetch_sub(&h->inside[m->name[i][0] - 'a'], 1);
}

static void take_once(hall *h, const set *m)
{
    EXPECT_STATUS(rlock_acquire(m->all, 25000, RLOCK_WATCHDOG), RLOCK_OK);
    walk_through(h, m);
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_OK);
}

typedef struct walker {
    hall *h;
    set m;
    int rounds;
} walker;

static intptr_t walk(void *arg)
{
    walker *w = arg;
    for (int i = 0; i < w->rounds; i++)
        take_once(w->h, &w->m);
    return 0;
}

static void walk_against_each_other(set one, set other)
{
    hall h = {0};
    int rounds = SLOW ? 80 : 300;
    walker a = {&h, one, rounds}, b = {&h, other, rounds};
    test_thread *t = test_spawn(walk, &a);
    walk(&b);
    test_join(t);
    EXPECT_INT(atomic_load(&h.clashes), 0);
    expect_levels(&one, 0);
    expect_levels(&other, 0);
    set_free(&one);
    set_free(&other);
}

TEST(multi, opposite_orders_of_two_threads_do_not_block_each_other)
{
    scene s = scene_start(0, 0);
    walk_against_each_other(set_of(&s, "abc"), set_of(&s, "cba"));
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(multi, opposite_orders_of_two_clients_do_not_block_each_other)
{
    scene s = scene_start(0, 0);
    rlock_client *cl = server_client(s.sv, NULL);
    walk_against_each_other(set_of(&s, "abc"), set_of_client(s.sv, cl, "cba"));
    rlock_client_free(cl);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(multi, opposite_orders_on_two_servers_do_not_block_each_other)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock_client *cl[] = {server_client(s.sv, NULL), server_client(t.sv, NULL)};
    set back = {0};
    set_add(&back, t.sv, cl[1], "b");
    set_add(&back, s.sv, cl[0], "a");
    set_join(&back);
    walk_against_each_other(set_across(&s, "a", &t, "b"), back);
    rlock_client_free(cl[0]);
    rlock_client_free(cl[1]);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    scene_stop(&s);
    scene_stop(&t);
}

/* The order is told by the servers then. */
TEST(multi, opposite_orders_of_one_name_on_two_servers_do_not_block_either)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    rlock_client *cl[] = {server_client(s.sv, NULL), server_client(t.sv, NULL)};
    set there = {0}, back = {0};
    set_add(&there, s.sv, s.cl, "a");
    set_add(&there, t.sv, t.cl, "a");
    set_add(&back, t.sv, cl[1], "a");
    set_add(&back, s.sv, cl[0], "a");
    there.name[1][0] = back.name[0][0] = 'b'; /* for the hall */
    set_join(&there);
    set_join(&back);
    walk_against_each_other(there, back);
    rlock_client_free(cl[0]);
    rlock_client_free(cl[1]);
    expect_nothing_left(s.sv);
    expect_nothing_left(t.sv);
    scene_stop(&s);
    scene_stop(&t);
}

/* At least one of the five, in any order. */
static set any_set(server *sv, rlock_client *cl, unsigned *seed)
{
    char names[] = "abcde";
    for (int i = LOCKS - 1; i > 0; i--) {
        int k = rand_r(seed) % (i + 1);
        char c = names[i];
        names[i] = names[k];
        names[k] = c;
    }
    names[1 + rand_r(seed) % LOCKS] = '\0';
    return set_of_client(sv, cl, names);
}

static void take_any(hall *h, server *sv, rlock_client *cl, unsigned seed)
{
    for (int i = 0; i < (SLOW ? 25 : 80); i++) {
        set m = any_set(sv, cl, &seed);
        take_once(h, &m);
        set_free(&m);
    }
}

typedef struct wanderer {
    hall *h;
    server *sv;
    rlock_client *cl;
    unsigned seed;
} wanderer;

static intptr_t wander(void *arg)
{
    wanderer *w = arg;
    take_any(w->h, w->sv, w->cl, w->seed);
    return 0;
}

TEST(multi, any_sets_of_many_threads_do_not_block_each_other)
{
    scene s = scene_start(0, 0);
    rlock_client *cl = server_client(s.sv, NULL);
    hall h = {0};
    wanderer w[6];
    test_thread *t[6];
    for (unsigned i = 0; i < 6; i++) {
        w[i] = (wanderer){&h, s.sv, i % 2 ? cl : s.cl, i + 1};
        t[i] = test_spawn(wander, &w[i]);
    }
    for (int i = 0; i < 6; i++)
        test_join(t[i]);
    EXPECT_INT(atomic_load(&h.clashes), 0);
    rlock_client_free(cl);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

static void wander_in_child(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    rlock_client *cl = server_client(NULL, &opts);
    take_any(arg, NULL, cl, (unsigned)getpid());
    rlock_client_free(cl);
}

TEST(multi, any_sets_of_many_processes_do_not_block_each_other)
{
    hall *h = mmap(NULL, sizeof *h, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    child *c[4];
    EXPECT(h != MAP_FAILED);
    for (int i = 0; i < 4; i++)
        c[i] = child_start(wander_in_child, h);
    scene s = scene_server(NULL);
    for (int i = 0; i < 4; i++)
        child_give_uri(c[i], s.sv);
    for (int i = 0; i < 4; i++)
        child_end(c[i]);
    EXPECT_INT(atomic_load(&h->clashes), 0);
    expect_nothing_left(s.sv);
    munmap(h, sizeof *h);
    server_stop(s.sv);
}

/* --- what the thread holds ----------------------------------------------- */

TEST(multi, an_acquire_inside_of_another_is_one_level_more)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "a", &t, "b");
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
    set_end_across(&m, &s, &t);
}

TEST(multi, a_member_that_the_thread_holds_gets_one_level_more)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "abc");
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
    set_end(&m, &s);
}

TEST(multi, a_handle_of_a_member_enters_once_more)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
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
    set_end(&m, &s);
}

TEST(multi, two_sets_that_overlap_are_held_side_by_side)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab"), more = set_of(&s, "bc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(more.all), RLOCK_OK);
    EXPECT_INT(levels(s.sv, "b"), 2);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(rlock_is_held(more.all));
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_unlock(more.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    set_free(&m);
    set_free(&more);
    scene_stop(&s);
}

TEST(multi, it_is_held_by_the_thread_that_took_it)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    waiter *w = waiter_start(m.all, 0, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_extend(m.all, 1000), RLOCK_NOT_HELD);
    expect_levels(&m, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

TEST(multi, valid_and_count_are_those_of_the_worst_member)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "ab", &t, "c");
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
    set_end_across(&m, &s, &t);
}

TEST(multi, the_token_is_the_largest_and_grows)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "a", &t, "bc");
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
    set_end_across(&m, &s, &t);
}

TEST(multi, all_members_are_renewed)
{
    scene s = scene_start(450, 0), t = scene_start(450, 0);
    set m = set_across(&s, "ab", &t, "cd");
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
    set_end_across(&m, &s, &t);
}

TEST(multi, an_explicit_lease_is_that_of_all_members_and_not_renewed)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "abc");
    EXPECT_STATUS(rlock_acquire(m.all, 0, 400), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(m.all), 0, 394);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_BETWEEN(server_int(s.sv, "PTTL %s", m.name[i]), 1, 400);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    set_end(&m, &s);
}

/* --- unlock, extend, force_unlock ---------------------------------------- */

TEST(multi, unlock_goes_through_all_and_reports_the_worst)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "bacd");
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
    set_end(&m, &s);
}

TEST(multi, extend_sets_the_lease_of_all)
{
    scene s = scene_start(600, 0), t = scene_start(600, 0);
    set m = set_across(&s, "ab", &t, "c");
    EXPECT_STATUS(rlock_extend(m.all, 1000), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(m.all, 60000), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(m.all), 30000, 60000 - 600);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_BETWEEN(server_int(m.sv[i], "PTTL %s", m.name[i]), 30000, 60000);
    EXPECT_STATUS(rlock_extend(m.all, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(m.all), 0, 600);
    EVENTUALLY(20000,
               stats_of(s.cl).renewals >= 4 && stats_of(t.cl).renewals >= 2);
    EXPECT(rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_end_across(&m, &s, &t);
}

TEST(multi, extend_reports_the_member_that_is_not_held_any_more)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "cab");
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
    set_end(&m, &s);
}

TEST(multi, force_unlock_frees_what_anybody_holds)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "ab", &t, "c");
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
    set_end_across(&m, &s, &t);
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

TEST(multi, members_of_one_client_are_asked_in_one_round_trip)
{
    scene s = scene_proxied(0, 20000);
    set m = set_of(&s, "ebadc");
    atomic_int turn = 0;
    errand list[] = {
        {rlock_lock, m.all, &turn, 1},   {rlock_lock, m.all, &turn, 2},
        {extend_long, m.all, &turn, 3},  {rlock_unlock, m.all, &turn, 4},
        {rlock_unlock, m.all, &turn, 5}, {0}};
    test_thread *t = test_spawn(run_errands, list);
    expect_one_trip(&s, "acquire", &turn, 5);
    expect_one_trip(&s, "acquire", &turn, 5);
    expect_one_trip(&s, "extend", &turn, 5);
    expect_one_trip(&s, "release", &turn, 5);
    expect_one_trip(&s, "release", &turn, 5);
    test_join(t);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 10);
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 10);
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

/* What was taken behind a busy one goes back together, too. */
TEST(multi, a_failed_try_is_undone_in_one_round_trip)
{
    scene s = scene_proxied(0, 20000);
    set m = set_of(&s, "abcde");
    take_by_hand(s.sv, "c", 60000);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_HOLD_REPLY, NULL);
    waiter *w = waiter_start(m.all, 0, RLOCK_WATCHDOG);
    EVENTUALLY(10000, proxy_fired(s.px));
    proxy_let_go(s.px);
    EXPECT_STATUS(waiter_end(w), RLOCK_BUSY);
    EXPECT_INT(proxy_count(s.px, proxy_sha("acquire")), 5);
    EXPECT_INT(proxy_count(s.px, proxy_sha("release")), 4);
    set_end(&m, &s);
}

/* --- events -------------------------------------------------------------- */

static void expect_lost_event(events *ev, const char *name)
{
    rlock_event e;
    events_wait(ev, RLOCK_EVENT_LOST, 1, 10000);
    EXPECT(events_last(ev, RLOCK_EVENT_LOST, &e));
    if (name)
        EXPECT_STR(e.name, name);
    EXPECT_INT(e.status, RLOCK_LOST);
}

TEST(multi, the_loss_of_one_member_is_the_loss_of_the_whole)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    expect_lost_event(s.ev, "b");
    expect_unheld(m.all);
    EXPECT(rlock_is_held(m.lk[0]));
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_LOST);
    expect_blame_of(2, "b");
    EXPECT_STATUS(rlock_extend(m.all, 1000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_INT(rlock_hold_count(m.lk[0]), 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    expect_nothing_left(s.sv);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_end_with_losses(&m, &s, 1);
}

TEST(multi, the_loss_of_all_members_at_once_is_one_event)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "abcde");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(10000, stats_of(s.cl).lost == 5);
    expect_lost_event(s.ev, NULL);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    set_end_with_losses(&m, &s, 1);
}

TEST(multi, losses_on_two_servers_are_one_event_at_the_first_members_client)
{
    scene s = scene_start(300, 0), t = scene_start(300, 0);
    set m = {0};
    set_add(&m, t.sv, t.cl, "b"); /* the first of the list, not of the order */
    set_add(&m, s.sv, s.cl, "a");
    set_join(&m);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL a");
    expect_lost_event(t.ev, "a");
    server_cmd(t.sv, "DEL b");
    EVENTUALLY(10000, stats_of(t.cl).lost == 1 && stats_of(s.cl).lost == 1);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    set_free(&m);
    scene_free_client(&s);
    scene_free_client(&t);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 1);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
    scene_stop(&t);
}

TEST(multi, without_a_listener_at_the_first_the_lost_members_client_is_told)
{
    scene s = scene_start(300, 0);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 300;
    rlock_client *quiet = server_client(s.sv, &opts);
    set m = {0};
    set_add(&m, s.sv, quiet, "a");
    set_add(&m, s.sv, s.cl, "bc");
    set_join(&m);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL b");
    expect_lost_event(s.ev, "b");
    server_cmd(s.sv, "DEL a");
    server_cmd(s.sv, "DEL c");
    EVENTUALLY(10000, stats_of(quiet).lost == 1 && stats_of(s.cl).lost == 2);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    set_free(&m);
    scene_free_client(&s);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 1);
    rlock_client_free(quiet);
    scene_stop(&s);
}

/* The lost member's own client has no on_event. */
TEST(multi, the_first_members_client_is_told_of_a_loss_at_a_quiet_one)
{
    scene s = scene_start(300, 0);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 300;
    rlock_client *quiet = server_client(s.sv, &opts);
    set m = {0};
    set_add(&m, s.sv, s.cl, "b");
    set_add(&m, s.sv, quiet, "a");
    set_join(&m);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "DEL a");
    expect_lost_event(s.ev, "a");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    set_free(&m);
    rlock_client_free(quiet);
    scene_stop(&s);
}

TEST(multi, a_loss_that_unlock_finds_is_one_event)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "abc");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    server_cmd(s.sv, "FLUSHALL");
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    expect_lost_event(s.ev, NULL);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_NOT_HELD);
    set_end_with_losses(&m, &s, 1);
}

/* One event for each time that it was taken and lost. */
TEST(multi, every_hold_that_is_lost_is_one_event)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "abc");
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        server_cmd(s.sv, "FLUSHALL");
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    }
    events_wait(s.ev, RLOCK_EVENT_LOST, 5, 10000);
    set_end_with_losses(&m, &s, 5);
}

static intptr_t take_and_end(void *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    return RLOCK_OK;
}

TEST(multi, a_thread_that_ends_abandons_the_whole_once)
{
    scene s = scene_start(300, 0), t = scene_start(300, 0);
    set m = set_across(&s, "bc", &t, "a");
    test_join(test_spawn(take_and_end, m.all));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 10000);
    EVENTUALLY(10000, levels(s.sv, "b") == 0 && levels(s.sv, "c") == 0 &&
                          levels(t.sv, "a") == 0);
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    set_free(&m);
    scene_free_client(&s);
    scene_free_client(&t);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_ABANDONED), 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    EXPECT_INT(events_count(t.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
    scene_stop(&t);
}

typedef struct caller {
    rlock *other;
    atomic_int called, failed;
} caller;

static void call_library(const rlock_event *ev, void *arg)
{
    caller *c = arg;
    bool locked;
    if (!c->other ||
        (ev->type != RLOCK_EVENT_ACQUIRED && ev->type != RLOCK_EVENT_RELEASED))
        return;
    atomic_fetch_add(&c->called, 1);
    atomic_fetch_add(&c->failed, rlock_is_locked(c->other, &locked) != 0);
}

/* Even with one connection for all. */
TEST(multi, a_callback_may_call_the_library)
{
    caller c = {0};
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.pool_size = 1;
    opts.command_timeout_ms = 1000;
    opts.on_event = call_library;
    opts.event_arg = &c;
    rlock_client *cl = server_client(s.sv, &opts);
    set m = set_of_client(s.sv, cl, "abc");
    c.other = m.lk[0];
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT_INT(atomic_load(&c.called), 6);
    EXPECT_INT(atomic_load(&c.failed), 0);
    expect_nothing_left(s.sv);
    set_free(&m);
    rlock_client_free(cl);
    scene_stop(&s);
}

static void be_slow(const rlock_event *ev, void *arg)
{
    (void)arg;
    if (ev->type == RLOCK_EVENT_ACQUIRED || ev->type == RLOCK_EVENT_RELEASED)
        test_pause_ms(250);
}

/* The answers have come long ago. */
TEST(multi, a_slow_callback_makes_no_call_fail)
{
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.command_timeout_ms = 200;
    opts.on_event = be_slow;
    rlock_client *cl = server_client(s.sv, &opts);
    set m = set_of_client(s.sv, cl, "abc");
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    set_free(&m);
    rlock_client_free(cl);
    scene_stop(&s);
}

/* --- ends ---------------------------------------------------------------- */

TEST(multi, a_freed_handle_leaves_the_members_held)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    rlock_free(m.all);
    m.all = NULL;
    EVENTUALLY(10000, stats_of(s.cl).renewals >= 6);
    expect_levels(&m, 1);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_STATUS(rlock_unlock(m.lk[i]), RLOCK_OK);
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

/* Its group is still one. */
TEST(multi, a_loss_after_the_handle_was_freed_is_one_event)
{
    scene s = scene_start(300, 0);
    set m = set_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    rlock_free(m.all);
    m.all = NULL;
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(10000, stats_of(s.cl).lost == 2);
    for (size_t i = 0; i < m.n; i++)
        EXPECT_STATUS(rlock_unlock(m.lk[i]), RLOCK_LOST);
    set_end_with_losses(&m, &s, 1);
}

TEST(multi, the_members_handles_are_its_own)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    rlock *fresh;
    EXPECT_STATUS(rlock_multi_new(m.lk, 2, &fresh), RLOCK_OK);
    rlock_free(m.all);
    m.all = fresh;
    EXPECT(rlock_is_held(m.all)); /* the hold is the thread's */
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

TEST(multi, it_may_outlive_its_clients)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    scene_free_client(&s);
    scene_free_client(&t);
    expect_unheld(m.all);
    EXPECT_STATUS(rlock_acquire(m.all, 100, 0), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_trylock(m.all), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_extend(m.all, 100), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_force_unlock(m.all), RLOCK_ECLOSED);
    rlock_cancel(m.all);
    set_end_across(&m, &s, &t);
}

TEST(multi, a_client_that_is_freed_ends_the_wait)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "a", &t, "b");
    take_by_hand(t.sv, "b", 60000);
    waiter *w = waiter_start(m.all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    asleep(t.sv, "b", t.cl);
    scene_free_client(&t);
    EXPECT_STATUS(waiter_end(w), RLOCK_ECLOSED);
    expect_nothing_left(s.sv);
    set_end_across(&m, &s, &t);
}

static void expect_forked(set *m)
{
    rlock *other = NULL;
    expect_unheld(m->all);
    EXPECT_STATUS(rlock_multi_new(m->lk, m->n, &other), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_multi_new(&m->all, 1, &other), RLOCK_EFORKED);
    EXPECT(!other);
    EXPECT_STATUS(rlock_lock(m->all), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_trylock(m->all), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_acquire(m->all, 10, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(m->all, 10), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(m->all), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_force_unlock(m->all), RLOCK_EFORKED);
    EXPECT_CONTAINS(rlock_last_error()->message, "fork");
    rlock_cancel(m->all);
}

static void use_inherited(child *c, void *arg)
{
    (void)c;
    expect_forked(arg);
    set_free(arg);
}

TEST(multi, a_child_inherits_nothing_and_sends_nothing)
{
    scene s = scene_proxied(0, 0);
    set m = set_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    int sent = proxy_count(s.px, "");
    child_end(child_start(use_inherited, &m));
    EXPECT_INT(proxy_count(s.px, ""), sent);
    EXPECT(rlock_is_held(m.all));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

TEST(multi, a_handle_may_be_shared_by_threads)
{
    scene s = scene_start(0, 0);
    set m = set_of(&s, "abc");
    hall h = {0};
    walker w = {&h, m, SLOW ? 20 : 60};
    test_thread *t[4];
    for (int i = 0; i < 4; i++)
        t[i] = test_spawn(walk, &w);
    for (int i = 0; i < 4; i++)
        test_join(t[i]);
    EXPECT_INT(atomic_load(&h.clashes), 0);
    expect_nothing_left(s.sv);
    set_end(&m, &s);
}

/* The messages of such calls cannot name a server. */
TEST(multi, what_it_cannot_do_is_said_also_when_the_first_client_is_closed)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    set m = set_across(&s, "a", &t, "b");
    bool locked;
    scene_free_client(&s);
    EXPECT_STATUS(rlock_is_locked(m.all, &locked), RLOCK_ENOTSUP);
    EXPECT_STATUS(rlock_acquire(m.all, -2, 0), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_extend(m.all, -1), RLOCK_EINVAL);
    set_end_across(&m, &s, &t);
}
