/* Red locks when a minority is dead or hangs, or others hold it. */
#include "nodes.h"

/* Nodes from..n - 1 are paused, or killed. */
static void pause_from(const nodes *ns, size_t from)
{
    for (size_t i = from; i < ns->n; i++)
        server_pause(ns->sv[i]);
}

static void resume_from(const nodes *ns, size_t from)
{
    for (size_t i = from; i < ns->n; i++)
        server_resume(ns->sv[i]);
}

static void kill_from(const nodes *ns, size_t from)
{
    for (size_t i = from; i < ns->n; i++)
        server_kill(ns->sv[i]);
}

/* --- 39: a minority is dead or hangs ------------------------------------- */

static void lock_quickly(party *p)
{
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p->lk, 0, LONG_LEASE), RLOCK_OK);
    expect_fast(began_ms);
    began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(p->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    expect_fast(began_ms);
    began_ms = test_now_ms();
    EXPECT_STATUS(rlock_extend(p->lk, LONG_LEASE), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    expect_fast(began_ms);
}

TEST(red, fault_039_a_dead_minority_costs_nothing)
{
    nodes ns = nodes_start(5), alive = nodes_first(&ns, 3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    kill_from(&ns, 3);
    for (int i = 0; i < 3; i++)
        lock_quickly(&p);
    nodes_expect_all_undone(&alive);
    party_end(&p, &ns);
}

TEST(red, fault_039_a_minority_that_dies_later_costs_nothing)
{
    nodes ns = nodes_start(3), alive = nodes_first(&ns, 2);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    kill_from(&ns, 2);
    for (int i = 0; i < 3; i++)
        lock_quickly(&p);
    nodes_expect_all_undone(&alive);
    party_end(&p, &ns);
}

/*
 * Nested acquires, unlocks and extends cannot be left to somebody else: the
 * first one waits for the node's own limit.
 */
TEST(red, fault_039_a_hung_minority_costs_its_own_limit_once)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    server_pause(ns.sv[2]);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.lk, 0, LONG_LEASE), RLOCK_OK);
    expect_fast(began_ms); /* a majority is enough */
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(p.lk, LONG_LEASE), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, LIMIT_MS + FAST_MS);
    /* By now it is known to hang, or becomes so. */
    int64_t until_ms = test_now_ms() + SOON;
    do {
        began_ms = test_now_ms();
        EXPECT_STATUS(rlock_acquire(p.lk, 0, LONG_LEASE), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
        expect_fast(began_ms);
    } while (stats_of(p.cl[2]).reconnects > 0 && test_now_ms() < until_ms);
    for (int i = 0; i < 3; i++)
        lock_quickly(&p);
    server_resume(ns.sv[2]);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

/* In ms; the fastest of ten, each with its unlock. */
static double fastest_acquire(rlock *lk)
{
    int64_t fastest_us = INT64_MAX;
    for (int i = 0; i < 10; i++) {
        int64_t began_us = test_now_us();
        EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
        if (test_now_us() - began_us < fastest_us)
            fastest_us = test_now_us() - began_us;
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    }
    return (double)fastest_us / 1000;
}

/* Whether it can be connected to is not known before the timeout. */
TEST(red, fault_039_a_minority_that_hung_before_the_first_use_is_not_waited_for)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    server_pause(ns.sv[3]);
    server_pause(ns.sv[4]);
    int64_t began_ms = test_now_ms();
    double ms = fastest_acquire(p.lk);
    if (ms > 4)
        FAIL("the fastest of ten acquires took %.1f ms", ms);
    expect_fast(began_ms);
    server_resume(ns.sv[3]);
    server_resume(ns.sv[4]);
    party_end(&p, &ns);
}

TEST(red, fault_039_a_node_that_is_back_takes_part_again)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    server_pause(ns.sv[1]);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, LONG_LEASE), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    server_resume(ns.sv[1]);
    party_hold(&p, LONG_LEASE);
    EXPECT(node_has(ns.sv[1]));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, fault_039_a_node_that_was_silent_at_the_unlock_is_released_later)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_hold(&p, LONG_LEASE);
    server_pause(ns.sv[2]);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    expect_fast(began_ms);
    server_resume(ns.sv[2]);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, fault_039_renewal_goes_on_with_a_minority_dead)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    events_wait(p.ev[0], RLOCK_EVENT_RENEWED, 1, SOON); /* the control */
    server_kill(ns.sv[0]); /* also the first client's */
    server_kill(ns.sv[4]);
    EVENTUALLY(SOON, party_holding(&p) == 3);
    for (size_t i = 1; i < 4; i++)
        events_wait(p.ev[i], RLOCK_EVENT_RENEWED,
                    events_count(p.ev[i], RLOCK_EVENT_RENEWED) + 2, SOON);
    EXPECT(rlock_is_held(p.lk));
    EXPECT(events_count(p.ev[0], RLOCK_EVENT_RENEW_FAILED) > 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    party_end(&p, &ns);
}

