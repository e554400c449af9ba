/*
 * Renewals that go together: what is asked in one call, and that each hold ends
 * by its own answer. The keeper's line leads nowhere; the test says what comes
 * over it.
 */
#include "renewals.h"

TEST(batch, renewals_that_are_due_together_are_one_call)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    EXPECT_INT(line(&r)->pending, 1);
    play_pass(&r.p, 50 * MS);
    answer(&r, "$3\r\n111\r\n");
    EXPECT_INT(renewed(&r), 3);
    for (size_t i = 0; i < 3; i++)
        EXPECT_INT(r.h[i]->expiry.due_us,
                   r.p.now_us - 50 * MS + GOOD_US(PLAY_LEASE_MS));
    EXPECT_INT(asks(&r, MANY), 0);
    close_round(&r);
}

TEST(batch, a_renewal_alone_is_a_call_for_one)
{
    round r;
    open_round(&r, 1);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, YES);
    EXPECT_INT(renewed(&r), 1);
    close_round(&r);
}

TEST(batch, a_call_is_for_50_at_most)
{
    round r;
    open_round(&r, 120);
    EXPECT_INT(asks(&r, MANY), 3);
    EXPECT_INT(line(&r)->pending, 3);
    close_round(&r);
}

TEST(batch, holds_of_each_layout_go_by_themselves)
{
    round r;
    open_round(&r, 2);
    add_hold(&r, RLOCK_LAYOUT_STRING);
    add_hold(&r, RLOCK_LAYOUT_STRING);
    add_hold(&r, RLOCK_LAYOUT_TIMESTAMP);
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT_INT(line(&r)->pending, 3);
    EXPECT_INT(sends(&r, MANY), 1);
    answer(&r, "$2\r\n11\r\n$2\r\n11\r\n:1\r\n");
    EXPECT_INT(renewed(&r), 5);
    close_round(&r);
}

TEST(batch, one_that_is_gone_is_asked_about_by_itself)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$3\r\n101\r\n");
    EXPECT_INT(renewed(&r), 2);
    EXPECT_INT(r.h[1]->state, RL_HELD);
    EXPECT_INT(sends(&r, SINGLY), 1);
    answer(&r, NO);
    EXPECT_INT(r.h[1]->state, RL_LOST);
    EXPECT_INT(r.h[1]->loss, RL_LOSS_GONE);
    close_round(&r);
}

TEST(batch, one_that_has_an_error_is_asked_by_itself)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "$3\r\n1e1\r\n");
    EXPECT_INT(sends(&r, SINGLY), 1);
    EXPECT_INT(renewed(&r), 2);
    answer(&r, "-WRONGTYPE Operation against a key\r\n");
    EXPECT_INT(r.h[1]->loss, RL_LOSS_FOREIGN);
    for (size_t i = 0; i < 3; i++)
        if (r.h[i]->state == RL_HELD)
            set_due(&r, r.h[i]);
    EXPECT_INT(asks(&r, MANY), 1); /* that was no reason against batches */
    close_round(&r);
}

TEST(batch, a_call_that_is_refused_is_made_for_each_from_then_on)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, "-CROSSSLOT Keys in request don't hash to the same slot\r\n");
    EXPECT_INT(sends(&r, SINGLY), 3);
    answer(&r, YES YES YES);
    EXPECT_INT(renewed(&r), 3);
    EXPECT_INT(failed(&r), 0);
    for (size_t i = 0; i < 3; i++)
        set_due(&r, r.h[i]);
    EXPECT_INT(asks(&r, SINGLY), 3);
    close_round(&r);
}

static void ask_each_after(const char *reply)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, reply);
    EXPECT_INT(sends(&r, SINGLY), 3);
    answer(&r, YES NO YES);
    EXPECT_INT(renewed(&r), 2);
    close_round(&r);
}

TEST_CASE(batch, an_answer_that_is_too_short_is_none,
          ask_each_after("$2\r\n11\r\n"))
TEST_CASE(batch, an_answer_that_is_too_long_is_none,
          ask_each_after("$4\r\n1111\r\n"))
TEST_CASE(batch, letters_that_no_script_gives_are_no_answers,
          ask_each_after("$3\r\nxyz\r\n"))

