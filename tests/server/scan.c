/*
 * Which locks there are: what rlock_scan() tells of a server's, of a cluster's
 * masters', of the master that Sentinels name, and of each node's.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_scene.h"
#include "layouts.h"
#include "nodes.h"
#include "scanned.h"
#include "sentinels.h"
#include "wire/keys.h"

#define UUID "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"

/* --- what is told --------------------------------------------------------- */

static void expect_told(rlock_layout layout, bool names_thread)
{
    scene s = scene_of(layout, 0);
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 0);
    lock_times(s.lk, 2);
    scan_told t = scan_only(s.cl, NULL, 0);
    EXPECT_STR(t.name, SCENE_LOCK);
    EXPECT_INT(t.l.kind, RLOCK_KIND_LOCK);
    EXPECT_INT(t.l.layout, layout);
    EXPECT(t.l.holders && !t.l.foreign && t.l.waiting == 0);
    EXPECT(t.l.token == rlock_token(s.lk));
    EXPECT_BETWEEN(t.l.ttl_ms, 15000, 32000);
    EXPECT_INT(t.h.ttl_ms, t.l.ttl_ms);
    EXPECT_BETWEEN(t.l.held_ms, 0, SLACK_MS);
    EXPECT_INT(t.h.pid, names_thread ? getpid() : 0);
    EXPECT_INT(t.h.count, layout == RLOCK_LAYOUT_HASH ? 2 : 1);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, t.h.raw), RLOCK_OK);
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 0);
    t = scan_only(s.cl, NULL, RLOCK_SCAN_IDLE);
    EXPECT(!t.l.holders && t.l.ttl_ms == -2 && t.l.held_ms == -1);
    EXPECT(t.l.token > 0);
    unlock_times(s.lk, 2, RLOCK_LOST);
    scene_stop(&s);
}

TEST_CASE(scan, a_hash_is_told_with_its_holder,
          expect_told(RLOCK_LAYOUT_HASH, true))
TEST_CASE(scan, a_string_is, expect_told(RLOCK_LAYOUT_STRING, true))
TEST_CASE(scan, a_timestamp_is_and_its_holder_has_no_name,
          expect_told(RLOCK_LAYOUT_TIMESTAMP, false))

TEST(scan, who_waits_is_counted)
{
    scene s = scene_held(0, 0);
    other_client a = other_client_join(&s, NULL);
    other_client b = other_client_join(&s, NULL);
    other_client_wait(&s, &a, 1, RLOCK_FOREVER);
    other_client_wait(&s, &b, 2, RLOCK_FOREVER);
    EXPECT_INT(scan_only(s.cl, NULL, 0).l.waiting, 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(a.w), RLOCK_OK);
    EXPECT_STATUS(waiter_end(b.w), RLOCK_OK);
    a.w = b.w = NULL;
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 0);
    other_client_leave(&a);
    other_client_leave(&b);
    scene_stop(&s);
}

TEST(scan, one_that_is_free_and_waited_for_is_told)
{
    scene s = scene_start(0, 0);
    server_int(s.sv, "ZADD rlock_queue:{job} 1000 rlock_bell:somebody");
    scan_told t = scan_only(s.cl, NULL, 0);
    EXPECT_STR(t.name, SCENE_LOCK);
    EXPECT(!t.l.holders && t.l.waiting == 1 && t.l.ttl_ms == -2);
    scene_stop(&s);
}

TEST(scan, another_programs_lock_that_is_waited_for_is_foreign)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    others_take(s.sv, RLOCK_LAYOUT_STRING, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    scan_told t = scan_only(s.cl, NULL, 0);
    EXPECT(t.l.foreign && t.l.layout == RLOCK_LAYOUT_STRING);
    EXPECT(t.l.token == 0 && t.l.held_ms == -1 && t.l.waiting == 1);
    EXPECT_STR(t.h.raw, value_of(s.sv).is);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

/* A count is no holder; nor is it one for RLOCK_SCAN_ALL. */
TEST(scan, a_latch_that_is_waited_for_is_no_lock)
{
    scene s = scene_start(0, 0);
    rlock_latch *l;
    EXPECT_STATUS(rlock_latch_new(s.cl, "gate", &l), RLOCK_OK);
    EXPECT_STATUS(rlock_latch_set(l, 3, 0), RLOCK_OK);
    server_int(s.sv, "ZADD rlock_queue:{gate} 1000 rlock_bell:somebody");
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 0);
    EXPECT_INT(scan_look(s.cl, NULL, RLOCK_SCAN_ALL | RLOCK_SCAN_IDLE).n, 0);
    rlock_latch_free(l);
    scene_stop(&s);
}

