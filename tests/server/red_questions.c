/* Red locks: questions, events, tokens, layouts and scripts. */
#include <unistd.h>

#include "nodes.h"

/* --- events and statistics ----------------------------------------------- */

TEST(red_questions, the_first_client_gets_the_locks_events_and_counts)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock_event ev;
    party_hold(&p, 60000);
    uint64_t token = rlock_token(p.lk);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.count, 1);
    EXPECT(ev.token == token);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_ACQUIRED, &ev));
    EXPECT_INT(ev.count, 2);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_RELEASED, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.count, 0);
    EXPECT(ev.token == token);
    uint64_t acquires = stats_of(p.cl[0]).acquires;
    EXPECT_INT(acquires, party_events(&p, RLOCK_EVENT_ACQUIRED));
    EXPECT_INT(stats_of(p.cl[0]).releases, 2);
    for (size_t i = 1; i < 3; i++) {
        EXPECT_INT(stats_of(p.cl[i]).acquires, 0);
        EXPECT_INT(stats_of(p.cl[i]).releases, 0);
        EXPECT_INT(events_count(p.ev[i], RLOCK_EVENT_ACQUIRED), 0);
        EXPECT_INT(events_count(p.ev[i], RLOCK_EVENT_RELEASED), 0);
    }
    party_end(&p, &ns);
}

TEST(red_questions, contention_is_told_once_for_a_call)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    nodes_take(&ns, 0, 3);
    EXPECT_STATUS(rlock_acquire(p.lk, 700, 60000), RLOCK_TIMEOUT);
    EXPECT_INT(events_count(p.ev[0], RLOCK_EVENT_CONTENDED), 1);
    EXPECT_INT(party_events(&p, RLOCK_EVENT_CONTENDED), 1);
    rlock_stats st = stats_of(p.cl[0]);
    EXPECT_INT(st.acquires_contended, 1);
    EXPECT_INT(st.acquires_failed, 1);
    EXPECT_INT(st.waiting_now, 0);
    EXPECT(st.wait_us_total >= 500000);
    party_end(&p, &ns);
}

/* --- questions ----------------------------------------------------------- */

TEST(red_questions, tells_who_holds_it)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    rlock_holder holder;
    bool locked = false;
    int64_t ttl_ms = 0;
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_holder_info(q.lk, &holder, sizeof holder), RLOCK_OK);
    EXPECT_STR(holder.raw, node_holder(ns.sv[0]));
    EXPECT_INT(holder.pid, getpid());
    EXPECT_INT(holder.count, 2);
    EXPECT_BETWEEN(holder.ttl_ms, 60000 - SOON, 60000);
    EXPECT_STATUS(rlock_is_locked(q.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    EXPECT_STATUS(rlock_ttl(q.lk, &ttl_ms), RLOCK_OK);
    EXPECT_BETWEEN(ttl_ms, 60000 - SOON, 60000);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    EXPECT_STATUS(rlock_holder_info(q.lk, &holder, sizeof holder),
                  RLOCK_NOT_HELD);
    EXPECT_STR(holder.raw, "");
    EXPECT_STATUS(rlock_is_locked(q.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(q.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -2);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red_questions, what_is_on_a_minority_is_not_locked)
{
    nodes ns = nodes_start(4);
    party p = party_join(&ns, 0, 0);
    bool locked = true;
    int64_t ttl_ms = 0;
    nodes_take(&ns, 1, 3);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(!locked);
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -2);
    nodes_take(&ns, 0, 1);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    EXPECT_STATUS(rlock_ttl(p.lk, &ttl_ms), RLOCK_OK);
    EXPECT_INT(ttl_ms, -1);
    party_end(&p, &ns);
}

/* Of the others one has it, and one has not. */
TEST(red_questions, a_slow_node_that_decides_is_waited_for)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    bool locked = false;
    nodes_take(&ns, 0, 2);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    for (size_t i = 0; i < 2; i++) {
        locked = false;
        server_hold_back(ns.sv[i], 400);
        EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
        EXPECT(locked);
    }
    party_end(&p, &ns);
}

/* Nodes have it of a, of b, or fail; the others have nothing. */
static void put_on_nodes(const nodes *ns, size_t a, size_t b, size_t failing)
{
    for (size_t i = 0; i < ns->n; i++) {
        server_cmd(ns->sv[i], "DEL job");
        if (i < a)
            server_cmd(ns->sv[i], "HSET job a 1");
        else if (i < a + b)
            server_cmd(ns->sv[i], "HSET job b 1");
        else if (i < a + b + failing)
            server_cmd(ns->sv[i], "SET job text");
    }
}

/* A node that answers late is one that fails: then it is asked once more. */
static rlock_status told(rlock *lk, rlock_status wanted, rlock_holder *holder)
{
    int64_t began_ms = test_now_ms();
    rlock_status s;
    do
        s = rlock_holder_info(lk, holder, sizeof *holder);
    while (s == RLOCK_EQUORUM && s != wanted && test_since_ms(began_ms) < SOON);
    return s;
}

static void expect_told(const nodes *ns, rlock *lk, size_t a, size_t b,
                        size_t failing)
{
    size_t quorum = ns->n / 2 + 1, none = ns->n - a - b - failing;
    bool held = a >= quorum || b >= quorum;
    bool is_free = !failing || none >= quorum || ns->n - none < quorum;
    rlock_holder holder;
    put_on_nodes(ns, a, b, failing);
    rlock_status wanted = held                       ? RLOCK_OK
                          : failing > ns->n - quorum ? RLOCK_EQUORUM
                          : is_free                  ? RLOCK_NOT_HELD
                                                     : RLOCK_EQUORUM;
    rlock_status s = told(lk, wanted, &holder);
    if (s != wanted)
        FAIL("a has %zu, b %zu, %zu of %zu fail: %s", a, b, failing, ns->n,
             rlock_status_str(s));
    EXPECT_STR(holder.raw, !held ? "" : a >= quorum ? "a" : "b");
}

/* Whoever may have it on those that fail: nobody is told that it is free then. */
static void expect_told_of(size_t n)
{
    nodes ns = nodes_start(n);
    party p = party_join(&ns, 0, 0);
    for (size_t a = 0; a <= n; a++)
        for (size_t b = 0; a + b <= n; b++)
            for (size_t failing = 0; a + b + failing <= n; failing++)
                expect_told(&ns, p.lk, a, b, failing);
    put_on_nodes(&ns, 0, 0, 0);
    party_end(&p, &ns);
}

TEST_CASE(red_questions, of_four_nodes_whatever_they_say_is_told,
          expect_told_of(4))
TEST_CASE(red_questions, of_five_nodes_whatever_they_say_is_told,
          expect_told_of(5))

/* One that answers late is not among them. */
static bool ttl_is_about(rlock *lk, int64_t wanted_ms)
{
    int64_t ttl_ms;
    EXPECT_STATUS(rlock_ttl(lk, &ttl_ms), RLOCK_OK);
    return ttl_ms > wanted_ms - SOON && ttl_ms <= wanted_ms;
}

TEST(red_questions, the_ttl_is_that_of_the_worst_in_the_best_majority)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 200000);
    server_int(ns.sv[0], "PEXPIRE job 50000");
    EVENTUALLY(SOON, ttl_is_about(p.lk, 200000));
    server_int(ns.sv[2], "PEXPIRE job 100000");
    EVENTUALLY(SOON, ttl_is_about(p.lk, 100000));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

