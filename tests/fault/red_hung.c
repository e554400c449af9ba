/* A minority that hangs, is far, or failed for a while, makes no call slow. */
#include "lag.h"
#include "nodes.h"

/* Half a command's time limit, which a node that hangs may cost. */
enum { LEASE_MS = 90000, QUICK_MS = 1500 };

static void quick(rlock_status status, int64_t began_ms, const char *what)
{
    int64_t took_ms = test_since_ms(began_ms);
    if (status != RLOCK_OK || took_ms > QUICK_MS)
        FAIL("%s: %s after %d ms", what, rlock_status_str(status),
             (int)took_ms);
}

#define QUICK(call)                                                            \
    do {                                                                       \
        int64_t began_ms_ = test_now_ms();                                     \
        quick(call, began_ms_, #call);                                         \
    } while (0)

static void hang(const nodes *ns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        server_pause(ns->sv[i]);
}

static void wake(const nodes *ns, size_t n)
{
    for (size_t i = 0; i < n; i++)
        server_resume(ns->sv[i]);
}

TEST(red_hung, a_new_client_is_quick_from_the_first_acquire_on)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    hang(&ns, 2);
    QUICK(rlock_acquire(p.lk, 0, LEASE_MS));
    QUICK(rlock_acquire(p.lk, 0, LEASE_MS));
    QUICK(rlock_extend(p.lk, LEASE_MS));
    QUICK(rlock_unlock(p.lk));
    QUICK(rlock_unlock(p.lk));
    wake(&ns, 2);
    party_end(&p, &ns);
}

/* They hang while it is held, so that each verb is the first to notice. */
static void expect_quick(rlock_status (*verb)(rlock *lk))
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LEASE_MS);
    hang(&ns, 2);
    QUICK(verb(p.lk));
    wake(&ns, 2);
    party_end(&p, &ns);
}

static rlock_status nest(rlock *lk)
{
    return rlock_acquire(lk, 0, LEASE_MS);
}

static rlock_status extend(rlock *lk)
{
    return rlock_extend(lk, LEASE_MS);
}

static rlock_status ask(rlock *lk)
{
    bool locked = false;
    rlock_status s = rlock_is_locked(lk, &locked);
    EXPECT(s != RLOCK_OK || locked);
    return s;
}

TEST_CASE(red_hung, a_nested_lock_is_quick, expect_quick(nest))
TEST_CASE(red_hung, an_extend_is_quick, expect_quick(extend))
TEST_CASE(red_hung, an_unlock_is_quick, expect_quick(rlock_unlock))
TEST_CASE(red_hung, a_question_is_quick, expect_quick(ask))

TEST(red_hung, freeing_the_clients_takes_about_as_long_as_one)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LEASE_MS);
    hang(&ns, 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    party_leave(&p);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, 3000);
    wake(&ns, 2);
    nodes_stop(&ns);
}

/* --- a minority that is far ----------------------------------------------- */

enum { ROUNDS = 11, VERBS = 5, ONE_WAY_MS = 100 };

/* The first two of the nodes are behind these. */
static party join_behind(const nodes *ns, lag *l[2])
{
    party p = {.n = ns->n};
    for (size_t i = 0; i < ns->n; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        if (i < 2)
            opts.uri = lag_uri(l[i]);
        p.ev[i] = events_new();
        events_hook(p.ev[i], &opts);
        p.cl[i] = server_client(ns->sv[i], &opts);
    }
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    return p;
}

/* Either way to such a node takes as long as all of a call may. */
static void expect_not_far(rlock *lk)
{
    rlock_status (*const verb[VERBS])(rlock *) = {nest, nest, extend,
                                                  rlock_unlock, rlock_unlock};
    int64_t took_us[VERBS][ROUNDS];
    for (size_t i = 0; i < ROUNDS; i++)
        for (size_t v = 0; v < VERBS; v++) {
            int64_t began_us = test_now_us();
            EXPECT_STATUS(verb[v](lk), RLOCK_OK);
            took_us[v][i] = test_now_us() - began_us;
        }
    for (size_t v = 0; v < VERBS; v++)
        EXPECT_BETWEEN(test_median(took_us[v], ROUNDS), 0,
                       ONE_WAY_MS * 1000 - 1);
}

