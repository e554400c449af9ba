/*
 * The server's clock is put back while a lock is held, and its owner's lease
 * ends by the client's own: the server keeps the key for as long as the step
 * was. Each test sees first what becomes of the lock when no clock is touched.
 */
#include "layouts.h"
#include "nodes.h"

#define LEASE_MS 1000
#define HOUR_S   3600

/* No lease that was asked for can be running any more, by our clock. */
static void run_out(events *ev, int64_t began_ms)
{
    events_wait(ev, RLOCK_EVENT_LOST, 1, 5000);
    EVENTUALLY(SOON, test_since_ms(began_ms) > LEASE_MS + 100);
}

/* --- one server ----------------------------------------------------------- */

static scene scene_clocked(rlock_layout layout)
{
    scene s = {.sv = server_start_clocked(NULL), .opts = RLOCK_OPTIONS_INIT};
    server_load_scripts(s.sv);
    scene_client(&s, 0, 0);
    use_layout(&s, layout);
    return s;
}

static void hold_and_lose(scene *s, long long step_s)
{
    EXPECT_STATUS(rlock_acquire(s->lk, 0, LEASE_MS), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    server_set_clock(s->sv, step_s);
    run_out(s->ev, began_ms);
}

/* Nothing needs to be released: the server has freed it by its own clock. */
static void expire_by_itself(rlock_layout layout)
{
    scene s = scene_clocked(layout);
    hold_and_lose(&s, 0);
    EVENTUALLY(3 * LEASE_MS, !is_locked(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

static void unlock_what_has_expired(rlock_layout layout)
{
    expire_by_itself(layout);
    scene s = scene_clocked(layout);
    other_client b = other_client_of(&s, layout);
    hold_and_lose(&s, -HOUR_S);
    EXPECT(is_locked(s.lk));
    waiter *w = waiter_start(b.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, b.cl, 1);
    int64_t unlocked_ms = test_now_ms();
    unlock_lost(&s);
    waiter_expect_rung(w, unlocked_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    expect_nothing_left(s.sv);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(stepped, fault_025_what_expired_for_us_is_freed_by_its_unlock)
{
    unlock_what_has_expired(RLOCK_LAYOUT_HASH);
}

TEST(stepped, fault_025_a_string_that_expired_for_us_is_freed_by_its_unlock)
{
    unlock_what_has_expired(RLOCK_LAYOUT_STRING);
}

TEST(stepped, fault_025_a_timestamp_that_expired_for_us_is_freed_by_its_unlock)
{
    unlock_what_has_expired(RLOCK_LAYOUT_TIMESTAMP);
}

/* --- several -------------------------------------------------------------- */

static nodes nodes_clocked(void)
{
    nodes ns = {.n = 3};
    for (size_t i = 0; i < ns.n; i++) {
        ns.sv[i] = server_start_clocked(NULL);
        server_load_scripts(ns.sv[i]);
    }
    return ns;
}

static void set_clocks(const nodes *ns, long long step_s)
{
    for (size_t i = 0; i < ns->n; i++)
        server_set_clock(ns->sv[i], step_s);
}

static void party_hold_and_lose(party *p, const nodes *ns, long long step_s)
{
    party_hold(p, LEASE_MS);
    int64_t began_ms = test_now_ms();
    set_clocks(ns, step_s);
    run_out(p->ev[0], began_ms);
}

TEST(stepped, fault_025_a_red_lock_that_expired_for_us_is_freed_by_its_unlock)
{
    nodes ns = nodes_clocked();
    party a = party_join(&ns, 0, 0);
    party_hold_and_lose(&a, &ns, 0);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_LOST);
    party_leave(&a);
    a = party_join(&ns, 0, 0);
    party b = party_join(&ns, 0, 0);
    party_hold_and_lose(&a, &ns, -HOUR_S);
    EXPECT_INT(nodes_having(&ns), 3);
    waiter *w = waiter_start(b.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, queued(ns.sv[0], SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_unlock(a.lk), RLOCK_LOST);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    /* A node that came too late for b has a token that was to expire by the
       clock of before. */
    set_clocks(&ns, 0);
    nodes_expect_all_undone(&ns);
    party_leave(&b);
    party_end(&a, &ns);
}