/* --- names ---------------------------------------------------------------- */

static void lock_named(scene *s, const char *name, size_t len, rlock **out)
{
    EXPECT_STATUS(rlock_new_n(s->cl, name, len, out), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(*out), RLOCK_OK);
}

TEST(scan, names_are_told_as_they_are)
{
    static const char *const names[] = {"b\0c", "{x}", "{a}{}", "{}",
                                        "a}",   "a{b", "\xff\n"};
    static const size_t len[] = {3, 3, 5, 2, 2, 3, 2};
    enum { NAMES = sizeof names / sizeof *names };
    rlock *lk[NAMES];
    scene s = scene_start(0, 0);
    for (size_t i = 0; i < NAMES; i++)
        lock_named(&s, names[i], len[i], &lk[i]);
    scan_seen all = scan_look(s.cl, NULL, 0);
    EXPECT_INT(all.n, NAMES);
    for (size_t i = 0; i < NAMES; i++) {
        size_t found = 0;
        for (size_t k = 0; k < all.n; k++)
            found += all.of[k].l.name_len == len[i] &&
                     memcmp(all.of[k].name, names[i], len[i]) == 0;
        EXPECT_INT(found, 1);
    }
    for (size_t i = 0; i < NAMES; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    scene_stop(&s);
}

TEST(scan, a_pattern_says_which_names)
{
    static const char *const names[] = {"jobs:1", "jobs:2", "{jobs:3}", "x"};
    rlock *lk[4];
    scene s = scene_start(0, 0);
    for (size_t i = 0; i < 4; i++)
        lock_named(&s, names[i], strlen(names[i]), &lk[i]);
    EXPECT_INT(scan_look(s.cl, "jobs:*", 0).n, 2);
    EXPECT_INT(scan_look(s.cl, "jobs:*", RLOCK_SCAN_ALL).n, 2);
    EXPECT_INT(scan_look(s.cl, "jobs:[2-9]", 0).n, 1);
    EXPECT_INT(scan_look(s.cl, "{*}", 0).n, 1);
    EXPECT_INT(scan_look(s.cl, "nothing", RLOCK_SCAN_ALL).n, 0);
    EXPECT_INT(scan_look(s.cl, "*", 0).n, 4);
    for (size_t i = 0; i < 4; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    scene_stop(&s);
}

/* How many locks are asked about, of these that match. */
static long long asked(scene *s, const char *glob)
{
    long long before = script_calls(s->sv);
    scan_look(s->cl, glob, 0);
    return script_calls(s->sv) - before;
}

/* "{jobs:1}" shares a side key with "jobs:1", which tells of both. */
TEST(scan, only_names_that_match_are_asked_about)
{
    static const char *const names[] = {"jobs:1", "jobs:2", "x"};
    rlock *lk[3];
    scene s = scene_start(0, 0);
    for (size_t i = 0; i < 3; i++)
        lock_named(&s, names[i], strlen(names[i]), &lk[i]);
    EXPECT_INT(asked(&s, NULL), 3);
    EXPECT_INT(asked(&s, "*"), 3);
    EXPECT_INT(asked(&s, "jobs:*"), 2);
    EXPECT_INT(asked(&s, "{jobs:1}"), 1);
    EXPECT_INT(asked(&s, "nothing"), 0);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    scene_stop(&s);
}

/* --- by type -------------------------------------------------------------- */

TEST(scan, all_finds_what_no_side_key_tells_of)
{
    scene s = scene_held(0, 0);
    server_int(s.sv, "DEL rlock_token:{job}"); /* it is held for long */
    server_int(s.sv, "HSET java " UUID ":117 2");
    server_cmd(s.sv, "SET text w:1:2:" UUID); /* its first letter counts */
    server_cmd(s.sv, "SET stamp %s.0134756109728850",
               server_str(s.sv, "EVAL %s 0",
                          "return tostring(redis.call('TIME')[1] + 60)"));
    /* Others' strings are as any data. */
    server_cmd(s.sv, "SET their-stamp 4102444800");
    server_cmd(s.sv, "SET their-text 2fb0b2eeadd711f18b3f02fc00000001");
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 0);
    scan_seen all = scan_look(s.cl, NULL, RLOCK_SCAN_ALL);
    EXPECT_INT(all.n, 4);
    EXPECT_STR(all.of[0].name, "java");
    EXPECT(all.of[0].l.foreign && all.of[0].h.count == 2);
    EXPECT_STR(all.of[1].name, SCENE_LOCK);
    EXPECT(!all.of[1].l.foreign && all.of[1].l.held_ms == -1);
    EXPECT_STR(all.of[2].name, "stamp");
    EXPECT_INT(all.of[2].l.layout, RLOCK_LAYOUT_TIMESTAMP);
    EXPECT_STR(all.of[3].name, "text");
    EXPECT_INT(all.of[3].l.layout, RLOCK_LAYOUT_STRING);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(scan, somebodys_data_is_no_lock)
{
    scene s = scene_start(0, 0);
    server_int(
        s.sv, "EVAL %s 0",
        "redis.call('HSET', 'wide', ('f'):rep(100000), 1) for i = 1, 600 do "
        "redis.call('SET', 'n' .. i, i) "
        "redis.call('HSET', 'h' .. i, 'name', i) "
        "redis.call('HSET', 'g' .. i, 'a', 1, 'b', 2) "
        "redis.call('RPUSH', 'l' .. i, i) end "
        "redis.call('SET', 'long', ('x'):rep(100000)) "
        "redis.call('SET', 'text', 'x') "
        "redis.call('SET', 'rlock_token:{text}', '5') "
        "redis.call('SET', 'rlock_token:{n1}', '5') "
        "redis.call('SADD', 'rlock_queue:{set}', 'x') "
        "redis.call('SET', 'rlock_token:{l1}', '5') return 1");
    EXPECT_INT(scan_look(s.cl, NULL, RLOCK_SCAN_ALL | RLOCK_SCAN_IDLE).n, 1);
    /* A token tells of a string that may be anything. */
    scan_told t = scan_only(s.cl, NULL, 0);
    EXPECT_STR(t.name, "text");
    scene_stop(&s);
}

TEST(scan, among_thousands_of_other_keys_all_are_found)
{
    scene s = scene_start(0, 0);
    server_int(s.sv, "EVAL %s 0",
               "for i = 1, 20000 do redis.call('SET', 'key:' .. i, i) end "
               "local t = redis.call('TIME') "
               "for i = 1, 250 do "
               "redis.call('HSET', 'a' .. i, 'web3:1:2:" UUID "', 1) "
               "redis.call('SET', 'rlock_token:{a' .. i .. '}', "
               "t[1] .. '000000') end return 1");
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 250);
    EXPECT_INT(scan_look(s.cl, NULL, RLOCK_SCAN_ALL).n, 250);
    EXPECT_INT(scan_look(s.cl, "a24?", RLOCK_SCAN_ALL).n, 10);
    scene_stop(&s);
}

/* --- the callback --------------------------------------------------------- */

TEST(scan, a_callback_that_has_enough_gets_no_more)
{
    scene s = scene_start(0, 0);
    scan_seen all = {.most = 2};
    for (int i = 0; i < 5; i++)
        server_int(s.sv, "ZADD rlock_queue:{n%d} 1 bell", i);
    EXPECT_STATUS(rlock_scan(s.cl, NULL, 0, scan_copy, &all), RLOCK_OK);
    EXPECT_INT(all.n, 2);
    scene_stop(&s);
}

static bool free_it(const rlock_lock_info *l, void *arg)
{
    scene *s = arg;
    rlock *lk;
    EXPECT_STATUS(rlock_new_n(s->cl, l->name, l->name_len, &lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock_hold(lk, l->holders->raw), RLOCK_OK);
    rlock_free(lk);
    scene_free_client(s);
    return true;
}

TEST(scan, a_callback_may_call_the_library)
{
    scene s = scene_held(0, 0);
    EXPECT_STATUS(rlock_scan(s.cl, NULL, 0, free_it, &s), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

/* --- several servers ------------------------------------------------------ */

TEST(scan, all_masters_of_a_cluster_are_gone_through)
{
    cluster_scene l;
    rlock *lk[3];
    cluster_scene_start(&l, 0);
    for (int i = 0; i < 3; i++) {
        lk[i] = cluster_scene_lock(&l, cluster_name_on(l.c, i, "job"));
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
        cluster_int(l.c, i, "HSET %s " UUID ":117 1",
                    cluster_name_on(l.c, i, "java"));
    }
    EXPECT_INT(scan_look(l.cl, NULL, 0).n, 3);
    EXPECT_INT(scan_look(l.cl, "job*", RLOCK_SCAN_ALL).n, 3);
    EXPECT_INT(scan_look(l.cl, NULL, RLOCK_SCAN_ALL).n, 6);
    for (int i = 0; i < 3; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    cluster_scene_stop(&l);
}

/* Keys of its lock would lie in several slots: it is none of ours. */
TEST(scan, a_name_that_fits_no_slot_is_passed_over)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    int i = cluster_owner(l.c, "{}java");
    cluster_int(l.c, i, "HSET {}java " UUID ":117 1");
    EXPECT_INT(scan_look(l.cl, NULL, RLOCK_SCAN_ALL).n, 0);
    cluster_scene_stop(&l);
}

/* Some of its keys are not there: the server refuses to look at the others. */
TEST(scan, a_lock_whose_slot_is_moving_is_passed_over)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *moving = cluster_name_on(l.c, 0, "moving");
    cluster_int(l.c, 0, "HSET %s " UUID ":117 1", moving);
    cluster_int(l.c, 1, "HSET %s " UUID ":117 1",
                cluster_name_on(l.c, 1, "java"));
    cluster_cmd(l.c, 0, "CLUSTER SETSLOT %u MIGRATING %s", cluster_slot(moving),
                cluster_id(l.c, 1));
    EXPECT_INT(scan_look(l.cl, NULL, RLOCK_SCAN_ALL).n, 1);
    cluster_scene_stop(&l);
}

TEST(scan, a_right_that_one_master_refuses_is_named_and_nothing_is_told)
{
    cluster_scene l;
    scan_seen all = {0};
    cluster_scene_start(&l, 0);
    for (int i = 0; i < 3; i++)
        cluster_int(l.c, i, "ZADD rlock_queue:{%s} 1000 bell",
                    cluster_name_on(l.c, i, "a"));
    EXPECT_INT(scan_look(l.cl, NULL, 0).n, 3);
    cluster_cmd(l.c, 1, "ACL SETUSER default -zcard");
    EXPECT_STATUS(rlock_scan(l.cl, NULL, 0, scan_copy, &all), RLOCK_ESERVER);
    char place[40];
    snprintf(place, sizeof place, "redis://127.0.0.1:%d", cluster_port(l.c, 1));
    EXPECT_CONTAINS(rlock_last_error()->message, place);
    EXPECT_INT(all.n, 0);
    cluster_scene_stop(&l);
}

TEST(scan, the_master_that_sentinels_name_is_asked_also_after_a_failover)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *n = sentinels_start(master, 3);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = sentinels_uri(n);
    scene s = scene_with(master, &o);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 1);
    EVENTUALLY(SOON, replica_follows(master));
    EXPECT(sentinels_fail_over(n, replica, ELECTED_SOON));
    EVENTUALLY(SOON, stats_of(s.cl).failovers == 1);
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 1);
    server_int(replica, "HSET elsewhere " UUID ":117 1");
    EXPECT_INT(scan_look(s.cl, NULL, RLOCK_SCAN_ALL).n, 2);
    scene_leave(&s);
    sentinels_stop(n);
    server_stop(replica);
    server_stop(master);
}

