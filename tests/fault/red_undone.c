/*
 * Red locks: nothing is left of a try that fails, grants that come late
 * included.
 */
#include "nodes.h"

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

TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_1_node,
          leave_nothing(1, 0, 1))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_2_nodes,
          leave_nothing(2, 0, 2))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_3_nodes,
          leave_nothing(3, 0, 3))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_4_nodes,
          leave_nothing(4, 0, 4))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_5_nodes,
          leave_nothing(5, 0, 5))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_6_nodes,
          leave_nothing(6, 1, 6))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_6_living_nodes,
          leave_nothing(6, 0, 0))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_7_nodes,
          leave_nothing(7, 2, 7))
TEST_CASE(red_undone, fault_040_a_failed_try_leaves_nothing_on_7_living_nodes,
          leave_nothing(7, 0, 0))
TEST_CASE(red_undone,
          fault_040_a_failed_try_leaves_nothing_on_7_nodes_with_one_dead,
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

TEST(red_undone,
     fault_040_each_try_has_a_new_holder_and_is_undone_before_the_next)
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

TEST(red_undone, a_grant_that_comes_late_joins_the_others)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(SOON, party_holding(&l.p) == 3);
    EXPECT_STATUS(rlock_lock(l.p.lk), RLOCK_OK);
    /* Each verb is over with the others. */
    EVENTUALLY(SOON, levels(l.ns.sv[2], SCENE_LOCK) == 2);
    EXPECT_STATUS(rlock_extend(l.p.lk, 2 * LONG_LEASE), RLOCK_OK);
    EVENTUALLY(SOON, key_ttl(l.ns.sv[2], SCENE_LOCK) > LONG_LEASE);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&l.direct);
    late_stop(&l);
}

TEST(red_undone, a_grant_that_comes_late_counts_when_another_node_is_lost)
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

/* Who asks then is the keeper, on the connection that owes the answer. */
TEST(red_undone, a_server_that_says_late_that_it_forgot_a_script_is_asked_again)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    server_cmd(l.ns.sv[2], "SCRIPT FLUSH");
    late_acquire(&l, LONG_LEASE);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(1500, party_holding(&l.p) == 3); /* half a command's time */
    EXPECT_INT(party_events(&l.p, RLOCK_EVENT_RECONNECTED), 0);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    late_stop(&l);
}

TEST(red_undone, a_grant_that_comes_late_is_renewed)
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
TEST(red_undone, a_grant_of_a_watchdog_lease_that_comes_late_is_renewed)
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
TEST(red_undone, a_grant_that_comes_after_a_reentry_has_its_level)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    late_acquire(&l, LONG_LEASE);
    EXPECT_STATUS(rlock_lock(l.p.lk), RLOCK_OK);
    proxy_let_go(l.ns.px[2]);
    EVENTUALLY(SOON, party_holding(&l.p) == 3);
    EXPECT_STATUS(rlock_lock(l.p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(l.p.lk), 3);
    EVENTUALLY(SOON, levels(l.ns.sv[2], SCENE_LOCK) == 3);
    for (int i = 2; i > 0; i--) {
        EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
        EVENTUALLY(SOON, levels(l.ns.sv[2], SCENE_LOCK) == i);
        EXPECT_INT(party_holding(&l.p), 3);
    }
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&l.direct);
    late_stop(&l);
}

TEST(red_undone, a_grant_that_comes_after_the_release_is_undone)
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

TEST(red_undone, an_acquire_that_arrives_after_the_release_takes_nothing)
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

TEST(red_undone, a_late_grant_of_a_released_lock_does_not_join_the_next_hold)
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

TEST(red_undone, a_grant_that_never_comes_is_undone)
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

TEST(red_undone, a_grant_that_comes_after_its_threads_end_joins_nothing)
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

TEST(red_undone, a_client_that_waits_for_a_late_grant_is_freed_in_time)
{
    late l = late_start(0, PROXY_HOLD_REPLY);
    EXPECT_STATUS(rlock_acquire(l.p.lk, 0, LONG_LEASE), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    party_free_client(&l.p, 2);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, LIMIT_MS + FAST_MS);
    EXPECT_STATUS(rlock_unlock(l.p.lk), RLOCK_OK);
    late_stop(&l);
}

/* --- 41: a try that takes too long --------------------------------------- */

TEST(red_undone, fault_041_grants_that_are_slow_on_all_nodes_are_none)
{
    nodes ns = nodes_proxied(3), direct = nodes_direct(&ns);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    for (size_t i = 0; i < 3; i++)
        proxy_rule(ns.px[i], proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 4000), RLOCK_EQUORUM);
    EXPECT_BETWEEN(test_since_ms(began_ms), 150, 200 + 2000);
    EXPECT(!rlock_is_held(p.lk));
    for (size_t i = 0; i < 3; i++)
        proxy_let_go(ns.px[i]);
    nodes_expect_all_undone(&direct);
    party_end(&p, &ns);
}

TEST(red_undone, fault_041_requests_that_arrive_later_take_nothing)
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

TEST(red_undone, fault_041_a_lease_too_short_to_use_is_not_owned)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    expect_undisturbed_party(&p);
    party_connect(&p);
    EXPECT_STATUS(rlock_acquire(p.lk, 0, 2), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "lease");
    EXPECT(!rlock_is_held(p.lk));
    nodes_expect_all_undone(&ns);
    party_end(&p, &ns);
}
