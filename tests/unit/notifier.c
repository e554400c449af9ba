/*
 * What is told of holds, of which and when: a turn of the notifier's, which the
 * loop would have; the program fetches its events.
 */
#include "notifier.h"

static void expect_news(const news *n, rlock_event_type type,
                        rlock_status status, int64_t elapsed_ms,
                        const char *message)
{
    EXPECT_INT(n->type, type);
    EXPECT_INT(n->status, status);
    EXPECT_INT(n->elapsed_ms, elapsed_ms);
    EXPECT_STR(n->message, message);
}

static void expect_about(const news *n, const char *owner)
{
    EXPECT_STR(n->name, "job");
    EXPECT_INT(n->name_len, 3);
    EXPECT_INT(n->token, 321);
    EXPECT_INT(n->count, 3);
    EXPECT_STR(n->owner, owner);
}

/* --- when ----------------------------------------------------------------- */

TEST(notifier, sleeps_until_the_first_deadline)
{
    desk d;
    open_desk(&d);
    EXPECT_INT(turn(&d), RL_NEVER);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    EXPECT_INT(turn(&d), h->expiry.due_us);
    EXPECT_INT(holds(&d)->sleeps_us, h->expiry.due_us);
    EXPECT_INT(d.told, 0);
    close_desk(&d);
}

TEST(notifier, is_woken_by_what_is_to_be_told_and_by_a_deadline)
{
    desk d;
    open_desk(&d);
    turn(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    EXPECT(atomic_exchange(&d.e.notifier.watcher.nudged, false));
    turn(&d);
    report(&d, h, RLOCK_EVENT_RENEWED);
    EXPECT(atomic_exchange(&d.e.notifier.watcher.nudged, false));
    close_desk(&d);
}

static void expect_at_once(size_t lost)
{
    desk d;
    open_desk(&d);
    for (size_t i = 0; i < lost; i++) {
        rl_owner o = {.serial = 100 + i, .tid = 1};
        hold_of(&d, &o, NULL, LEASE_MS);
    }
    d.p.now_us += GOOD_US(LEASE_MS);
    EXPECT_INT(turn(&d), lost < 64 ? RL_NEVER : 0);
    EXPECT_INT(d.told, rl_min((int64_t)lost, 64));
    EXPECT_INT(holds(&d)->sleeps_us, lost < 64 ? RL_NEVER : 0);
    EXPECT_INT(turn(&d), RL_NEVER);
    EXPECT_INT(d.told, lost);
    close_desk(&d);
}

TEST_CASE(notifier, tells_all_in_a_turn, expect_at_once(63))
TEST_CASE(notifier, comes_again_after_64, expect_at_once(64))
TEST_CASE(notifier, tells_64_in_a_turn_and_then_the_others, expect_at_once(100))

TEST(notifier, ends_when_all_is_told)
{
    desk d;
    open_desk(&d);
    for (size_t i = 0; i < 65; i++) {
        rl_owner o = {.serial = 100 + i, .tid = 1};
        report(&d, hold_of(&d, &o, NULL, LEASE_MS), RLOCK_EVENT_RENEWED);
    }
    rl_holds_stop(holds(&d));
    EXPECT_INT(turn(&d), 0);
    EXPECT_INT(turn(&d), RL_LOOP_LEAVE);
    EXPECT_INT(d.told, 65);
    close_desk(&d);
}

/* --- what ----------------------------------------------------------------- */

TEST(notifier, a_loss_is_told_at_the_deadline)
{
    desk d;
    open_desk(&d);
    hold_of(&d, &d.owner, NULL, LEASE_MS);
    d.p.now_us += GOOD_US(LEASE_MS) - 1;
    turn(&d);
    EXPECT_INT(d.told, 0);
    d.p.now_us += 1;
    EXPECT_INT(turn(&d), RL_NEVER);
    EXPECT_INT(d.told, 1);
    expect_news(&d.last[0], RLOCK_EVENT_LOST, RLOCK_LOST,
                GOOD_US(LEASE_MS) / 1000, "its lease ran out");
    expect_about(&d.last[0], AGENT);
    turn(&d);
    EXPECT_INT(d.told, 1);
    close_desk(&d);
}

TEST(notifier, of_a_thread_no_label_is_told)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.p.owner, NULL, LEASE_MS);
    d.p.now_us += 1700 * MS;
    report(&d, h, RLOCK_EVENT_RENEWED);
    turn(&d);
    expect_news(&d.last[0], RLOCK_EVENT_RENEWED, RLOCK_OK, 0, "");
    expect_about(&d.last[0], "");
    close_desk(&d);
}

