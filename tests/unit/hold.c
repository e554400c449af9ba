/* The hold table: what may be believed, and for how long. */
#include "hold.h"

#include <errno.h>

#include "collide.h"
#include "lock/lock.h"
#include "shim.h"

/* So much each of many takes, with its name, and malloc() 8 bytes more:
   tests/server/memory.c has what a held lock takes in all. */
#define IS_64_BIT (sizeof(void *) == 8)
_Static_assert(!IS_64_BIT || offsetof(rl_hold, name) <= 216, "a hold");
_Static_assert(!IS_64_BIT || sizeof(rlock) <= 56, "a handle");

/* --- granted -------------------------------------------------------------- */

TEST(hold, is_found_by_its_name_and_owner_once_it_is_granted)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_draft(&p, 0, &play_job, LEASE_MS);
    EXPECT(h->state == RL_DRAFT && !find(&p, p.owner.serial));
    rl_holds_put(table(&p), h);
    h = play_hold(&p, 0, "job", LEASE_MS);
    EXPECT(h->state == RL_HELD && find(&p, p.owner.serial) == h);
    EXPECT(!find(&p, p.rival.serial));
    EXPECT_INT(h->count, 1);
    EXPECT_STR(rl_hold_name(h), "job");
    play_close(&p);
}

TEST(hold, of_another_scope_is_another)
{
    play p;
    bool valid;
    open_with_hold(&p, LEASE_MS);
    EXPECT(
        !rl_holds_pick(table(&p), &play_red, &p.owner, p.now_us, &valid, NULL));
    EXPECT(!valid);
    play_close(&p);
}

static void expect_not_found(const char *name, uint64_t scope)
{
    play p;
    rl_target what = {
        .name = name, .len = (uint16_t)strlen(name), .scope = scope};
    open_with_hold(&p, LEASE_MS);
    collide(&table(&p)->map, rl_hash(name, strlen(name), scope));
    rl_mutex_lock(&table(&p)->mutex);
    EXPECT(!rl_holds_find_locked(table(&p), &what, p.owner.serial));
    rl_mutex_unlock(&table(&p)->mutex);
    play_close(&p);
}

TEST_CASE(hold, of_another_name_of_the_same_hash_is_another,
          expect_not_found("jot", RLOCK_LAYOUT_HASH))
TEST_CASE(hold, of_a_longer_name_of_the_same_hash_is_another,
          expect_not_found("jobs", RLOCK_LAYOUT_HASH))
TEST_CASE(hold, of_another_scope_of_the_same_hash_is_another,
          expect_not_found("job", RL_SINGLE_SCOPES))

TEST(hold, of_an_owner_of_the_same_hash_is_another)
{
    play p;
    open_with_hold(&p, LEASE_MS);
    collide(&table(&p)->records,
            rl_hash(&p.rival.serial, sizeof p.rival.serial, 0));
    rl_mutex_lock(&table(&p)->mutex);
    EXPECT(!rl_holds_record_locked(table(&p), p.rival.serial));
    rl_mutex_unlock(&table(&p)->mutex);
    play_close(&p);
}

TEST(hold, is_believed_until_its_lease_less_the_drift_from_before_sending)
{
    play p;
    play_open(&p, 1);
    rl_hold *h = play_draft(&p, 0, &play_job, LEASE_MS);
    int64_t sent_us = p.now_us;
    play_pass(&p, 700 * MS); /* the answer took that long */
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_grant_locked(table(&p), h, 100, sent_us, false, p.now_us);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT_INT(h->expiry.due_us, sent_us + GOOD_US(LEASE_MS));
    p.now_us = h->expiry.due_us - 1;
    EXPECT(is_valid(&p, h));
    play_pass(&p, 1);
    EXPECT(!is_valid(&p, h));
    play_close(&p);
}

TEST(hold, that_is_picked_tells_whether_it_is_good)
{
    play p;
    bool valid;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT(rl_holds_pick(table(&p), &play_job, &p.owner, p.now_us, &valid,
                         NULL) == h);
    EXPECT(valid);
    rl_holds_put(table(&p), h);
    p.now_us = h->expiry.due_us;
    EXPECT(rl_holds_pick(table(&p), &play_job, &p.owner, p.now_us, &valid,
                         NULL) == h);
    EXPECT(!valid && h->state == RL_LOST);
    rl_holds_put(table(&p), h);
    play_close(&p);
}

