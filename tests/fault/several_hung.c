/*
 * What reviews found wrong in Red and Multi locks, each as a test that failed
 * before it was put right. The names say what is right.
 */
#include <unistd.h>

#include "nodes.h"

/* What does not wait for a node that hangs. */
#define AT_ONCE_MS 700

/* --- a minority that hangs ----------------------------------------------- */

/* Over TCP, where more requests fit into the socket of a server that hangs. */
static nodes nodes_start_tcp(size_t n)
{
    nodes ns = {.n = n};
    for (size_t i = 0; i < n; i++) {
        ns.sv[i] = server_start_tcp(NULL);
        server_load_scripts(ns.sv[i]);
    }
    return ns;
}

static party party_join_tcp(const nodes *ns)
{
    party p = {.n = ns->n};
    for (size_t i = 0; i < ns->n; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        char uri[64];
        snprintf(uri, sizeof uri, "redis://127.0.0.1:%d",
                 server_port(ns->sv[i]));
        opts.uri = uri;
        p.ev[i] = events_new();
        events_hook(p.ev[i], &opts);
        p.cl[i] = server_client(ns->sv[i], &opts);
    }
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    return p;
}

static void lock_and_unlock(party *p)
{
    EXPECT_STATUS(rlock_acquire(p->lk, 0, LONG_LEASE), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
}

static long memory_kb(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    EXPECT(f && fscanf(f, "%*d %ld", &pages) == 1);
    fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void many_sections_beside_a_hung_node(bool idle)
{
    nodes ns = nodes_start_tcp(3);
    party p = party_join_tcp(&ns);
    party_hold(&p, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    server_pause(ns.sv[2]);
    for (int i = 0; i < 100; i++)
        lock_and_unlock(&p);
    long before_kb = memory_kb();
    for (int i = 0; i < 3000; i++)
        lock_and_unlock(&p);
    if (idle)
        test_pause_ms(LIMIT_MS + 500); /* the node is given up by now */
    else if (!SANITIZED)
        EXPECT_BETWEEN(memory_kb() - before_kb, -2000, 2000);
    lock_and_unlock(&p);
    party_leave(&p);
    server_resume(ns.sv[2]);
    nodes_stop(&ns);
}

TEST(several_hung, a_hung_node_costs_no_memory_however_many_sections_follow)
{
    many_sections_beside_a_hung_node(false);
}

TEST(several_hung, a_hung_node_does_no_harm_after_however_many_sections)
{
    many_sections_beside_a_hung_node(true);
}

/* The socket of the one that hangs is full after a while. */
static void lock_beside_a_hung_one(size_t hung)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    server_pause(ns.sv[hung]);
    int64_t until_ms = test_now_ms() + LIMIT_MS + 1000;
    do {
        int64_t began_ms = test_now_ms();
        lock_and_unlock(&p);
        EXPECT_BETWEEN(test_since_ms(began_ms), 0, AT_ONCE_MS);
    } while (test_now_ms() < until_ms);
    server_resume(ns.sv[hung]);
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    nodes_stop(&ns);
}

TEST(several_hung, a_hung_first_node_keeps_no_others_waiting)
{
    lock_beside_a_hung_one(0);
}

TEST(several_hung, a_hung_last_node_keeps_no_others_waiting)
{
    lock_beside_a_hung_one(2);
}

/* Whether a renewal is under way there, or not. */
TEST(several_hung, an_extend_succeeds_beside_a_hung_node)
{
    nodes ns = nodes_start(3);
    for (int i = 0; i < 8; i++) {
        party p = party_join(&ns, 1500, 0);
        party_hold(&p, 4000);
        EXPECT_STATUS(rlock_extend(p.lk, RLOCK_WATCHDOG), RLOCK_OK);
        server_pause(ns.sv[1]);
        test_pause_ms(500 + i * 10); /* it is due after a third of the lease */
        EXPECT_STATUS(rlock_extend(p.lk, RLOCK_WATCHDOG), RLOCK_OK);
        server_resume(ns.sv[1]);
        EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
        nodes_expect_all_undone(&ns);
        party_leave(&p);
    }
    nodes_stop(&ns);
}

/* --- a node that forgot its vote ----------------------------------------- */

/* The right to INFO is what tells a restart. */
TEST(several_hung, a_node_that_does_not_tell_its_run_id_any_more_has_no_vote)
{
    nodes ns = {.n = 3};
    for (size_t i = 0; i < ns.n; i++) {
        ns.sv[i] = server_start(
            i == 1 ? "--user default on nopass ~* &* +@all -info" : NULL);
        server_load_scripts(ns.sv[i]);
    }
    EXPECT_STR(server_str(ns.sv[1], "ACL SETUSER default +info"), "OK");
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    party_connect(&q);
    nodes_take(&ns, 2, 3);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, LONG_LEASE), RLOCK_OK);
    nodes_give_back(&ns, 2, 3);
    server_restart(ns.sv[1]); /* forgets its vote, and the right */
    expect_one_owner(&p, &q);
    rlock_unlock(p.lk);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

/* Also when the one of the two that comes first in the list is asked later. */
TEST(several_hung, a_server_that_is_reached_as_two_nodes_has_one_vote)
{
    nodes ns = nodes_start(3);
    rlock_red_options red = RLOCK_RED_OPTIONS_INIT;
    red.longest_lease_ms = 100;
    party p = party_join_with(&ns, 0, 0, &red);
    party_connect(&p);
    nodes_take(&ns, 2, 3);
    server_kill(ns.sv[0]);
    unlink(server_path(ns.sv[0]));
    EXPECT_INT(symlink(server_path(ns.sv[1]), server_path(ns.sv[0])), 0);
    EVENTUALLY(SOON, server_info(ns.sv[1], "uptime_in_seconds") >= 3);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, LONG_LEASE), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "same server as node 2");
    EXPECT(!node_has(ns.sv[1]));
    party_leave(&p);
    unlink(server_path(ns.sv[0]));
    nodes_stop(&ns);
}

