/* The lock of a majority: votes, tokens, and what comes late. */
#include "election.h"
#include "hold/level.h"

/* --- a quorum ------------------------------------------------------------- */

TEST(vote, all_nodes_are_asked_at_once_with_one_holder_id)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    for (size_t i = 0; i < NODES; i++) {
        EXPECT_STR(play_called(&e.p, i), "hash/acquire");
        EXPECT_STR(play_arg(&e.p, i, HOLDER_ARG),
                   play_arg(&e.p, 0, HOLDER_ARG));
        EXPECT_STR(play_arg(&e.p, i, LEVEL_ARG), "1");
        EXPECT_STR(play_arg(&e.p, i, BELL_ARG), "");
        EXPECT_STR(play_arg(&e.p, i, LEAST_ARG), "0"); /* none is wanted */
        EXPECT_INT(e.p.client[i].listens, 0);          /* nobody waits */
    }
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    close_owned(&e);
}

TEST(vote, a_quorum_of_grants_owns_it)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 1, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    EXPECT_INT(e.a.token, 100);
    expect_state(&e, 1, RL_HELD);
    expect_state(&e, 2, RL_HELD);
    EXPECT_INT(hold(&e, 1)->token, 100);
    rl_group *g = own(&e);
    EXPECT(rl_group_count(g) == 1 && g->token == 100);
    EXPECT(!rl_group_is_renewed(g));
    close_owned(&e);
}

/* The Multi lock may be spoilt by its loss. */
TEST(vote, a_member_of_a_multi_lock_knows_it)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    rl_group *whole = rl_group_new(&e.p.home, 0);
    EXPECT(whole);
    e.a.joins = whole;
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    EXPECT(own(&e)->whole == whole);
    rl_group_unref(whole);
    close_owned(&e);
}

TEST(vote, nodes_that_tell_no_clock_say_nothing_of_it)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 1, GRANTED(100)), RL_ASK);
    EXPECT_INT(answer(&e, 2, GRANTED(100)), RL_DONE);
    EXPECT(e.ahead_us == 0);
    close_owned(&e);
}

TEST(vote, each_hold_is_good_from_before_its_own_node_was_asked)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    int64_t first_us = e.p.now_us;
    play_pass(&e.p, 100 * MS);
    EXPECT_INT(play_cut(&e.p, 2), RL_ASK); /* asked again, later */
    EXPECT_INT(answer(&e, 1, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    EXPECT_INT(hold(&e, 2)->expiry.due_us - hold(&e, 1)->expiry.due_us,
               100 * MS);
    EXPECT_INT(hold(&e, 1)->expiry.due_us,
               rl_lease_deadline(first_us, LEASE_MS));
    close_owned(&e);
}

TEST(vote, one_node_may_be_down)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    e.p.client[1].away = true;
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    EXPECT_INT(hold(&e, 1)->unknown, 0);
    close_owned(&e);
}

TEST(vote, a_closed_client_is_left_out)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    e.b.node[1] = NULL;
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(e.p.client[1].calls, 0);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    close_owned(&e);
}

/* --- tokens --------------------------------------------------------------- */

TEST(vote, the_largest_token_is_written_to_a_quorum_first)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    EXPECT_STR(play_called(&e.p, 0), "raise");
    EXPECT_STR(play_word(&e.p, 0, -1), "200");
    EXPECT_INT(e.p.client[1].calls, 1);
    EXPECT_INT(answer(&e, 0, YES), RL_DONE);
    EXPECT_INT(e.a.token, 200);
    EXPECT_INT(hold(&e, 0)->token, 200);
    EXPECT_INT(hold(&e, 1)->token, 200);
    close_owned(&e);
}

TEST(vote, without_a_token_on_a_quorum_it_is_undone)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 0, NOPERM), RL_ASK);
    EXPECT_STR(play_called(&e.p, 0), "hash/release");
    EXPECT_STR(play_called(&e.p, 1), "hash/release");
    EXPECT_STR(play_called(&e.p, 2), "hash/release");
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_INT(answer(&e, 1, YES), RL_DONE);
    EXPECT_CONTAINS(e.a.fault.text, "NOPERM");
    close_failed(&e, RLOCK_EQUORUM, 0);
}