TEST(hold, there_is_room_for_it_before_the_server_is_asked)
{
    play p;
    bool valid;
    rl_uuid id = {0};
    rl_owner_record *room = NULL;
    play_open(&p, 1);
    EXPECT(!rl_holds_pick(table(&p), &play_job, &p.owner, p.now_us, &valid,
                          &room));
    EXPECT(room);
    rl_hold *h = rl_hold_new(table(&p), room, &play_job, &id);
    EXPECT(h);
    h->lease_ms = LEASE_MS;
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_grant_locked(table(&p), h, 100, p.now_us, true, p.now_us);
    rl_mutex_unlock(&table(&p)->mutex);
    shim_clear(shim_here());
    EXPECT(find(&p, 1) == h && h->state == RL_HELD);
    play_close(&p);
}

TEST(hold, there_is_no_room_without_memory)
{
    for (int nth = 1; nth <= 3; nth++) {
        play p;
        play_open(&p, 1);
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        rl_owner_record *room = rl_holds_make_room(table(&p), &p.owner);
        shim_clear(shim_here());
        EXPECT(!room);
        EXPECT_INT(table(&p)->records.count, 0);
        EXPECT_INT(table(&p)->expiry.reserved, 0);
        EXPECT_INT(table(&p)->first.work.reserved, 0);
        play_close(&p);
    }
}

TEST(hold, without_memory_gives_its_room_back)
{
    play p;
    rl_uuid id = {0};
    play_open(&p, 1);
    rl_owner_record *room = rl_holds_make_room(table(&p), &p.owner);
    EXPECT(room && table(&p)->records.count == 1);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rl_hold *h = rl_hold_new(table(&p), room, &play_job, &id);
    shim_clear(shim_here());
    EXPECT(!h);
    EXPECT_INT(table(&p)->records.count, 0);
    play_close(&p);
}

TEST(hold, an_owner_without_holds_leaves_nothing_behind)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT_INT(table(&p)->records.count, 1);
    end(&p, h);
    EXPECT(table(&p)->records.count == 0 && table(&p)->map.count == 0);
    play_close(&p);
}

TEST(hold, that_ended_is_not_found_and_counts_no_longer)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT_INT(play_core(&p, 0)->stats.held_now, 1);
    play_pass(&p, 30 * MS);
    end(&p, h);
    EXPECT(!find(&p, p.owner.serial));
    EXPECT_INT(play_core(&p, 0)->stats.held_now, 0);
    EXPECT_INT(play_core(&p, 0)->stats.hold_us_total, 30 * MS);
    EXPECT_INT(take_reports(&p, 0), 0);
    play_close(&p);
}

/* --- prolonged ------------------------------------------------------------ */

TEST(hold, is_prolonged_by_what_the_server_confirmed)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    play_pass(&p, 5000 * MS);
    prolong(&p, h, p.now_us - 100 * MS, LEASE_MS);
    EXPECT_INT(h->expiry.due_us, p.now_us - 100 * MS + GOOD_US(LEASE_MS));
    play_close(&p);
}

TEST(hold, is_not_prolonged_by_a_shorter_lease)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    int64_t before_us = h->expiry.due_us;
    prolong(&p, h, p.now_us, 1000);
    EXPECT_INT(h->expiry.due_us, before_us);
    play_close(&p);
}

TEST(hold, past_its_deadline_is_never_revived)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    int64_t sent_us = h->expiry.due_us - 1;
    p.now_us = h->expiry.due_us;
    prolong(&p, h, sent_us, LEASE_MS);
    EXPECT(h->state == RL_LOST && h->loss == RL_LOSS_EXPIRED);
    set_lease(&p, h, p.now_us, LEASE_MS);
    prolong(&p, h, p.now_us, LEASE_MS);
    EXPECT(h->state == RL_LOST && !is_valid(&p, h));
    play_close(&p);
}

TEST(hold, may_be_given_a_shorter_lease)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    set_lease(&p, h, p.now_us, 1000);
    EXPECT_INT(h->expiry.due_us, p.now_us + GOOD_US(1000));
    play_close(&p);
}

