/* What an extend says, and what becomes of answers that are late. */
#include "deed.h"

/* --- extend --------------------------------------------------------------- */

TEST(verb, an_extend_sets_the_lease_also_a_shorter_one)
{
    deed d;
    begin_extend(&d, LEASE_MS, 2000);
    EXPECT_STR(play_called(&d.p, 0), "hash/extend");
    EXPECT_STR(play_word(&d.p, 0, 2), "1");
    EXPECT_STR(play_word(&d.p, 0, -1), "2000");
    int64_t sent_us = d.p.now_us;
    answer_late(&d, 100 * MS, YES);
    EXPECT(d.x->ok);
    EXPECT_INT(d.h->expiry.due_us, sent_us + GOOD_US(2000));
    close_with_hold(&d);
}

TEST(verb, an_extend_to_an_explicit_lease_ends_renewal)
{
    deed d;
    begin_extend(&d, RLOCK_WATCHDOG, LEASE_MS);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    EXPECT(d.x->ok && !d.h->renewed && !is_due(&d, d.h));
    close_with_hold(&d);
}

TEST(verb, an_extend_with_the_watchdog_begins_renewal)
{
    deed d;
    begin_extend(&d, LEASE_MS, RLOCK_WATCHDOG);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    EXPECT(d.x->ok && d.h->renewed && is_due(&d, d.h));
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(PLAY_LEASE_MS));
    close_with_hold(&d);
}

TEST(verb, an_extend_that_is_refused_leaves_renewal_as_it_was)
{
    deed d;
    begin_extend(&d, RLOCK_WATCHDOG, LEASE_MS);
    EXPECT_INT(answer(&d, NOPERM), RL_DONE);
    expect_fault(&d, RLOCK_ESERVER, "NOPERM");
    EXPECT(d.h->renewed && !d.h->paused && is_due(&d, d.h));
    EXPECT_INT(d.h->work.due_us, d.p.now_us); /* it has paused meanwhile */
    EXPECT_INT(d.h->extra->cap_ms, RL_NO_CAP);
    close_with_hold(&d);
}

TEST(verb, an_extend_may_find_that_the_hold_is_lost)
{
    deed d;
    begin_extend(&d, LEASE_MS, LEASE_MS);
    EXPECT_INT(answer(&d, NO), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "no longer knows");
    EXPECT_INT(d.h->state, RL_LOST);
    close_with_hold(&d);
}

TEST(verb, an_extend_of_what_is_another_programs_key_now_loses_the_hold)
{
    deed d;
    begin_extend(&d, LEASE_MS, LEASE_MS);
    EXPECT_INT(answer(&d, WRONGTYPE), RL_DONE);
    expect_fault(&d, RLOCK_EWRONGTYPE, "WRONGTYPE");
    EXPECT_INT(d.h->state, RL_LOST);
    EXPECT_INT(d.h->loss, RL_LOSS_FOREIGN);
    close_with_hold(&d);
}

TEST(verb, an_extend_without_answer_until_the_deadline_is_a_loss)
{
    deed d;
    begin_extend(&d, LEASE_MS, LEASE_MS);
    d.p.now_us = d.h->expiry.due_us;
    EXPECT_INT(play_lose(&d.p, 0), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "lease ran out");
    close_with_hold(&d);
}

TEST(verb, an_extend_that_is_confirmed_after_the_deadline_is_lost)
{
    deed d;
    begin_extend(&d, LEASE_MS, LEASE_MS);
    d.p.now_us = d.h->expiry.due_us;
    EXPECT_INT(answer(&d, YES), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "lease ran out");
    close_with_hold(&d);
}

/* The server may have executed it long before its answer comes. */
TEST(verb, a_shorter_lease_is_believed_from_when_it_is_asked_for)
{
    deed d;
    begin_extend(&d, LEASE_MS, 2000);
    int64_t asked_us = d.p.now_us;
    EXPECT_INT(d.h->expiry.due_us, rl_lease_deadline(asked_us, 2000));
    answer_late(&d, 2100 * MS, YES);
    expect_fault(&d, RLOCK_LOST, "ran out");
    close_with_hold(&d);
}

