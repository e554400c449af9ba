/*
 * Red locks when nodes are dead, hung, slow, restarted, or taken by others.
 */
#include <time.h>

#include "arena.h"

/*
 * A node has a twentieth of the lease to answer, but no more than the command
 * timeout: with these, whoever waits for a node that hangs is noticed on a busy
 * machine too.
 */
#define LONG_LEASE 60000
#define LIMIT_MS   3000 /* of a node: the default command timeout */
#define FAST_MS    1500

static int64_t since(int64_t began_ms)
{
    return test_now_ms() - began_ms;
}

static void expect_fast(int64_t began_ms)
{
    EXPECT_BETWEEN(since(began_ms), 0, FAST_MS);
}

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

/* The control: what a fault disturbs, with every node taking part. */
static void expect_undisturbed_party(party *p)
{
    party_hold(p, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    EXPECT_INT(party_holding(p), 0);
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
    EXPECT_BETWEEN(since(began_ms), 0, LIMIT_MS + FAST_MS);
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
    EXPECT_CONTAINS(rlock_last_error()->message, "3 held by another");
    EXPECT_CONTAINS(rlock_last_error()->message, "5 held by another");
    EXPECT_CONTAINS(rlock_last_error()->message, "'job'");
    EXPECT_STATUS(rlock_acquire(p.lk, 100, LONG_LEASE), RLOCK_TIMEOUT);
    server_kill(ns.sv[1]);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY); /* it would not help */
    EXPECT_STATUS(rlock_acquire(p.lk, 100, LONG_LEASE), RLOCK_TIMEOUT);
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

TEST(red, a_majority_that_fails_is_no_quorum)
{
    nodes ns = nodes_start(3), rest = nodes_first(&ns, 1);
    party p = party_join(&ns, 0, 0);
    kill_from(&ns, 1);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "1 ok");
    EXPECT_CONTAINS(rlock_last_error()->message, "2 ");
    EXPECT_CONTAINS(rlock_last_error()->message, "3 ");
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
    EXPECT_CONTAINS(rlock_last_error()->message, "2 held by another");
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
    EXPECT_BETWEEN(since(began_ms), 1400, 1500 + 3000);
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
    EXPECT_BETWEEN(since(began_ms), 0, 300 + 1000);
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
    EXPECT_BETWEEN(since(began_ms), 500, 500 + 700 + 500);
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
    EXPECT_BETWEEN(since(began_ms), 0, 500 + 1000);
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
    EXPECT_STATUS(rlock_holder_info(p.lk, &holder), RLOCK_EQUORUM);
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
    server_kill(ns.sv[1]);
    server_cmd(ns.sv[2], "ACL SETUSER ann resetpass >changed");
    server_cmd(ns.sv[2], "CLIENT KILL TYPE normal");
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    const char *message = rlock_last_error()->message;
    EXPECT_CONTAINS(message, "1 ok");
    EXPECT(!strstr(message, "s3cret"));
    EXPECT_STATUS(rlock_acquire(p.lk, 100, 1000), RLOCK_EQUORUM);
    EXPECT(!strstr(rlock_last_error()->message, "s3cret"));
    party_end(&p, &ns);
}

/* --- 40: nothing is left of a failed try --------------------------------- */

/*
 * Clients of n nodes, which fail in every way, so that no majority is left. The
 * dead ones stay dead, so that nobody is restarted; the first are held by
 * others, then there are those that hang, then those that work.
 */
typedef struct trial {
    nodes ns;
    party p;
    size_t dead, foreign, hung;
} trial;

static size_t hung_from(const trial *t)
{
    return t->foreign;
}

static size_t works_from(const trial *t)
{
    return t->foreign + t->hung;
}

static size_t dead_from(const trial *t)
{
    return t->ns.n - t->dead;
}

