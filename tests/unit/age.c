/* Holds by age: the oldest, and those of which the program is told. */
#include "hold.h"

#define WARN_MS 500

#define HELD_LONG (1u << RLOCK_EVENT_HELD_LONG)

static void open_warned(play *p, size_t clients)
{
    play_open(p, clients);
    for (size_t i = 0; i < clients; i++)
        play_core(p, i)->holds.warn_us = WARN_MS * MS;
}

/* True: there are more. */
static bool warn(play *p, size_t i, size_t most)
{
    rl_holds *t = &play_core(p, i)->holds;
    rl_mutex_lock(&t->mutex);
    bool more = rl_holds_warn_locked(t, most, p->now_us);
    rl_mutex_unlock(&t->mutex);
    return more;
}

/* What is reported of all that is too old now. */
static unsigned warned(play *p, size_t i)
{
    EXPECT(!warn(p, i, SIZE_MAX));
    return take_reports(p, i);
}

static int64_t age_due(play *p)
{
    rl_mutex_lock(&table(p)->mutex);
    int64_t us = rl_holds_age_due_locked(table(p));
    rl_mutex_unlock(&table(p)->mutex);
    return us;
}

static uint64_t warnings(play *p, size_t i)
{
    return rl_count_of(&play_core(p, i)->stats.warned[RL_WARNED_HELD]);
}

TEST(age, a_hold_that_gets_too_old_is_told_once)
{
    play p;
    open_warned(&p, 1);
    rl_hold *h = play_hold(&p, 0, "job", LEASE_MS);
    EXPECT_INT(age_due(&p), p.now_us + WARN_MS * MS);
    play_pass(&p, WARN_MS * MS - 1);
    EXPECT_INT(warned(&p, 0), 0);
    play_pass(&p, 1);
    EXPECT_INT(warned(&p, 0), HELD_LONG);
    EXPECT_INT(age_due(&p), RL_NEVER);
    play_pass(&p, WARN_MS * MS);
    EXPECT_INT(warned(&p, 0), 0);
    EXPECT_INT(warnings(&p, 0), 1);
    EXPECT_INT(h->state, RL_HELD);
    play_close(&p);
}

TEST(age, without_the_option_nothing_gets_too_old)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT_INT(age_due(&p), RL_NEVER);
    play_pass(&p, 5000 * MS);
    EXPECT_INT(warned(&p, 0), 0);
    end(&p, h);
    play_close(&p);
}

TEST(age, the_notifier_wakes_for_the_first_and_not_for_those_behind)
{
    play p;
    open_warned(&p, 1);
    table(&p)->sleeps_us = p.now_us + WARN_MS * MS + 1;
    play_hold(&p, 0, "first", LEASE_MS);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 1);
    EXPECT_INT(table(&p)->sleeps_us, p.now_us + WARN_MS * MS);
    play_pass(&p, 10 * MS);
    play_hold(&p, 0, "second", LEASE_MS);
    EXPECT_INT(p.client[0].wakes[PLAY_NOTIFIER], 1);
    play_close(&p);
}

TEST(age, what_has_ended_is_not_told)
{
    play p;
    open_warned(&p, 1);
    rl_hold *first = play_hold(&p, 0, "first", LEASE_MS);
    play_pass(&p, 100 * MS);
    rl_hold *second = play_hold(&p, 0, "second", LEASE_MS);
    end(&p, first);
    EXPECT_INT(age_due(&p), second->began_us + WARN_MS * MS);
    lose(&p, 0, second, RL_LOSS_GONE);
    EXPECT_INT(age_due(&p), RL_NEVER);
    play_pass(&p, WARN_MS * MS);
    EXPECT_INT(warned(&p, 0), LOST);
    play_close(&p);
}

/* Passed on in a turn, it is another owner's, and as old as that one's. */
TEST(age, a_hold_that_begins_anew_is_young_again)
{
    play p;
    open_warned(&p, 1);
    rl_hold *h = play_hold(&p, 0, "job", RLOCK_WATCHDOG);
    for (int i = 0; i < 2; i++) {
        play_pass(&p, WARN_MS * MS);
        EXPECT_INT(warned(&p, 0), HELD_LONG);
        rl_mutex_lock(&table(&p)->mutex);
        rl_hold_begin_anew_locked(table(&p), h, p.now_us);
        rl_mutex_unlock(&table(&p)->mutex);
        EXPECT_INT(age_due(&p), p.now_us + WARN_MS * MS);
        EXPECT_INT(rl_holds_oldest(table(&p)), p.now_us);
    }
    play_close(&p);
}

