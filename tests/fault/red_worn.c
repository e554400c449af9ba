/* A lock that is held outlives its nodes, one after the other. */
#include "nodes.h"

enum { LEASE_MS = 1500 };

static nodes start_durable(size_t n)
{
    nodes ns = {.n = n};
    for (size_t i = 0; i < n; i++) {
        ns.sv[i] = server_start(SERVER_DURABLE);
        server_load_scripts(ns.sv[i]);
    }
    return ns;
}

static bool is_back(const nodes *ns, const party *p, size_t i)
{
    EXPECT(rlock_is_held(p->lk));
    return node_has(ns->sv[i]) && stats_of(p->cl[i]).held_now == 1;
}

static void expect_held(const nodes *ns, party *p)
{
    EXPECT(rlock_is_held(p->lk));
    EXPECT_INT(party_events(p, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_lock(p->lk), RLOCK_OK);
    unlock_times(p->lk, 2, RLOCK_OK);
    EVENTUALLY(SOON, nodes_having(ns) == 0);
}

/* Each is away until the lock is over there. */
TEST(red_worn, nodes_that_were_away_one_after_the_other_have_it_again)
{
    nodes ns = start_durable(5);
    party p = party_join(&ns, LEASE_MS, 0);
    party_connect(&p);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    for (size_t i = 0; i < 3; i++) {
        server_kill(ns.sv[i]);
        EVENTUALLY(SOON, stats_of(p.cl[i]).held_now == 0);
        server_restart(ns.sv[i]);
        EVENTUALLY(SOON, is_back(&ns, &p, i));
    }
    expect_held(&ns, &p);
    party_end(&p, &ns);
}

/* The same without a restart: somebody has deleted the key. */
TEST(red_worn, nodes_that_lost_it_one_after_the_other_have_it_again)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, LEASE_MS, 0);
    party_connect(&p);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    for (size_t i = 0; i < 4; i++) {
        server_int(ns.sv[i], "DEL %s", SCENE_LOCK);
        EVENTUALLY(SOON, is_back(&ns, &p, i));
    }
    expect_held(&ns, &p);
    party_end(&p, &ns);
}

/* The home's node has never granted it. */
TEST(red_worn, a_hold_ends_with_its_home_wherever_it_is)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, LEASE_MS, 0);
    nodes_take(&ns, 0, 1);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, party_holding(&p) == 2);
    party_free_client(&p, 0);
    EXPECT(!rlock_is_held(p.lk));
    EVENTUALLY(3 * LEASE_MS, !node_has(ns.sv[1]) && !node_has(ns.sv[2]));
    EXPECT_INT(party_holding(&p), 0);
    party_end(&p, &ns);
}

/*
 * A holds it on nodes 0 and 1 for long, by one handle; node 1 then forgets it.
 * B, by another handle, must not have it from nodes 1 and 2.
 */
static void expect_no_second_owner(nodes *ns, party *p, rlock *other)
{
    party_connect(p);
    nodes_take(ns, 2, 3);
    EXPECT_STATUS(rlock_acquire(p->lk, SOON, 20000), RLOCK_OK);
    EVENTUALLY(SOON, party_holding(p) == 2);
    nodes_give_back(ns, 2, 3);
    server_kill(ns->sv[1]);
    server_forget(ns->sv[1]);
    server_restart(ns->sv[1]);
    int64_t began_ms = test_now_ms();
    while (test_since_ms(began_ms) < 3500) {
        rlock_status s = on_another_thread(rlock_trylock, other);
        if (s != RLOCK_BUSY && s != RLOCK_EQUORUM)
            FAIL("a second owner: %s", rlock_status_str(s));
        test_pause_ms(20);
    }
    rlock_free(other);
    party_end(p, ns);
}

TEST(red_worn, handles_of_a_name_share_the_longest_lease)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1000, 0);
    expect_no_second_owner(&ns, &p, party_lock(&p, SCENE_LOCK, NULL));
}

TEST(red_worn, handles_with_the_nodes_in_another_order_share_it_too)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1000, 0), reversed = p;
    reversed.cl[0] = p.cl[2];
    reversed.cl[2] = p.cl[0];
    expect_no_second_owner(&ns, &p, party_lock(&reversed, SCENE_LOCK, NULL));
}