/* Until all that live are asked at once, on connections that are there. */
static void wait_for_all(trial *t)
{
    int64_t until_ms = test_now_ms() + SOON;
    for (;;) {
        long long before[RLOCK_RED_MAX];
        size_t asked = 0;
        bool locked;
        for (size_t i = 0; i < dead_from(t); i++)
            before[i] = script_calls(t->ns.sv[i]);
        rlock_is_locked(t->p.lk, &locked);
        for (size_t i = 0; i < dead_from(t); i++)
            asked += script_calls(t->ns.sv[i]) > before[i];
        if (asked == dead_from(t))
            return;
        if (test_now_ms() > until_ms)
            FAIL("%zu of %zu nodes answer", asked, dead_from(t));
        test_pause_ms(1);
    }
}

static long long tombstones(server *sv)
{
    return server_int(sv, "EVAL %s 0",
                      "return #redis.call('KEYS', 'rlock_undone:*')");
}

static void fail_once(trial *t)
{
    long long before[RLOCK_RED_MAX];
    wait_for_all(t);
    nodes_take(&t->ns, 0, t->foreign);
    for (size_t i = hung_from(t); i < works_from(t); i++) {
        before[i] = script_calls(t->ns.sv[i]);
        server_pause(t->ns.sv[i]);
    }
    rlock_status s = rlock_trylock(t->p.lk);
    if (s != RLOCK_BUSY && s != RLOCK_EQUORUM)
        FAIL("%zu nodes, %zu foreign, %zu hung, %zu dead: %s", t->ns.n,
             t->foreign, t->hung, t->dead, rlock_status_str(s));
    for (size_t i = hung_from(t); i < works_from(t); i++)
        server_resume(t->ns.sv[i]);
    /* What hung was asked, and then to forget it. */
    for (size_t i = hung_from(t); i < works_from(t); i++)
        EVENTUALLY(SOON, script_calls(t->ns.sv[i]) >= before[i] + 2);
    nodes_give_back(&t->ns, 0, t->foreign);
    for (size_t i = 0; i < dead_from(t); i++) {
        EVENTUALLY(SOON, !node_has(t->ns.sv[i]));
        expect_all_undone(t->ns.sv[i]);
    }
    EXPECT_INT(party_holding(&t->p), 0);
}

/* Every count of each kind; the order does not matter. */
static void leave_nothing(size_t n, size_t dead_min, size_t dead_max)
{
    int cases = 0;
    trial t = {.ns = nodes_start(n)};
    t.p = party_join(&t.ns, 2000, 0);
    expect_undisturbed_party(&t.p);
    for (t.dead = 0; t.dead <= dead_max; t.dead++) {
        if (t.dead > 0)
            server_kill(t.ns.sv[dead_from(&t)]);
        for (t.foreign = 0; t.dead >= dead_min && t.foreign <= dead_from(&t);
             t.foreign++) {
            size_t bad = t.dead + t.foreign, least = n - n / 2;
            for (t.hung = bad < least ? least - bad : 0; bad + t.hung <= n;
                 t.hung++) {
                fail_once(&t);
                cases++;
            }
        }
    }
    /* Nor came anything later. */
    t.dead = dead_max;
    for (size_t i = 0; i < dead_from(&t); i++)
        expect_all_undone(t.ns.sv[i]);
    EXPECT(cases > 0);
    party_leave(&t.p);
    for (size_t i = 0; i < dead_from(&t); i++)
        expect_all_undone(t.ns.sv[i]);
    nodes_stop(&t.ns);
}

TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_1_node,
          leave_nothing(1, 0, 1))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_2_nodes,
          leave_nothing(2, 0, 2))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_3_nodes,
          leave_nothing(3, 0, 3))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_4_nodes,
          leave_nothing(4, 0, 4))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_5_nodes,
          leave_nothing(5, 0, 5))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_6_nodes,
          leave_nothing(6, 1, 6))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_6_living_nodes,
          leave_nothing(6, 0, 0))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_7_nodes,
          leave_nothing(7, 2, 7))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_7_living_nodes,
          leave_nothing(7, 0, 0))
TEST_CASE(red, fault_040_a_failed_try_leaves_nothing_on_7_nodes_with_one_dead,
          leave_nothing(7, 1, 1))

