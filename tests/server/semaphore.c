/*
 * Semaphores on threads: never more permits than there are, in the order of the
 * first tries, and given back once, by whatever thread.
 */
#include <stdatomic.h>

#include "other_client.h"
#include "permits.h"

/* Two clients of one server, of which each has a handle for three permits. */
typedef struct pair {
    scene s;
    other_client o;
    rlock_semaphore *mine, *theirs;
} pair;

static pair pair_start(int64_t lease_ms)
{
    pair p = {.s = scene_start(lease_ms, 0)};
    p.o = other_client_join(&p.s, NULL);
    p.mine = test_semaphore(p.s.cl, POOL, 3);
    p.theirs = test_semaphore(p.o.cl, POOL, 3);
    return p;
}

static void pair_stop(pair *p)
{
    rlock_semaphore_free(p->mine);
    rlock_semaphore_free(p->theirs);
    other_client_leave(&p->o);
    scene_stop(&p->s);
}

/* --- taking, and giving back ---------------------------------------------- */

TEST(semaphore, so_many_may_have_one_at_a_time)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 1, RLOCK_WATCHDOG),
                 *b = take(p.theirs, 2, RLOCK_WATCHDOG), *none;
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 1, 0, RLOCK_WATCHDOG, &none),
                  RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "semaphore 'pool' at ");
    EXPECT_CONTAINS(rlock_last_error()->message, "0 are free, and 0 wait");
    EXPECT(!none);
    EXPECT_INT(free_of(p.mine), 0);
    EXPECT_INT(held_at(p.s.sv), 3);
    give_back(a);
    EXPECT_INT(free_of(p.theirs), 1);
    give_back(b);
    expect_pool_left(p.s.sv, 3);
    pair_stop(&p);
}

/* It is no lock: who has one and wants another has two. */
TEST(semaphore, a_thread_has_as_many_as_it_has_taken)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 1, RLOCK_WATCHDOG),
                 *b = take(p.mine, 1, RLOCK_WATCHDOG);
    EXPECT_INT(free_of(p.mine), 1);
    EXPECT_INT(stats_of(p.s.cl).held_now, 2);
    give_back(a);
    EXPECT(rlock_permit_is_held(b));
    EXPECT_INT(free_of(p.mine), 2);
    give_back(b);
    EXPECT_INT(stats_of(p.s.cl).held_now, 0);
    pair_stop(&p);
}

static intptr_t release_there(void *p)
{
    return rlock_permit_release(p);
}

TEST(semaphore, any_thread_gives_back_what_a_thread_that_has_ended_has_taken)
{
    pair p = pair_start(0);
    rlock_permit *has;
    taker *t = taker_start(p.mine, 2, 0, RLOCK_WATCHDOG);
    EXPECT_STATUS(taker_end(t, &has, NULL), RLOCK_OK);
    EXPECT(rlock_permit_is_held(has));
    EXPECT_INT(test_join(test_spawn(release_there, has)), RLOCK_OK);
    EXPECT_INT(free_of(p.mine), 3);
    EXPECT_INT(events_count(p.s.ev, RLOCK_EVENT_ABANDONED), 0);
    pair_stop(&p);
}

TEST(semaphore, permits_outlive_the_handle_that_they_were_taken_by)
{
    pair p = pair_start(0);
    rlock_permit *has = take(p.mine, 2, RLOCK_WATCHDOG);
    rlock_semaphore_free(p.mine);
    p.mine = NULL;
    EXPECT(rlock_permit_is_held(has));
    EXPECT_STATUS(rlock_permit_extend(has, 60000), RLOCK_OK);
    give_back(has);
    EXPECT_INT(free_of(p.theirs), 3);
    pair_stop(&p);
}

TEST(semaphore, what_is_there_wins_over_what_a_handle_says)
{
    pair p = pair_start(0);
    rlock_semaphore *ten = test_semaphore(p.s.cl, POOL, 10);
    give_back(take(p.mine, 3, RLOCK_WATCHDOG));
    EXPECT_INT(free_of(ten), 3);
    rlock_semaphore_free(ten);
    pair_stop(&p);
}

