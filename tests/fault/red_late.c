/*
 * Extends of a Red lock that a node executes late: by then the keeper has
 * renewed the hold there, over a connection of its own.
 *
 * The owner has the lock on the first two of three nodes; the third has no vote
 * for it, and is free for whoever else asks. The extend fails, as the second
 * node's answer does not come.
 */
#include "loop.h"
#include "nodes.h"

enum { PATIENCE_MS = 30000, HOLDS = 2, SLOW = 1, FREE = 2 };

typedef struct late {
    nodes ns, direct;
    party p;
} late;

/* Neither the keeper nor the connector gives a silent connection up. */
static party patient_party(const nodes *ns)
{
    party p = {.n = ns->n};
    for (size_t i = 0; i < ns->n; i++) {
        rlock_options opts = RLOCK_OPTIONS_INIT;
        opts.uri = proxy_uri(ns->px[i]);
        opts.command_timeout_ms = opts.connect_timeout_ms = PATIENCE_MS;
        p.ev[i] = events_new();
        events_hook(p.ev[i], &opts);
        p.cl[i] = server_client(ns->sv[i], &opts);
    }
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    return p;
}

static late join(void)
{
    late l = {.ns = nodes_proxied(3)};
    l.direct = nodes_direct(&l.ns);
    proxy_rule(l.ns.px[FREE], proxy_sha("acquire"), PROXY_EVERY, PROXY_ANSWER,
               "-ERR not now\r\n");
    l.p = patient_party(&l.ns);
    return l;
}

static void hold_extend_back(late *l)
{
    EVENTUALLY(SOON, party_holding(&l->p) == HOLDS);
    EXPECT(rlock_valid_ms(l->p.lk) > BRISK_MS); /* the control */
    proxy_rule(l->ns.px[SLOW], proxy_sha("extend"), 1, PROXY_HOLD_REQUEST,
               NULL);
}

static unsigned long long renewals(const late *l)
{
    return stats_of(l->p.cl[SLOW]).renewals;
}

/* The extend has failed, and the keeper has gone on. */
static late begin_late(void)
{
    late l = join();
    EXPECT_STATUS(rlock_acquire(l.p.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    hold_extend_back(&l);
    unsigned long long before = renewals(&l);
    EXPECT_STATUS(rlock_extend(l.p.lk, BRISK_MS), RLOCK_EQUORUM);
    EVENTUALLY(SOON, renewals(&l) > before);
    return l;
}

/* Not always by a majority, while answers are out. */
static void end(late *l)
{
    rlock_status s = rlock_unlock(l->p.lk);
    EXPECT(s == RLOCK_OK || s == RLOCK_EQUORUM || s == RLOCK_LOST);
    party_end(&l->p, &l->ns);
}

/* The node is renewed as often as that takes, and no more. */
static void expect_bound(late *l)
{
    int64_t began_ms = test_now_ms();
    unsigned long long before = renewals(l);
    while (test_since_ms(began_ms) < BRISK_MS) {
        EXPECT_BETWEEN(rlock_valid_ms(l->p.lk), 1, BRISK_MS);
        test_pause_ms(5);
    }
    EXPECT_BETWEEN(renewals(l) - before, 1, 10);
}

TEST(red_late, an_extend_bounds_what_is_believed_until_its_answer)
{
    late l = begin_late();
    expect_bound(&l);
    proxy_execute(l.ns.px[SLOW]);
    expect_bound(&l);
    proxy_let_go(l.ns.px[SLOW]);
    EVENTUALLY(SOON, rlock_valid_ms(l.p.lk) > BRISK_MS);
    EXPECT_INT(party_events(&l.p, RLOCK_EVENT_LOST), 0);
    end(&l);
}

/* From then on the keeper reaches that node no more. */
TEST(red_late, an_extend_that_is_executed_after_a_renewal_makes_no_second_owner)
{
    late l = begin_late();
    party other = party_join(&l.direct, 0, 0);
    EXPECT_STATUS(rlock_trylock(other.lk), RLOCK_BUSY); /* the control */
    proxy_execute(l.ns.px[SLOW]);
    EVENTUALLY(SOON, key_ttl(l.ns.sv[SLOW], SCENE_LOCK) <= BRISK_MS);
    proxy_freeze(l.ns.px[SLOW], true);
    EXPECT_STATUS(rlock_acquire(other.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(!rlock_is_held(l.p.lk));
    events_wait(l.p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    proxy_freeze(l.ns.px[SLOW], false);
    EXPECT_STATUS(rlock_unlock(other.lk), RLOCK_OK);
    party_leave(&other);
    end(&l);
}

/* --- started -------------------------------------------------------------- */

TEST(red_late, an_extend_that_was_started_bounds_it_as_well)
{
    late l = join();
    request r = request_new(l.p.lk);
    rlock_client *home = l.p.cl[0];
    EXPECT_STATUS(loop_acquire(home, &r, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    rlock_owner *former = rlock_owner_set(r.owner);
    hold_extend_back(&l);
    unsigned long long before = renewals(&l);
    EXPECT_STATUS(loop_extend(home, &r, BRISK_MS), RLOCK_EQUORUM);
    EVENTUALLY(SOON, renewals(&l) > before);
    expect_bound(&l);
    proxy_let_go(l.ns.px[SLOW]);
    EVENTUALLY(SOON, rlock_valid_ms(l.p.lk) > BRISK_MS);
    rlock_owner_set(former);
    loop_unlock(home, &r);
    request_free(&r);
    party_end(&l.p, &l.ns);
}

enum { LONG_MS = 60000, SHORT_MS = 30000 };

/* What it has lost is brought, and the connection stays. */
TEST(red_late, a_late_answer_that_asks_for_the_script_gets_it)
{
    late l = {.ns = nodes_proxied(3)};
    l.p = patient_party(&l.ns);
    party_hold(&l.p, LONG_MS);
    server_cmd(l.ns.sv[SLOW], "SCRIPT FLUSH");
    proxy_rule(l.ns.px[SLOW], proxy_sha("extend"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_extend(l.p.lk, SHORT_MS), RLOCK_OK);
    EVENTUALLY(SOON, proxy_fired(l.ns.px[SLOW]));
    unsigned long long before = stats_of(l.p.cl[SLOW]).reconnects;
    EXPECT(key_ttl(l.ns.sv[SLOW], SCENE_LOCK) > SHORT_MS); /* the control */
    proxy_let_go(l.ns.px[SLOW]);
    EVENTUALLY(SOON, key_ttl(l.ns.sv[SLOW], SCENE_LOCK) <= SHORT_MS);
    EXPECT_INT(stats_of(l.p.cl[SLOW]).reconnects, before);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    party_end(&l.p, &l.ns);
}