/* --- one connection for each node ---------------------------------------- */

TEST(several_hung, several_locks_of_a_thread_can_do_with_one_connection)
{
    enum { LOCKS = 3 };
    nodes ns = nodes_start(3);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock *lk[LOCKS];
    opts.pool_size = 1;
    party p = party_clients_of(&ns, &opts);
    for (int k = 0; k < LOCKS; k++)
        lk[k] = party_lock(&p, (const char *[]){"a", "b", "c"}[k], NULL);
    for (int i = 0; i < 300; i++) {
        for (int k = 0; k < LOCKS; k++) {
            int64_t began_ms = test_now_ms();
            EXPECT_STATUS(rlock_acquire(lk[k], 0, LONG_LEASE), RLOCK_OK);
            EXPECT_BETWEEN(test_since_ms(began_ms), 0, AT_ONCE_MS);
        }
        for (int k = 0; k < LOCKS; k++) {
            int64_t began_ms = test_now_ms();
            EXPECT_STATUS(rlock_unlock(lk[k]), RLOCK_OK);
            EXPECT_BETWEEN(test_since_ms(began_ms), 0, AT_ONCE_MS);
        }
    }
    for (int k = 0; k < LOCKS; k++)
        rlock_free(lk[k]);
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    nodes_stop(&ns);
}

/* --- Multi locks with Red locks among them ------------------------------- */

/* Not one limit for each. */
TEST(several_hung, a_try_of_several_red_locks_with_a_hung_majority_ends_in_time)
{
    enum { LOCKS = 8, TIMEOUT_MS = 500 };
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, TIMEOUT_MS);
    rlock *lk[LOCKS], *all;
    for (int k = 0; k < LOCKS; k++)
        lk[k] = party_lock(&p, (char[]){(char)('a' + k), '\0'}, NULL);
    EXPECT_STATUS(rlock_multi_new(lk, LOCKS, &all), RLOCK_OK);
    party_connect(&p);
    server_pause(ns.sv[1]);
    server_pause(ns.sv[2]);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(all), RLOCK_EQUORUM);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, TIMEOUT_MS + AT_ONCE_MS);
    server_resume(ns.sv[1]);
    server_resume(ns.sv[2]);
    rlock_free(all);
    for (int k = 0; k < LOCKS; k++)
        rlock_free(lk[k]);
    nodes_expect_all_undone(&ns);
    party_leave(&p);
    nodes_stop(&ns);
}

/* It was granted, and another member used the time up. */
TEST(several_hung, a_try_in_vain_lets_go_of_a_red_member_in_its_time)
{
    enum { TIMEOUT_MS = 1000 };
    const int lost = PROXY_SENT | PROXY_TIMEOUT;
    nodes ns = nodes_proxied(3);
    party p = party_join(&ns, 0, TIMEOUT_MS);
    scene s = scene_proxied(0, TIMEOUT_MS);
    rlock *other = test_lock(s.cl, "other"), *all;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){p.lk, other}, 2, &all), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("acquire"), PROXY_EVERY, lost, NULL);
    for (size_t i = 0; i < ns.n; i++)
        proxy_rule(ns.px[i], proxy_sha("release"), PROXY_EVERY, lost, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_trylock(all), RLOCK_EIO);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, TIMEOUT_MS + AT_ONCE_MS);
    EXPECT(proxy_fired(s.px));
    for (size_t i = 0; i < ns.n; i++)
        proxy_rule(ns.px[i], NULL, 0, lost, NULL);
    rlock_free(all);
    rlock_free(other);
    scene_stop(&s);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(several_hung, canceling_a_multi_lock_cancels_no_wait_for_its_red_members)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    rlock *all;
    EXPECT_STATUS(rlock_multi_new(&p.lk, 1, &all), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(q.lk, SOON, LONG_LEASE), RLOCK_OK);
    waiter *one = waiter_start(p.lk, SOON, LONG_LEASE);
    waiter *whole = waiter_start(all, SOON, LONG_LEASE);
    EVENTUALLY(SOON, stats_of(p.cl[0]).waiting_now == 2);
    rlock_cancel(all);
    EXPECT_STATUS(waiter_end(whole), RLOCK_CANCELED);
    EXPECT_STATUS(rlock_unlock(q.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(one, NULL), RLOCK_OK);
    EXPECT_STATUS(waiter_end(one), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    rlock_free(all);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}
