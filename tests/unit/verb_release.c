/* What a release says, and what its answer does to the hold. */
#include "deed.h"
#include "hold/level.h"

/* --- release -------------------------------------------------------------- */

static void begin_release(deed *d, int level)
{
    EXPECT_INT(rl_hold_count_down(&core(d)->holds, d->h, level, d->p.now_us),
               RL_COUNTED);
    rl_part_release(d->x, core(d), d->h, level, d->p.now_us);
    EXPECT_INT(go(d), RL_ASK);
}

/* The last unlock; the hold has one more reference, ours, to look at it. */
static void begin_free(deed *d)
{
    open_with_hold(d, LEASE_MS);
    begin_release(d, 0);
}

TEST(verb_release, a_release_says_what_the_protocol_wants)
{
    deed d;
    begin_free(&d);
    EXPECT_STR(play_called(&d.p, 0), "hash/release");
    EXPECT_STR(play_word(&d.p, 0, 2), "2");
    EXPECT_STR(play_key(&d.p, 0, 1), "job");
    EXPECT_STR(play_key(&d.p, 0, 2), "rlock_queue:{job}");
    EXPECT_STR(play_arg(&d.p, 0, HOLDER_ARG), play_holder(d.h).text);
    EXPECT_STR(play_arg(&d.p, 0, CHANNEL_ARG), "redisson_lock__channel:{job}");
    EXPECT_INT(play_args(&d.p, 0), BRIEF); /* all levels, no tombstone */
    EXPECT_INT(answer(&d, YES), RL_DONE);
    close_with_hold(&d);
}

TEST(verb_release, the_last_unlock_frees_the_hold_and_is_no_loss)
{
    deed d;
    begin_free(&d);
    EXPECT(d.h->state == RL_OVER && core(&d)->holds.map.count == 0);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    EXPECT(d.x->ok);
    EXPECT_INT(d.h->refs, 1);
    EXPECT_INT(play_losses(&core(&d)->stats), 0);
    close_with_hold(&d);
}

TEST(verb_release, the_last_unlock_may_find_that_the_hold_was_lost)
{
    deed d;
    begin_free(&d);
    EXPECT_INT(answer(&d, NO), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "no longer knows");
    EXPECT_INT(play_losses(&core(&d)->stats), 1);
    EXPECT(d.h->reports & 1u << RLOCK_EVENT_LOST);
    close_with_hold(&d);
}

/* It was the first attempt that freed it. */
TEST(verb_release, an_unlock_that_was_asked_again_may_find_it_freed)
{
    deed d;
    begin_free(&d);
    EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    EXPECT_INT(answer(&d, NO), RL_DONE);
    EXPECT(d.x->ok);
    EXPECT_INT(play_losses(&core(&d)->stats), 0);
    close_with_hold(&d);
}

TEST(verb_release, an_unlock_without_answer_is_left_to_the_keeper)
{
    deed d;
    begin_free(&d);
    EXPECT_INT(play_lose(&d.p, 0), RL_DONE);
    EXPECT(!d.x->ok);
    EXPECT(d.h->state == RL_UNDOING && core(&d)->holds.undoing == 1);
    EXPECT(is_due(&d, d.h));
    close_with_hold(&d);
}

TEST(verb_release, an_unlock_of_what_is_no_lock_any_more_is_a_loss)
{
    deed d;
    begin_free(&d);
    EXPECT_INT(answer(&d, WRONGTYPE), RL_DONE);
    expect_fault(&d, RLOCK_EWRONGTYPE, "WRONGTYPE");
    EXPECT_INT(play_losses(&core(&d)->stats), 1);
    EXPECT_INT(core(&d)->holds.undoing, 0);
    close_with_hold(&d);
}

TEST(verb_release, an_unlock_that_may_still_be_acquired_leaves_a_tombstone)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    d.h->unknown = true;
    begin_release(&d, 0);
    EXPECT_CONTAINS(play_key(&d.p, 0, 3), "rlock_undone:{job}:");
    EXPECT_STR(play_arg(&d.p, 0, LEFT_ARG), "0");
    EXPECT_STR(play_arg(&d.p, 0, TOMBSTONE_ARG), "60000");
    EXPECT_INT(answer(&d, ":11\r\n"), RL_DONE); /* could not be written */
    EXPECT(d.x->ok);
    EXPECT_INT(d.h->state, RL_UNDOING);
    close_with_hold(&d);
}