TEST(notifier, what_is_abandoned_is_told_with_its_time)
{
    desk d;
    open_desk(&d);
    hold_of(&d, &d.owner, NULL, LEASE_MS);
    d.p.now_us += 1700 * MS;
    rl_holds_abandon(holds(&d), 7, d.p.now_us);
    turn(&d);
    EXPECT_INT(d.told, 1);
    expect_news(&d.last[0], RLOCK_EVENT_ABANDONED, RLOCK_OK, 1700,
                "the owner ended while holding it");
    expect_about(&d.last[0], AGENT);
    close_desk(&d);
}

TEST(notifier, what_is_held_for_too_long_is_told_in_time)
{
    desk d;
    open_desk(&d);
    holds(&d)->warn_us = 400 * MS;
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    EXPECT_INT(turn(&d), d.p.now_us + 400 * MS);
    d.p.now_us += 400 * MS;
    EXPECT_INT(turn(&d), h->expiry.due_us);
    EXPECT_INT(d.told, 1);
    EXPECT_INT(d.last[0].type, RLOCK_EVENT_HELD_LONG);
    EXPECT_STR(d.last[0].message, "it is held for longer than 400 ms");
    expect_about(&d.last[0], AGENT);
    close_desk(&d);
}

/* Of the program's limit, and the time that it has been held by now. */
TEST(notifier, how_long_it_has_been_held_is_told_with_it)
{
    desk d;
    open_desk(&d);
    holds(&d)->warn_us = 2000000 * MS;
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    int64_t before_us = rl_now_us();
    h->began_us = before_us - 20000 * MS; /* the clock is as old */
    report(&d, h, RLOCK_EVENT_HELD_LONG);
    turn(&d);
    EXPECT_BETWEEN(d.last[0].elapsed_ms, 20000,
                   20000 + (rl_now_us() - before_us) / 1000);
    EXPECT_STR(d.last[0].message, "it is held for longer than 2000000 ms");
    close_desk(&d);
}

TEST(notifier, what_has_nothing_to_say_says_nothing_of_another)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    report(&d, h, RLOCK_EVENT_ABANDONED);
    report(&d, h, RLOCK_EVENT_RENEW_LATE);
    report(&d, hold_of(&d, &d.p.owner, NULL, LEASE_MS), RLOCK_EVENT_RENEWED);
    turn(&d);
    EXPECT_INT(d.told, 3);
    EXPECT_INT(d.last[2].type, RLOCK_EVENT_RENEWED);
    EXPECT_STR(d.last[2].message, "");
    close_desk(&d);
}

/* Servers say what they like. */
TEST(notifier, what_is_about_a_server_is_told_word_for_word)
{
    desk d;
    open_desk(&d);
    rl_notifier_warn(&d.e, "100%% %d of it");
    rl_notifier_failover(&d.e, "h:2%%");
    turn(&d);
    EXPECT_STR(d.last[0].message, "h:2%%");
    EXPECT_STR(d.last[1].message, "100%% %d of it");
    close_desk(&d);
}

TEST(notifier, is_woken_by_a_warning_and_by_a_failover)
{
    desk d;
    open_desk(&d);
    turn(&d);
    rl_notifier_warn(&d.e, "beware");
    EXPECT(atomic_exchange(&d.e.notifier.watcher.nudged, false));
    turn(&d);
    rl_notifier_failover(&d.e, "h:2");
    EXPECT(atomic_exchange(&d.e.notifier.watcher.nudged, false));
    close_desk(&d);
}

/* Of the new master nobody knows yet whether it has the hold. */
TEST(notifier, after_a_failover_what_is_held_is_renewed_soon)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    int64_t before_us = rl_now_us();
    rl_mutex_lock(&holds(&d)->mutex);
    h->expiry.due_us = before_us + 60000 * MS;
    rl_hold_start_renewal_locked(holds(&d), h, before_us, before_us);
    rl_mutex_unlock(&holds(&d)->mutex);
    rl_notifier_failover(&d.e, "h:2");
    EXPECT(h->work.at && h->work.due_us >= before_us);
    close_desk(&d);
}

