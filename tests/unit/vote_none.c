/* The lock of a majority: no quorum, and who may not vote. */
#include <errno.h>

#include "red/attempt_red.h"

#include "election.h"
#include "red/attempt_red.h"
#include "shim.h"

/* --- no quorum ------------------------------------------------------------ */

TEST(vote_none, a_quorum_of_busy_nodes_is_busy)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_DONE);
    EXPECT_STR(play_called(&e.p, 1), "hash/release"); /* not waited for */
    play_forget(&e.p);
    answer(&e, 1, VOTED(100, 900));
    answer(&e, 1, YES);
    close_failed(&e, RLOCK_BUSY, 0);
}

TEST(vote_none, a_busy_node_and_one_that_is_down_are_no_quorum)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, IS_BUSY), RL_ASK);
    EXPECT_INT(play_lose(&e.p, 1), RL_DONE);
    EXPECT_CONTAINS(e.a.fault.text, "1 held by another");
    EXPECT_CONTAINS(e.a.fault.text, "3 no answer so far");
    play_forget(&e.p);
    answer(&e, 2, IS_BUSY);
    answer(&e, 2, NO);
    close_failed(&e, RLOCK_EQUORUM, 1); /* node 2 may have granted */
}

TEST(vote_none, without_hope_of_a_quorum_nobody_is_waited_for)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    e.p.client[0].away = e.p.client[2].away = true;
    EXPECT_INT(begin(&e), RL_DONE);
    EXPECT_STR(play_called(&e.p, 1), "hash/release");
    EXPECT_CONTAINS(e.a.fault.text, "1 nobody is at home");
    EXPECT_CONTAINS(e.a.fault.text, "2 no answer so far");
    play_forget(&e.p);
    answer(&e, 1, VOTED(100, 900));
    answer(&e, 1, YES);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

TEST(vote_none, split_votes_are_taken_back_quietly_before_the_caller_is_told)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_ASK);
    EXPECT_STR(play_called(&e.p, 0), "hash/release");
    EXPECT_CONTAINS(play_key(&e.p, 0, 2), "rlock_undone:"); /* rings nobody */
    EXPECT_STR(play_arg(&e.p, 0, CHANNEL_ARG), "");
    EXPECT_INT(play_args(&e.p, 0), BRIEF); /* it is known to be granted */
    EXPECT(e.p.client[1].calls == 1 && e.p.client[2].calls == 1);
    EXPECT_INT(answer(&e, 0, YES), RL_DONE);
    close_failed(&e, RLOCK_BUSY, 0);
}

TEST(vote_none, who_has_not_answered_the_vote_is_not_waited_for_to_undo_it)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_ASK);
    EXPECT_INT(play_silent(&e.p, 2), RL_ASK);
    EXPECT_STR(play_called(&e.p, 2), "hash/release");
    EXPECT_STR(play_arg(&e.p, 2, TOMBSTONE_ARG), "60000");
    EXPECT_INT(answer(&e, 0, YES), RL_DONE);
    play_forget(&e.p);
    answer(&e, 2, VOTED(100, 900)); /* late, and undone by what follows */
    answer(&e, 2, YES);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

TEST(vote_none, an_undo_without_answer_is_left_to_the_keeper)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, IS_BUSY), RL_ASK);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_ASK);
    EXPECT_INT(play_lose(&e.p, 0), RL_DONE);
    close_failed(&e, RLOCK_BUSY, 1);
}

TEST(vote_none, a_grant_that_took_as_long_as_the_lease_is_no_vote)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    e.p.now_us = rl_lease_deadline(PLAY_BEGAN_US, LEASE_MS);
    EXPECT_INT(answer(&e, 1, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_ASK);
    EXPECT_STR(play_called(&e.p, 0), "hash/release");
    EXPECT_INT(answer(&e, 0, YES), RL_DONE);
    close_failed(&e, RLOCK_EQUORUM, 2);
}

TEST(vote_none, a_token_that_took_as_long_as_the_lease_is_no_lock)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    e.p.now_us = rl_lease_deadline(PLAY_BEGAN_US, LEASE_MS);
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_CONTAINS(e.a.fault.text, "too late");
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_INT(answer(&e, 1, YES), RL_DONE);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