/*
 * n nodes, of which a majority goes away while the lock is renewed: lost by its
 * deadline, told once, and what is left is not renewed any more.
 */
static void expect_loss_in_time(void (*harm)(const nodes *ns, size_t from))
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    events_wait(p.ev[0], RLOCK_EVENT_RENEWED, 1, SOON); /* the control */
    harm(&ns, 1);
    int64_t until_ms = test_now_ms() + 1500;
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_time(p.ev[0], RLOCK_EVENT_LOST) <= until_ms + 300);
    EXPECT(!rlock_is_held(p.lk));
    uint64_t renewals = stats_of(p.cl[0]).renewals;
    EVENTUALLY(SOON, !node_has(ns.sv[0]));
    EXPECT_BETWEEN(stats_of(p.cl[0]).renewals, renewals, renewals + 1);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    expect_one_loss(&p);
    resume_from(&ns, 1); /* no effect on the dead */
    party_end(&p, &ns);
}

TEST_CASE(red, fault_039_a_killed_majority_is_one_loss_by_the_deadline,
          expect_loss_in_time(kill_from))
TEST_CASE(red, fault_039_a_hung_majority_is_one_loss_by_the_deadline,
          expect_loss_in_time(pause_from))

/* --- held by others, and failed, are different answers ------------------- */

TEST(red, a_majority_held_by_others_is_busy_or_a_timeout)
{
    nodes ns = nodes_start(5), rest = nodes_first(&ns, 2);
    party p = party_join(&ns, 0, 0);
    party_connect(&p);
    nodes_take(&ns, 2, 5);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "1 ok");
    EXPECT_CONTAINS(rlock_last_error()->message, "3 held by ");
    EXPECT_CONTAINS(rlock_last_error()->message, "5 held by ");
    EXPECT_CONTAINS(rlock_last_error()->message, "'job'");
    EXPECT_STATUS(rlock_acquire(p.lk, 100, LONG_LEASE), RLOCK_TIMEOUT);
    server_kill(ns.sv[1]);
    /* It would not help; as long as the others answer at once. */
    EVENTUALLY(SOON, rlock_trylock(p.lk) == RLOCK_BUSY);
    EVENTUALLY(SOON, rlock_acquire(p.lk, 100, LONG_LEASE) == RLOCK_TIMEOUT);
    rest.n = 1;
    nodes_expect_all_undone(&rest);
    party_end(&p, &ns);
}

TEST(red, half_of_an_even_number_held_by_others_is_busy)
{
    nodes ns = nodes_start(4);
    party p = party_join(&ns, 0, 0);
    party_connect(&p);
    nodes_take(&ns, 2, 4);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    nodes rest = nodes_first(&ns, 2);
    nodes_expect_all_undone(&rest);
    party_end(&p, &ns);
}

/* Two that refuse may be quicker than one that answers. */
static bool is_told_of_the_one(rlock *lk)
{
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "2 ");
    EXPECT_CONTAINS(rlock_last_error()->message, "3 ");
    return strstr(rlock_last_error()->message, "1 ok") != NULL;
}

TEST(red, a_majority_that_fails_is_no_quorum)
{
    nodes ns = nodes_start(3), rest = nodes_first(&ns, 1);
    party p = party_join(&ns, 0, 0);
    kill_from(&ns, 1);
    EVENTUALLY(SOON, is_told_of_the_one(p.lk));
    EXPECT_INT(rlock_last_error()->status, RLOCK_EQUORUM);
    EXPECT_STATUS(rlock_acquire(p.lk, 200, LONG_LEASE), RLOCK_EQUORUM);
    nodes_expect_all_undone(&rest);
    party_end(&p, &ns);
}

TEST(red, held_by_one_and_failed_on_another_is_no_quorum)
{
    nodes ns = nodes_start(3), rest = nodes_first(&ns, 1);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 1, 2);
    kill_from(&ns, 2);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "2 held by ");
    EXPECT_STATUS(rlock_acquire(p.lk, 200, LONG_LEASE), RLOCK_EQUORUM);
    nodes_expect_all_undone(&rest);
    party_end(&p, &ns);
}

TEST(red, a_wait_outlives_a_majority_that_is_away)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    pause_from(&ns, 1);
    waiter *w = waiter_start(p.lk, RLOCK_FOREVER, 10000);
    EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == 1);
    EXPECT(!waiter_returned(w));
    resume_from(&ns, 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, a_wait_for_a_dead_majority_ends_after_a_watchdog_lease)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    kill_from(&ns, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_EQUORUM);
    EXPECT_BETWEEN(test_since_ms(began_ms), 1400, 1500 + 3000);
    party_end(&p, &ns);
}

