/* What an acquire says, and what its answer does to the hold. */
#include <limits.h>

#include "deed.h"

/* --- acquire -------------------------------------------------------------- */

static void begin_acquire(deed *d, int64_t lease_ms)
{
    open_with_draft(d, lease_ms);
    rl_part_acquire(d->x, core(d), d->h, lease_ms, d->p.now_us);
    EXPECT_INT(go(d), RL_ASK);
}

static void give_up(deed *d)
{
    rl_part_let_go(d->x);
    d->x = NULL;
    play_forget(&d->p);
    rl_give_up(core(d), d->h, d->p.now_us);
    close_deed(d);
}

TEST(verb_acquire, an_acquire_says_what_the_protocol_wants)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    EXPECT_STR(play_called(&d.p, 0), "hash/acquire");
    EXPECT_STR(play_word(&d.p, 0, 2), "3");
    EXPECT_STR(play_key(&d.p, 0, 1), "job");
    EXPECT_STR(play_key(&d.p, 0, 2), "rlock_token:{job}");
    EXPECT_CONTAINS(play_key(&d.p, 0, 3), "rlock_undone:{job}:");
    EXPECT_STR(play_arg(&d.p, 0, HOLDER_ARG), play_holder(d.h).text);
    EXPECT_STR(play_arg(&d.p, 0, LEASE_ARG), "10000");
    EXPECT_INT(play_args(&d.p, 0), BRIEF);
    give_up(&d);
}

/* The status of a failure is what the program is answered. */
TEST(verb_acquire, an_acquire_that_ends_for_no_known_reason_has_failed)
{
    deed d;
    open_with_draft(&d, LEASE_MS);
    rl_part_acquire(d.x, core(&d), d.h, LEASE_MS, d.p.now_us);
    play_one(&d.p, &d.op, d.x);
    rl_ask_refuse(&d.x->ask, d.p.now_us);
    EXPECT(!d.x->ok);
    EXPECT_INT(d.x->fault.status, RLOCK_EIO);
    give_up(&d);
}

TEST(verb_acquire, an_acquire_with_a_bell_says_level_bell_and_ticket)
{
    deed d;
    open_with_draft(&d, LEASE_MS);
    rl_part_acquire(d.x, core(&d), d.h, LEASE_MS, d.p.now_us);
    d.x->request.bell = "a bell";
    d.x->request.ticket = 5;
    go(&d);
    EXPECT_STR(play_word(&d.p, 0, 2), "4");
    EXPECT_STR(play_key(&d.p, 0, 4), "rlock_queue:{job}");
    EXPECT_STR(play_arg(&d.p, 0, LEVEL_ARG), "1");
    EXPECT_STR(play_arg(&d.p, 0, BELL_ARG), "a bell");
    EXPECT_STR(play_arg(&d.p, 0, TICKET_ARG), "5");
    EXPECT_INT(play_args(&d.p, 0), TICKET_ARG);
    give_up(&d);
}

TEST(verb_acquire, an_acquire_of_the_watchdog_asks_for_the_clients_lease)
{
    deed d;
    begin_acquire(&d, RLOCK_WATCHDOG);
    EXPECT_STR(play_arg(&d.p, 0, LEASE_ARG), "30000");
    EXPECT(d.x->renewed);
    give_up(&d);
}

TEST(verb_acquire, an_acquire_says_the_least_token_last)
{
    deed d;
    open_with_draft(&d, LEASE_MS);
    rl_part_acquire(d.x, core(&d), d.h, LEASE_MS, d.p.now_us);
    d.x->request.says_least = true;
    d.x->request.least = 77;
    go(&d);
    EXPECT_STR(play_arg(&d.p, 0, LEAST_ARG), "77");
    EXPECT_INT(play_args(&d.p, 0), LEAST_ARG);
    give_up(&d);
}

TEST(verb_acquire, a_holder_id_is_host_pid_tid_and_a_new_uuid)
{
    deed one, other;
    begin_acquire(&one, LEASE_MS);
    begin_acquire(&other, LEASE_MS);
    play_id a = play_holder(one.h), b = play_holder(other.h);
    EXPECT(strncmp(a.text, "host:1:11:", 10) == 0);
    EXPECT_INT(strlen(a.text), 10 + 36);
    EXPECT(strcmp(a.text, b.text) != 0);
    give_up(&one);
    give_up(&other);
}

TEST(verb_acquire, a_grant_is_taken_over_with_its_token_and_deadline)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    int64_t sent_us = d.p.now_us;
    answer_late(&d, 300 * MS, GRANTED(123));
    EXPECT(d.x->ok && d.x->verdict == RL_ACQUIRED && d.x->grant.token == 123);
    rl_take_over(d.x, 123, d.p.now_us);
    EXPECT(d.h->state == RL_HELD && d.h->token == 123 && !d.h->unknown);
    EXPECT_INT(d.h->expiry.due_us, sent_us + GOOD_US(LEASE_MS));
    close_deed(&d);
}