/* Node 1 was asked again, and later; its lease alone is no quorum. */
TEST(vote_none, a_token_too_late_for_the_lease_of_one_of_two_is_no_lock)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    play_pass(&e.p, 5000 * MS);
    EXPECT_INT(play_cut(&e.p, 1), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    e.p.now_us = rl_lease_deadline(PLAY_BEGAN_US, LEASE_MS);
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_STR(e.a.fault.text, "granted, but too late for its lease");
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_INT(answer(&e, 1, YES), RL_DONE);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

TEST(vote_none, without_memory_nobody_is_asked)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    rl_next next = begin(&e);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_DONE);
    EXPECT_INT(e.p.client[0].calls, 0);
    close_failed(&e, RLOCK_ENOMEM, 0);
}

/* Whichever allocation fails: owned or not, and nothing is left behind. */
TEST(vote_none, one_lack_of_memory_leaves_a_quorum_or_nothing)
{
    for (int nth = 1; nth <= 16; nth++) {
        election e;
        open_election(&e, 0, LEASE_MS);
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        rl_next next = begin(&e);
        for (size_t i = 0; i < NODES && next == RL_ASK; i++)
            if (e.p.client[i].line.pending)
                next = answer(&e, i, VOTED(100, 900));
        shim_clear(shim_here());
        EXPECT_INT(next, RL_DONE);
        if (e.a.status == RLOCK_OK)
            close_owned(&e);
        else
            close_failed(&e, RLOCK_ENOMEM, 0);
    }
}

TEST(vote_none, what_nodes_say_is_told_as_they_say_it)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, "-ERR 70%d of %s\r\n"), RL_ASK);
    EXPECT_INT(answer(&e, 1, "-ERR 70%d of %s\r\n"), RL_DONE);
    EXPECT_CONTAINS(e.a.fault.text,
                    "1 the server answered: ERR 70%d of %s; 2 ");
    play_forget(&e.p);
    answer(&e, 2, IS_BUSY);
    answer(&e, 2, NO);
    close_failed(&e, RLOCK_EQUORUM, 2); /* they may have granted it */
}

TEST(vote_none, what_a_node_says_to_a_token_is_told_as_it_says_it)
{
    election e;
    open_asked(&e, 0, LEASE_MS);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(200, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 0, "-ERR 70%d of %s\r\n"), RL_ASK);
    EXPECT_CONTAINS(e.a.fault.text, "1 the server answered: ERR 70%d of %s");
    EXPECT_INT(answer(&e, 0, YES), RL_ASK);
    EXPECT_INT(answer(&e, 1, YES), RL_DONE);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

static rl_next answer_those_asked(election *e, rl_next next)
{
    for (size_t i = 0; i < NODES && next == RL_ASK; i++)
        if (e->p.client[i].line.pending)
            next = answer(e, i, IS_BUSY);
    return next;
}

/* Some allocations fail in a row. Those that are asked all the same are busy; how
   many is answered. */
static size_t expect_reason(int from, int to)
{
    election e;
    size_t asked = 0;
    open_election(&e, 0, LEASE_MS);
    shim_fail(shim_here(), SHIM_ALLOC, from, to, ENOMEM);
    rl_next next = begin(&e);
    shim_clear(shim_here());
    for (size_t i = 0; i < NODES; i++)
        asked += e.p.client[i].line.pending > 0;
    EXPECT_INT(answer_those_asked(&e, next), RL_DONE);
    close_failed(&e,
                 asked < 2   ? RLOCK_ENOMEM
                 : asked < 3 ? RLOCK_EQUORUM
                             : RLOCK_BUSY,
                 0);
    return asked;
}

TEST(vote_none, memory_that_lacks_for_a_majority_is_the_reason)
{
    int times[NODES + 1] = {0};
    for (int from = 1; from <= 12; from++)
        for (int to = from; to <= 16; to++)
            times[expect_reason(from, to)]++;
    EXPECT(times[0] > 0 && times[1] > 0 && times[2] > 0);
}

/* Those that have been asked are busy; whichever allocation fails. */
TEST(vote_none, a_node_that_memory_lacked_for_is_told)
{
    for (int nth = 1; nth <= 16; nth++) {
        election e;
        open_election(&e, 0, LEASE_MS);
        shim_fail(shim_here(), SHIM_ALLOC, nth, nth, ENOMEM);
        rl_next next = begin(&e);
        bool failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
        next = answer_those_asked(&e, next);
        shim_clear(shim_here());
        EXPECT_INT(next, RL_DONE);
        if (failed)
            EXPECT_CONTAINS(e.a.fault.text, "out of memory");
        close_failed(&e, e.a.status, 0);
    }
}