TEST(verb, a_shorter_lease_that_was_refused_is_not_believed)
{
    deed d;
    begin_extend(&d, LEASE_MS, 2000);
    int64_t before_us = d.x->before_us;
    EXPECT(before_us > d.h->expiry.due_us);
    EXPECT_INT(answer(&d, NOPERM), RL_DONE);
    EXPECT_INT(d.h->expiry.due_us, before_us);
    close_with_hold(&d);
}

TEST(verb, an_extend_without_answer_may_arrive_and_shorten_the_lease)
{
    deed d;
    begin_extend(&d, LEASE_MS, 2000);
    int64_t began_us = d.p.now_us;
    EXPECT_INT(play_lose(&d.p, 0), RL_DONE);
    EXPECT(!d.x->ok && d.h->state == RL_HELD);
    EXPECT_INT(d.h->extra->cap_ms, 2000);
    EXPECT_INT(d.h->expiry.due_us, began_us + GOOD_US(2000));
    close_with_hold(&d);
}

TEST(verb, an_extend_after_one_without_answer_is_not_relied_on)
{
    deed d;
    begin_extend(&d, LEASE_MS, 2000);
    EXPECT_INT(play_lose(&d.p, 0), RL_DONE);
    d.p.client[0].away = false;
    rl_part_extend(d.x, core(&d), d.h, LEASE_MS, RL_NEVER, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    expect_fault(&d, RLOCK_EIO, "may still");
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(2000));
    close_with_hold(&d);
}

TEST(verb, an_extend_of_what_may_be_anothers_says_its_token)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    d.h->unknown = true;
    rl_part_extend(d.x, core(&d), d.h, LEASE_MS, RL_NEVER, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_STR(play_word(&d.p, 0, 2), "2");
    EXPECT_STR(play_word(&d.p, 0, 4), "rlock_token:{job}");
    EXPECT_STR(play_word(&d.p, 0, -1), "100");
    EXPECT_INT(answer(&d, YES), RL_DONE);
    close_with_hold(&d);
}

/* So that enough renewals fit in before the lease ends. */
TEST(verb, an_extend_of_a_renewed_hold_does_not_take_long)
{
    deed d;
    begin_extend(&d, RLOCK_WATCHDOG, LEASE_MS);
    EXPECT_BETWEEN(d.x->until_us, d.p.now_us + 1,
                   d.p.now_us + PLAY_LEASE_MS * MS / 6);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    close_with_hold(&d);
}

/* --- a part begins -------------------------------------------------------- */

#define ALIKE(field) EXPECT(x->field == y->field)

static void expect_alike_asks(const rl_ask *x, const rl_ask *y)
{
    ALIKE(next);
    ALIKE(script);
    ALIKE(write);
    ALIKE(done);
    ALIKE(loads);
    ALIKE(line);
    ALIKE(redirects);
    ALIKE(once);
    ALIKE(whole);
    ALIKE(last);
    ALIKE(split);
    ALIKE(single);
    ALIKE(strict);
    ALIKE(parts);
    ALIKE(patient);
    ALIKE(unknown);
    ALIKE(tries);
    ALIKE(redirected);
    ALIKE(detour);
    ALIKE(pause_us);
    ALIKE(rest_until_us);
    ALIKE(send_by_us);
    ALIKE(confirm.replicas);
    ALIKE(slot.line);
    ALIKE(slot.raw);
    ALIKE(slot.subscribes);
}

static void expect_alike_requests(const rl_request *x, const rl_request *y)
{
    EXPECT_STR(x->bell, y->bell);
    ALIKE(lease_ms);
    ALIKE(level);
    ALIKE(joins);
    ALIKE(ticket);
    ALIKE(deaf);
    ALIKE(beat_us);
    ALIKE(keep);
    ALIKE(makes_way);
    ALIKE(says_least);
    ALIKE(says_who);
    ALIKE(least);
    ALIKE(permits);
}

