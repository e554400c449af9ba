/*
 * Red locks when nodes come back, are one server under two names, or come and
 * go.
 */
#include <stdatomic.h>
#include <time.h>

#include "arena.h"

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

TEST(red_nodes, fault_042_a_restarted_node_counts_after_the_longest_lease)
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
    EXPECT(test_since_ms(began_ms) >= 2500);
    EXPECT(test_since_ms(back_ms) <= 2500 + 5000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red_nodes,
     fault_042_without_a_longest_lease_it_is_the_longest_that_was_used)
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
TEST(red_nodes, fault_042_an_uptime_in_seconds_is_not_taken_for_more_than_it_is)
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
    EXPECT_BETWEEN(test_since_ms(began_ms), 1500, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red_nodes, fault_042_a_node_that_only_lost_its_connections_counts)
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
TEST(red_nodes, fault_042_a_restart_lets_no_second_owner_in)
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

TEST(red_nodes, fault_042_a_young_node_counts_unless_its_uptime_is_checked)
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

TEST(red_nodes, fault_042_with_check_uptime_no_young_node_counts)
{
    int64_t began_ms = test_now_ms();
    nodes ns = nodes_start(3);
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    red.longest_lease_ms = 10000;
    red.check_uptime = true;
    party p = party_join_with(&ns, 0, 0, &red);
    rlock_status s = rlock_trylock(p.lk);
    EXPECT(test_since_ms(began_ms) <
           9000); /* or the machine is too slow for this */
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

TEST(red_nodes, fault_043_a_server_listed_twice_under_two_names_is_refused)
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
TEST(red_nodes, fault_043_databases_of_one_server_are_refused)
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

TEST(red_nodes, fault_044_an_extend_needs_a_majority_that_confirms)
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

TEST(red_nodes, fault_044_an_extend_of_a_stolen_majority_is_lost)
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

TEST(red_nodes, fault_044_an_extend_after_the_deadline_is_lost)
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

TEST(red_nodes, excludes_threads_and_clients_while_nodes_hang)
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

TEST(red_nodes, excludes_processes_while_nodes_hang)
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
TEST(red_nodes, excludes_threads_and_clients_while_nodes_restart)
{
    enum { THREADS = 4 };
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    arena *a = arena_new();
    runner of_p = {a, p.lk, 0, 20000, true}, of_q = {a, q.lk, 0, 20000, true};
    party_connect(&p);
    party_connect(&q);
    test_thread *t[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        t[i] = test_spawn(arena_run, i % 2 ? &of_p : &of_q);
    for (size_t i = 0; i < 2; i++) {
        arena_go_on(a, 20);
        server_restart(ns.sv[2 * i]);
    }
    arena_go_on(a, 40);
    atomic_store(&a->over, true);
    for (size_t i = 0; i < THREADS; i++)
        test_join(t[i]);
    arena_end(a, atomic_load(&a->entered));
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

/* --- a force that is late ------------------------------------------------- */

static long long token_at(server *sv)
{
    return atoll(server_str(sv, "GET rlock_token:{%s}", SCENE_LOCK));
}

/* It frees whoever has the lock on the node by then, who has the others. */
TEST(red_nodes, a_force_that_a_hung_node_executes_late_costs_no_later_owner)
{
    nodes ns = nodes_proxied(3), direct = nodes_direct(&ns);
    party p = party_join(&direct, 1500, 0), q = party_join(&ns, 0, 0);
    party_connect(&q);
    proxy_rule(ns.px[2], proxy_sha("force_release"), 1, PROXY_HOLD_REQUEST,
               NULL);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_NOT_HELD);
    EXPECT(proxy_fired(ns.px[2]));
    party_hold_renewed(&p);
    long long token = token_at(ns.sv[2]);
    proxy_let_go(ns.px[2]);
    EVENTUALLY(SOON, token_at(ns.sv[2]) > token && node_has(ns.sv[2]));
    watch_renewals(p.cl[2], 2);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_leave(&p);
    party_end(&q, &ns);
}

/* --- defects of other libraries ------------------------------------------ */

/* An even number, shared out evenly: somebody wins in the end. */
TEST(red_nodes, an_even_split_ends)
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

TEST(red_nodes, releasing_an_expired_lock_returns_at_once)
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