/* For how long a tombstone stands, of a hold with this lease. */
static void expect_tombstone(int64_t lease_ms, const char *ms)
{
    deed d;
    open_with_hold(&d, lease_ms);
    d.h->unknown = true;
    begin_release(&d, 0);
    EXPECT_STR(play_arg(&d.p, 0, TOMBSTONE_ARG), ms);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    close_with_hold(&d);
}

TEST_CASE(verb_release, a_tombstone_stands_for_a_minute_at_least,
          expect_tombstone(1000, "60000"))
TEST_CASE(verb_release, a_tombstone_stands_as_long_as_the_lease,
          expect_tombstone(5 * 60000, "300000"))
TEST_CASE(verb_release, a_tombstone_stands_for_ten_minutes_at_most,
          expect_tombstone(10LL * 365 * 24 * 3600 * 1000, "600000"))

/* Its thread is nearer to the lock than the client that was rung. */
TEST(verb_release, a_release_that_rang_another_client_holds_the_next_comer_back)
{
    deed d;
    begin_free(&d);
    answer_late(&d, 3 * MS, ":2\r\n");
    EXPECT(d.x->ok);
    EXPECT(rl_rooms_is_owed(&core(&d)->rooms, &play_job,
                            d.p.now_us + 3 * MS + 199));
    EXPECT(!rl_rooms_is_owed(&core(&d)->rooms, &play_job,
                             d.p.now_us + 3 * MS + 200));
    close_with_hold(&d);
}

/* Who waits here stands in the server's queue, as far as the client knows. */
static void expect_front(const char *reply, rl_wake woken)
{
    deed d;
    rl_waiter w;
    begin_free(&d);
    EXPECT(rl_room_enter(&core(&d)->rooms, &w, &play_job, NULL, &d.p.waker, 0));
    rl_room_ticket(&core(&d)->rooms, &w);
    EXPECT_INT(answer(&d, reply), RL_DONE);
    EXPECT_INT(d.p.why, woken);
    rl_room_leave(&core(&d)->rooms, &w, false);
    close_with_hold(&d);
}

TEST_CASE(verb_release, who_is_queued_is_left_to_the_ring,
          expect_front(":2\r\n", RL_WAKE_NONE))
TEST_CASE(verb_release, who_is_queued_is_left_to_who_was_granted_it,
          expect_front(":3\r\n", RL_WAKE_NONE))
TEST_CASE(verb_release, who_was_not_rung_looks_though_it_is_queued,
          expect_front(":1\r\n", RL_WAKE_LOOK))

TEST(verb_release, nobody_is_held_back_for_longer_than_20_ms)
{
    deed d;
    begin_free(&d);
    answer_late(&d, 900 * MS, ":2\r\n");
    EXPECT(
        !rl_rooms_is_owed(&core(&d)->rooms, &play_job, d.p.now_us + 20 * MS));
    close_with_hold(&d);
}

/* Whoever comes next finds it held. */
TEST(verb_release, a_release_that_granted_it_holds_nobody_back)
{
    deed d;
    begin_free(&d);
    answer_late(&d, 3 * MS, ":3\r\n");
    EXPECT(d.x->ok);
    EXPECT(!rl_rooms_is_owed(&core(&d)->rooms, &play_job, d.p.now_us));
    close_with_hold(&d);
}

TEST(verb_release, a_release_that_rang_nobody_holds_nobody_back)
{
    deed d;
    begin_free(&d);
    answer_late(&d, 3 * MS, YES);
    EXPECT(!rl_rooms_is_owed(&core(&d)->rooms, &play_job, d.p.now_us));
    close_with_hold(&d);
}

static void begin_nested_release(deed *d)
{
    open_with_hold(d, LEASE_MS);
    d->h->count = 2;
    begin_release(d, 1);
}

TEST(verb_release, a_nested_unlock_counts_down_and_stays_held)
{
    deed d;
    begin_nested_release(&d);
    EXPECT_STR(play_arg(&d.p, 0, LEFT_ARG), "1");
    EXPECT_STR(play_arg(&d.p, 0, TOMBSTONE_ARG), "0");
    EXPECT_INT(answer(&d, YES), RL_DONE);
    EXPECT(d.x->ok && d.h->state == RL_HELD && d.h->count == 1);
    close_with_hold(&d);
}