/* The script calls that a server has seen, oldest first: the holder of each. */
typedef struct seen {
    bool acquire;
    char holder[256];
} seen;

static size_t read_calls(server *sv, seen *out, size_t max)
{
    size_t n = 0;
    const redisReply *r = server_cmd(sv, "SLOWLOG GET 1000");
    for (size_t i = r->elements; i-- > 0 && n < max;) {
        const redisReply *args = r->element[i]->element[3];
        if (args->elements < 4 ||
            strncasecmp(args->element[0]->str, "EVALSHA", 7) != 0)
            continue;
        out[n].acquire =
            strcmp(args->element[1]->str, proxy_sha("acquire")) == 0;
        if (!out[n].acquire &&
            strcmp(args->element[1]->str, proxy_sha("release")) != 0)
            continue;
        size_t at = 3 + (size_t)atoi(args->element[2]->str);
        snprintf(out[n].holder, sizeof out[n].holder, "%s",
                 args->element[at]->str);
        n++;
    }
    return n;
}

TEST(red, fault_040_each_try_has_a_new_holder_and_is_undone_before_the_next)
{
    static seen calls[200];
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    nodes_take(&ns, 1, 3);
    server_cmd(ns.sv[0], "CONFIG SET slowlog-max-len 1000");
    server_cmd(ns.sv[0], "CONFIG SET slowlog-log-slower-than 0");
    EXPECT_STATUS(rlock_acquire(p.lk, 1500, LONG_LEASE), RLOCK_TIMEOUT);
    server_cmd(ns.sv[0], "CONFIG SET slowlog-log-slower-than -1");
    size_t n = read_calls(ns.sv[0], calls, 200), tries = 0;
    for (size_t i = 0; i < n; i++) {
        if (!calls[i].acquire)
            continue;
        tries++;
        EXPECT(i + 1 < n && !calls[i + 1].acquire);
        EXPECT_STR(calls[i + 1].holder, calls[i].holder);
        for (size_t k = 0; k < i; k++)
            EXPECT(strcmp(calls[k].holder, calls[i].holder) != 0);
    }
    EXPECT_BETWEEN(tries, 3, 100);
    party_end(&p, &ns);
}

/* --- late grants --------------------------------------------------------- */

/* Three nodes behind proxies; the third one's next acquire meets a fault. */
typedef struct late {
    nodes ns, direct;
    party p;
} late;

static late late_start(int64_t lease_ms, proxy_action action)
{
    late l = {.ns = nodes_proxied(3)};
    l.direct = nodes_direct(&l.ns);
    l.p = party_join(&l.ns, lease_ms, 0);
    party_connect(&l.p);
    proxy_rule(l.ns.px[2], proxy_sha("acquire"), 1, action, NULL);
    return l;
}

/* The third node's grant is on its way afterwards. */
static void late_acquire(late *l, int64_t lease_ms)
{
    EXPECT_STATUS(rlock_acquire(l->p.lk, 0, lease_ms), RLOCK_OK);
    EVENTUALLY(3000, proxy_fired(l->ns.px[2]));
    EXPECT_INT(party_holding(&l->p), 2);
}

static void late_stop(late *l)
{
    party_leave(&l->p);
    nodes_stop(&l->ns);
}

TEST(red, a_grant_that_comes_late_joins_the_others)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(SOON, party_holding(&l.p) == 3);
    EXPECT_STATUS(rlock_lock(l.p.lk), RLOCK_OK);
    EXPECT_INT(levels(l.ns.sv[2], SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_extend(l.p.lk, 2 * LONG_LEASE), RLOCK_OK);
    EXPECT(server_int(l.ns.sv[2], "PTTL job") > LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&l.direct);
    late_stop(&l);
}