/* The lease counts from the latest attempt: that one was executed. */
TEST(verb_acquire, a_grant_counts_from_the_attempt_that_was_answered)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    play_pass(&d.p, 200 * MS);
    EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    EXPECT_INT(answer(&d, GRANTED(123)), RL_DONE);
    EXPECT_INT(d.x->grant.sent_us, d.p.now_us);
    EXPECT(d.h->unknown); /* the first attempt may arrive yet */
    give_up(&d);
}

TEST(verb_acquire, a_grant_that_took_as_long_as_its_lease_is_worth_nothing)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    answer_late(&d, GOOD_US(LEASE_MS), GRANTED(123));
    expect_fault(&d, RLOCK_EIO, "after the lease");
    EXPECT(d.x->verdict == RL_FAILED && d.h->unknown);
    give_up(&d);
}

TEST(verb_acquire, busy_tells_all_that_a_waiter_needs)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    EXPECT_INT(answer(&d, BUSY(4000, 555, 2)), RL_DONE);
    EXPECT(!d.x->ok && d.x->verdict == RL_BUSY);
    EXPECT_INT(d.x->grant.ttl_ms, 4000);
    EXPECT_INT(d.x->grant.ticket, 555);
    EXPECT_INT(d.x->grant.rank, 2);
    EXPECT(!d.x->grant.foreign && !d.h->unknown);
    EXPECT_INT(d.x->fault.status, RLOCK_BUSY);
    give_up(&d);
}

TEST(verb_acquire, an_acquire_without_answer_may_have_been_granted)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    EXPECT_INT(play_cut(&d.p, 0), RL_ASK);
    EXPECT_INT(play_cut(&d.p, 0), RL_DONE);
    EXPECT(d.x->verdict == RL_FAILED && d.x->outcome == RL_UNKNOWN);
    EXPECT(d.h->unknown);
    rl_give_up(core(&d), d.h, d.p.now_us);
    EXPECT_INT(core(&d)->holds.undoing, 1);
    close_deed(&d);
}

TEST(verb_acquire, an_acquire_that_was_never_executed_leaves_nothing_to_undo)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    EXPECT_INT(answer(&d, NOPERM), RL_DONE);
    EXPECT(d.x->verdict == RL_FAILED && !d.h->unknown);
    rl_give_up(core(&d), d.h, d.p.now_us);
    EXPECT_INT(core(&d)->holds.undoing, 0);
    EXPECT_INT(core(&d)->holds.records.count, 0);
    close_deed(&d);
}

/* Its tombstone stands: it can never be granted again. */
TEST(verb_acquire, an_acquire_that_was_given_up_leaves_nothing_to_undo)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    EXPECT_INT(answer(&d, GIVEN_UP), RL_DONE);
    expect_fault(&d, RLOCK_EIO, "given up");
    EXPECT(!d.h->unknown);
    EXPECT(!d.p.client[0].line.failed);
    give_up(&d);
}

static void expect_unexpected(const char *reply)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    EXPECT_INT(answer(&d, reply), RL_DONE);
    expect_fault(&d, RLOCK_EIO, "unexpected reply");
    EXPECT(d.h->unknown); /* it may have done anything */
    EXPECT(d.p.client[0].line.failed);
    give_up(&d);
}

TEST(verb_acquire, an_empty_array_is_not_taken_for_the_answer_before)
{
    deed d;
    begin_acquire(&d, LEASE_MS);
    d.p.client[0].line.reply.item[0] =
        (rl_item){.type = REDIS_REPLY_INTEGER, .integer = -2};
    EXPECT_INT(answer(&d, "*0\r\n"), RL_DONE);
    EXPECT(d.h->unknown);
    give_up(&d);
}

#define UNEXPECTED(name, reply)                                                \
    TEST_CASE(verb_acquire, name, expect_unexpected(reply))

UNEXPECTED(an_empty_array_is_no_grant, "*0\r\n")
UNEXPECTED(a_one_without_a_token_is_no_grant, "*1\r\n:1\r\n")
UNEXPECTED(a_token_of_zero_is_no_grant, "$1\r\n0\r\n")
UNEXPECTED(a_token_of_zero_with_a_clock_is_no_grant,
           "*3\r\n:1\r\n$1\r\n0\r\n$3\r\n123\r\n")
UNEXPECTED(a_token_without_a_clock_is_no_grant, "*2\r\n:1\r\n$3\r\n123\r\n")
UNEXPECTED(a_token_that_is_no_number_is_no_grant, "$3\r\n12x\r\n")
UNEXPECTED(a_one_as_text_is_no_grant,
           "*3\r\n$1\r\n1\r\n$3\r\n123\r\n$3\r\n123\r\n")