TEST(red_questions, force_unlock_frees_every_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_NOT_HELD);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_OK);
    EXPECT_INT(nodes_having(&ns), 0);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    for (size_t i = 0; i < ns.n; i++) { /* one of them is enough */
        nodes_take(&ns, i, i + 1);
        EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_OK);
        EXPECT_INT(nodes_having(&ns), 0);
    }
    EXPECT_STATUS(rlock_force_unlock(q.lk), RLOCK_NOT_HELD);
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

/* --- tokens -------------------------------------------------------------- */

static uint64_t stored_token(server *sv)
{
    return strtoull(server_str(sv, "GET rlock_token:{job}"), NULL, 10);
}

/* A majority has it written down, so that no later hold can get less. */
static size_t nodes_with_token(const nodes *ns, uint64_t token)
{
    size_t n = 0;
    for (size_t i = 0; i < ns->n; i++)
        n += stored_token(ns->sv[i]) >= token;
    return n;
}

static uint64_t token_of_a_hold(const nodes *ns, party *p)
{
    EXPECT_STATUS(rlock_acquire(p->lk, SOON, 60000), RLOCK_OK);
    uint64_t token = rlock_token(p->lk);
    EXPECT(token > 0);
    EXPECT(nodes_with_token(ns, token) >= ns->n / 2 + 1);
    EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    return token;
}

TEST(red_questions, tokens_grow_from_hold_to_hold_and_are_on_a_majority)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    uint64_t last = 0;
    for (int i = 0; i < 20; i++) {
        uint64_t token = token_of_a_hold(&ns, i % 2 ? &p : &q);
        EXPECT(token > last);
        last = token;
    }
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red_questions, tokens_grow_over_majorities_that_share_one_node)
{
    nodes ns = nodes_start(5);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    uint64_t far = UINT64_C(3000000000000000), last = far;
    server_cmd(ns.sv[0], "SET rlock_token:{job} %llu", (unsigned long long)far);
    for (int i = 0; i < 6; i++) {
        bool low = i % 2 == 0; /* nodes 1 to 3, then 3 to 5 */
        size_t from = low ? 3 : 0, to = low ? 5 : 2;
        nodes_take(&ns, from, to);
        uint64_t token = token_of_a_hold(&ns, low ? &p : &q);
        EXPECT(token > last);
        last = token;
        nodes_give_back(&ns, from, to);
    }
    party_leave(&p);
    party_leave(&q);
    nodes_stop(&ns);
}

