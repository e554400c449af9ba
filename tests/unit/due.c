/*
 * What is due after a failover: everything soon, but not all at once; and in a
 * cluster, what another server has now, and no more.
 */
#include "hold/due.h"

#include <errno.h>

#include "base/random.h"
#include "hold.h"
#include "shim.h"

#define HOLDS 200

/* In it all is renewed after a failover; of a lease of PLAY_LEASE_MS. */
#define HASTE_US (250 * MS)

/* In a cluster, to be renewed with others: 5/16 of a third of it at most. */
#define EARLIER_US (3125 * MS)

typedef struct fleet {
    play p;
    rl_hold *h[HOLDS];
    char name[HOLDS][8];
    rl_due_queue second; /* where odd numbers are, once they have moved */
    int woken;           /* the second one's keeper */
} fleet;

static bool have_moved;

static rl_due_queue *queue_of(rl_holds *t, const rl_hold *h)
{
    return have_moved && atoi(h->name) % 2 ? t->queues : &t->first;
}

static void wake_second(rl_due_queue *l)
{
    ((fleet *)l->arg)->woken++;
}

static void open_fleet_of(fleet *f, int64_t lease_ms)
{
    memset(f, 0, sizeof *f);
    have_moved = false;
    play_open(&f->p, 1);
    for (size_t i = 0; i < HOLDS; i++) {
        snprintf(f->name[i], sizeof f->name[i], "%zu", i);
        f->h[i] = play_hold(&f->p, 0, f->name[i], lease_ms);
    }
}

static void open_fleet(fleet *f)
{
    open_fleet_of(f, RLOCK_WATCHDOG);
}

static void add_second(fleet *f)
{
    f->second.arg = f;
    f->second.wake = wake_second;
    table(&f->p)->queue_of = queue_of;
    EXPECT(rl_holds_add_due_queue(table(&f->p), &f->second));
}

static void close_fleet(fleet *f)
{
    play_close(&f->p);
}

/* Of the holds that are so, modulo 2: the earliest and the latest. */
static void look(const fleet *f, size_t from, size_t step, int64_t *first_us,
                 int64_t *last_us)
{
    *first_us = RL_NEVER;
    *last_us = 0;
    for (size_t i = from; i < HOLDS; i += step) {
        *first_us = rl_min(*first_us, f->h[i]->work.due_us);
        *last_us = rl_max(*last_us, f->h[i]->work.due_us);
    }
}

TEST(due, after_a_failover_all_is_due_within_a_second_and_not_at_once)
{
    fleet f;
    int64_t first_us, last_us;
    open_fleet(&f);
    look(&f, 0, 1, &first_us, &last_us);
    EXPECT_INT(first_us, f.p.now_us + PLAY_LEASE_MS * MS / 3); /* the control */
    int woken = f.p.client[0].wakes[PLAY_KEEPER];
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    look(&f, 0, 1, &first_us, &last_us);
    EXPECT_BETWEEN(first_us - f.p.now_us, 0, HASTE_US / 8);
    EXPECT_BETWEEN(last_us - f.p.now_us, HASTE_US - HASTE_US / 8, HASTE_US);
    EXPECT(f.p.client[0].wakes[PLAY_KEEPER] > woken);
    close_fleet(&f);
}

/* It is looked whether the server has it. */
TEST(due, after_a_failover_what_is_not_renewed_is_due_as_well)
{
    fleet f;
    int64_t first_us, last_us;
    open_fleet_of(&f, LEASE_MS);
    EXPECT_INT(table(&f.p)->first.work.count, 0); /* the control */
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    EXPECT_INT(table(&f.p)->first.work.count, HOLDS);
    look(&f, 0, 1, &first_us, &last_us);
    EXPECT_BETWEEN(first_us - f.p.now_us, 0, HASTE_US / 8);
    EXPECT_BETWEEN(last_us - f.p.now_us, HASTE_US - HASTE_US / 8, HASTE_US);
    close_fleet(&f);
}

/* A twelfth of it, as renewals come after a third. */
TEST(due, the_shorter_the_lease_the_sooner)
{
    fleet f;
    int64_t first_us, last_us;
    open_fleet(&f);
    table(&f.p)->renewal_ms = 1200;
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    look(&f, 0, 1, &first_us, &last_us);
    EXPECT_BETWEEN(last_us - f.p.now_us, 50 * MS, 100 * MS);
    close_fleet(&f);
}

TEST(due, what_was_due_even_sooner_stays_so)
{
    fleet f;
    open_fleet(&f);
    play_pass(&f.p, PLAY_LEASE_MS * MS / 3 + 5);
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    for (size_t i = 0; i < HOLDS; i++)
        EXPECT_INT(f.h[i]->work.due_us, f.p.now_us - 5);
    close_fleet(&f);
}