TEST(semaphore, a_thousand_are_taken_at_once)
{
    pair p = pair_start(0);
    rlock_semaphore *many = test_semaphore(p.s.cl, "many", 1500);
    rlock_permit *has = take(many, RLOCK_PERMITS_MAX, RLOCK_WATCHDOG);
    EXPECT_INT(free_of(many), 500);
    EXPECT_INT(server_int(p.s.sv, "ZCARD {many}:timeout"), 1000);
    EXPECT_STATUS(rlock_permit_extend(has, 60000), RLOCK_OK);
    give_back(has);
    EXPECT_INT(free_of(many), 1500);
    rlock_semaphore_free(many);
    pair_stop(&p);
}

/* --- waiting -------------------------------------------------------------- */

TEST(semaphore, who_waits_is_granted_his_by_the_release)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 3, RLOCK_WATCHDOG), *b;
    taker *t = taker_stand(p.s.sv, p.theirs, 2, 1);
    test_pause_ms(20);
    int64_t freed_ms = test_now_ms(), at_ms;
    give_back(a);
    EXPECT_STATUS(taker_end(t, &b, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, WELL_BEFORE_POLL_MS);
    EXPECT(rlock_permit_is_held(b));
    EXPECT_INT(free_of(p.mine), 1);
    give_back(b);
    pair_stop(&p);
}

TEST(semaphore, whatever_they_want_the_first_to_come_are_the_first_served)
{
    enum { N = 6 };
    static const int wants[N] = {3, 1, 2, 1, 3, 1};
    pair p = pair_start(0);
    rlock_permit *has[N], *all = take(p.mine, 3, RLOCK_WATCHDOG);
    taker *t[N];
    for (int i = 0; i < N; i++)
        t[i] = taker_stand(p.s.sv, i % 2 ? p.mine : p.theirs, wants[i], i + 1);
    give_back(all);
    EXPECT_STATUS(taker_end(t[0], &has[0], NULL), RLOCK_OK);
    EXPECT(!taker_returned(t[1]) && standing_at(p.s.sv) == N - 1);
    give_back(has[0]);
    EXPECT_STATUS(taker_end(t[1], &has[1], NULL), RLOCK_OK);
    EXPECT_STATUS(taker_end(t[2], &has[2], NULL), RLOCK_OK);
    EXPECT(!taker_returned(t[3]));
    give_back(has[1]); /* there is one free now, for the fourth */
    EXPECT_STATUS(taker_end(t[3], &has[3], NULL), RLOCK_OK);
    give_back(has[2]); /* and two, while the fifth wants three */
    EXPECT(!taker_returned(t[4]) && !taker_returned(t[5]));
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 1, 0, 5000, &all),
                  RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "2 are free, and 2 wait");
    give_back(has[3]);
    EXPECT_STATUS(taker_end(t[4], &has[4], NULL), RLOCK_OK);
    EXPECT(!taker_returned(t[5]));
    give_back(has[4]);
    EXPECT_STATUS(taker_end(t[5], NULL, NULL), RLOCK_OK);
    expect_pool_left(p.s.sv, 3);
    pair_stop(&p);
}

TEST(semaphore, who_gives_up_leaves_the_line)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 2, RLOCK_WATCHDOG), *none;
    taker *t = taker_stand(p.s.sv, p.theirs, 2, 1);
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 1, 50, 5000, &none),
                  RLOCK_TIMEOUT);
    EXPECT(!none && standing_at(p.s.sv) == 1);
    rlock_semaphore_cancel(p.theirs);
    EXPECT_STATUS(taker_end(t, &none, NULL), RLOCK_CANCELED);
    EXPECT(!none && standing_at(p.s.sv) == 0);
    give_back(take(p.mine, 1, RLOCK_WATCHDOG));
    give_back(a);
    expect_pool_left(p.s.sv, 3);
    pair_stop(&p);
}

/* Whom he kept waiting goes on. */
TEST(semaphore, when_the_first_gives_up_those_behind_are_granted_theirs)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 1, RLOCK_WATCHDOG);
    taker *first = taker_start(p.mine, 3, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, standing_at(p.s.sv) == 1);
    taker *t = taker_stand(p.s.sv, p.theirs, 2, 2);
    rlock_semaphore_cancel(p.mine);
    EXPECT_STATUS(taker_end(first, NULL, NULL), RLOCK_CANCELED);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_OK);
    give_back(a);
    pair_stop(&p);
}

TEST(semaphore, a_cancel_of_the_client_ends_all_waits)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.theirs, 3, RLOCK_WATCHDOG), *none;
    taker *t = taker_stand(p.s.sv, p.mine, 2, 1);
    EXPECT_STATUS(rlock_client_cancel(p.s.cl, true), RLOCK_OK);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_CANCELED);
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 1, 50, 5000, &none),
                  RLOCK_CANCELED);
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 1, 0, 5000, &none),
                  RLOCK_BUSY);
    give_back(a);
    pair_stop(&p);
}