static void expect_alike_times(const rl_part *x, const rl_part *y)
{
    ALIKE(began_us);
    ALIKE(until_us);
    ALIKE(before_us);
    ALIKE(limit_us);
    ALIKE(patience_us);
    ALIKE(way_us);
}

static void expect_alike(const rl_part *x, const rl_part *y)
{
    ALIKE(core);
    ALIKE(verb);
    ALIKE(hold);
    ALIKE(what);
    ALIKE(behind);
    ALIKE(heir);
    ALIKE(way);
    ALIKE(next);
    ALIKE(holder);
    ALIKE(renewed);
    ALIKE(quiet);
    ALIKE(drops);
    ALIKE(compare);
    ALIKE(moves);
    ALIKE(level);
    ALIKE(due);
    ALIKE(awaited);
    ALIKE(slow);
    ALIKE(silent);
    ALIKE(over);
    ALIKE(counted);
    ALIKE(refused);
    ALIKE(ok);
    ALIKE(verdict);
    ALIKE(code);
    ALIKE(fault.status);
    ALIKE(fault.at);
    EXPECT_STR(x->fault.text, y->fault.text);
}

/* Nothing of what it was for before is left. */
TEST(verb, a_part_that_was_used_before_begins_like_a_new_one)
{
    deed d;
    rl_part used, unused;
    open_deed(&d);
    play_in_cluster(&d.p, 0);
    memset(&used, 1, sizeof used);
    memset(&unused, 0, sizeof unused);
    rl_part_leave(&used, core(&d), &play_job, d.p.now_us);
    rl_part_leave(&unused, core(&d), &play_job, d.p.now_us);
    expect_alike(&used, &unused);
    expect_alike_times(&used, &unused);
    expect_alike_requests(&used.request, &unused.request);
    expect_alike_asks(&used.ask, &unused.ask);
    close_deed(&d);
}

/* --- late ----------------------------------------------------------------- */

/* Its caller has gone; the answer comes all the same. */
static void let_go(deed *d)
{
    rl_op_let_go(&d->op);
    play_forget(&d->p);
    d->x = NULL;
}

TEST(verb, a_late_part_keeps_its_hold_and_frees_itself)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    int refs = (int)d.h->refs;
    let_go(&d);
    EXPECT_INT(d.h->refs, refs + 1);
    answer(&d, GRANTED(100));
    EXPECT_INT(d.h->refs, refs);
    close_with_hold(&d);
}

/* It had lost the hold, and has granted it again since. */
static void grant_anew(deed *d)
{
    rl_holds *t = &core(d)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_lose_locked(t, d->h, RL_LOSS_GONE, d->p.now_us);
    EXPECT_INT(d->h->state, RL_VACANT);
    rl_hold_grant_locked(t, d->h, 100, d->p.now_us, true, d->p.now_us);
    rl_mutex_unlock(&t->mutex);
}