UNEXPECTED(a_grant_of_too_many_words_is_none,
           "*4\r\n:1\r\n$3\r\n123\r\n:1\r\n:1\r\n")
UNEXPECTED(a_busy_of_too_few_words_is_none, "*2\r\n:0\r\n:30000\r\n")
UNEXPECTED(a_first_level_cannot_be_lost, GONE)
UNEXPECTED(a_code_that_no_script_gives, "*1\r\n:7\r\n")

/* --- a level more --------------------------------------------------------- */

TEST(verb_acquire, a_text_that_is_no_number_is_no_level)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    EXPECT_INT(answer(&d, "$5\r\nhello\r\n"), RL_DONE);
    expect_fault(&d, RLOCK_EIO, "unexpected reply");
    EXPECT_INT(d.h->count, 1);
    EXPECT(d.p.client[0].line.failed);
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_asks_for_one_level_more)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    EXPECT_STR(play_called(&d.p, 0), "hash/acquire");
    EXPECT_STR(play_arg(&d.p, 0, LEVEL_ARG), "2");
    EXPECT_INT(answer(&d, GRANTED(100)), RL_DONE);
    EXPECT(d.x->ok && d.h->count == 2 && d.h->token == 100);
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_prolongs_and_never_shortens)
{
    deed d;
    begin_reentry(&d, LEASE_MS, 20000);
    EXPECT_INT(answer(&d, GRANTED(100)), RL_DONE);
    EXPECT_INT(d.h->expiry.due_us, d.p.now_us + GOOD_US(20000));
    int64_t before_us = d.h->expiry.due_us;
    EXPECT(rl_part_reenter(d.x, core(&d), d.h, 1000, d.p.now_us));
    EXPECT_INT(go(&d), RL_ASK);
    EXPECT_INT(answer(&d, GRANTED(100)), RL_DONE);
    EXPECT(d.x->ok && d.h->count == 3 && d.h->expiry.due_us == before_us);
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_with_the_watchdog_turns_renewal_on)
{
    deed d;
    begin_reentry(&d, LEASE_MS, RLOCK_WATCHDOG);
    EXPECT_INT(answer(&d, GRANTED(100)), RL_DONE);
    EXPECT(d.h->renewed && is_due(&d, d.h));
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_is_not_asked_for_longer_than_the_hold_is_good)
{
    deed d;
    begin_reentry(&d, 3000, LEASE_MS);
    EXPECT_INT(d.x->until_us, d.h->expiry.due_us);
    EXPECT_INT(answer(&d, GRANTED(100)), RL_DONE);
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_may_find_that_the_hold_is_lost)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    EXPECT_INT(answer(&d, GONE), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "the server no longer knows it");
    EXPECT(d.h->state == RL_LOST && d.h->count == 1);
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_that_is_granted_after_the_deadline_is_lost)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    d.p.now_us = d.h->expiry.due_us;
    EXPECT_INT(answer(&d, GRANTED(100)), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "lease ran out");
    EXPECT(d.h->state == RL_LOST && d.h->count == 1);
    close_with_hold(&d);
}

/* Forced, held by others, and taken again by a late copy of its acquire. */
TEST(verb_acquire, a_reentry_that_is_told_a_later_token_is_lost)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    d.h->unknown = true;
    EXPECT_INT(answer(&d, GRANTED(101)), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "no longer knows");
    EXPECT_INT(d.h->state, RL_LOST);
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_that_failed_leaves_the_hold_as_it_was)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    EXPECT_INT(answer(&d, NOPERM), RL_DONE);
    expect_fault(&d, RLOCK_ESERVER, "NOPERM");
    EXPECT(d.h->state == RL_HELD && d.h->count == 1);
    close_with_hold(&d);
}

TEST(verb_acquire, a_reentry_that_failed_says_so_if_the_hold_was_lost_meanwhile)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    d.p.now_us = d.h->expiry.due_us;
    EXPECT_INT(answer(&d, NOPERM), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "lease ran out");
    close_with_hold(&d);
}

TEST(verb_acquire, a_key_that_is_no_lock_any_more_is_a_loss_of_its_own)
{
    deed d;
    begin_reentry(&d, LEASE_MS, LEASE_MS);
    EXPECT_INT(answer(&d, WRONGTYPE), RL_DONE);
    expect_fault(&d, RLOCK_EWRONGTYPE, "WRONGTYPE");
    EXPECT(d.h->state == RL_LOST && d.h->loss == RL_LOSS_FOREIGN);
    close_with_hold(&d);
}

TEST(verb_acquire, a_hold_count_has_an_end)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    d.h->count = INT_MAX;
    EXPECT(!rl_part_reenter(d.x, core(&d), d.h, LEASE_MS, d.p.now_us));
    close_with_hold(&d);
}