TEST(red, a_grant_that_comes_late_counts_when_another_node_is_lost)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(SOON, party_holding(&l.p) == 3);
    server_int(l.ns.sv[0], "DEL job");
    EXPECT_STATUS(rlock_extend(l.p.lk, LONG_LEASE), RLOCK_OK);
    EXPECT(rlock_is_held(l.p.lk));
    EXPECT_INT(party_events(&l.p, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    late_stop(&l);
}

TEST(red, a_grant_that_comes_late_is_renewed)
{
    late l = late_start(1500, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(SOON, party_holding(&l.p) == 3);
    EXPECT_STATUS(rlock_extend(l.p.lk, RLOCK_WATCHDOG), RLOCK_OK);
    events_wait(l.p.ev[2], RLOCK_EVENT_RENEWED, 2, SOON);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&l.direct);
    late_stop(&l);
}

/* Renewal is what the acquire asked for, and goes on when the grant is late. */
TEST(red, a_grant_of_a_watchdog_lease_that_comes_late_is_renewed)
{
    late l = late_start(9000, PROXY_HOLD_REPLY);
    late_acquire(&l, RLOCK_WATCHDOG);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(SOON, party_holding(&l.p) == 3);
    events_wait(l.p.ev[2], RLOCK_EVENT_RENEWED, 1, SOON);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&l.direct);
    late_stop(&l);
}

/* The level that it missed is made up for by the next verb. */
TEST(red, a_grant_that_comes_after_a_reentry_has_its_level)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    EXPECT_STATUS(rlock_lock(l.p.lk), RLOCK_OK);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(SOON, party_holding(&l.p) == 3);
    EXPECT_STATUS(rlock_lock(l.p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(l.p.lk), 3);
    EXPECT_INT(levels(l.ns.sv[2], SCENE_LOCK), 3);
    for (int i = 2; i > 0; i--) {
        EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
        EXPECT_INT(levels(l.ns.sv[2], SCENE_LOCK), i);
        EXPECT_INT(party_holding(&l.p), 3);
    }
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&l.direct);
    late_stop(&l);
}

TEST(red, a_grant_that_comes_after_the_release_is_undone)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_all_undone(&l.direct); /* before it is here */
    proxy_let_go(l.ns.px[2]);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_NOT_HELD);
    party_hold(&l.p, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_all_undone(&l.direct);
    late_stop(&l);
}

TEST(red, an_acquire_that_arrives_after_the_release_takes_nothing)
{
    late l = late_start(0, PROXY_HOLD_REQUEST);
    late_acquire(&l, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    EVENTUALLY(SOON, tombstones(l.ns.sv[2]) == 1);
    proxy_let_go(l.ns.px[2]);
    EXPECT(!node_has(l.ns.sv[2]));
    nodes_expect_all_undone(&l.direct);
    late_stop(&l);
}

TEST(red, a_late_grant_of_a_released_lock_does_not_join_the_next_hold)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(l.p.lk, SOON, LONG_LEASE), RLOCK_OK);
    proxy_let_go(l.ns.px[2]);
    const char *holder = node_holder(l.ns.sv[0]);
    EVENTUALLY(SOON, strcmp(node_holder(l.ns.sv[2]), holder) == 0 ||
                         !node_has(l.ns.sv[2]));
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_all_undone(&l.direct);
    late_stop(&l);
}

TEST(red, a_grant_that_never_comes_is_undone)
{
    late l = late_start(0, PROXY_SWALLOW_REPLY);
    EXPECT_STATUS(rlock_acquire(l.p.lk, 0, 30000), RLOCK_OK);
    EVENTUALLY(SOON, !node_has(l.ns.sv[2])); /* after its limit of 1.5 s */
    EXPECT(rlock_is_held(l.p.lk));
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_all_undone(&l.direct);
    late_stop(&l);
}

static intptr_t acquire_and_end(void *lk)
{
    EXPECT_STATUS(rlock_acquire(lk, 0, LONG_LEASE), RLOCK_OK);
    return 0;
}

