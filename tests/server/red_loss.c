/* Red locks: extend and renewal, and how one is lost. */
#include "nodes.h"

/* --- extend and renewal -------------------------------------------------- */

/*
 * An extend is over with a majority: the others may be late, or, when they were
 * late before, be left out for once.
 */
static bool extends_every_node(const party *p, const nodes *ns,
                               int64_t lease_ms)
{
    size_t n = 0;
    EXPECT_STATUS(rlock_extend(p->lk, lease_ms), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(p->lk), lease_ms - SOON,
                   lease_ms - lease_ms / 100 - 2);
    for (size_t i = 0; i < ns->n; i++) {
        long long ttl_ms = key_ttl(ns->sv[i], SCENE_LOCK);
        n += ttl_ms > lease_ms - SOON && ttl_ms <= lease_ms;
    }
    return n == ns->n;
}

TEST(red_loss, extend_lengthens_and_shortens_on_every_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    EVENTUALLY(SOON, extends_every_node(&p, &ns, 200000));
    EVENTUALLY(SOON, extends_every_node(&p, &ns, 100000));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(p.lk, 40000), RLOCK_NOT_HELD);
    party_end(&p, &ns);
}

TEST(red_loss, every_node_is_renewed_by_its_own_client)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    for (size_t i = 0; i < 3; i++)
        events_wait(p.ev[i], RLOCK_EVENT_RENEWED, 3, SOON);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_BETWEEN(rlock_valid_ms(p.lk), 1, 1483);
    EXPECT_INT(nodes_having(&ns), 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&ns);
    party_end(&p, &ns);
}

/* A twentieth of the lease is each node's time to answer. */
TEST(red_loss, an_extend_by_a_lease_stops_renewal)
{
    enum { EXTENDED_MS = 3000 };
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold_renewed(&p);
    events_wait(p.ev[0], RLOCK_EVENT_RENEWED, 1, SOON);
    EXPECT_STATUS(rlock_extend(p.lk, EXTENDED_MS), RLOCK_OK);
    int64_t until_ms = test_now_ms() + EXTENDED_MS;
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_time(p.ev[0], RLOCK_EVENT_LOST) <= until_ms + 500);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    party_end(&p, &ns);
}

TEST(red_loss, a_watchdog_lease_is_renewed_from_the_first_acquire_on)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 3000, 0);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EVENTUALLY(SOON, party_events(&p, RLOCK_EVENT_RENEWED) >= 4);
    EXPECT(rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}

TEST(red_loss, a_nested_watchdog_lease_turns_renewal_on)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    party_hold(&p, 30000);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, party_events(&p, RLOCK_EVENT_RENEWED) >= 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* --- a loss -------------------------------------------------------------- */

TEST(red_loss, an_explicit_lease_is_lost_at_its_deadline)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 1500), RLOCK_OK);
    int64_t until_ms = test_now_ms() + rlock_valid_ms(p.lk);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_time(p.ev[0], RLOCK_EVENT_LOST) <= until_ms + 300);
    EXPECT(!rlock_is_held(p.lk));
    EXPECT_INT(rlock_valid_ms(p.lk), 0);
    EXPECT_INT(rlock_token(p.lk), 0);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_extend(p.lk, 5000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    expect_one_loss(&p);
    EXPECT_INT(stats_of(p.cl[0]).lost, 1);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

static party party_limited(const nodes *ns, int64_t max_hold_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 1500;
    opts.max_hold_ms = max_hold_ms;
    party p = party_clients_of(ns, &opts);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    return p;
}

/* Deleted there, it is had again, and that counts. */
static void have_again(const party *p, server *sv)
{
    EXPECT_INT(server_int(sv, "DEL %s", SCENE_LOCK), 1);
    EVENTUALLY(SOON, node_has(sv));
    party_await_renewals(p);
}

/* Each node has it for a shorter time than that; the whole has not. */
TEST(red_loss, a_hold_whose_nodes_were_granted_anew_ends_at_max_hold_ms)
{
    enum { MAX_HOLD_MS = 10000 };
    nodes ns = nodes_start(3);
    party p = party_limited(&ns, MAX_HOLD_MS);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    party_await_renewals(&p);
    for (size_t i = 0; i < ns.n; i++)
        have_again(&p, ns.sv[i]);
    EXPECT(rlock_is_held(p.lk));
    EVENTUALLY(SOON, !rlock_is_held(p.lk));
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, MAX_HOLD_MS + 500);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_CONTAINS(rlock_last_error()->message, "too few nodes");
    party_end(&p, &ns);
}