/* --- who may vote --------------------------------------------------------- */

static void restart_as(election *e, size_t i, const char *run_id, int64_t at_us)
{
    rl_item told[2] = {
        {.type = REDIS_REPLY_STRING, .str = run_id, .len = strlen(run_id)},
        {.type = REDIS_REPLY_INTEGER, .integer = 1}};
    EXPECT(rl_server_run_note(&play_core(&e->p, i)->server_run, told, at_us));
}

static void restart(election *e, size_t i, int64_t at_us)
{
    restart_as(e, i, "a new run", at_us);
}

TEST(vote_none, a_node_that_has_restarted_does_not_vote)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    restart(&e, 1, e.p.now_us - 1000 * MS);
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(e.p.client[1].calls, 0);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_ASK);
    EXPECT_CONTAINS(e.a.fault.text, "2 restarted 1 s ago");
    EXPECT_INT(answer(&e, 0, YES), RL_DONE);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

TEST(vote_none, a_node_votes_again_once_the_longest_lease_has_run_out)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    restart(&e, 1, e.p.now_us - PLAY_LEASE_MS * MS);
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(e.p.client[1].calls, 1);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 1, VOTED(100, 900)), RL_DONE);
    close_owned(&e);
}

/* What others use may be longer than what this client does. */
TEST(vote_none, the_longest_lease_may_be_told)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    e.b.longest_lease_ms = 90000;
    restart(&e, 1, e.p.now_us - 60000 * MS);
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(e.p.client[1].calls, 0);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    EXPECT_INT(own(&e)->longest_us, 90000 * MS);
    close_owned(&e);
}

TEST(vote_none, the_longest_lease_of_late_counts)
{
    election e;
    open_election(&e, 0, 50000);
    restart(&e, 1, e.p.now_us - 40000 * MS);
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(e.p.client[1].calls, 0);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, VOTED(100, 900)), RL_DONE);
    close_owned(&e);
}

/* Counts how often a client's leases are looked at, which all remember one. */
static struct {
    rl_map_equal *same;
    int looks;
    election *then_restarts; /* NULL: nothing happens while one looks */
} leases;

static bool look(const rl_map_node *n, const void *wanted)
{
    /* The first in each client only notes the lease that is asked for. */
    if (++leases.looks > NODES && leases.then_restarts)
        restart_as(leases.then_restarts, 1, "a newer run", PLAY_BEGAN_US / 2);
    return leases.same(n, wanted);
}

static void open_counted(election *e)
{
    open_election(e, 0, LEASE_MS);
    EXPECT(
        rl_vote_note_lease(e->b.node, NODES, &play_red, LEASE_MS, e->p.now_us));
    for (size_t i = 0; i < NODES; i++) {
        rl_map *m = &play_core(&e->p, i)->longest.map;
        leases.same = m->equal;
        m->equal = look;
    }
    leases.looks = 0;
    leases.then_restarts = NULL;
}

