/*
 * Red locks of clients that have been used before: their connections were made
 * when nobody asked which run of its server each of them leads to.
 */
#include "loop.h"
#include "nodes.h"

/* What a few connections that are made and tried cost; a loop makes more. */
enum { FEW_PINGS = 20, USERS = 8 };

static void use(rlock_client *cl)
{
    rlock *lk = test_lock(cl, "single");
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
}

static void use_started(rlock_client *cl)
{
    rlock *lk = test_lock(cl, "single");
    request r = request_new(lk);
    EXPECT_STATUS(loop_acquire(cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(cl, &r), RLOCK_OK);
    request_free(&r);
    rlock_free(lk);
}

static intptr_t use_often(void *cl)
{
    for (int i = 0; i < 20; i++)
        use(cl);
    return 0;
}

/* Several connections are left. */
static void use_at_once(rlock_client *cl)
{
    test_thread *t[USERS];
    for (size_t i = 0; i < USERS; i++)
        t[i] = test_spawn(use_often, cl);
    for (size_t i = 0; i < USERS; i++)
        test_join(t[i]);
}

/* So long a lease that a busy node is waited for, and so long not. */
static rlock_status take(party *p)
{
    return rlock_acquire(p->lk, 0, LONG_LEASE);
}

static rlock_status take_started(party *p)
{
    request r = request_new(p->lk);
    rlock_status s = loop_acquire(p->cl[0], &r, 0, LONG_LEASE);
    if (s == RLOCK_OK)
        EXPECT_STATUS(loop_unlock(p->cl[0], &r), RLOCK_OK);
    request_free(&r);
    return s;
}

static void expect_few_pings(const nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        EXPECT_BETWEEN(proxy_count(ns->px[i], "PING"), 0, FEW_PINGS);
}

/* The first try of the lock's first acquire. */
static void expect_had(void (*before)(rlock_client *cl),
                       rlock_status (*verb)(party *p))
{
    nodes ns = nodes_proxied(3);
    party p = party_clients(&ns, 0, 0);
    for (size_t i = 0; before && i < ns.n; i++)
        before(p.cl[i]);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    for (size_t i = 0; i < ns.n; i++)
        proxy_forget(ns.px[i]);
    EXPECT_STATUS(verb(&p), RLOCK_OK);
    expect_few_pings(&ns);
    party_end(&p, &ns);
}

TEST_CASE(red_used, clients_that_were_not_have_it, expect_had(NULL, take))
TEST_CASE(red_used, clients_that_were_have_it_at_once, expect_had(use, take))
TEST_CASE(red_used, clients_with_several_connections_have_it_at_once,
          expect_had(use_at_once, take))
TEST_CASE(red_used, a_start_has_it_at_once, expect_had(use, take_started))
TEST_CASE(red_used, a_start_after_starts_has_it_at_once,
          expect_had(use_started, take_started))

/* Most of its time would go into trying servers that are there. */
TEST(red_used, who_waits_for_ever_has_it_at_once)
{
    nodes ns = nodes_proxied(3);
    party p = party_clients(&ns, 0, 0);
    for (size_t i = 0; i < ns.n; i++)
        use(p.cl[i]);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    expect_fast(began_ms);
    expect_few_pings(&ns);
    party_end(&p, &ns);
}

/* A single lock that is held meanwhile is none the worse for it. */
TEST(red_used, locks_that_are_held_meanwhile_stay_held)
{
    nodes ns = nodes_proxied(3);
    party p = party_clients(&ns, BRISK_MS, 0);
    rlock *single = test_lock(p.cl[0], "single");
    EXPECT_STATUS(rlock_lock(single), RLOCK_OK);
    for (size_t i = 0; i < ns.n; i++)
        use(p.cl[i]);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    EXPECT_STATUS(take(&p), RLOCK_OK);
    watch_renewals(p.cl[0], 2);
    EXPECT(rlock_is_held(single));
    EXPECT_STATUS(rlock_unlock(single), RLOCK_OK);
    EXPECT_INT(events_count(p.ev[0], RLOCK_EVENT_LOST), 0);
    rlock_free(single);
    party_end(&p, &ns);
}