TEST(semaphore, freeing_the_client_ends_waits_and_permits_are_let_go_of)
{
    pair p = pair_start(BRISK_MS);
    rlock_permit *a = take(p.mine, 2, RLOCK_WATCHDOG);
    rlock_permit *b = take(p.theirs, 1, RLOCK_WATCHDOG);
    taker *t = taker_stand(p.s.sv, p.mine, 2, 1);
    scene_free_client(&p.s);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_ECLOSED);
    EXPECT(!rlock_permit_is_held(a));
    EXPECT_STATUS(rlock_permit_extend(a, 5000), RLOCK_ECLOSED);
    EXPECT_STATUS(rlock_permit_release(a), RLOCK_ECLOSED);
    give_back(b);
    rlock_permit *all;
    EXPECT_STATUS(
        rlock_semaphore_acquire(p.theirs, 3, SOON, RLOCK_WATCHDOG, &all),
        RLOCK_OK);
    give_back(all);
    pair_stop(&p);
}

TEST(semaphore, closing_the_client_gives_back_what_it_holds)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 2, RLOCK_WATCHDOG);
    rlock_free(p.s.lk);
    p.s.lk = NULL;
    EXPECT_STATUS(rlock_client_close(p.s.cl, RLOCK_CLOSE_RELEASE_HELD),
                  RLOCK_OK);
    p.s.cl = NULL;
    EXPECT_INT(free_of(p.theirs), 3);
    EXPECT_STATUS(rlock_permit_release(a), RLOCK_ECLOSED);
    pair_stop(&p);
}

/* --- leases --------------------------------------------------------------- */

TEST(semaphore, renewed_permits_outlive_their_lease)
{
    pair p = pair_start(BRISK_MS);
    rlock_permit *a = take(p.mine, 1, RLOCK_WATCHDOG),
                 *b = take(p.mine, 2, RLOCK_WATCHDOG);
    watch_renewals(p.s.cl, 8);
    EXPECT(rlock_permit_is_held(a) && rlock_permit_is_held(b));
    EXPECT_BETWEEN(rlock_permit_valid_ms(a), 1, BRISK_MS);
    EXPECT_INT(free_of(p.theirs), 0);
    give_back(a);
    give_back(b);
    EXPECT_INT(stats_of(p.s.cl).lost, 0);
    expect_pool_left(p.s.sv, 3);
    pair_stop(&p);
}

TEST(semaphore, many_are_renewed_by_few_calls)
{
    enum { MANY = 60, TIMES = 2 };
    pair p = pair_start(BRISK_MS);
    rlock_permit *has[MANY];
    rlock_semaphore *many = test_semaphore(p.s.cl, "many", MANY);
    for (int i = 0; i < MANY; i++)
        has[i] = take(many, 1, RLOCK_WATCHDOG);
    watch_renewals(p.s.cl, MANY);
    long long before = script_calls(p.s.sv);
    watch_renewals(p.s.cl, TIMES * MANY);
    EXPECT_BETWEEN(script_calls(p.s.sv) - before, 1, TIMES * MANY / 4);
    for (int i = 0; i < MANY; i++)
        give_back(has[i]);
    EXPECT_INT(stats_of(p.s.cl).lost, 0);
    EXPECT_INT(free_of(many), MANY);
    rlock_semaphore_free(many);
    pair_stop(&p);
}