static void delete_keys(const nodes *ns, size_t n)
{
    for (size_t i = ns->n - n; i < ns->n; i++)
        EXPECT_INT(server_int(ns->sv[i], "DEL %s", SCENE_LOCK), 1);
}

/* Another hold is there now. */
static void steal(const nodes *ns, size_t n)
{
    delete_keys(ns, n);
    nodes_take(ns, ns->n - n, ns->n);
}

/* Renewed each second; the harm is done in the first half of one. */
enum { RENEWED_MS = 3000, SINCE_MS = 500 };

/* Was each node renewed a while ago, and will not be for a while? */
static bool is_between_renewals(const party *p)
{
    for (size_t i = 0; i < p->n; i++) {
        int64_t at_ms = events_time(p->ev[i], RLOCK_EVENT_RENEWED);
        int64_t ago_ms = test_since_ms(at_ms);
        if (ago_ms < 50 || ago_ms > SINCE_MS)
            return false;
    }
    return true;
}

/* Is every node's key gone as soon as it is not renewed? Else it may be yet. */
static bool has_short_leases(const party *p, const nodes *ns)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += key_ttl(ns->sv[i], SCENE_LOCK) <= RENEWED_MS;
    if (n < ns->n)
        EXPECT_STATUS(rlock_extend(p->lk, RLOCK_WATCHDOG), RLOCK_OK);
    return n == ns->n;
}

/*
 * A node that noticed its part of the harm a period earlier than the others
 * would have the hold again before they notice theirs, and no majority would
 * ever be lost. On a busy machine the harm takes a while.
 *
 * No renewal makes a lease shorter: a node that the extend left out would have
 * its key for much longer than the others.
 */
static void hold_between_renewals(party *p, const nodes *ns)
{
    party_hold_renewed(p);
    EVENTUALLY(SOON, has_short_leases(p, ns));
    EVENTUALLY(SOON, is_between_renewals(p));
}

/*
 * A majority of n nodes loses a hold. Nobody renews what is left of it, and it
 * runs out by itself.
 */
static void expect_lost(size_t n, void (*harm)(const nodes *ns, size_t n))
{
    nodes ns = nodes_start(n);
    party p = party_join(&ns, RENEWED_MS, 0);
    hold_between_renewals(&p, &ns);
    size_t gone = n - n / 2, left = n - gone;
    harm(&ns, gone);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    nodes survivors = nodes_first(&ns, left);
    EVENTUALLY(SOON, nodes_having(&survivors) == 0);
    EXPECT(!rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    expect_one_loss(&p);
    EXPECT_INT(stats_of(p.cl[0]).lost, 1);
    EXPECT_INT(party_holding(&p), 0);
    party_end(&p, &ns);
}

TEST_CASE(red_loss, a_deleted_majority_is_one_loss, expect_lost(3, delete_keys))
/* The third node, whose loss is one too many, has not heard of level 2. */
TEST(red_loss, a_loss_tells_the_levels_of_the_whole)
{
    rlock_event ev;
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 3000, 0);
    party_hold_renewed(&p);
    server_pause(ns.sv[2]);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    server_resume(ns.sv[2]);
    watch_renewals(p.cl[2], 1);
    server_cmd(ns.sv[0], "DEL %s", SCENE_LOCK);
    nodes_take(&ns, 0, 1);
    EVENTUALLY(SOON, party_holding(&p) == 2);
    EXPECT_INT(events_count(p.ev[0], RLOCK_EVENT_LOST), 0);
    server_cmd(ns.sv[2], "DEL %s", SCENE_LOCK);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_LOST, &ev));
    EXPECT_INT(ev.count, 2);
    unlock_times(p.lk, 2, RLOCK_LOST);
    party_end(&p, &ns);
}