TEST(red_questions, a_token_far_ahead_on_one_node_is_passed_on)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    uint64_t far = UINT64_C(8000000000000000);
    server_cmd(ns.sv[1], "SET rlock_token:{job} %llu", (unsigned long long)far);
    party_hold(&p, 60000);
    bool counted = rlock_token(p.lk) > far;
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    /* Node 2 need not be in the first majority, but is in this one. */
    nodes_take(&ns, 0, 1);
    uint64_t token = token_of_a_hold(&ns, &p);
    EXPECT(token > far + counted);
    EXPECT(stored_token(ns.sv[2]) >= token);
    party_end(&p, &ns);
}

TEST(red_questions, a_token_far_ahead_on_all_nodes_is_passed)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    uint64_t far = UINT64_C(8000000000000000);
    for (size_t i = 0; i < 3; i++)
        server_cmd(ns.sv[i], "SET rlock_token:{job} %llu",
                   (unsigned long long)far);
    uint64_t first = token_of_a_hold(&ns, &p);
    EXPECT(first > far);
    EXPECT(token_of_a_hold(&ns, &p) > first);
    party_end(&p, &ns);
}

/* --- layouts and scripts ------------------------------------------------- */

static const rlock_red_options as_string = {.size = sizeof as_string,
                                            .layout = RLOCK_LAYOUT_STRING};

TEST(red_questions, a_string_is_shared_with_other_programs)
{
    nodes ns = nodes_start(3);
    party p = party_join_with(&ns, 0, 0, &as_string);
    for (size_t i = 0; i < 2; i++)
        EXPECT_STR(server_str(ns.sv[i], "SET job abc NX PX 60000"), "OK");
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(p.lk, 100, 60000), RLOCK_TIMEOUT);
    EVENTUALLY(SOON, !node_has(ns.sv[2]));
    EXPECT_STR(server_str(ns.sv[0], "GET job"), "abc");
    EXPECT_INT(server_int(ns.sv[0], "DEL job"), 1);
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STR(server_str(ns.sv[0], "SET job xyz NX PX 60000"), "");
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STR(server_str(ns.sv[1], "GET job"), "abc");
    party_end(&p, &ns);
}

TEST(red_questions, a_string_is_reentrant_renewed_and_released)
{
    nodes ns = nodes_start(3);
    party p = party_join_with(&ns, 1500, 0, &as_string);
    party_hold_renewed(&p);
    char holder[512];
    snprintf(holder, sizeof holder, "%s", server_str(ns.sv[0], "GET job"));
    EXPECT(strchr(holder, ':'));
    EXPECT_STR(server_str(ns.sv[1], "GET job"), holder);
    EXPECT_STR(server_str(ns.sv[2], "GET job"), holder);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EXPECT_INT(rlock_hold_count(p.lk), 2);
    events_wait(p.ev[2], RLOCK_EVENT_RENEWED, 2, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(nodes_having(&ns), 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_nothing_left(&ns);
    party_end(&p, &ns);
}

TEST(red_questions, a_string_that_was_overwritten_on_a_majority_is_lost)
{
    nodes ns = nodes_start(3);
    party p = party_join_with(&ns, 1500, 0, &as_string);
    party_hold_renewed(&p);
    server_cmd(ns.sv[0], "SET job abc");
    server_cmd(ns.sv[2], "SET job abc");
    events_wait(p.ev[0], RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT_STR(server_str(ns.sv[0], "GET job"), "abc");
    EXPECT_STR(server_str(ns.sv[2], "GET job"), "abc");
    EVENTUALLY(SOON, !node_has(ns.sv[1]));
    party_end(&p, &ns);
}

TEST(red_questions, a_key_of_another_type_on_a_minority_is_a_failed_node)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    server_cmd(ns.sv[1], "SET job text");
    EXPECT_STATUS(rlock_acquire(p.lk, SOON, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    server_cmd(ns.sv[0], "LPUSH job x");
    EXPECT_STATUS(rlock_trylock(p.lk), RLOCK_EQUORUM);
    EXPECT_CONTAINS(rlock_last_error()->message, "WRONGTYPE");
    EXPECT_STR(server_str(ns.sv[1], "GET job"), "text");
    EVENTUALLY(SOON, !node_has(ns.sv[2]));
    party_end(&p, &ns);
}

static void forget_scripts(const nodes *ns)
{
    for (size_t i = 0; i < ns->n; i++)
        EXPECT_STR(server_str(ns->sv[i], "SCRIPT FLUSH"), "OK");
}

TEST(red_questions, servers_that_lack_the_scripts_get_them)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    bool locked = false;
    forget_scripts(&ns);
    party_hold(&p, 60000);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_extend(p.lk, 60000), RLOCK_OK);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_is_locked(p.lk, &locked), RLOCK_OK);
    EXPECT(locked);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    nodes_expect_all_undone(&ns);
    forget_scripts(&ns);
    EXPECT_STATUS(rlock_force_unlock(p.lk), RLOCK_NOT_HELD);
    party_end(&p, &ns);
}
