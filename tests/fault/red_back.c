/* Nodes that were not there, and come back: when they count, and for whom. */
#include <stdatomic.h>

#include "nodes.h"

enum { LEASE_MS = 2000 };

/* --- a program starts while nodes are down -------------------------------- */

static party join_lazily(const nodes *ns)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = LEASE_MS;
    opts.lazy = true;
    party p = party_clients_of(ns, &opts);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    return p;
}

static bool locks(rlock *lk)
{
    rlock_status s = rlock_trylock(lk);
    if (s == RLOCK_OK)
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    return s == RLOCK_OK;
}

TEST(red_back, a_program_starts_while_a_minority_is_down)
{
    nodes ns = nodes_start(5);
    server_kill(ns.sv[0]);
    server_kill(ns.sv[3]);
    party p = join_lazily(&ns);
    EVENTUALLY(SOON, locks(p.lk));
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    watch_renewals(p.cl[1], 1);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    unlock_times(p.lk, 2, RLOCK_OK);
    server_restart(ns.sv[0]);
    server_restart(ns.sv[3]);
    party_end(&p, &ns);
}

/* It may have voted for another, and lost its memory in between. */
TEST(red_back, a_node_met_later_counts_once_it_is_older_than_the_longest_lease)
{
    nodes ns = nodes_start(3);
    server_kill(ns.sv[0]);
    party p = join_lazily(&ns);
    EVENTUALLY(SOON, locks(p.lk));
    server_forget(ns.sv[0]);
    server_restart(ns.sv[0]);
    int64_t up_ms = test_now_ms();
    server_kill(ns.sv[2]);
    while (!locks(p.lk))
        test_pause_ms(5);
    EXPECT_BETWEEN(test_since_ms(up_ms), LEASE_MS, SOON);
    server_restart(ns.sv[2]);
    party_end(&p, &ns);
}

TEST(red_back, a_majority_that_is_down_is_no_quorum_until_it_is_there)
{
    nodes ns = nodes_start(3);
    server_kill(ns.sv[0]);
    server_kill(ns.sv[1]);
    party p = join_lazily(&ns);
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    server_restart(ns.sv[0]);
    server_restart(ns.sv[1]);
    EVENTUALLY(SOON, locks(p.lk));
    party_end(&p, &ns);
}

TEST(red_back, a_lazy_client_of_one_server_fails_until_it_is_there)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.lazy = true;
    server_kill(sv);
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_client_ping(cl), RLOCK_EIO);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(cl).waiting_now == 1);
    server_restart(sv);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}

/* What is wrong with the options is wrong at once. */
TEST(red_back, a_lazy_client_refuses_what_cannot_be_an_address)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl;
    opts.lazy = true;
    opts.uri = "redis://localhost:port";
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EINVAL);
}

/* --- a quorum that forgot it ---------------------------------------------- */

/*
 * Somebody else has it in between. The first node is asked again, and has it
 * again, while the second cannot be asked; at no time are two known to be gone.
 */
TEST(red_back, a_quorum_that_forgot_it_is_a_loss_though_one_has_it_again)
{
    nodes ns = nodes_proxied(3);
    party p = party_join(&ns, 3 * LEASE_MS, 0);
    party_hold_renewed(&p);
    watch_renewals(p.cl[1], 1); /* its lease is not over too soon */
    proxy_freeze(ns.px[1], true);
    for (size_t i = 0; i < 2; i++)
        server_cmd(ns.sv[i], "FLUSHALL");
    nodes_take(&ns, 0, 2);
    nodes_give_back(&ns, 0, 2);
    EVENTUALLY(SOON, node_has(ns.sv[0]));
    EXPECT(rlock_is_held(p.lk));
    proxy_freeze(ns.px[1], false);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    expect_one_loss(&p);
    party_end(&p, &ns);
}

/* --- a lease that ran out, and nobody noticed ----------------------------- */

/* An on_event that does not return, as long as it is to block. */
typedef struct ear {
    atomic_bool blocks, inside;
} ear;

static void on_event(const rlock_event *ev, void *arg)
{
    ear *e = arg;
    while (ev->type == RLOCK_EVENT_RENEWED && atomic_load(&e->blocks)) {
        atomic_store(&e->inside, true);
        test_pause_ms(1);
    }
}

/* The last of the nodes' clients has it. */
static party join_with_ear(const nodes *ns, ear *e)
{
    party p = {.n = ns->n};
    for (size_t i = 0; i < ns->n; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        opts.uri = proxy_uri(ns->px[i]);
        opts.watchdog_lease_ms = LEASE_MS;
        p.ev[i] = events_new();
        events_hook(p.ev[i], &opts);
        if (i + 1 == ns->n) {
            opts.on_event = on_event;
            opts.event_arg = e;
        }
        p.cl[i] = server_client(ns->sv[i], &opts);
    }
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    return p;
}

/*
 * The third node's lease runs out while its client's notifier is inside of
 * on_event. Then the second turns out to have been flushed; others have the
 * lock, and give it back, and the second node votes for its old owner again.
 */
TEST(red_back, a_lock_that_was_lost_unnoticed_does_not_come_back)
{
    ear e = {.blocks = false};
    nodes ns = nodes_proxied(3), direct = nodes_direct(&ns);
    party p = join_with_ear(&ns, &e), other = party_join(&direct, 0, 0);
    party_hold_renewed(&p);
    EXPECT_STATUS(rlock_trylock(other.lk), RLOCK_BUSY); /* the control */
    atomic_store(&e.blocks, true);
    EVENTUALLY(SOON, atomic_load(&e.inside));
    proxy_freeze(ns.px[2], true);
    EVENTUALLY(SOON, !node_has(ns.sv[2]));
    server_cmd(ns.sv[1], "FLUSHALL");
    EXPECT_STATUS(rlock_acquire(other.lk, SOON, LONG_LEASE), RLOCK_OK);
    EVENTUALLY(SOON, stats_of(p.cl[1]).held_now == 0);
    EXPECT_STATUS(rlock_unlock(other.lk), RLOCK_OK);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!rlock_is_held(p.lk));
    atomic_store(&e.blocks, false);
    proxy_freeze(ns.px[2], false);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    expect_one_loss(&p);
    party_leave(&other);
    party_end(&p, &ns);
}