static void close_voted(election *e)
{
    EXPECT_INT(answer(e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(e, 2, VOTED(100, 900)), RL_DONE);
    close_owned(e);
}

TEST(vote_none, no_lease_is_looked_up_for_nodes_that_have_not_restarted)
{
    election e;
    open_counted(&e);
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(leases.looks, NODES);
    EXPECT_INT(e.p.client[0].calls + e.p.client[1].calls + e.p.client[2].calls,
               NODES);
    close_voted(&e);
}

TEST(vote_none, leases_are_looked_up_for_the_node_that_has_restarted_alone)
{
    election e;
    open_counted(&e);
    restart(&e, 1, e.p.now_us - PLAY_LEASE_MS * MS);
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(leases.looks, NODES + NODES);
    EXPECT_INT(e.p.client[1].calls, 1);
    close_voted(&e);
}

TEST(vote_none, with_check_uptime_leases_are_looked_up_for_every_node)
{
    election e;
    open_counted(&e);
    e.b.check_uptime = true;
    EXPECT_INT(begin(&e), RL_DONE);
    EXPECT_INT(leases.looks, NODES + NODES * NODES);
    EXPECT_INT(e.p.client[0].calls, 0);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

/* Another thread meets a newer run while this one looks at the leases. */
TEST(vote_none, whether_a_node_votes_is_decided_from_one_reading_of_its_run)
{
    election e;
    open_counted(&e);
    restart(&e, 1, e.p.now_us - 1000 * MS);
    leases.then_restarts = &e;
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT_INT(e.p.client[1].calls, 0);
    EXPECT_CONTAINS(e.a.op.part[1]->fault.text, "restarted 1 s ago");
    close_voted(&e);
}

TEST(vote_none, with_check_uptime_a_young_node_does_not_vote)
{
    election e;
    rl_fault f;
    open_election(&e, 0, LEASE_MS);
    rl_core *c = play_core(&e.p, 1);
    EXPECT(rl_may_vote(c, 5000 * MS, false, e.p.now_us, &f));
    EXPECT(!rl_may_vote(c, 5000 * MS, true, e.p.now_us, &f));
    EXPECT(rl_may_vote(c, 5000 * MS, true, e.p.now_us + 5000 * MS, &f));
    play_close(&e.p);
}

TEST(vote_none, a_node_that_is_not_known_does_not_vote)
{
    election e;
    rl_fault f;
    open_election(&e, 0, LEASE_MS);
    rl_core *c = play_core(&e.p, 1);
    c->server_run.run_id[0] = '\0';
    EXPECT(!rl_may_vote(c, 0, false, e.p.now_us, &f));
    EXPECT_CONTAINS(f.text, "not identified");
    play_close(&e.p);
}

TEST(vote_none, a_server_has_one_vote_though_two_nodes_lead_to_it)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    restart(&e, 0, e.p.now_us - 90000 * MS);
    restart(&e, 1, e.p.now_us - 90000 * MS);
    EXPECT_INT(begin(&e), RL_ASK);
    EXPECT(e.p.client[0].calls == 1 && e.p.client[1].calls == 0);
    EXPECT_INT(answer(&e, 0, VOTED(100, 900)), RL_ASK);
    EXPECT_INT(answer(&e, 2, IS_BUSY), RL_ASK);
    EXPECT_CONTAINS(e.a.fault.text, "2 same server as node 1");
    EXPECT_INT(answer(&e, 0, YES), RL_DONE);
    close_failed(&e, RLOCK_EQUORUM, 0);
}

/* --- nobody to ask -------------------------------------------------------- */

TEST(vote_none, with_all_clients_closed_each_is_told_as_such)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    for (size_t i = 0; i < NODES; i++)
        e.b.node[i] = NULL;
    EXPECT_INT(begin(&e), RL_DONE);
    EXPECT_CONTAINS(e.a.fault.text, "1 the client is closed; 2 the client is");
    close_failed(&e, RLOCK_EQUORUM, 0);
}

TEST(vote_none, without_memory_for_the_only_client_that_is_left_nobody_is_asked)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    e.b.node[0] = e.b.node[1] = NULL;
    EXPECT(
        rl_vote_note_lease(e.b.node, NODES, &play_red, LEASE_MS, e.p.now_us));
    /* The second: the group is the first. */
    shim_fail(shim_here(), SHIM_ALLOC, 2, SHIM_EVER, ENOMEM);
    rl_next next = begin(&e);
    shim_clear(shim_here());
    EXPECT_INT(next, RL_DONE);
    EXPECT_INT(e.a.op.lacking, 1u << 2);
    EXPECT_INT(e.p.homes, 0);
    close_failed(&e, RLOCK_ENOMEM, 0);
}

/* Whoever renews may have asked for it, here or in another process. */
TEST(vote_none, no_lease_is_longer_than_the_watchdogs_if_none_is_known)
{
    election e;
    open_election(&e, 0, LEASE_MS);
    EXPECT_INT(rl_vote_longest_us(&e.a, e.p.now_us), PLAY_LEASE_MS * MS);
    e.b.node[0] = e.b.node[2] = NULL;
    play_core(&e.p, 1)->set.watchdog_lease_ms = 70000;
    EXPECT_INT(rl_vote_longest_us(&e.a, e.p.now_us), 70000 * MS);
    e.b.longest_lease_ms = 500;
    EXPECT_INT(rl_vote_longest_us(&e.a, e.p.now_us), 500 * MS);
    play_forget(&e.p);
    play_close(&e.p);
}