TEST(red, a_grant_that_comes_after_its_threads_end_joins_nothing)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    test_join(test_spawn(acquire_and_end, l.p.lk));
    EVENTUALLY(SOON, party_events(&l.p, RLOCK_EVENT_ABANDONED) == 1);
    proxy_let_go(l.ns.px[2]);
    EXPECT_STATUS(rlock_trylock(l.p.lk), RLOCK_BUSY);
    EXPECT_INT(party_holding(&l.p), 0);
    EXPECT_INT(party_events(&l.p, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(party_events(&l.p, RLOCK_EVENT_LOST), 0);
    late_stop(&l);
}

TEST(red, a_client_that_waits_for_a_late_grant_is_freed_in_time)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    EXPECT_STATUS(rlock_acquire(l.p.lk, 0, LONG_LEASE), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    party_free_client(&l.p, 2);
    EXPECT_BETWEEN(since(began_ms), 0, LIMIT_MS + FAST_MS);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    late_stop(&l);
}

/* --- 41: a try that takes too long --------------------------------------- */

TEST(red, fault_041_grants_that_are_slow_on_all_nodes_are_none)
{
    nodes ns = nodes_proxied(3), direct = nodes_direct(&ns);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    for (size_t i = 0; i < 3; i++)
        proxy_rule(ns.px[i], proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 4000), RLOCK_EQUORUM);
    EXPECT_BETWEEN(since(began_ms), 150, 200 + 2000);
    EXPECT(!rlock_is_held(p.lk));
    for (size_t i = 0; i < 3; i++)
        proxy_let_go(ns.px[i]);
    nodes_expect_all_undone(&direct);
    party_end(&p, &ns);
}

TEST(red, fault_041_requests_that_arrive_later_take_nothing)
{
    nodes ns = nodes_proxied(3), direct = nodes_direct(&ns);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    for (size_t i = 0; i < 3; i++)
        proxy_rule(ns.px[i], proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 4000), RLOCK_EQUORUM);
    for (size_t i = 0; i < 3; i++)
        EVENTUALLY(SOON, tombstones(ns.sv[i]) == 1);
    for (size_t i = 0; i < 3; i++)
        proxy_let_go(ns.px[i]);
    EXPECT_INT(nodes_having(&direct), 0);
    nodes_expect_all_undone(&direct);
    party_end(&p, &ns);
}

TEST(red, fault_041_a_lease_too_short_to_use_is_not_owned)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 2), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "lease");
    EXPECT(!rlock_is_held(p.lk));
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

/* --- 42: a node that has come back --------------------------------------- */

/* Node 3 has been restarted, and node 1 is somebody else's. */
static nodes restarted(party *p, const rlock_red_options *red)
{
    nodes ns = nodes_start(3);
    *p = party_join_with(&ns, 0, 0, red);
    party_connect(p);
    nodes_take(&ns, 0, 1);
    EXPECT_STATUS(rlock_acquire(p->lk, SOON, 1000), RLOCK_OK); /* control */
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    server_restart(ns.sv[2]);
    return ns;
}

TEST(red, fault_042_a_restarted_node_counts_after_the_longest_lease)
{
    party p;
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    red.longest_lease_ms = 2500;
    int64_t began_ms = test_now_ms();
    nodes ns = restarted(&p, &red);
    int64_t back_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    EVENTUALLY(SOON, rlock_trylock(p.lk) == RLOCK_EQUORUM &&
                         strstr(rlock_last_error()->message, "3 restarted"));
    EXPECT_CONTAINS(rlock_last_error()->message, "counts again");
    EVENTUALLY(SOON, rlock_trylock(p.lk) == RLOCK_OK);
    EXPECT(since(began_ms) >= 2500);
    EXPECT(since(back_ms) <= 2500 + 5000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red, fault_042_without_a_longest_lease_it_is_the_longest_that_was_used)
{
    party p;
    nodes ns = restarted(&p, NULL); /* the watchdog's 30 s */
    EVENTUALLY(SOON, rlock_trylock(p.lk) == RLOCK_EQUORUM &&
                         strstr(rlock_last_error()->message, "3 restarted"));
    const char *in = strstr(rlock_last_error()->message, "again in ");
    EXPECT(in);
    EXPECT_BETWEEN(atoll(in + 9), 5000, 30000);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 100000), RLOCK_EQUORUM);
    in = strstr(rlock_last_error()->message, "again in ");
    EXPECT(in);
    EXPECT_BETWEEN(atoll(in + 9), 75000, 100000);
    party_end(&p, &ns);
}