TEST(scan, of_a_red_lock_each_node_tells_its_share)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    for (size_t i = 0; i < 3; i++) {
        scan_told t = scan_only(p.cl[i], NULL, 0);
        EXPECT_STR(t.h.raw, node_holder(ns.sv[i]));
    }
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

/* --- what goes wrong ------------------------------------------------------ */

static bool never(const rlock_lock_info *l, void *arg)
{
    (void)arg;
    FAIL("there is a lock %s", l->name);
    return true;
}

TEST(scan, bad_arguments_are_refused)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_scan(NULL, NULL, 0, never, NULL), RLOCK_EINVAL);
    EXPECT_STR(rlock_last_error()->message, "the client is NULL");
    EXPECT_INT(rlock_last_error()->sys_errno, 0);
    EXPECT_STATUS(rlock_scan(s.cl, NULL, 0, NULL, NULL), RLOCK_EINVAL);
    EXPECT_STR(rlock_last_error()->message, "the callback is NULL");
    EXPECT_INT(rlock_last_error()->sys_errno, 0);
    EXPECT_STATUS(rlock_scan(s.cl, NULL, 5, never, NULL), RLOCK_EINVAL);
    EXPECT_STR(rlock_last_error()->message, "no such flag: 0x5");
    EXPECT_INT(rlock_last_error()->sys_errno, 0);
    scene_stop(&s);
}