TEST(semaphore, a_lease_of_its_own_ends_and_is_told_once)
{
    test_lease(TEST_LEASE_MS);
    pair p = pair_start(0);
    rlock_event ev;
    rlock_permit *a = take(p.mine, 2, TEST_LEASE_MS);
    int fd = rlock_permit_lost_fd(a);
    EXPECT(fd >= 0 && rlock_permit_lost_fd(a) == fd);
    EXPECT_BETWEEN(rlock_permit_valid_ms(a), 1, TEST_LEASE_MS);
    events_wait(p.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_last(p.s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_INT(ev.kind, RLOCK_KIND_PERMIT);
    EXPECT_STR(ev.name, POOL);
    EXPECT_INT(ev.token, 0);
    EXPECT(!rlock_permit_is_held(a) && rlock_permit_valid_ms(a) == 0);
    EXPECT_STATUS(rlock_permit_extend(a, 5000), RLOCK_LOST);
    EVENTUALLY(SOON, free_of(p.theirs) == 3); /* a little later */
    give_back(take(p.theirs, 3, RLOCK_WATCHDOG));
    EXPECT_STATUS(rlock_permit_release(a), RLOCK_LOST);
    EXPECT_INT(events_count(p.s.ev, RLOCK_EVENT_LOST), 1);
    EXPECT_INT(stats_of(p.s.cl).lost, 1);
    EXPECT_INT(free_of(p.theirs), 3);
    pair_stop(&p);
}

TEST(semaphore, an_extend_sets_the_lease_of_all)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 2, 5000);
    EXPECT_STATUS(rlock_permit_extend(a, 60000), RLOCK_OK);
    EXPECT_BETWEEN(rlock_permit_valid_ms(a), 40000, 60000);
    EXPECT_STATUS(rlock_permit_extend(a, 2), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_permit_extend(a, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(rlock_permit_is_held(a));
    give_back(a);
    pair_stop(&p);
}

/* Somebody has taken one of them away: all are lost, and the other is given back. */
TEST(semaphore, who_is_robbed_of_one_has_lost_all)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 2, 60000);
    server_cmd(p.s.sv, "ZPOPMIN " POOL_PERMITS);
    server_cmd(p.s.sv, "INCR " POOL);
    EXPECT_STATUS(rlock_permit_extend(a, 90000), RLOCK_LOST);
    EXPECT(!rlock_permit_is_held(a));
    EXPECT_STATUS(rlock_permit_release(a), RLOCK_LOST);
    EVENTUALLY(SOON, held_at(p.s.sv) == 0);
    EXPECT_INT(free_of(p.theirs), 3);
    EXPECT_INT(events_count(p.s.ev, RLOCK_EVENT_LOST), 1);
    pair_stop(&p);
}

TEST(semaphore, a_server_that_has_lost_its_data_has_all_again)
{
    pair p = pair_start(BRISK_MS);
    rlock_permit *a = take(p.mine, 3, RLOCK_WATCHDOG);
    server_cmd(p.s.sv, "FLUSHALL");
    events_wait(p.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    give_back(take(p.theirs, 3, RLOCK_WATCHDOG));
    EXPECT_STATUS(rlock_permit_release(a), RLOCK_LOST);
    expect_pool_left(p.s.sv, 3);
    pair_stop(&p);
}

/* --- how many there are --------------------------------------------------- */

TEST(semaphore, more_are_granted_at_once_and_fewer_are_missed_later)
{
    pair p = pair_start(0);
    rlock_permit *a = take(p.mine, 3, RLOCK_WATCHDOG), *b, *none;
    taker *t = taker_stand(p.s.sv, p.theirs, 2, 1);
    EXPECT_STATUS(rlock_semaphore_add(p.mine, 1), RLOCK_OK);
    EXPECT(!taker_returned(t));
    EXPECT_STATUS(rlock_semaphore_add(p.mine, 2), RLOCK_OK);
    EXPECT_STATUS(taker_end(t, &b, NULL), RLOCK_OK);
    EXPECT_INT(free_of(p.mine), 1);
    EXPECT_STATUS(rlock_semaphore_add(p.mine, -4), RLOCK_OK);
    EXPECT_INT(free_of(p.mine), -3);
    give_back(a);
    EXPECT_INT(free_of(p.mine), 0);
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 1, 0, 5000, &none),
                  RLOCK_BUSY);
    give_back(b);
    EXPECT_INT(free_of(p.mine), 2);
    pair_stop(&p);
}

TEST(semaphore, without_a_number_one_waits_until_somebody_says_it)
{
    pair p = pair_start(0);
    rlock_semaphore *open = test_semaphore(p.s.cl, POOL, 0);
    rlock_permit *none;
    EXPECT_STATUS(rlock_semaphore_acquire(open, 1, 0, 5000, &none), RLOCK_BUSY);
    EXPECT_INT(free_of(open), 0);
    taker *t = taker_stand(p.s.sv, open, 1, 1);
    EXPECT_STATUS(rlock_semaphore_add(open, 2), RLOCK_OK);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_OK);
    EXPECT_INT(free_of(open), 2);
    rlock_semaphore_free(open);
    pair_stop(&p);
}