static double second_part(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_nsec / 1e9;
}

/* Until the clock's seconds have this fraction. */
static void wait_for_part(double from, double to)
{
    EVENTUALLY(SOON, second_part() >= from && second_part() < to);
}

/*
 * Servers tell their uptime in whole seconds, of a clock that is rounded down
 * itself: 1 may be a few milliseconds.
 */
TEST(red, fault_042_an_uptime_in_seconds_is_not_taken_for_more_than_it_is)
{
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    red.longest_lease_ms = 1500;
    nodes ns = nodes_proxied(3);
    party p = party_join_with(&ns, 0, 0, &red);
    party_connect(&p);
    nodes_take(&ns, 0, 1);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 1000), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    proxy_refuse(ns.px[2], true);
    proxy_cut_all(ns.px[2]);
    server_kill(ns.sv[2]);
    wait_for_part(0.80, 0.85);
    int64_t began_ms = test_now_ms(); /* it starts later than that */
    server_restart(ns.sv[2]);
    wait_for_part(0.15, 0.40);
    proxy_refuse(ns.px[2], false);
    EVENTUALLY(SOON, rlock_trylock(p.lk) == RLOCK_OK);
    EXPECT_BETWEEN(since(began_ms), 1500, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red, fault_042_a_node_that_only_lost_its_connections_counts)
{
    nodes ns = nodes_proxied(3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    nodes_take(&ns, 0, 1);
    proxy_cut_all(ns.px[2]);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 10000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* What a restarted node grants must not make a majority of two. */
TEST(red, fault_042_a_restart_lets_no_second_owner_in)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    party_connect(&q);
    nodes_take(&ns, 2, 3);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 20000), RLOCK_OK); /* 1 and 2 */
    nodes_give_back(&ns, 2, 3);
    EXPECT_STATUS(rlock_trylock(q.lk), RLOCK_BUSY); /* the control */
    server_restart(ns.sv[1]);                       /* forgets its vote */
    expect_one_owner(&p, &q);
    rlock_unlock(p.lk);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red, fault_042_a_young_node_counts_unless_its_uptime_is_checked)
{
    nodes ns = nodes_start(3);
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    red.longest_lease_ms = 1500;
    party p = party_join_with(&ns, 0, 0, &red);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 1500), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    for (size_t i = 0; i < 3; i++)
        EVENTUALLY(SOON, server_info(ns.sv[i], "uptime_in_seconds") > 2);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 1500), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red, fault_042_with_check_uptime_no_young_node_counts)
{
    int64_t began_ms = test_now_ms();
    nodes ns = nodes_start(3);
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    red.longest_lease_ms = 10000;
    red.check_uptime = true;
    party p = party_join_with(&ns, 0, 0, &red);
    rlock_status s = rlock_trylock(p.lk);
    EXPECT(since(began_ms) < 9000); /* or the machine is too slow for this */
    EXPECT_INT(s, RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "1 ");
    EXPECT_CONTAINS(rlock_last_error()->message, "counts again");
    EXPECT_INT(nodes_having(&ns), 0);
    red.longest_lease_ms = 1500;
    rlock *soon = party_lock(&p, SCENE_LOCK, &red);
    EXPECT_STATUS(rlock_acquire(soon, SOON, 1500), RLOCK_OK); /* control */
    EXPECT_STATUS(rlock_unlock(soon), RLOCK_OK);
    rlock_free(soon);
    party_end(&p, &ns);
}

/* --- 43: one server under two names -------------------------------------- */