TEST(verb, a_late_answer_of_a_node_that_granted_it_anew_since_loses_nothing)
{
    deed d;
    open_deed(&d);
    rl_group *g = rl_group_new(&d.p.home, 1);
    EXPECT(g && rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    rl_group_join(g, 1, 0, RL_NEVER);
    rl_group_set_renewed(g, true);
    d.h = play_member(&d.p, 0, &play_red, g, RLOCK_WATCHDOG);
    d.h->refs++;
    rl_part_extend(d.x, core(&d), d.h, RLOCK_WATCHDOG, RL_NEVER, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    let_go(&d);
    play_pass(&d.p, MS);
    grant_anew(&d);
    answer(&d, NO);
    EXPECT_INT(d.h->state, RL_HELD);
    rl_group_unref(g);
    close_with_hold(&d);
}

/* What the owner has asked since may have been executed after it. */
TEST(verb, a_late_reentry_neither_counts_nor_prolongs)
{
    deed d;
    begin_reentry(&d, LEASE_MS, 60000);
    int64_t before_us = d.h->expiry.due_us;
    let_go(&d);
    answer(&d, GRANTED(100));
    EXPECT(d.h->count == 1 && d.h->expiry.due_us == before_us);
    close_with_hold(&d);
}

TEST(verb, a_late_reentry_may_still_find_that_the_hold_is_lost)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    let_go(&d);
    answer(&d, GONE);
    EXPECT_INT(d.h->state, RL_LOST);
    close_with_hold(&d);
}

/* What is sent after its answer comes after it. */
TEST(verb, a_late_extend_caps_what_was_sent_before_its_answer)
{
    deed d;
    begin_extend(&d, LEASE_MS, 60000);
    int64_t before_us = d.h->expiry.due_us;
    let_go(&d);
    answer(&d, YES);
    EXPECT_INT(d.h->expiry.due_us, before_us);
    EXPECT_INT(rl_hold_cap_ms(d.h, d.p.now_us), 60000);
    EXPECT_INT(rl_hold_cap_ms(d.h, d.p.now_us + 1), RL_NEVER);
    close_with_hold(&d);
}

/* By another connection, which is ahead of the extend's. */
static void renew(deed *d)
{
    rl_holds *t = &core(d)->holds;
    rl_mutex_lock(&t->mutex);
    rl_hold_prolong_locked(t, d->h, d->p.now_us, PLAY_LEASE_MS, d->p.now_us);
    rl_mutex_unlock(&t->mutex);
}

/* An extend to 2 s is late, and a second has passed. */
static void begin_late_extend(deed *d)
{
    begin_extend(d, RLOCK_WATCHDOG, 2000);
    let_go(d);
    play_pass(&d->p, 1000 * MS);
    renew(d);
}

TEST(verb, a_late_extend_caps_what_is_sent_until_its_answer)
{
    deed d;
    begin_late_extend(&d);
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(2000));
    EXPECT_INT(rl_hold_renewal_ms(&core(&d)->holds, d.h, d.p.now_us), 2000);
    play_pass(&d.p, 1000 * MS);
    int64_t before_us = d.h->expiry.due_us;
    answer(&d, YES);
    EXPECT_INT(d.h->expiry.due_us, before_us); /* it was as it should be */
    play_pass(&d.p, 1);
    renew(&d);
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(PLAY_LEASE_MS));
    close_with_hold(&d);
}

TEST(verb, a_late_extend_that_was_refused_caps_nothing_from_then_on)
{
    deed d;
    begin_late_extend(&d);
    answer(&d, NOPERM);
    renew(&d);
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(PLAY_LEASE_MS));
    EXPECT(!rl_hold_was_capped(d.h));
    close_with_hold(&d);
}

TEST(verb, a_late_extend_that_ends_without_answer_caps_for_ever)
{
    deed d;
    begin_late_extend(&d);
    int64_t before_us = d.h->expiry.due_us;
    rl_line_time_out(&d.p.client[0].line, d.p.now_us);
    EXPECT_INT(d.h->expiry.due_us, before_us);
    play_pass(&d.p, 1000 * MS);
    renew(&d);
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(2000));
    close_with_hold(&d);
}