TEST(scan, a_forked_child_asks_nobody)
{
    scene s = scene_start(0, 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        EXPECT_STATUS(rlock_scan(s.cl, NULL, 0, never, NULL), RLOCK_EFORKED);
        _exit(0);
    }
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(status, 0);
    scene_stop(&s);
}

TEST(scan, a_server_that_is_gone_is_named)
{
    scene s = scene_start(0, 0);
    server_kill(s.sv);
    EXPECT_STATUS(rlock_scan(s.cl, NULL, 0, never, NULL), RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, server_uri(s.sv));
    scene_stop(&s);
}

static void expect_right_needed(const char *right, const char *named,
                                unsigned flags)
{
    scan_seen all = {0};
    scene s = scene_held(0, 0);
    server_cmd(s.sv, "SET text web3:1:2:" UUID);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default -%s", right), "OK");
    EXPECT_STATUS(rlock_scan(s.cl, NULL, flags, scan_copy, &all),
                  RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, named);
    EXPECT_INT(all.n, 0);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default +%s", right), "OK");
    EXPECT_STATUS(rlock_scan(s.cl, NULL, flags, scan_copy, &all), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST_CASE(scan, the_right_to_scan_is_needed,
          expect_right_needed("scan", "scan", 0))
TEST_CASE(scan, the_right_to_zcard_is_needed,
          expect_right_needed("zcard", "ZCARD", 0))
TEST_CASE(scan, the_right_to_get_is_needed,
          expect_right_needed("get", "GET", 0))
TEST_CASE(scan, for_all_the_right_to_getrange_is_needed,
          expect_right_needed("getrange", "getrange", RLOCK_SCAN_ALL))
TEST_CASE(scan, for_all_the_right_to_hrandfield_is_needed,
          expect_right_needed("hrandfield", "hrandfield", RLOCK_SCAN_ALL))

/* "{job}" is only guessed, and not among the names that he has. */
TEST(scan, a_name_that_is_guessed_needs_no_right)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER op on >word allchannels +@all "
                                "~job ~rlock_*"),
               "OK");
    rlock_options o = RLOCK_OPTIONS_INIT;
    char uri[300];
    snprintf(uri, sizeof uri, "unix://op:word@%s", server_path(s.sv));
    o.uri = uri;
    rlock_client *op = server_client(s.sv, &o);
    EXPECT_STR(scan_only(op, NULL, RLOCK_SCAN_IDLE).name, SCENE_LOCK);
    server_int(s.sv, "ZADD rlock_queue:{other} 1000 bell");
    EXPECT_STATUS(rlock_scan(op, NULL, 0, never, NULL), RLOCK_ESERVER);
    EXPECT_INT(scan_look(op, "job", 0).n, 0); /* he asks for his own */
    rlock_client_free(op);
    scene_stop(&s);
}

static intptr_t scan_once(void *arg)
{
    return rlock_scan(arg, NULL, 0, never, NULL);
}

static intptr_t free_client(void *arg)
{
    rlock_client_free(arg);
    return 0;
}

/* It is stopped at the next step. */
TEST(scan, a_client_that_is_freed_meanwhile_stops_it)
{
    scene s = scene_proxied(0, 0);
    server_int(s.sv, "EVAL %s 0",
               "for i = 1, 5000 do redis.call('SET', 'key:' .. i, i) end "
               "return 1");
    proxy_rule(s.px, "SCAN", 1, PROXY_HOLD_REPLY, NULL);
    test_thread *scans = test_spawn(scan_once, s.cl);
    EVENTUALLY(SOON, proxy_fired(s.px));
    test_thread *frees = test_spawn(free_client, s.cl);
    EVENTUALLY(SOON, rlock_unlock(s.lk) == RLOCK_ECLOSED);
    proxy_let_go(s.px);
    EXPECT_INT(test_join(scans), RLOCK_ECLOSED);
    test_join(frees);
    EXPECT_BETWEEN(proxy_count(s.px, "SCAN"), 1, 2);
    s.cl = NULL;
    scene_stop(&s);
}