/* The extend may be executed at any time from when it began to be sent. */
TEST(hold, an_extend_without_answer_caps_what_is_believed_now)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_mutex_lock(&table(&p)->mutex);
    EXPECT(rl_hold_make_extra(h));
    rl_hold_cap_locked(table(&p), h, p.now_us, 1000);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT_INT(h->expiry.due_us, p.now_us + GOOD_US(1000));
    play_close(&p);
}

TEST(hold, an_extend_without_answer_caps_what_is_believed_later)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_mutex_lock(&table(&p)->mutex);
    EXPECT(rl_hold_make_extra(h));
    rl_hold_cap_locked(table(&p), h, p.now_us, 1000);
    rl_hold_cap_locked(table(&p), h, p.now_us, 5000); /* the first counts */
    rl_mutex_unlock(&table(&p)->mutex);
    play_pass(&p, 500 * MS);
    prolong(&p, h, p.now_us, LEASE_MS);
    EXPECT_INT(h->expiry.due_us, p.now_us + GOOD_US(1000));
    EXPECT_INT(rl_hold_renewal_ms(table(&p), h, p.now_us), 1000);
    EXPECT_INT(rl_hold_renewal_period_us(table(&p), h, p.now_us),
               1000 * MS / 3);
    play_close(&p);
}

/* It is kept in fewer bits than a lease. */
TEST(hold, an_extend_to_a_year_without_answer_caps_to_no_more_than_that)
{
    const int64_t year_ms = INT64_C(365) * 24 * 3600 * 1000;
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_mutex_lock(&table(&p)->mutex);
    EXPECT(rl_hold_make_extra(h));
    rl_hold_cap_locked(table(&p), h, p.now_us, year_ms);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT(rl_hold_was_capped(h));
    EXPECT_BETWEEN(rl_hold_cap_ms(h, p.now_us), year_ms / 8, year_ms);
    play_close(&p);
}

TEST(hold, the_shortest_of_late_extends_caps_until_the_last_has_ended)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    rl_mutex_lock(&table(&p)->mutex);
    EXPECT(rl_hold_make_extra(h));
    rl_hold_owe_extend_locked(table(&p), h, p.now_us, 1000);
    rl_hold_owe_extend_locked(table(&p), h, p.now_us, 5000);
    EXPECT_INT(h->expiry.due_us, p.now_us + GOOD_US(1000));
    rl_hold_settle_extend_locked(table(&p), h, 1000, 0);
    EXPECT_INT(rl_hold_cap_ms(h, p.now_us), 1000);
    rl_hold_settle_extend_locked(table(&p), h, 5000, 0);
    EXPECT_INT(rl_hold_cap_ms(h, p.now_us), RL_NEVER);
    rl_mutex_unlock(&table(&p)->mutex);
    play_close(&p);
}

/* Two are late; what comes of the first, and of the second a second later. */
static void expect_caps(int64_t first_us, int64_t by_then, int64_t later)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    int64_t then_us = p.now_us + 1000 * MS;
    rl_mutex_lock(&table(&p)->mutex);
    EXPECT(rl_hold_make_extra(h));
    rl_hold_owe_extend_locked(table(&p), h, p.now_us, 1000);
    rl_hold_owe_extend_locked(table(&p), h, p.now_us, 5000);
    rl_hold_settle_extend_locked(table(&p), h, 1000, first_us);
    rl_hold_settle_extend_locked(table(&p), h, 5000, then_us);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT_INT(rl_hold_cap_ms(h, then_us), by_then);
    EXPECT_INT(rl_hold_cap_ms(h, then_us + 1), later);
    EXPECT(rl_hold_was_capped(h));
    play_close(&p);
}

TEST_CASE(hold, late_extends_cap_what_was_sent_before_they_were_answered,
          expect_caps(PLAY_BEGAN_US, 1000, RL_NEVER))
TEST_CASE(hold, one_that_certainly_does_not_arrive_caps_nothing,
          expect_caps(0, 5000, RL_NEVER))
TEST_CASE(hold, one_that_may_arrive_at_any_time_caps_for_ever,
          expect_caps(RL_NEVER, 1000, 1000))

TEST(hold, every_lease_that_was_asked_for_has_to_run_out)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    int64_t began_us = p.now_us;
    EXPECT_INT(h->gone_us, began_us + LEASE_MS * MS);
    rl_hold_expect(h, began_us + 100 * MS, 1000);
    EXPECT_INT(h->gone_us, began_us + LEASE_MS * MS);
    rl_hold_expect(h, began_us + 100 * MS, LEASE_MS);
    EXPECT_INT(h->gone_us, began_us + (LEASE_MS + 100) * MS);
    play_close(&p);
}