/* Of which nobody is told: figures count them. */
TEST(notifier, comes_again_for_more_than_64_that_are_held_for_too_long)
{
    desk d;
    open_desk(&d);
    holds(&d)->wants_reports = false;
    holds(&d)->warn_us = 400 * MS;
    for (size_t i = 0; i < 100; i++) {
        rl_owner o = {.serial = 100 + i, .tid = 1};
        hold_of(&d, &o, NULL, LEASE_MS);
    }
    d.p.now_us += 400 * MS;
    EXPECT_INT(turn(&d), 0);
    EXPECT(turn(&d) > d.p.now_us);
    close_desk(&d);
}

TEST(notifier, a_renewal_that_is_late_is_told)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    report(&d, h, RLOCK_EVENT_RENEW_LATE);
    turn(&d);
    expect_news(&d.last[0], RLOCK_EVENT_RENEW_LATE, RLOCK_OK, 0,
                "it was not renewed before half of its lease was over");
    expect_about(&d.last[0], AGENT);
    close_desk(&d);
}

/* late: it is so still, and was renewed before that. */
static void expect_order(bool late, rlock_event_type first)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    h->late = late;
    report(&d, h, RLOCK_EVENT_RENEWED);
    report(&d, h, RLOCK_EVENT_RENEW_LATE);
    turn(&d);
    EXPECT_INT(d.told, 2);
    EXPECT_INT(d.last[0].type, first);
    close_desk(&d);
}

TEST_CASE(notifier, that_a_renewal_was_late_is_told_before_it,
          expect_order(false, RLOCK_EVENT_RENEW_LATE))
TEST_CASE(notifier, that_the_next_one_is_late_is_told_after_it,
          expect_order(true, RLOCK_EVENT_RENEWED))

static void expect_failure(const char *server, const char *message)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    rl_fault_set(&holds(&d)->failure, RLOCK_ESERVER, 0, "no memory");
    holds(&d)->failure.at = server;
    report(&d, h, RLOCK_EVENT_RENEW_FAILED);
    turn(&d);
    expect_news(&d.last[0], RLOCK_EVENT_RENEW_FAILED, RLOCK_ESERVER, 0,
                message);
    close_desk(&d);
}

TEST_CASE(notifier, a_renewal_that_failed_is_told_with_its_cause,
          expect_failure(NULL, "unix:/here: no memory"))
TEST_CASE(notifier, of_several_servers_the_one_that_failed_is_named,
          expect_failure("h:7001", "h:7001: no memory"))

TEST(notifier, what_came_of_one_hold_is_told_one_by_one)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    rl_hold *other = hold_of(&d, &d.p.owner, NULL, LEASE_MS);
    report(&d, h, RLOCK_EVENT_LOST);
    report(&d, h, RLOCK_EVENT_RENEW_FAILED);
    report(&d, h, RLOCK_EVENT_RENEW_FAILED);
    report(&d, other, RLOCK_EVENT_RENEWED);
    EXPECT_INT(h->refs, 2);
    turn(&d);
    EXPECT_INT(d.told, 3);
    EXPECT_INT(d.last[0].type, RLOCK_EVENT_RENEW_FAILED);
    EXPECT_INT(d.last[1].type, RLOCK_EVENT_LOST);
    EXPECT_INT(d.last[2].type, RLOCK_EVENT_RENEWED);
    EXPECT(h->refs == 1 && other->refs == 1 && !h->queued && !h->reports);
    close_desk(&d);
}