TEST(red, fault_043_a_server_listed_twice_under_two_names_is_refused)
{
    nodes ns = nodes_start(2);
    server *tcp = server_start_tcp(NULL);
    char uri[64];
    rlock_options opts = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(tcp));
    opts.uri = uri;
    rlock_client *cl[] = {
        server_client(ns.sv[0], NULL), server_client(tcp, NULL),
        server_client(ns.sv[1], NULL), server_client(tcp, &opts)};
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_red_new(cl, 4, SCENE_LOCK, &lk), RLOCK_EINVAL);
    EXPECT(!lk);
    EXPECT_CONTAINS(rlock_last_error()->message, "client 4 ");
    EXPECT_CONTAINS(rlock_last_error()->message, "client 2");
    EXPECT_STATUS(rlock_red_new(cl, 3, SCENE_LOCK, &lk), RLOCK_OK);
    rlock_free(lk); /* the control */
    for (size_t i = 0; i < 4; i++)
        rlock_client_free(cl[i]);
    server_stop(tcp);
    nodes_stop(&ns);
}

/* Databases of one server are no servers. */
TEST(red, fault_043_databases_of_one_server_are_refused)
{
    char uri[256];
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    snprintf(uri, sizeof uri, "%s?db=3", server_uri(sv));
    opts.uri = uri;
    rlock_client *cl[] = {server_client(sv, NULL), server_client(sv, &opts)};
    rlock *lk = NULL;
    EXPECT_STATUS(rlock_red_new(cl, 1, SCENE_LOCK, &lk), RLOCK_OK);
    rlock_free(lk); /* the control */
    EXPECT_STATUS(rlock_red_new(cl, 2, SCENE_LOCK, &lk), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "client 2 ");
    rlock_client_free(cl[0]);
    rlock_client_free(cl[1]);
    server_stop(sv);
}

/* --- 44: extend after a loss --------------------------------------------- */

TEST(red, fault_044_an_extend_needs_a_majority_that_confirms)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LONG_LEASE);
    EXPECT_STATUS(rlock_extend(p.lk, LONG_LEASE), RLOCK_OK); /* the control */
    server_int(ns.sv[0], "DEL job");
    EXPECT_STATUS(rlock_extend(p.lk, LONG_LEASE), RLOCK_OK);
    server_kill(ns.sv[1]);
    EXPECT_STATUS(rlock_extend(p.lk, LONG_LEASE), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "3 ok");
    EXPECT(rlock_is_held(p.lk)); /* as far as its lease goes */
    party_end(&p, &ns);
}

TEST(red, fault_044_an_extend_of_a_stolen_majority_is_lost)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LONG_LEASE);
    EXPECT_STATUS(rlock_extend(p.lk, LONG_LEASE), RLOCK_OK); /* the control */
    for (size_t i = 1; i < 3; i++) {
        server_int(ns.sv[i], "DEL job");
        take_by_hand(ns.sv[i], SCENE_LOCK, 50000);
    }
    EXPECT_STATUS(rlock_extend(p.lk, LONG_LEASE), RLOCK_LOST);
    for (size_t i = 1; i < 3; i++)
        EXPECT_BETWEEN(server_int(ns.sv[i], "PTTL job"), 1, 50000);
    EXPECT(!rlock_is_held(p.lk));
    expect_one_loss(&p);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EVENTUALLY(SOON, !node_has(ns.sv[0]));
    party_end(&p, &ns);
}

TEST(red, fault_044_an_extend_after_the_deadline_is_lost)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 1000), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(p.lk, 1000), RLOCK_OK); /* the control */
    for (size_t i = 0; i < 3; i++)
        server_int(ns.sv[i], "PEXPIRE job 60000"); /* they still have it */
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_extend(p.lk, 60000), RLOCK_LOST);
    EXPECT(!rlock_is_held(p.lk));
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST); /* and does not retry */
    expect_fast(began_ms);
    party_end(&p, &ns);
}

/* --- exclusion while nodes come and go ----------------------------------- */