TEST(age, what_is_too_old_may_be_the_oldest_still)
{
    play p;
    open_warned(&p, 1);
    rl_hold *first = play_hold(&p, 0, "first", LEASE_MS);
    int64_t began_us = first->began_us;
    play_pass(&p, WARN_MS * MS);
    EXPECT_INT(warned(&p, 0), HELD_LONG);
    rl_hold *second = play_hold(&p, 0, "second", LEASE_MS);
    EXPECT_INT(rl_holds_oldest(table(&p)), began_us);
    end(&p, first);
    EXPECT_INT(rl_holds_oldest(table(&p)), second->began_us);
    play_close(&p);
}

TEST(age, of_many_some_are_told_at_a_time)
{
    play p;
    open_warned(&p, 1);
    char name[5][12];
    for (int i = 0; i < 5; i++) {
        snprintf(name[i], sizeof name[i], "%d", i);
        play_hold(&p, 0, name[i], LEASE_MS);
    }
    play_pass(&p, WARN_MS * MS);
    EXPECT(warn(&p, 0, 3));
    EXPECT_INT(warnings(&p, 0), 3);
    EXPECT(!warn(&p, 0, 3));
    EXPECT_INT(warnings(&p, 0), 5);
    play_close(&p);
}

/* --- late ----------------------------------------------------------------- */

#define RENEW_LATE (1u << RLOCK_EVENT_RENEW_LATE)
#define LATE_US    (PLAY_LEASE_MS * MS / 2 + 1)

/* Though nothing has failed, nor been answered. */
TEST(age, a_renewal_that_does_not_come_is_late_once)
{
    play p;
    play_open(&p, 1);
    table(&p)->late_due_us = RL_NEVER;
    int64_t began_us = p.now_us;
    play_hold(&p, 0, "first", RLOCK_WATCHDOG);
    play_pass(&p, MS);
    play_hold(&p, 0, "second", RLOCK_WATCHDOG);
    play_hold(&p, 0, "by itself", PLAY_LEASE_MS);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(age_due(&p), began_us + i * MS + LATE_US);
        play_pass(&p, age_due(&p) - p.now_us - 1);
        EXPECT_INT(warned(&p, 0), 0);
        play_pass(&p, 1);
        EXPECT_INT(warned(&p, 0), RENEW_LATE);
    }
    EXPECT_INT(age_due(&p), RL_NEVER);
    EXPECT_INT(rl_count_of(&play_core(&p, 0)->stats.warned[RL_WARNED_RENEWAL]),
               2);
    play_close(&p);
}

TEST(age, what_is_renewed_is_looked_at_a_sixth_of_a_lease_later)
{
    play p;
    play_open(&p, 1);
    table(&p)->late_due_us = RL_NEVER;
    rl_hold *h = play_hold(&p, 0, "job", RLOCK_WATCHDOG);
    play_pass(&p, PLAY_LEASE_MS * MS / 3);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_start_renewal_locked(table(&p), h, p.now_us, p.now_us);
    rl_mutex_unlock(&table(&p)->mutex);
    play_pass(&p, age_due(&p) - p.now_us);
    EXPECT_INT(warned(&p, 0), 0);
    EXPECT_INT(age_due(&p), h->renewal_us + PLAY_LEASE_MS * MS / 6 + 1);
    play_close(&p);
}

/* Red's of three clients; Multi's of one. */
static void expect_told_once(size_t clients, size_t quorum)
{
    play p;
    open_warned(&p, clients);
    rl_group *g = rl_group_new(&p.home, quorum);
    EXPECT(g);
    g->began_us = p.now_us;
    for (size_t i = 0; i < 3; i++)
        play_member(
            &p, clients > 1 ? i : 0,
            quorum ? &play_red
                   : &(rl_target){.name = (const char *[]){"a", "b", "c"}[i],
                                  .len = 1,
                                  .layout = RLOCK_LAYOUT_HASH},
            g, LEASE_MS);
    rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED);
    play_pass(&p, WARN_MS * MS);
    uint64_t told = 0;
    for (size_t i = 0; i < clients; i++) {
        EXPECT_INT(warned(&p, i), i == 0 ? HELD_LONG : 0);
        told += warnings(&p, i);
    }
    EXPECT_INT(told, 1);
    rl_group_unref(g);
    play_close(&p);
}

TEST_CASE(age, a_red_lock_is_told_once, expect_told_once(3, 2))
TEST_CASE(age, a_multi_lock_is_told_once, expect_told_once(1, 0))