/* Nobody waits for a node that could not change the outcome. */
TEST(red, a_try_is_decided_as_soon_as_no_majority_is_possible)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, LONG_LEASE, 20000);
    party_connect(&p);
    nodes_take(&ns, 0, 2);
    server_pause(ns.sv[2]); /* its limit is 3 s */
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    expect_fast(began_ms);
    server_resume(ns.sv[2]);
    EVENTUALLY(SOON, !node_has(ns.sv[2]));
    party_end(&p, &ns);
}

TEST(red, a_try_takes_no_longer_than_the_limit_of_a_node)
{
    nodes ns = nodes_start(3), rest = nodes_first(&ns, 1);
    party p = party_join(&ns, 6000, 0);
    party_connect(&p);
    pause_from(&ns, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 300 + 1000);
    nodes_expect_all_undone(&rest);
    resume_from(&ns, 1);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, a_wait_with_a_hung_majority_ends_in_time)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, LONG_LEASE, 700);
    party_connect(&p);
    pause_from(&ns, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.lk, 500, LONG_LEASE), RLOCK_EQUORUM);
    EXPECT_BETWEEN(test_since_ms(began_ms), 500, 500 + 700 + 500);
    resume_from(&ns, 1);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, an_unlock_without_a_majority_goes_on_by_itself)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 500);
    party_hold(&p, LONG_LEASE);
    pause_from(&ns, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_EQUORUM);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 500 + 1000);
    EXPECT(!rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    resume_from(&ns, 1);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, a_reentry_without_a_majority_is_no_level)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 500);
    party_hold(&p, LONG_LEASE);
    pause_from(&ns, 1);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_EQUORUM);
    EXPECT_INT(rlock_hold_count(p.lk), 1);
    EXPECT(rlock_is_held(p.lk));
    resume_from(&ns, 1);
    int64_t until_ms = test_now_ms() + SOON; /* they have to be found again */
    while (rlock_lock(p.lk) != RLOCK_OK) {
        EXPECT_INT(rlock_last_error()->status, RLOCK_EQUORUM);
        EXPECT(test_now_ms() < until_ms);
    }
    EXPECT_INT(rlock_hold_count(p.lk), 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red, questions_without_a_majority_answer_no_quorum)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock_holder holder;
    bool locked;
    int64_t ttl_ms;
    party_hold(&p, LONG_LEASE);
    kill_from(&ns, 2);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_OK);
    EXPECT(ttl_ms > 0);
    kill_from(&ns, 1);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_EQUORUM);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_EQUORUM);
    EXPECT_STATUS(rlock_holder_info(p.lk, &holder, sizeof holder),
                  RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "2 ");
    EXPECT_STATUS(rlock_force_unlock(p.lk), RLOCK_EQUORUM);
    party_end(&p, &ns);
}

/* Free on one, held on another: it depends on who does not answer. */
TEST(red, questions_that_a_dead_node_would_decide_answer_no_quorum)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    bool locked = true;
    nodes_take(&ns, 0, 1);
    kill_from(&ns, 2);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_EQUORUM);
    nodes_give_back(&ns, 0, 1);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_force_unlock(p.lk), RLOCK_NOT_HELD);
    nodes_take(&ns, 0, 1);
    EXPECT_STATUS(rlock_force_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red, messages_hold_no_password)
{
    char uri[3][256];
    nodes ns = nodes_start(3);
    party p = {.n = 3};
    for (size_t i = 0; i < 3; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        server_cmd(ns.sv[i], "ACL SETUSER ann on >s3cret ~* &* +@all");
        snprintf(uri[i], sizeof uri[i], "unix://ann:s3cret@%s",
                 server_path(ns.sv[i]));
        opts.uri = uri[i];
        p.ev[i] = events_new();
        events_hook(p.ev[i], &opts);
        p.cl[i] = server_client(ns.sv[i], &opts);
    }
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    expect_undisturbed_party(&p);
    server_kill(ns.sv[1]);
    server_cmd(ns.sv[2], "ACL SETUSER ann resetpass >changed");
    server_cmd(ns.sv[2], "CLIENT KILL TYPE normal");
    /* Whatever is said before the first one is asked in time. */
    do {
        EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
        EXPECT(!strstr(rlock_last_error()->message, "s3cret"));
    } while (!strstr(rlock_last_error()->message, "1 ok"));
    EXPECT_STATUS(rlock_acquire(p.lk, 100, 1000), RLOCK_EQUORUM);
    EXPECT(!strstr(rlock_last_error()->message, "s3cret"));
    party_end(&p, &ns);
}