static rlock_semaphore *idle_semaphore(rlock_client *cl, int64_t idle_ms)
{
    rlock_semaphore *s;
    rlock_semaphore_options o = RLOCK_SEMAPHORE_OPTIONS_INIT;
    o.permits = 3;
    o.idle_ms = idle_ms;
    EXPECT_STATUS(rlock_semaphore_new_ex(cl, POOL, strlen(POOL), &o, &s),
                  RLOCK_OK);
    return s;
}

#define IDLE_MAX_MS ((int64_t)1 << 41)

TEST(semaphore, the_longest_idle_time_is_as_long_as_it_says)
{
    pair p = pair_start(0);
    rlock_semaphore *job = idle_semaphore(p.s.cl, IDLE_MAX_MS);
    give_back(take(job, 1, RLOCK_WATCHDOG));
    EXPECT_BETWEEN(key_ttl(p.s.sv, POOL), IDLE_MAX_MS - 60000,
                   IDLE_MAX_MS + 1000);
    rlock_semaphore_free(job);
    pair_stop(&p);
}

TEST(semaphore, keys_that_nobody_uses_go_when_their_time_is_over)
{
    pair p = pair_start(0);
    rlock_semaphore *job = idle_semaphore(p.s.cl, 1000);
    rlock_permit *a = take(job, 1, 60000);
    EXPECT_BETWEEN(key_ttl(p.s.sv, POOL), 40000, 60000);
    EXPECT_BETWEEN(key_ttl(p.s.sv, POOL_PERMITS), 40000, 60000);
    give_back(a);
    EVENTUALLY(SOON, !key_exists(p.s.sv, POOL));
    give_back(take(job, 3, RLOCK_WATCHDOG));
    rlock_semaphore_free(job);
    pair_stop(&p);
}

/* --- what is refused ------------------------------------------------------ */

static void expect_no_semaphore(rlock_client *cl, const char *name,
                                const rlock_semaphore_options *o,
                                const char *why)
{
    rlock_semaphore *none = (rlock_semaphore *)cl;
    EXPECT_STATUS(
        rlock_semaphore_new_ex(cl, name, name ? strlen(name) : 0, o, &none),
        RLOCK_EINVAL);
    EXPECT(!none);
    EXPECT_CONTAINS(rlock_last_error()->message, why);
}

TEST(semaphore, what_is_no_name_or_option_is_refused)
{
    pair p = pair_start(0);
    rlock_semaphore_options o = RLOCK_SEMAPHORE_OPTIONS_INIT;
    expect_no_semaphore(p.s.cl, "{a}", NULL, "in braces");
    expect_no_semaphore(p.s.cl, "{a}{}", NULL, "in braces");
    expect_no_semaphore(p.s.cl, "", NULL, "name");
    expect_no_semaphore(p.s.cl, NULL, NULL, "name");
    expect_no_semaphore(p.s.cl, "redisson_sc:a", NULL, "redisson_sc:");
    expect_no_semaphore(NULL, "a", NULL, "client");
    o.permits = -1;
    expect_no_semaphore(p.s.cl, "a", &o, "permits");
    o.permits = RLOCK_SEMAPHORE_MAX + 1;
    expect_no_semaphore(p.s.cl, "a", &o, "permits");
    o.permits = 0;
    o.idle_ms = -1;
    expect_no_semaphore(p.s.cl, "a", &o, "idle_ms");
    o.idle_ms = IDLE_MAX_MS + 1;
    expect_no_semaphore(p.s.cl, "a", &o, "idle_ms");
    o.idle_ms = 0;
    o.min_replicas = 17;
    expect_no_semaphore(p.s.cl, "a", &o, "min_replicas");
    o.size = 3;
    expect_no_semaphore(p.s.cl, "a", &o, "size");
    EXPECT_STATUS(rlock_semaphore_new(p.s.cl, "a", 1, NULL), RLOCK_EINVAL);
    pair_stop(&p);
}

static void expect_not_sent(rlock_semaphore *s, int n, int64_t wait_ms,
                            int64_t lease_ms)
{
    rlock_permit *none;
    EXPECT_STATUS(rlock_semaphore_acquire(s, n, wait_ms, lease_ms, &none),
                  RLOCK_EINVAL);
    EXPECT(!none);
}