TEST(due, who_wants_reports_is_told_of_a_failover_that_is_an_event)
{
    fleet f;
    open_fleet(&f);
    int woken = f.p.client[0].wakes[PLAY_NOTIFIER];
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    EXPECT(!table(&f.p)->failed_over);
    rl_holds_failed_over(table(&f.p), true, f.p.now_us);
    EXPECT(table(&f.p)->failed_over);
    EXPECT(f.p.client[0].wakes[PLAY_NOTIFIER] > woken);
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    EXPECT(table(&f.p)->failed_over); /* until that has been delivered */
    table(&f.p)->failed_over = table(&f.p)->wants_reports = false;
    rl_holds_failed_over(table(&f.p), true, f.p.now_us);
    EXPECT(!table(&f.p)->failed_over);
    close_fleet(&f);
}

/* Its call was sent at sent_us, and is answered only now. */
static void confirm(fleet *f, rl_hold *h, int64_t sent_us)
{
    rl_holds *t = table(&f->p);
    rl_mutex_lock(&t->mutex);
    h->in_flight = false;
    rl_hold_prolong_locked(t, h, sent_us, PLAY_LEASE_MS, f->p.now_us);
    rl_hold_ask_next_locked(t, h, sent_us);
    rl_mutex_unlock(&t->mutex);
}

/* What was sent before may have reached the server that is gone. */
static void expect_asked_again(bool cluster)
{
    fleet f;
    open_fleet(&f);
    rl_holds *t = table(&f.p);
    if (cluster)
        add_second(&f);
    have_moved = cluster;
    for (size_t i = 1; i <= 3; i += 2) {
        rl_mutex_lock(&t->mutex);
        rl_hold_unschedule_locked(t, f.h[i]);
        f.h[i]->in_flight = true;
        rl_mutex_unlock(&t->mutex);
    }
    int64_t sent_us = f.p.now_us, since_us = sent_us + 10 * MS;
    play_pass(&f.p, 10 * MS);
    rl_holds_failed_over(t, false, f.p.now_us);
    play_pass(&f.p, 10 * MS);
    confirm(&f, f.h[1], sent_us);
    confirm(&f, f.h[3], since_us);
    EXPECT_INT(f.h[1]->work.due_us, since_us);
    EXPECT_BETWEEN(f.h[3]->work.due_us - since_us,
                   PLAY_LEASE_MS * MS / 3 - (cluster ? EARLIER_US : 0),
                   PLAY_LEASE_MS * MS / 3);
    close_fleet(&f);
}

TEST_CASE(due, what_a_call_from_before_the_failover_confirms_is_asked_again,
          expect_asked_again(false))
TEST_CASE(due, and_so_it_is_where_its_slot_has_moved_to,
          expect_asked_again(true))

/* --- a cluster ------------------------------------------------------------ */

TEST(due, a_queue_that_is_added_has_room_for_all_holds)
{
    fleet f;
    open_fleet(&f);
    add_second(&f);
    EXPECT_INT(f.second.work.reserved, HOLDS);
    EXPECT(table(&f.p)->queues == &f.second && f.second.next != &f.second);
    play_hold(&f.p, 0, "one more", RLOCK_WATCHDOG);
    EXPECT_INT(f.second.work.reserved, HOLDS + 1);
    close_fleet(&f);
}

TEST(due, a_queue_that_is_not_added_for_lack_of_memory_leaves_none)
{
    for (int nth = 1; nth <= 5; nth++) {
        fleet f;
        open_fleet(&f);
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        bool added = rl_holds_add_due_queue(table(&f.p), &f.second);
        shim_clear(shim_here());
        EXPECT(!added && table(&f.p)->queues == &table(&f.p)->first);
        EXPECT(!f.second.work.nodes && f.second.work.reserved == 0);
        close_fleet(&f);
    }
}

TEST(due, what_another_server_has_now_is_due_there_soon)
{
    fleet f;
    int64_t first_us, last_us,
        before_us = PLAY_BEGAN_US + PLAY_LEASE_MS * MS / 3;
    open_fleet(&f);
    add_second(&f);
    have_moved = true;
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    EXPECT_INT(f.second.work.count, HOLDS / 2);
    EXPECT_INT(table(&f.p)->first.work.count, HOLDS / 2);
    look(&f, 1, 2, &first_us, &last_us);
    EXPECT_BETWEEN(first_us - f.p.now_us, 0, HASTE_US / 4);
    EXPECT_BETWEEN(last_us - f.p.now_us, HASTE_US - HASTE_US / 4, HASTE_US);
    EXPECT(f.woken > 0);
    look(&f, 0, 2, &first_us, &last_us); /* nothing has changed for these */
    EXPECT(first_us == before_us && last_us == before_us);
    close_fleet(&f);
}

/* What is being asked is moved, and its answer says what comes next. */
TEST(due, what_is_not_renewed_is_looked_at_where_its_slot_is)
{
    fleet f;
    int64_t first_us, last_us;
    open_fleet_of(&f, LEASE_MS);
    add_second(&f);
    have_moved = true;
    f.h[1]->in_flight = true;
    rl_holds_failed_over(table(&f.p), false, f.p.now_us);
    EXPECT(f.h[1]->queue == &f.second && !f.h[1]->work.at);
    EXPECT_INT(f.second.work.count, HOLDS / 2 - 1);
    EXPECT_INT(f.second.held, HOLDS / 2);
    EXPECT_INT(table(&f.p)->first.work.count, 0);
    look(&f, 3, 2, &first_us, &last_us);
    EXPECT_BETWEEN(first_us - f.p.now_us, 0, HASTE_US / 4);
    EXPECT_BETWEEN(last_us - f.p.now_us, HASTE_US - HASTE_US / 4, HASTE_US);
    EXPECT(f.woken > 0);
    close_fleet(&f);
}