TEST(verb_release, a_nested_unlock_may_find_that_the_hold_is_lost)
{
    deed d;
    begin_nested_release(&d);
    EXPECT_INT(answer(&d, NO), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "no longer knows");
    EXPECT(d.h->state == RL_LOST && d.h->count == 1);
    close_with_hold(&d);
}

TEST(verb_release, a_nested_unlock_without_answer_has_counted_down_all_the_same)
{
    deed d;
    begin_nested_release(&d);
    EXPECT_INT(play_lose(&d.p, 0), RL_DONE);
    EXPECT(!d.x->ok && d.h->count == 1 && d.h->state == RL_HELD);
    EXPECT_INT(d.x->outcome, RL_UNKNOWN);
    close_with_hold(&d);
}

/* --- a release of what is lost -------------------------------------------- */

static void release_lost(deed *d, rl_loss why, bool lingers)
{
    rl_fault f;
    rl_mutex_lock(&core(d)->holds.mutex);
    rl_hold_lose_locked(&core(d)->holds, d->h, why, d->p.now_us);
    rl_mutex_unlock(&core(d)->holds.mutex);
    EXPECT_INT(rl_hold_count_down(&core(d)->holds, d->h, 0, d->p.now_us),
               RL_COUNTED_LOST);
    EXPECT_INT(rl_release_lost(core(d), d->h, 0, &f, d->p.now_us), RLOCK_LOST);
    EXPECT_STR(f.text, rl_loss_text(why));
    EXPECT_INT(core(d)->holds.undoing, lingers);
    close_with_hold(d);
}

/* An owner is freed while an unlock that it has started begins elsewhere. */
TEST(verb_release, what_was_abandoned_meanwhile_is_let_go_of_once)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    rl_holds_abandon(&core(&d)->holds, d.p.owner.serial, d.p.now_us);
    unsigned refs = d.h->refs;
    EXPECT_INT(rl_hold_count_down(&core(&d)->holds, d.h, 0, d.p.now_us),
               RL_COUNTED_OVER);
    EXPECT_INT(d.h->refs, refs);
    close_with_hold(&d);
}

TEST(verb_release, a_hold_that_expired_may_linger_on_the_server_and_is_undone)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    d.p.now_us = d.h->expiry.due_us;
    release_lost(&d, RL_LOSS_EXPIRED, true);
}

/* The server's clock may have been put back: it has it for as long, then. */
TEST(verb_release, a_hold_whose_leases_have_all_run_out_is_undone_all_the_same)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    d.p.now_us = d.h->gone_us;
    release_lost(&d, RL_LOSS_EXPIRED, true);
}

TEST(verb_release, a_hold_that_the_server_does_not_know_needs_no_undoing)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    release_lost(&d, RL_LOSS_GONE, false);
}

TEST(verb_release,
     a_hold_that_may_still_be_acquired_is_undone_though_it_is_gone)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    d.h->unknown = true;
    release_lost(&d, RL_LOSS_GONE, true);
}

/* --- undo ----------------------------------------------------------------- */

TEST(verb_release, an_undo_buries_the_draft_and_rings_nobody)
{
    deed d;
    begin_undo(&d);
    EXPECT_STR(play_called(&d.p, 0), "hash/release");
    EXPECT_CONTAINS(play_key(&d.p, 0, 2), "rlock_undone:"); /* no queue */
    EXPECT_STR(play_arg(&d.p, 0, CHANNEL_ARG), "");
    EXPECT_STR(play_arg(&d.p, 0, LEFT_ARG), "0");
    EXPECT_STR(play_arg(&d.p, 0, TOMBSTONE_ARG), "60000");
    EXPECT_INT(answer(&d, NO), RL_DONE);
    EXPECT(d.x->ok);
    EXPECT_INT(core(&d)->holds.undoing, 0);
    EXPECT_INT(core(&d)->holds.records.count, 0);
    close_deed(&d);
}

TEST(verb_release, an_undo_whose_tombstone_was_not_written_goes_on)
{
    deed d;
    begin_undo(&d);
    EXPECT_INT(answer(&d, ":10\r\n"), RL_DONE);
    EXPECT_INT(core(&d)->holds.undoing, 1);
    close_deed(&d);
}

TEST(verb_release, an_undo_without_answer_goes_on)
{
    deed d;
    begin_undo(&d);
    EXPECT_INT(play_lose(&d.p, 0), RL_DONE);
    EXPECT_INT(core(&d)->holds.undoing, 1);
    close_deed(&d);
}