TEST(semaphore, what_is_out_of_range_is_refused_and_nothing_is_sent)
{
    pair p = pair_start(0);
    rlock_semaphore *s = p.mine;
    long long before = script_calls(p.s.sv);
    expect_not_sent(s, 0, 0, 0);
    EXPECT_CONTAINS(rlock_last_error()->message, "semaphore 'pool'");
    expect_not_sent(s, -1, 0, 0);
    expect_not_sent(s, 1001, 0, 0);
    expect_not_sent(s, 65537, 0, 0);
    expect_not_sent(s, 1, -2, 0);
    expect_not_sent(s, 1, 0, 2);
    expect_not_sent(NULL, 1, 0, 0);
    EXPECT_STATUS(rlock_semaphore_acquire(s, 1, 0, 0, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_add(s, RLOCK_SEMAPHORE_MAX + 1),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_add(s, -RLOCK_SEMAPHORE_MAX - 1),
                  RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_add(NULL, 1), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_semaphore_available(s, NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_permit_release(NULL), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_permit_extend(NULL, 0), RLOCK_EINVAL);
    EXPECT(!rlock_permit_is_held(NULL) && rlock_permit_valid_ms(NULL) == 0);
    EXPECT_INT(rlock_permit_lost_fd(NULL), -1);
    rlock_semaphore_cancel(NULL);
    rlock_semaphore_free(NULL);
    EXPECT_INT(script_calls(p.s.sv), before);
    pair_stop(&p);
}

TEST(semaphore, what_is_no_semaphore_is_left_alone)
{
    pair p = pair_start(0);
    rlock_permit *none;
    int64_t n;
    rlock *lk = test_lock(p.s.cl, POOL);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 1, 5000, 0, &none),
                  RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_semaphore_add(p.mine, 1), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_semaphore_available(p.mine, &n), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_permit *has = take(p.mine, 1, RLOCK_WATCHDOG);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EWRONGTYPE);
    server_cmd(p.s.sv, "SET " POOL " x");
    EXPECT_STATUS(rlock_permit_release(has), RLOCK_EWRONGTYPE);
    EXPECT_STR(server_str(p.s.sv, "GET " POOL), "x");
    rlock_free(lk);
    pair_stop(&p);
}

TEST(semaphore, more_than_there_are_is_waited_for)
{
    pair p = pair_start(0);
    rlock_permit *none;
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 4, 0, 0, &none), RLOCK_BUSY);
    EXPECT_STATUS(rlock_semaphore_acquire(p.mine, 4, 50, 0, &none),
                  RLOCK_TIMEOUT);
    taker *t = taker_stand(p.s.sv, p.mine, 4, 1);
    EXPECT_STATUS(rlock_semaphore_add(p.theirs, 1), RLOCK_OK);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_OK);
    pair_stop(&p);
}

/* --- many ----------------------------------------------------------------- */

enum { CROWD = 12, ROUNDS = SANITIZED ? 20 : 60 };

typedef struct crowd {
    rlock_semaphore *of[2];
    atomic_int next, inside, most;
} crowd;

static void note_most(crowd *c, int now)
{
    int most = atomic_load(&c->most);
    while (now > most && !atomic_compare_exchange_weak(&c->most, &most, now))
        ;
}

static intptr_t come_and_go(void *arg)
{
    crowd *c = arg;
    int me = atomic_fetch_add(&c->next, 1);
    for (int i = 0; i < ROUNDS; i++) {
        rlock_permit *p;
        int n = 1 + (me + i) % 3;
        EXPECT_STATUS(rlock_semaphore_acquire(c->of[me % 2], n, RLOCK_FOREVER,
                                              RLOCK_WATCHDOG, &p),
                      RLOCK_OK);
        note_most(c, atomic_fetch_add(&c->inside, n) + n);
        atomic_fetch_sub(&c->inside, n);
        EXPECT_STATUS(rlock_permit_release(p), RLOCK_OK);
    }
    return 0;
}

TEST(semaphore, there_are_never_more_inside_than_there_are_permits)
{
    pair p = pair_start(0);
    crowd c = {.of = {p.mine, p.theirs}};
    test_thread *t[CROWD];
    for (int i = 0; i < CROWD; i++)
        t[i] = test_spawn(come_and_go, &c);
    for (int i = 0; i < CROWD; i++)
        test_join(t[i]);
    EXPECT_BETWEEN(atomic_load(&c.most), 1, 3);
    EXPECT_INT(stats_of(p.s.cl).lost + stats_of(p.o.cl).lost, 0);
    expect_pool_left(p.s.sv, 3);
    pair_stop(&p);
}