/* --- renewed -------------------------------------------------------------- */

TEST(hold, of_the_watchdog_is_renewed_after_a_third_of_its_lease)
{
    play p;
    rl_hold *h = open_with_hold(&p, RLOCK_WATCHDOG);
    EXPECT_INT(due_us(table(&p), h), p.now_us + PLAY_LEASE_MS * MS / 3);
    EXPECT_INT(h->expiry.due_us, p.now_us + GOOD_US(PLAY_LEASE_MS));
    play_close(&p);
}

TEST(hold, of_an_explicit_lease_is_not_renewed)
{
    play p;
    rl_hold *h = open_with_hold(&p, LEASE_MS);
    EXPECT_INT(due_us(table(&p), h), 0);
    play_close(&p);
}

TEST(hold, that_pauses_is_not_due_until_it_goes_on)
{
    play p;
    rl_hold *h = open_with_hold(&p, RLOCK_WATCHDOG);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_pause_renewal_locked(table(&p), h);
    EXPECT(due_us(table(&p), h) == 0 && h->renewed && h->paused);
    rl_hold_start_renewal_locked(table(&p), h, p.now_us, p.now_us);
    EXPECT(due_us(table(&p), h) > 0 && !h->paused);
    rl_hold_stop_renewal_locked(table(&p), h);
    EXPECT(due_us(table(&p), h) == 0 && !h->renewed && !h->paused);
    rl_mutex_unlock(&table(&p)->mutex);
    play_close(&p);
}

TEST(hold, that_is_lost_is_renewed_no_more)
{
    play p;
    rl_hold *h = open_with_hold(&p, RLOCK_WATCHDOG);
    lose(&p, 0, h, RL_LOSS_GONE);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_start_renewal_locked(table(&p), h, p.now_us, p.now_us);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT_INT(due_us(table(&p), h), 0);
    play_close(&p);
}

TEST(hold, is_not_held_longer_than_max_hold_ms)
{
    play p;
    play_open(&p, 1);
    table(&p)->max_hold_ms = 40000;
    rl_hold *h = play_hold(&p, 0, "job", RLOCK_WATCHDOG);
    int64_t end_us = p.now_us + 40000 * MS;
    play_pass(&p, 20000 * MS);
    prolong(&p, h, p.now_us, PLAY_LEASE_MS);
    EXPECT_INT(h->expiry.due_us, end_us);
    p.now_us = end_us;
    EXPECT(!is_valid(&p, h));
    EXPECT_INT(h->loss, RL_LOSS_TOO_LONG);
    play_close(&p);
}

TEST(hold, an_explicit_lease_may_be_longer_than_max_hold_ms)
{
    play p;
    play_open(&p, 1);
    table(&p)->max_hold_ms = 5000;
    rl_hold *h = play_hold(&p, 0, "job", LEASE_MS);
    EXPECT_INT(h->expiry.due_us, p.now_us + GOOD_US(LEASE_MS));
    /* and keeps its end when renewal is turned on */
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_start_renewal_locked(table(&p), h, p.now_us, p.now_us);
    rl_hold_prolong_locked(table(&p), h, p.now_us + 5000 * MS, PLAY_LEASE_MS,
                           p.now_us + 5000 * MS);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT_INT(h->expiry.due_us, p.now_us + GOOD_US(LEASE_MS));
    play_close(&p);
}

/* It was explicit, and the one before had it; who is passed it, does not. */
TEST(hold, that_begins_anew_does_not_outlast_max_hold_ms_from_then)
{
    play p;
    play_open(&p, 1);
    table(&p)->max_hold_ms = 5000;
    rl_hold *h = play_hold(&p, 0, "job", LEASE_MS);
    rl_mutex_lock(&table(&p)->mutex);
    rl_hold_start_renewal_locked(table(&p), h, p.now_us, p.now_us);
    play_pass(&p, 1000 * MS);
    rl_hold_begin_anew_locked(table(&p), h, p.now_us);
    rl_mutex_unlock(&table(&p)->mutex);
    EXPECT_INT(h->expiry.due_us, p.now_us + 5000 * MS);
    play_close(&p);
}