/* Its server may have executed it: whoever unlocks tells that one, too. */
TEST(vote, a_vote_that_is_cut_while_the_token_is_written_may_be_granted)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    EXPECT_INT(play_cut(&e.p, 2), RL_ASK);
    EXPECT_INT(answer(&e, 0, YES), RL_DONE);
    EXPECT_INT(e.p.client[2].calls, 1);
    expect_state(&e, 2, RL_VACANT);
    EXPECT(hold(&e, 2)->unknown);
    close_owned(&e);
}

TEST(vote, a_node_that_did_not_grant_is_not_asked_to_raise)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 0, VOTED(300, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    EXPECT_STR(play_called(&e.p, 1), "raise");
    EXPECT(e.p.client[0].calls == 1 && e.p.client[2].calls == 1);
    EXPECT_INT(answer(&e, 1, YES), RL_DONE);
    EXPECT_INT(e.a.token, 300);
    close_owned(&e);
}

TEST(vote, the_fastest_clock_tells_which_token_to_want)
{
    election e;
    char wanted[32];
    open_election(&e, 0, LEASE_MS);
    e.ahead_us = 5000;
    EXPECT_INT(begin(&e), RL_ASK);
    snprintf(wanted, sizeof wanted, "%lld",
             (long long)(e.p.now_us + 5000 + 1000));
    EXPECT_STR(play_arg(&e.p, 1, LEAST_ARG), wanted);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(100, 950)), RL_DONE);
    EXPECT_INT(e.ahead_us, 950 - e.p.now_us);
    close_owned(&e);
}

TEST(vote, a_clock_that_cannot_be_is_not_believed)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    e.ahead_us = 5000;
    EXPECT_INT(begin(&e), RL_ASK);
    static const char mad[] =
        "*3\r\n:1\r\n$3\r\n100\r\n$19\r\n9000000000000000000\r\n";
    EXPECT_INT(answer(&e, 0, mad), RL_ASK);
    EXPECT_INT(answer(&e, 1, mad), RL_DONE);
    EXPECT_INT(e.ahead_us, 5000);
    close_owned(&e);
}

/* --- what comes late ------------------------------------------------------ */