TEST(batch, an_answer_of_another_type_breaks_the_line)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, YES);
    EXPECT(line(&r)->failed);
    EXPECT_INT(failed(&r), 3);
    EXPECT_INT(renewed(&r), 0);
    close_round(&r);
}

TEST(batch, a_broken_line_is_a_failure_of_each)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    cut(&r);
    EXPECT_INT(failed(&r), 3);
    EXPECT_INT(r.e.node.keeper.in_flight, 0);
    for (size_t i = 0; i < 3; i++)
        EXPECT_INT(r.h[i]->state, RL_HELD);
    engine_reconnect(&r.e);
    EXPECT_INT(asks(&r, MANY), 1);
    close_round(&r);
}

TEST(batch, a_script_that_is_missing_goes_once_for_all)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, NOSCRIPT);
    EXPECT_INT(line(&r)->pending, 1);
    EXPECT_INT(sends(&r, SINGLY), 0);
    answer(&r, "$3\r\n111\r\n");
    EXPECT_INT(renewed(&r), 3);
    close_round(&r);
}

/* It says its token, and asks by itself. */
TEST(batch, a_hold_that_compares_tokens_goes_in_no_batch)
{
    round r;
    open_round(&r, 3);
    r.h[1]->unknown = true;
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT_INT(line(&r)->pending, 2);
    close_round(&r);
}

TEST(batch, after_its_deadline_a_hold_is_not_asked_about_by_itself)
{
    round r;
    open_round(&r, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    play_pass(&r.p, PLAY_LEASE_MS * MS);
    answer(&r, "$2\r\nee\r\n");
    EXPECT_INT(line(&r)->pending, 0);
    for (size_t i = 0; i < 2; i++)
        EXPECT_INT(r.h[i]->loss, RL_LOSS_EXPIRED);
    close_round(&r);
}

TEST(batch, what_waits_to_be_sent_may_be_sent_until_the_first_deadline)
{
    round r;
    open_round(&r, 2);
    play_pass(&r.p, 100 * MS);
    add_hold(&r, RLOCK_LAYOUT_HASH);
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT(rl_batches_may_send(&r.e.node.keeper, r.h[0]->expiry.due_us - 1));
    EXPECT(!rl_batches_may_send(&r.e.node.keeper, r.h[0]->expiry.due_us));
    EXPECT(r.h[2]->expiry.due_us > r.h[0]->expiry.due_us);
    close_round(&r);
}

/* Its call would be too late at once, and fail with the connection. */
TEST(batch, what_is_over_before_an_answer_can_come_is_not_asked_about)
{
    round r;
    open_round(&r, 2);
    play_pass(&r.p, r.h[0]->expiry.due_us - 999 - r.p.now_us);
    add_hold(&r, RLOCK_LAYOUT_HASH);
    EXPECT_INT(asks(&r, SINGLY), 1);
    EXPECT_INT(line(&r)->pending, 1);
    answer(&r, YES);
    EXPECT_INT(renewed(&r), 1);
    EXPECT(r.h[2]->expiry.due_us > r.h[0]->expiry.due_us);
    close_round(&r);
}

TEST(batch, what_lasts_until_an_answer_can_come_is_asked_about)
{
    round r;
    open_round(&r, 1);
    play_pass(&r.p, r.h[0]->expiry.due_us - 1000 - r.p.now_us);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, YES);
    EXPECT_INT(renewed(&r), 1);
    close_round(&r);
}

/* The owner has released it, with an outcome that is unknown. */
TEST(batch, what_is_being_undone_is_not_renewed_by_itself)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_end_locked(table(&r), r.h[1], r.p.now_us);
    rl_hold_undo_locked(table(&r), r.h[1], RL_NEVER);
    rl_mutex_unlock(&table(&r)->mutex);
    answer(&r, REFUSED);
    EXPECT_INT(sends(&r, SINGLY), 2);
    answer(&r, YES YES);
    EXPECT_INT(renewed(&r), 2);
    EXPECT_INT(r.h[1]->state, RL_UNDOING);
    EXPECT_INT(r.e.node.keeper.in_flight, 0);
    close_round(&r);
}