TEST_CASE(red_loss, a_flushed_majority_is_one_loss, expect_lost(5, nodes_flush))
TEST_CASE(red_loss, a_stolen_majority_is_one_loss, expect_lost(3, steal))
TEST_CASE(red_loss, half_of_an_even_number_is_a_loss,
          expect_lost(4, delete_keys))
TEST_CASE(red_loss, one_of_two_is_a_loss, expect_lost(2, delete_keys))
TEST_CASE(red_loss, the_only_one_is_a_loss, expect_lost(1, delete_keys))

/*
 * A node has a twentieth of the watchdog's lease to answer, too little now and
 * then on a busy machine: an unlock without a quorum counts all the same.
 */
static bool nests(rlock *lk)
{
    return rlock_lock(lk) == RLOCK_OK && rlock_unlock(lk) == RLOCK_OK;
}

/* What is only gone is had again; what is another's is not. */
static void expect_kept(size_t n, void (*harm)(const nodes *ns, size_t n))
{
    nodes ns = nodes_start(n);
    party p = party_join(&ns, RENEWED_MS, 0);
    hold_between_renewals(&p, &ns);
    size_t gone = n - n / 2 - 1;
    harm(&ns, gone);
    for (size_t i = 0; i < n - gone; i++)
        events_wait(p.ev[i], RLOCK_EVENT_RENEWED,
                    events_count(p.ev[i], RLOCK_EVENT_RENEWED) + 2, SOON);
    EVENTUALLY(SOON, party_holding(&p) == (harm == steal ? n - gone : n));
    EXPECT(rlock_is_held(p.lk));
    EVENTUALLY(SOON, nests(p.lk));
    EXPECT_STATUS(rlock_extend(p.lk, 20000), RLOCK_OK);
    rlock_status s = rlock_unlock(p.lk);
    EXPECT(s == RLOCK_OK || s == RLOCK_EQUORUM);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    EXPECT_INT(stats_of(p.cl[0]).lost, 0);
    party_end(&p, &ns);
}

TEST_CASE(red_loss, a_deleted_minority_is_no_loss, expect_kept(3, delete_keys))
TEST_CASE(red_loss, a_flushed_minority_of_five_is_no_loss,
          expect_kept(5, nodes_flush))
TEST_CASE(red_loss, a_stolen_minority_of_an_even_number_is_no_loss,
          expect_kept(4, steal))

TEST(red_loss, a_thief_of_the_majority_keeps_what_it_stole)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, RENEWED_MS, 0);
    hold_between_renewals(&p, &ns);
    steal(&ns, 2);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EVENTUALLY(SOON, !node_has(ns.sv[0]));
    EXPECT_STR(node_holder(ns.sv[1]), BY_HAND);
    EXPECT_STR(node_holder(ns.sv[2]), BY_HAND);
    EXPECT_INT(server_int(ns.sv[2], "PTTL job"), -1);
    party_end(&p, &ns);
}

TEST(red_loss, unlock_frees_what_is_left_of_a_lost_hold)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    delete_keys(&ns, 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    nodes_expect_all_undone(&ns);
    expect_one_loss(&p);
    party_end(&p, &ns);
}

TEST(red_loss, unlocks_pair_after_a_loss)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    nodes_flush(&ns, 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    expect_one_loss(&p);
    party_end(&p, &ns);
}

TEST(red_loss, a_forced_unlock_is_one_loss_for_the_holder)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, RENEWED_MS, 0), q = party_join(&ns, 0, 0);
    hold_between_renewals(&p, &ns);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_OK);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    expect_one_loss(&p);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

static intptr_t hold_and_end(void *arg)
{
    party *p = arg;
    party_hold(p, 60000);
    EXPECT_STATUS(rlock_lock(p->lk), RLOCK_OK);
    return 0;
}

TEST(red_loss, a_thread_that_ends_abandons_its_hold_once)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 1500, 0);
    test_join(test_spawn(hold_and_end, &p));
    events_wait(p.ev[0], RLOCK_EVENT_ABANDONED, 1, SOON);
    EVENTUALLY(SOON, party_holding(&p) == 0);
    EVENTUALLY(SOON, server_int(ns.sv[2], "PTTL job") <= 60000);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_LOST), 0);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    party_end(&p, &ns);
}