TEST(red_hung, a_minority_that_is_far_slows_no_verb_down)
{
    nodes ns = nodes_start(5);
    lag *l[2] = {lag_start(ns.sv[0]), lag_start(ns.sv[1])};
    party p = join_behind(&ns, l);
    expect_undisturbed_party(&p);
    for (size_t i = 0; i < 2; i++)
        lag_set(l[i], ONE_WAY_MS);
    expect_not_far(p.lk);
    party_leave(&p);
    for (size_t i = 0; i < 2; i++)
        lag_stop(l[i]);
    nodes_stop(&ns);
}

/* --- an extend that fails ------------------------------------------------- */

static void refuse_extends(const nodes *ns)
{
    for (size_t i = 1; i < ns->n; i++)
        proxy_rule(ns->px[i], proxy_sha("extend"), PROXY_EVERY, PROXY_ANSWER,
                   "-ERR not now\r\n");
}

TEST(red_hung, an_extend_that_fails_leaves_renewal_on)
{
    enum { SHORT_MS = 1500 };
    nodes ns = nodes_proxied(3);
    party p = party_join(&ns, SHORT_MS, 0);
    party_hold_renewed(&p);
    refuse_extends(&ns);
    EXPECT_STATUS(rlock_extend(p.lk, 1200), RLOCK_EQUORUM);
    watch_renewals(p.cl[1], 2);
    int64_t began_ms = test_now_ms();
    while (test_since_ms(began_ms) < 2 * SHORT_MS) {
        EXPECT(rlock_is_held(p.lk));
        test_pause_ms(10);
    }
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red_hung, an_extend_that_fails_turns_no_renewal_on)
{
    nodes ns = nodes_proxied(3);
    party p = party_join(&ns, 900, 0);
    party_hold(&p, 2500);
    refuse_extends(&ns);
    EXPECT_STATUS(rlock_extend(p.lk, RLOCK_WATCHDOG), RLOCK_EQUORUM);
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, 4000);
    party_end(&p, &ns);
}

/* Of all nodes, though each extend is over with a majority of them. */
static bool extends_everywhere(const party *p, const nodes *ns)
{
    size_t n = 0;
    EXPECT_STATUS(rlock_extend(p->lk, 2 * LONG_LEASE), RLOCK_OK);
    for (size_t i = 0; i < ns->n; i++)
        n += key_ttl(ns->sv[i], SCENE_LOCK) > LONG_LEASE;
    return n == ns->n;
}

/*
 * Every node executes it, so the keys are gone early, and no answer comes
 * before: patience with the nodes must not be belief in the longer lease.
 */
TEST(red_hung, a_shorter_lease_is_believed_from_when_it_is_asked_for)
{
    enum { SHORT_MS = 3000, TIMEOUT_MS = 10000 };
    nodes ns = nodes_proxied(3);
    party p = party_join(&ns, 0, TIMEOUT_MS);
    party_hold(&p, LONG_LEASE);
    EVENTUALLY(SOON, extends_everywhere(&p, &ns)); /* the control */
    for (size_t i = 0; i < 3; i++)
        proxy_rule(ns.px[i], proxy_sha("extend"), 1, PROXY_HOLD_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(p.lk, SHORT_MS), RLOCK_EQUORUM);
    EVENTUALLY(SOON, nodes_having(&ns) < 2);
    EXPECT(!rlock_is_held(p.lk));
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SLACK_MS);
    for (size_t i = 0; i < 3; i++)
        proxy_let_go(ns.px[i]);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    expect_one_loss(&p);
    party_end(&p, &ns);
}

/* Each extend leaves another node behind, which answers a little later. */
TEST(red_hung, a_node_that_answers_late_takes_part_in_the_next_extend)
{
    nodes ns = nodes_proxied(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LEASE_MS);
    for (size_t i = 0; i < 3; i++) {
        proxy_rule(ns.px[i], proxy_sha("extend"), 1, PROXY_HOLD_REPLY, NULL);
        EXPECT_STATUS(rlock_extend(p.lk, LEASE_MS + 1000), RLOCK_OK);
        EVENTUALLY(SOON, proxy_fired(ns.px[i]));
        proxy_let_go(ns.px[i]);
    }
    EVENTUALLY(SOON, rlock_extend(p.lk, 2 * LEASE_MS) == RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}
