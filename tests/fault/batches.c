/*
 * Many locks are renewed by one call: what is wrong with one of them, or with
 * the call, ends no other hold.
 */
#include "other_client.h"

#define LOCKS 60

typedef struct many {
    scene s;
    rlock *lk[LOCKS];
} many;

static void name_of(int i, char name[16])
{
    snprintf(name, 16, "b%d", i);
}

/* Several rounds of all that are held. */
static void expect_rounds(const many *m, int held)
{
    watch_renewals(m->s.cl, 3 * held);
}

static int in_batches(const many *m)
{
    return proxy_count(m->s.px, proxy_sha("renew_many"));
}

/* All are held, and are renewed together: the control. */
static many hold_many(void)
{
    many m = {.s = scene_proxied(BRISK_MS, 0)};
    char name[16];
    for (int i = 0; i < LOCKS; i++) {
        name_of(i, name);
        m.lk[i] = test_lock(m.s.cl, name);
        EXPECT_STATUS(rlock_lock(m.lk[i]), RLOCK_OK);
    }
    proxy_forget(m.s.px);
    expect_rounds(&m, LOCKS);
    EXPECT_BETWEEN(in_batches(&m), 1, LOCKS);
    EXPECT_INT(stats_of(m.s.cl).lost, 0);
    return m;
}

static bool is_among(int i, const int lost[], size_t n)
{
    bool found = false;
    for (size_t k = 0; k < n; k++)
        found = found || lost[k] == i;
    return found;
}

/* These are lost, and no others. */
static void expect_lost(many *m, const int lost[], size_t n)
{
    EVENTUALLY(20000, stats_of(m->s.cl).lost == n);
    expect_rounds(m, LOCKS - (int)n);
    for (int i = 0; i < LOCKS; i++) {
        bool held = !is_among(i, lost, n);
        EXPECT(rlock_is_held(m->lk[i]) == held);
        EXPECT_STATUS(rlock_unlock(m->lk[i]), held ? RLOCK_OK : RLOCK_LOST);
        rlock_free(m->lk[i]);
    }
    EXPECT_INT(stats_of(m->s.cl).lost, n);
    scene_stop(&m->s);
}

TEST(batches, fault_123_a_lock_that_is_gone_takes_no_other_with_it)
{
    static const int lost[] = {0, 31, 59};
    many m = hold_many();
    EXPECT_INT(server_int(m.s.sv, "DEL b0 b31 b59"), 3);
    expect_lost(&m, lost, 3);
}

TEST(batches, fault_123_a_key_that_is_no_lock_any_more_takes_no_other_with_it)
{
    static const int lost[] = {7};
    many m = hold_many();
    EXPECT_STR(server_str(m.s.sv, "SET b7 something"), "OK");
    expect_lost(&m, lost, 1);
}

TEST(batches, fault_123_scripts_that_are_gone_come_back_once_for_a_batch)
{
    many m = hold_many();
    uint64_t loads = stats_of(m.s.cl).script_loads;
    EXPECT_STR(server_str(m.s.sv, "SCRIPT FLUSH"), "OK");
    expect_rounds(&m, LOCKS);
    EXPECT_BETWEEN(stats_of(m.s.cl).script_loads - loads, 1, LOCKS / 4);
    EXPECT_INT(stats_of(m.s.cl).renew_failures, 0);
    expect_lost(&m, NULL, 0);
}

/* Redis refuses the call as a whole then. */
TEST(batches, fault_123_a_right_that_is_missing_for_one_key_ends_no_other_hold)
{
    static const int lost[] = {40};
    many m = hold_many();
    EXPECT_STR(server_str(m.s.sv, "ACL SETUSER default resetkeys ~b0 ~b1* ~b2* "
                                  "~b3* ~b5* ~b6 ~b7 ~b8 ~b9 ~b4 ~b41 ~b42 "
                                  "~b43 ~b44 ~b45 ~b46 ~b47 ~b48 ~b49 "
                                  "~rlock_*"),
               "OK");
    EVENTUALLY(20000, stats_of(m.s.cl).lost == 1);
    EXPECT_STR(server_str(m.s.sv, "ACL SETUSER default allkeys"), "OK");
    expect_lost(&m, lost, 1);
}

static void disturb_the_next(proxy_action action, const char *answer)
{
    many m = hold_many();
    proxy_rule(m.s.px, proxy_sha("renew_many"), 1, action, answer);
    EVENTUALLY(20000, proxy_fired(m.s.px));
    expect_rounds(&m, LOCKS);
    expect_lost(&m, NULL, 0);
}

TEST_CASE(batches, fault_123_an_answer_that_is_too_short_is_none,
          disturb_the_next(PROXY_ANSWER, "$1\r\n0\r\n"))
TEST_CASE(batches, fault_123_an_answer_of_another_type_is_none,
          disturb_the_next(PROXY_ANSWER, ":0\r\n"))

TEST_CASE(batches, fault_123_a_call_that_is_cut_off_is_made_again,
          disturb_the_next(PROXY_CUT_BEFORE, NULL))
TEST_CASE(batches, fault_123_a_call_that_is_cut_off_once_executed_is_made_again,
          disturb_the_next(PROXY_CUT_AFTER, NULL))
TEST_CASE(batches, fault_123_half_an_answer_is_none,
          disturb_the_next(PROXY_CUT_IN_REPLY, NULL))