/* Its owner waits for the batch to end, to extend it. */
TEST(batch, what_is_about_to_be_extended_is_not_renewed_by_itself)
{
    round r;
    open_round(&r, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    rl_mutex_lock(&table(&r)->mutex);
    rl_hold_pause_renewal_locked(table(&r), r.h[0]);
    rl_mutex_unlock(&table(&r)->mutex);
    answer(&r, REFUSED);
    EXPECT_INT(sends(&r, SINGLY), 1);
    EXPECT(!r.h[0]->in_flight);
    close_round(&r);
}

TEST(batch, what_a_renewal_by_itself_may_keep_alive_is_expected)
{
    round r;
    open_round(&r, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    play_pass(&r.p, 2000 * MS);
    answer(&r, REFUSED);
    EXPECT_INT(r.h[0]->gone_us, r.p.now_us + PLAY_LEASE_MS * MS);
    close_round(&r);
}

/* While its slot moves, only calls with one key are executed; the lease of who
   reads, too, is in another. */
static void expect_writer(bool reads_meanwhile)
{
    round r;
    open_round(&r, 0);
    add_hold(&r, (rlock_layout)RL_LAYOUT_WRITE);
    int64_t before_us = r.h[0]->expiry.due_us;
    play_pass(&r.p, 50 * MS);
    rl_batches_push_due(&r.e.node, r.p.now_us);
    EXPECT_INT(sends(&r, SINGLY), 0);
    answer(&r, TRYAGAIN);
    EXPECT_INT(sends(&r, SINGLY), 1);
    r.h[0]->paired = reads_meanwhile;
    answer(&r, YES);
    EXPECT_INT(renewed(&r), !reads_meanwhile);
    EXPECT((r.h[0]->expiry.due_us == before_us) == reads_meanwhile);
    EXPECT((r.h[0]->work.due_us == r.p.now_us) == reads_meanwhile);
    close_round(&r);
}

TEST_CASE(batch, while_its_slot_moves_a_writer_is_renewed_by_one_key,
          expect_writer(false))
TEST_CASE(batch, a_writer_who_has_asked_to_read_meanwhile_is_asked_for_at_once,
          expect_writer(true))

static void ignore_move(rl_redirects *r, unsigned slot, const char *host,
                        int port)
{
    (void)r, (void)slot, (void)host, (void)port;
}

/* Each time but the last it follows at once. */
static void send_on(round *r, int times)
{
    for (int i = 0; i < times; i++) {
        EXPECT_INT(asks(r, SINGLY), 1);
        answer(r, "-MOVED 3999 10.0.0.2:6381\r\n");
        if (i < RL_ASK_REDIRECTS)
            EXPECT(r->h[0]->work.due_us - r->p.now_us < 50 * MS);
        else
            EXPECT_INT(r->h[0]->work.due_us - r->p.now_us,
                       rl_keeper_longest_pause_us(&r->e.node));
        play_pass(&r->p, r->h[0]->work.due_us - r->p.now_us);
    }
}

TEST(batch, a_renewal_that_is_sent_in_a_circle_pauses_and_is_sent_on_again)
{
    static rl_redirects nowhere = {.moved = ignore_move};
    round r;
    open_round(&r, 1);
    r.e.core.redirects = &nowhere;
    send_on(&r, RL_ASK_REDIRECTS + 1);
    EXPECT_INT(failed(&r), 1);
    send_on(&r, RL_ASK_REDIRECTS - 1);
    EXPECT_INT(asks(&r, SINGLY), 1);
    answer(&r, YES);
    play_pass(&r.p, r.h[0]->work.due_us - r.p.now_us);
    send_on(&r, RL_ASK_REDIRECTS + 1);
    EXPECT_INT(failed(&r), 2);
    close_round(&r);
}

static void fail_all_with(const char *reply)
{
    round r;
    open_round(&r, 3);
    EXPECT_INT(asks(&r, MANY), 1);
    answer(&r, reply);
    EXPECT_INT(line(&r)->pending, 0);
    EXPECT_INT(sends(&r, SINGLY), 0);
    EXPECT_INT(failed(&r), 3);
    EXPECT(!r.e.node.keeper.one_by_one);
    close_round(&r);
}

TEST_CASE(batch, a_server_that_is_busy_is_asked_by_batches_again,
          fail_all_with("-BUSY Redis is busy running a script\r\n"))
TEST_CASE(batch, a_server_that_was_demoted_is_asked_no_more,
          fail_all_with("-READONLY You can't write against a replica\r\n"))

/* The keeper's fault is still an earlier task's. */
TEST(batch, an_answer_has_no_fault_of_another)
{
    round r;
    open_round(&r, 2);
    EXPECT_INT(asks(&r, MANY), 1);
    r.e.node.keeper.fault.status = RLOCK_EWRONGTYPE;
    play_pass(&r.p, PLAY_LEASE_MS * MS);
    answer(&r, "$1\r\n1\r\n");
    EXPECT_INT(r.e.core.holds.failure.status, RLOCK_EIO);
    close_round(&r);
}

TEST(batch, what_goes_by_itself_goes_in_the_order_in_which_it_is_due)
{
    round r;
    const char *bytes;
    open_round(&r, 3);
    r.e.node.keeper.one_by_one = true;
    rl_batches_push_due(&r.e.node, r.p.now_us);
    size_t n = rl_line_bytes(line(&r), &bytes);
    char holder[RL_HOLDER_MAX];
    size_t len = rl_hold_id_len(r.h[0]);
    rl_hold_write_id(r.h[0], holder);
    const char *first = memmem(bytes, n, holder, len);
    rl_hold_write_id(r.h[2], holder);
    const char *last = memmem(bytes, n, holder, len);
    EXPECT(first && last && first < last);
    close_round(&r);
}

/* --- a look --------------------------------------------------------------- */

/* Its lease is the program's; and the server may not know it any more. */
static void open_look(round *r, bool compares)
{
    open_round(r, 1);
    rl_mutex_lock(&table(r)->mutex);
    rl_hold_stop_renewal_locked(table(r), r->h[0]);
    rl_mutex_unlock(&table(r)->mutex);
    r->h[0]->unknown = compares;
    play_pass(&r->p, 1000 * MS);
    rl_holds_doubt(table(r), r->e.node.queue, r->p.now_us);
}

/* The last words of the call, each of so many letters. */
static void expect_words(round *r, const char *words)
{
    const char *bytes;
    char text[1000], said[100] = "", *rest = text;
    rl_batches_push_due(&r->e.node, r->p.now_us);
    size_t n = rl_line_bytes(line(r), &bytes);
    snprintf(text, sizeof text, "%.*s", (int)n, bytes);
    EXPECT(memmem(bytes, n, rl_scripts[SINGLY].sha1, 40));
    rl_line_sent(line(r), n);
    for (char *w; (w = strtok_r(rest, "\r\n", &rest)) != NULL;)
        if (*w != '$' && strlen(w) < 9)
            snprintf(said + strlen(said), sizeof said - strlen(said), "%s ", w);
    EXPECT_STR(said, words);
}

TEST(batch, a_look_asks_for_no_lease)
{
    round r;
    open_look(&r, false);
    expect_words(&r, "*6 EVALSHA 1 0 0 ");
    int64_t deadline_us = r.h[0]->expiry.due_us;
    answer(&r, YES);
    EXPECT_INT(r.h[0]->expiry.due_us, deadline_us);
    EXPECT_INT(r.h[0]->confirmed_us, r.p.now_us);
    EXPECT(renewed(&r) == 0 && !r.h[0]->work.at);
    close_round(&r);
}

TEST(batch, a_look_at_what_may_be_anothers_says_its_token)
{
    round r;
    open_look(&r, true);
    expect_words(&r, "*8 EVALSHA 2 0 0 100 ");
    answer(&r, NO);
    EXPECT(r.h[0]->state == RL_LOST && r.h[0]->loss == RL_LOSS_GONE);
    close_round(&r);
}

TEST(batch, a_look_that_fails_is_told_nobody_and_tried_again)
{
    round r;
    open_look(&r, false);
    expect_words(&r, "*6 EVALSHA 1 0 0 ");
    answer(&r, NOPERM);
    EXPECT(r.h[0]->state == RL_HELD && failed(&r) == 0);
    EXPECT(!r.h[0]->reports && r.h[0]->work.at);
    close_round(&r);
}