/* One node after the other hangs for a moment, until so many are done. */
static void disturb(const nodes *ns, const arena *a, int runners)
{
    int64_t until_ms = test_now_ms() + TEST_LIMIT_S * 1000;
    for (size_t i = 0; atomic_load(&a->ended) < runners; i++) {
        EXPECT(test_now_ms() < until_ms);
        server_pause(ns->sv[i % ns->n]);
        test_pause_ms(20);
        server_resume(ns->sv[i % ns->n]);
        test_pause_ms(30);
    }
}

TEST(red, excludes_threads_and_clients_while_nodes_hang)
{
    enum { ROUNDS = 40, THREADS = 4 };
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    arena *a = arena_new();
    runner of_p = {a, p.lk, ROUNDS, 20000, true},
           of_q = {a, q.lk, ROUNDS, 20000, true};
    test_thread *t[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        t[i] = test_spawn(arena_run, i % 2 ? &of_p : &of_q);
    disturb(&ns, a, THREADS);
    for (size_t i = 0; i < THREADS; i++)
        test_join(t[i]);
    arena_end(a, THREADS * ROUNDS);
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red, excludes_processes_while_nodes_hang)
{
    enum { ROUNDS = 40, PROCESSES = 3 };
    arena *a = arena_new();
    runner r = {a, NULL, ROUNDS, 20000, true};
    child *c[PROCESSES];
    for (size_t i = 0; i < PROCESSES; i++)
        c[i] = child_start(arena_run_in_child, &r);
    nodes ns = nodes_start(3);
    arena_start_children(&ns, c, PROCESSES);
    disturb(&ns, a, PROCESSES);
    for (size_t i = 0; i < PROCESSES; i++)
        child_end(c[i]);
    arena_end(a, PROCESSES * ROUNDS);
    nodes_expect_all_undone(&ns);
    nodes_stop(&ns);
}

/* Restarts lose what a node knew; never of a majority within a lease. */
TEST(red, excludes_threads_and_clients_while_nodes_restart)
{
    enum { ROUNDS = 40, THREADS = 4 };
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    arena *a = arena_new();
    runner of_p = {a, p.lk, ROUNDS, 20000, true},
           of_q = {a, q.lk, ROUNDS, 20000, true};
    party_connect(&p);
    party_connect(&q);
    test_thread *t[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        t[i] = test_spawn(arena_run, i % 2 ? &of_p : &of_q);
    for (size_t i = 0; i < 2; i++) {
        int entered = atomic_load(&a->entered);
        EVENTUALLY(SOON, atomic_load(&a->entered) >= entered + 20);
        server_restart(ns.sv[2 * i]);
    }
    for (size_t i = 0; i < THREADS; i++)
        test_join(t[i]);
    arena_end(a, THREADS * ROUNDS);
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

/* --- defects of other libraries ------------------------------------------ */

/* An even number, shared out evenly: somebody wins in the end. */
TEST(red, an_even_split_ends)
{
    enum { ROUNDS = 25 };
    nodes ns = nodes_start(4);
    party p[2] = {party_join(&ns, 0, 0), party_join(&ns, 0, 0)};
    arena *a = arena_new();
    rlock_client *turned[] = {p[1].cl[3], p[1].cl[2], p[1].cl[1], p[1].cl[0]};
    rlock *other = NULL;
    EXPECT_STATUS(rlock_red_new(turned, 4, SCENE_LOCK, &other), RLOCK_OK);
    runner r[] = {{a, p[0].lk, ROUNDS, 20000, true},
                  {a, other, ROUNDS, 20000, true}};
    test_thread *t[] = {test_spawn(arena_run, &r[0]),
                        test_spawn(arena_run, &r[1])};
    test_join(t[0]);
    test_join(t[1]);
    arena_end(a, 2 * ROUNDS);
    rlock_free(other);
    party_leave(&p[0]);
    party_leave(&p[1]);
    nodes_stop(&ns);
}

TEST(red, releasing_an_expired_lock_returns_at_once)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 500), RLOCK_OK);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    expect_fast(began_ms);
    party_end(&p, &ns);
}