TEST(notifier, what_is_about_no_hold_comes_first)
{
    desk d;
    open_desk(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    report(&d, h, RLOCK_EVENT_RENEWED);
    rl_holds_reconnected(holds(&d));
    rl_notifier_warn(&d.e, "beware");
    rl_notifier_failover(&d.e, "h:2 instead of h:1");
    turn(&d);
    EXPECT_INT(d.told, 4);
    expect_news(&d.last[0], RLOCK_EVENT_FAILOVER, RLOCK_OK, 0,
                "h:2 instead of h:1");
    expect_news(&d.last[1], RLOCK_EVENT_WARNING, RLOCK_OK, 0, "beware");
    expect_news(&d.last[2], RLOCK_EVENT_RECONNECTED, RLOCK_OK, 0, "unix:/here");
    for (int i = 0; i < 3; i++) {
        EXPECT_STR(d.last[i].name, "");
        EXPECT_STR(d.last[i].owner, "");
        EXPECT(d.last[i].token == 0 && d.last[i].count == 0);
    }
    EXPECT_INT(d.last[3].type, RLOCK_EVENT_RENEWED);
    turn(&d);
    EXPECT_INT(d.told, 4);
    close_desk(&d);
}

TEST(notifier, nothing_is_kept_for_who_wants_no_events)
{
    desk d;
    open_desk(&d);
    rl_notifier_fini(&d.e.notifier, false);
    holds(&d)->wants_reports = false;
    EXPECT(rl_notifier_init(&d.e) && !d.e.notifier.notes);
    rl_notifier_warn(&d.e, "beware");
    rl_notifier_failover(&d.e, "h:2");
    rl_holds_reconnected(holds(&d));
    EXPECT_INT(turn(&d), RL_NEVER);
    EXPECT_INT(d.told, 0);
    close_desk(&d);
}

/* --- of a Red lock -------------------------------------------------------- */

static rl_hold *red_hold(desk *d)
{
    rl_group *g = rl_group_new(&d->p.home, 1);
    EXPECT(g);
    d->p.home.has_on_event = true;
    g->token = 999;
    g->began_us = d->p.now_us - 500 * MS;
    EXPECT(rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    rl_hold *h = hold_of(d, &d->owner, g, LEASE_MS);
    rl_group_unref(g);
    return h;
}

TEST(notifier, the_loss_of_a_red_lock_is_its_homes_and_about_the_whole)
{
    desk d;
    open_desk(&d);
    red_hold(&d);
    d.p.now_us += GOOD_US(LEASE_MS);
    turn(&d);
    EXPECT_INT(d.told, 0);
    EXPECT_INT(d.p.events[RLOCK_EVENT_LOST], 1);
    EXPECT_INT(d.p.told.token, 999);
    EXPECT_INT(d.p.told.elapsed_ms, GOOD_US(LEASE_MS) / 1000 + 500);
    close_desk(&d);
}

TEST(notifier, a_red_lock_whose_home_does_not_listen_is_told_here)
{
    desk d;
    open_desk(&d);
    red_hold(&d);
    d.p.home.has_on_event = false;
    d.p.now_us += GOOD_US(LEASE_MS);
    turn(&d);
    EXPECT_INT(d.told, 1);
    EXPECT_INT(d.last[0].token, 999);
    EXPECT_STR(d.last[0].message,
               "too few nodes are left that hold it; the last one: its lease "
               "ran out");
    close_desk(&d);
}

/* Each node's renewals are its client's. */
TEST(notifier, a_renewal_of_a_red_lock_is_told_by_the_nodes_client)
{
    desk d;
    open_desk(&d);
    report(&d, red_hold(&d), RLOCK_EVENT_RENEWED);
    turn(&d);
    EXPECT_INT(d.told, 1);
    EXPECT_INT(d.p.events[RLOCK_EVENT_RENEWED], 0);
    close_desk(&d);
}

/* Of a Multi lock each hold is told by itself. */
TEST(notifier, what_is_of_several_locks_is_told_as_a_hold_of_its_own)
{
    desk d;
    open_desk(&d);
    rl_group *g = rl_group_new(&d.p.home, 0);
    EXPECT(g);
    g->token = 999;
    rl_hold *h = hold_of(&d, &d.owner, g, LEASE_MS);
    report(&d, h, RLOCK_EVENT_RENEWED);
    turn(&d);
    EXPECT_INT(d.told, 1);
    expect_about(&d.last[0], AGENT);
    rl_group_unref(g);
    close_desk(&d);
}

TEST(notifier, what_was_lost_with_its_client_is_the_homes_or_nobodys)
{
    desk d;
    open_desk(&d);
    rl_hold *h = red_hold(&d);
    d.p.home.has_on_event = false;
    rl_mutex_lock(&holds(&d)->mutex);
    rl_hold_lose_locked(holds(&d), h, RL_LOSS_CLOSED, d.p.now_us);
    rl_mutex_unlock(&holds(&d)->mutex);
    turn(&d);
    EXPECT_INT(d.told, 0);
    close_desk(&d);
}