static rl_group *open_owned(election *e, int64_t lease_ms)
{
    open_asked(e, 0, lease_ms);
    EXPECT_INT(answer(e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(e, 1, VOTED(100, 900)), RL_DONE);
    expect_state(e, 2, RL_DRAFT);
    return own(e);
}

static bool is_lost_with_the_first(election *e, rl_group *g)
{
    return rl_group_lose_one(g, 0, hold(e, 0)->confirmed_us, 0);
}

TEST(vote, a_grant_that_comes_late_joins_the_lock)
{
    election e;
    rl_group *g = open_owned(&e, RLOCK_WATCHDOG);
    rl_group_set_count(g, 2);
    answer(&e, 2, VOTED(100, 900));
    expect_state(&e, 2, RL_HELD);
    EXPECT(hold(&e, 2)->count == 2 && hold(&e, 2)->token == 100);
    EXPECT(hold(&e, 2)->renewed);
    EXPECT(!is_lost_with_the_first(&e, g));
    close_owned(&e);
}

/* It may have been executed long after the others, or just now. */
TEST(vote, a_grant_that_was_too_late_to_wait_for_counts_from_then_on)
{
    election e;
    rl_group *g = open_owned(&e, LEASE_MS);
    play_pass(&e.p, LEASE_MS * MS / 20 + MS);
    answer(&e, 2, VOTED(100, 900));
    expect_state(&e, 2, RL_HELD);
    EXPECT(is_lost_with_the_first(&e, g));
    play_forget(&e.p);
    play_close(&e.p);
}

TEST(vote, a_grant_that_comes_after_its_client_was_closed_joins_nothing)
{
    election e;
    rl_home other = {0};
    rl_group *g = open_owned(&e, RLOCK_WATCHDOG);
    rl_holds_close(&play_core(&e.p, 2)->holds, &other, e.p.now_us);
    answer(&e, 2, VOTED(100, 900));
    EXPECT(!hold(&e, 2));
    EXPECT_INT(play_core(&e.p, 2)->holds.undoing, 1);
    EXPECT(is_lost_with_the_first(&e, g));
    play_forget(&e.p);
    play_close(&e.p);
}

/* As an owner does who unlocks: what asked for the hold releases it. */
static intptr_t use_the_spare(void *arg)
{
    election *e = arg;
    rl_core *c = play_core(&e->p, 2);
    rl_hold *h = hold(e, 2);
    rl_part *x = NULL;
    while (!x) {
        rl_mutex_lock(&c->holds.mutex);
        x = rl_hold_take_spare(h);
        rl_mutex_unlock(&c->holds.mutex);
    }
    rl_part_release(x, c, h, 0, 0);
    free(x);
    return 0;
}

/* Who reads the late answer is another thread; ThreadSanitizer is the judge. */
TEST(vote, what_asked_for_a_late_grant_is_the_owners_once_the_hold_has_it)
{
    for (int i = 0; i < 100; i++) {
        election e;
        open_owned(&e, RLOCK_WATCHDOG);
        test_thread *t = test_spawn(use_the_spare, &e);
        answer(&e, 2, VOTED(100, 900));
        test_join(t);
        close_owned(&e);
    }
}

TEST(vote, a_node_that_is_busy_late_is_asked_again_with_the_renewals)
{
    election e;
    open_owned(&e, RLOCK_WATCHDOG);
    answer(&e, 2, IS_BUSY);
    expect_state(&e, 2, RL_VACANT);
    EXPECT(rl_heap_first(&play_core(&e.p, 2)->holds.first.work));
    close_owned(&e);
}

TEST(vote, a_node_that_is_busy_late_is_left_when_nothing_is_renewed)
{
    election e;
    open_owned(&e, LEASE_MS);
    answer(&e, 2, IS_BUSY);
    EXPECT(!hold(&e, 2));
    EXPECT_INT(play_core(&e.p, 2)->holds.undoing, 0);
    close_owned(&e);
}

TEST(vote, a_grant_that_comes_after_the_lock_was_lost_is_undone)
{
    election e;
    rl_group *g = open_owned(&e, RLOCK_WATCHDOG);
    EXPECT(rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_LOST));
    answer(&e, 2, VOTED(100, 900));
    EXPECT(!hold(&e, 2));
    EXPECT_INT(play_core(&e.p, 2)->holds.undoing, 1);
    play_close(&e.p);
}

/* The unlock has told this node, too: behind the acquire, on its line. */
TEST(vote, a_grant_that_comes_after_the_unlock_is_not_taken)
{
    election e;
    rl_group *g = open_owned(&e, RLOCK_WATCHDOG);
    rl_hold *h = hold(&e, 2);
    rl_core *c = play_core(&e.p, 2);
    EXPECT(rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_OVER));
    rl_hold_count_down(&c->holds, h, 0, e.p.now_us);
    rl_part *x = rl_part_new();
    rl_part_release(x, c, h, 0, e.p.now_us);
    rl_ask_push(&x->ask, &e.p.client[2].line, e.p.now_us);
    const char *bytes;
    rl_line_sent(&e.p.client[2].line,
                 rl_line_bytes(&e.p.client[2].line, &bytes));
    rl_part_let_go(x);
    answer(&e, 2, VOTED(100, 900));
    EXPECT(!hold(&e, 2) && h->state == RL_OVER);
    answer(&e, 2, YES);
    EXPECT_INT(c->holds.undoing, 0);
    EXPECT_INT(c->holds.records.count, 0);
    play_close(&e.p);
}

TEST(vote, an_owner_that_ends_before_a_late_grant_leaves_it_to_the_keeper)
{
    election e;
    open_owned(&e, RLOCK_WATCHDOG);
    rl_core *c = play_core(&e.p, 2);
    rl_holds_abandon(&c->holds, e.p.owner.serial, e.p.now_us);
    EXPECT_INT(c->holds.undoing, 1);
    answer(&e, 2, VOTED(100, 900));
    EXPECT(!hold(&e, 2));
    EXPECT_INT(c->holds.undoing, 1);
    play_close(&e.p);
}
