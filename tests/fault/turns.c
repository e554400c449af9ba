/*
 * Faults in the middle of a turn, in which threads pass a lock on without
 * asking the server. Each test begins with passes that go well.
 */
#include "turns.h"
#include "other_client.h"

/* The server does not have it any more, and who owns it does not know. */
static void forget_data(turns *t)
{
    EXPECT_STR(server_str(t->s.sv, "FLUSHALL"), "OK");
}

static void force(turns *t)
{
    other_client r = other_client_join(&t->s, NULL);
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    other_client_leave(&r);
}

/* --- 121 -------------------------------------------------------------------
 */

/* The last of them frees the lock, and asks for that. */
static void found_at_the_end(void (*lose)(turns *t))
{
    turns t = turns_passed(0, NULL);
    turns_go_on(&t);
    lose(&t);
    other_client r = other_client_join(&t.s, NULL);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT(rlock_token(r.lk) > turns_token(&t));
    uint64_t rivals = rlock_token(r.lk);
    EXPECT_STATUS(waiter_end(t.w[t.owner]), RLOCK_OK); /* passed, or lost */
    t.w[t.owner++] = NULL;
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(t.w[t.owner]), RLOCK_OK);
    t.owner = PASSERS;
    events_wait(t.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(stats_of(t.s.cl).lost, 1);
    EXPECT_STATUS(rlock_lock(t.s.lk), RLOCK_OK); /* all is well again */
    EXPECT(rlock_token(t.s.lk) > rivals);
    EXPECT_STATUS(rlock_unlock(t.s.lk), RLOCK_OK);
    EXPECT_INT(events_count(t.s.ev, RLOCK_EVENT_LOST), 1);
    other_client_leave(&r);
    turns_end(&t);
}

TEST_CASE(turns, fault_121_data_lost_in_mid_turn_is_found_at_its_end,
          found_at_the_end(forget_data))
TEST_CASE(turns, fault_121_a_forced_unlock_in_mid_turn_is_found_at_its_end,
          found_at_the_end(force))

static void found_by_the_watchdog(void (*lose)(turns *t))
{
    turns t = turns_passed(BRISK_MS, NULL);
    watch_renewals(t.s.cl, 1); /* one that goes well */
    lose(&t);
    events_wait(t.s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_CONTAINS(events_message(t.s.ev, RLOCK_EVENT_LOST),
                    "no longer knows");
    turns_go_on(&t); /* who waits has looked */
    EXPECT_INT(levels(t.s.sv, SCENE_LOCK), 1);
    EXPECT_INT(events_count(t.s.ev, RLOCK_EVENT_LOST), 1);
    turns_end(&t);
}

TEST_CASE(turns, fault_121_data_lost_in_mid_turn_is_found_by_the_watchdog,
          found_by_the_watchdog(forget_data))
TEST_CASE(turns, fault_121_a_forced_unlock_in_mid_turn_is_found_by_the_watchdog,
          found_by_the_watchdog(force))

/* --- 122 -------------------------------------------------------------------
 */

#define HOUR_S 3600

/* So the tokens of the turn are behind those that its clock would give. */
static void put_clock_back(scene *s)
{
    server_set_clock(s->sv, 0);
}

static void put_clock_forward(scene *s)
{
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    server_set_clock(s->sv, HOUR_S);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
}

TEST(turns, fault_122_with_a_clock_put_back_no_token_is_used_twice)
{
    turns t = turns_passed(0, put_clock_forward);
    uint64_t second = turns_token(&t);
    put_clock_back(&t.s);
    turns_go_on(&t);
    uint64_t third = turns_token(&t);
    EXPECT(third > second);
    other_client r = other_client_join(&t.s, NULL);
    EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    EXPECT(rlock_token(r.lk) > third + 1); /* which the next may have */
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    other_client_leave(&r);
    turns_end(&t);
}