/* Whatever its part may have been before: to_level is of a release then. */
static void expect_late_undo(int to_level)
{
    deed d;
    open_with_draft(&d, LEASE_MS);
    d.h->unknown = true;
    d.x->level = to_level;
    rl_part_undo(d.x, core(&d), d.h, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    let_go(&d);
    answer(&d, YES);
    EXPECT_INT(core(&d)->holds.records.count, 0);
    close_deed(&d);
}

TEST_CASE(verb, a_late_undo_ends_the_draft, expect_late_undo(0))
TEST_CASE(verb, a_late_undo_ends_the_draft_by_a_part_that_was_used_before,
          expect_late_undo(1))

TEST(verb, a_late_part_without_a_hold_is_not_sent_again)
{
    deed d;
    open_deed(&d);
    rl_part_inspect(d.x, core(&d), &play_job, NULL, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    let_go(&d);
    answer(&d, NOSCRIPT);
    EXPECT_INT(d.p.client[0].line.pending, 0);
    close_deed(&d);
}

/* It has brought its name. */
TEST(verb, a_late_leave_is_sent_again_when_the_server_lacks_the_script)
{
    deed d;
    rl_target job = play_job;
    char name[] = "job";
    job.name = name;
    open_deed(&d);
    free(d.x);
    d.x = rl_part_new_leave(core(&d), &job, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    let_go(&d);
    memset(name, 'x', 3);
    answer(&d, NOSCRIPT);
    EXPECT_STR(play_word(&d.p, 0, 0), "EVAL");
    EXPECT_STR(play_key(&d.p, 0, 1), "job");
    answer(&d, YES);
    close_deed(&d);
}

TEST(verb, a_part_that_was_never_asked_goes_with_its_operation)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    int refs = (int)d.h->refs;
    rl_part_extend(d.x, core(&d), d.h, LEASE_MS, RL_NEVER, d.p.now_us);
    play_one(&d.p, &d.op, d.x);
    let_go(&d);
    EXPECT_INT(d.h->refs, refs);
    EXPECT_INT(d.op.n, 0);
    close_with_hold(&d);
}

TEST(verb, every_answer_tells_how_quick_the_server_is)
{
    deed d;
    open_deed(&d);
    rl_part_leave(d.x, core(&d), &play_job, d.p.now_us);
    EXPECT_INT(go(&d), RL_ASK);
    answer_late(&d, 2 * MS, LEFT);
    EXPECT_INT(core(&d)->rtt.smoothed_us, 2 * MS);
    close_deed(&d);
}

/* --- an owner that has ended ---------------------------------------------- */

/*
 * Of an acquire in doubt the undoing waits for the lease to run out: until then
 * nothing may prolong that.
 */
static void expect_not_sent(deed *d)
{
    d->h->unknown = true;
    rl_holds_abandon(&core(d)->holds, d->p.owner.serial, d->p.now_us);
    EXPECT_INT(d->h->state, RL_UNDOING);
    EXPECT_INT(go(d), RL_DONE);
    EXPECT(!d->x->ok);
    EXPECT_INT(d->p.client[0].calls, 0);
    close_with_hold(d);
}

TEST(verb, a_level_more_of_what_is_being_undone_is_not_sent)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    EXPECT(rl_part_reenter(d.x, core(&d), d.h, 60000, d.p.now_us));
    expect_not_sent(&d);
}

TEST(verb, an_extend_of_what_is_being_undone_is_not_sent)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    rl_part_extend(d.x, core(&d), d.h, 60000, RL_NEVER, d.p.now_us);
    expect_not_sent(&d);
}

/* As after a grant: the next one is counted from when this was sent. */
TEST(verb, an_extend_with_the_watchdog_is_renewed_a_third_after_it_was_sent)
{
    deed d;
    begin_extend(&d, LEASE_MS, RLOCK_WATCHDOG);
    int64_t sent_us = d.p.now_us;
    answer_late(&d, 300 * MS, YES);
    EXPECT(d.x->ok && is_due(&d, d.h));
    EXPECT_INT(d.h->work.due_us, sent_us + PLAY_LEASE_MS * MS / 3);
    close_with_hold(&d);
}

/* A release that cannot be sent is tried until then. */
TEST(verb, what_an_extend_may_keep_alive_is_expected)
{
    deed d;
    begin_extend(&d, LEASE_MS, 60000);
    EXPECT_INT(d.h->gone_us, d.x->until_us + 60000 * MS);
    EXPECT_INT(answer(&d, YES), RL_DONE);
    close_with_hold(&d);
}