TEST(due, what_is_scheduled_goes_where_its_slot_is)
{
    fleet f;
    open_fleet(&f);
    add_second(&f);
    have_moved = true;
    rl_mutex_lock(&table(&f.p)->mutex);
    for (size_t i = 0; i < HOLDS; i++)
        rl_hold_schedule_locked(table(&f.p), f.h[i], f.p.now_us + (int64_t)i);
    rl_mutex_unlock(&table(&f.p)->mutex);
    for (size_t i = 0; i < HOLDS; i++) {
        EXPECT(f.h[i]->queue == (i % 2 ? &f.second : &table(&f.p)->first));
        EXPECT_INT(f.h[i]->work.due_us, f.p.now_us + (int64_t)i);
    }
    EXPECT_INT(f.second.held, HOLDS / 2);
    EXPECT(f.woken > 0); /* to look after what is held there */
    close_fleet(&f);
}

/* What is not held, too: releases, say, of what may be there. */
TEST(due, what_is_undone_is_due_where_its_slot_is)
{
    fleet f;
    open_fleet(&f);
    add_second(&f);
    rl_holds *t = table(&f.p);
    for (size_t i = 0; i < 4; i++) {
        rl_mutex_lock(&t->mutex);
        rl_hold_end_locked(t, f.h[i], f.p.now_us);
        rl_hold_undo_locked(t, f.h[i], f.p.now_us + PLAY_LEASE_MS * MS);
        rl_mutex_unlock(&t->mutex);
    }
    have_moved = true;
    rl_holds_failed_over(t, false, f.p.now_us);
    for (size_t i = 0; i < 4; i++) {
        bool moves = i % 2;
        EXPECT(f.h[i]->queue == (moves ? &f.second : &t->first));
        EXPECT_BETWEEN(f.h[i]->work.due_us - f.p.now_us,
                       moves ? 0 : PLAY_LEASE_MS * MS,
                       moves ? HASTE_US : PLAY_LEASE_MS * MS);
    }
    close_fleet(&f);
}

/* Renews it, so much later than that is due. */
static void renew_when_due(fleet *f, rl_hold *h, int64_t late_us)
{
    rl_holds *t = table(&f->p);
    int64_t sent_us = h->work.due_us + late_us;
    f->p.now_us = sent_us;
    prolong(&f->p, h, sent_us, PLAY_LEASE_MS);
    rl_mutex_lock(&t->mutex);
    rl_hold_ask_next_locked(t, h, sent_us);
    rl_mutex_unlock(&t->mutex);
    EXPECT_BETWEEN(h->work.due_us - sent_us,
                   PLAY_LEASE_MS * MS / 3 - EARLIER_US, PLAY_LEASE_MS * MS / 3);
}

/* Between the renewals of two that were granted 4 s apart, after some. */
static int64_t apart(fleet *f, unsigned slot, unsigned other, int64_t late_us)
{
    rl_hold *h = f->h[0], *i = f->h[2];
    h->slot = (uint16_t)slot;
    i->slot = (uint16_t)other;
    rl_heap_set(&h->queue->work, &i->work, h->work.due_us + 4000 * MS);
    for (int n = 0; n < 20; n++)
        renew_when_due(f, h->work.due_us <= i->work.due_us ? h : i, late_us);
    if (h->work.due_us + 5000 * MS < i->work.due_us)
        renew_when_due(f, h, late_us);
    return i->work.due_us - h->work.due_us;
}

static void expect_together(int64_t late_us)
{
    fleet f;
    open_fleet(&f);
    add_second(&f);
    EXPECT_INT(apart(&f, 7000, 7000, late_us), 0);
    close_fleet(&f);
}

TEST_CASE(due, of_a_cluster_what_is_in_one_slot_comes_to_be_renewed_together,
          expect_together(0))
TEST_CASE(due, and_so_it_does_when_the_keeper_asks_early,
          expect_together(-500 * MS))
TEST_CASE(due, and_when_it_is_late, expect_together(500 * MS))

TEST(due, of_a_cluster_what_is_in_other_slots_is_renewed_at_other_times)
{
    fleet f;
    open_fleet(&f);
    add_second(&f);
    EXPECT(apart(&f, 7000, 7001, 0) > 0);
    close_fleet(&f);
}

TEST(due, of_one_server_what_is_in_one_slot_is_renewed_after_a_third)
{
    fleet f;
    open_fleet(&f);
    EXPECT_INT(apart(&f, 7000, 7000, 0), 4000 * MS);
    EXPECT_INT(f.h[0]->work.due_us - f.h[0]->confirmed_us,
               PLAY_LEASE_MS * MS / 3);
    close_fleet(&f);
}
