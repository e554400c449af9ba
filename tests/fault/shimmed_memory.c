/*
 * Faults of the catalogue: no memory is left. Each test is run without its
 * fault first, or shows that the same goes well before or after it.
 */
#include <errno.h>
#include <rlock/metrics.h>
#include <rlock/scan.h>
#include <rlock/servers.h>
#include <rlock/waits.h>

#include "other_client.h"
#include "shim.h"

#define MANY 200

/* Without events: what records them allocates, too. */
static scene silent_scene(int64_t lease_ms, bool proxied)
{
    scene s = scene_server(NULL);
    s.opts.watchdog_lease_ms = lease_ms;
    s.opts.metrics_names = 10; /* which need memory to be told */
    if (proxied) {
        s.px = proxy_start(s.sv);
        s.opts.uri = proxy_uri(s.px);
    }
    s.cl = server_client(s.sv, &s.opts);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    return s;
}

/* Until nothing fails; then the thread has the lock. */
static void lock_with_failing_allocations(rlock *lk)
{
    for (long k = 1;; k++) {
        shim_fail(shim_here(), SHIM_ALLOC, k, k, ENOMEM);
        rlock_status s = rlock_trylock(lk);
        shim_clear(shim_here());
        if (s == RLOCK_OK)
            return;
        EXPECT_INT(s, RLOCK_ENOMEM);
        EXPECT(!rlock_is_held(lk));
    }
}

static void use_many(bool failing)
{
    scene s = silent_scene(0, false);
    rlock *lk[MANY];
    for (int i = 0; i < MANY; i++) {
        char name[16];
        snprintf(name, sizeof name, "job-%d", i);
        lk[i] = test_lock(s.cl, name);
        if (failing)
            lock_with_failing_allocations(lk[i]);
        else
            EXPECT_STATUS(rlock_trylock(lk[i]), RLOCK_OK);
    }
    for (int i = 0; i < MANY; i++) {
        EXPECT_INT(rlock_hold_count(lk[i]), 1);
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(shimmed_memory, fault_092_tables_that_cannot_grow_lose_nothing)
{
    use_many(false); /* the control */
    use_many(true);
}

TEST(shimmed_memory, fault_092_without_memory_renewals_are_tried_again)
{
    scene s = silent_scene(1500, false);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1); /* the control */
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    shim_spare_me(true);
    shim_fail(shim_everywhere(), SHIM_SEND, 1, 1, ECONNRESET);
    shim_fail(shim_everywhere(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    EVENTUALLY(10000, stats_of(s.cl).renew_failures >= 2);
    shim_clear(shim_everywhere());
    expect_renewals(&s, 1);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Skips the test where the parser's allocations always succeed. */
static void need_hiredis_to_fail(void)
{
#ifdef SHIM_SPARES_HIREDIS
    SKIP("hiredis is a shared library here");
#endif
}

typedef enum ending { GRANTED, NOT_ASKED, NOT_UNDERSTOOD } ending;

/*
 * All allocations of a client's first acquire fail from the kth on, so that the
 * server is not asked any more, or only its answer finds no memory.
 */
static ending acquire_without_memory(server *sv, long k)
{
    rlock_client *cl = server_client(sv, NULL);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    long long calls = script_calls(sv);
    shim_fail(shim_here(), SHIM_ALLOC, k, SHIM_EVER, ENOMEM);
    rlock_status s = rlock_trylock(lk);
    shim_clear(shim_here());
    bool asked = script_calls(sv) > calls;
    if (s == RLOCK_OK)
        EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    else
        EXPECT_INT(s, RLOCK_ENOMEM);
    EVENTUALLY(10000, levels(sv, SCENE_LOCK) == 0);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    if (s == RLOCK_OK)
        return GRANTED;
    return asked ? NOT_UNDERSTOOD : NOT_ASKED;
}

TEST(shimmed_memory, fault_092_a_grant_that_finds_no_memory_is_undone)
{
    need_hiredis_to_fail();
    scene s = scene_server(NULL);
    int not_understood = 0;
    ending how = NOT_ASKED;
    for (long k = 1; how != GRANTED; k++) {
        how = acquire_without_memory(s.sv, k);
        not_understood += how == NOT_UNDERSTOOD;
    }
    EXPECT(not_understood > 0);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

/* hiredis gives a big buffer back, and takes it that it gets a small one. */
TEST(shimmed_memory, fault_092_after_a_long_reply_no_memory_is_only_an_error)
{
    need_hiredis_to_fail();
    static char pong[40000];
    scene s = scene_proxied(0, 0);
    memset(pong, 'x', sizeof pong - 1);
    memcpy(pong, "-ERR ", 5);
    memcpy(pong + sizeof pong - 3, "\r\n", 2);
    for (int i = 0; i < 2; i++) { /* connects; then it is the control */
        EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
        proxy_rule(s.px, "PING", 1, PROXY_ANSWER, pong);
        EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_ESERVER);
    }
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    rlock_status status = rlock_client_ping(s.cl);
    shim_clear(shim_here());
    EXPECT(status == RLOCK_OK || status == RLOCK_ENOMEM);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    scene_stop(&s);
}

/* Asked for again without the one that is busy, it cannot even begin. */
TEST(shimmed_memory, fault_092_a_multi_lock_without_memory_is_given_up)
{
    scene s = silent_scene(0, false);
    rlock *both, *of[] = {test_lock(s.cl, "a"), test_lock(s.cl, "b")};
    EXPECT_STATUS(rlock_multi_new(of, 2, &both), RLOCK_OK);
    take_by_hand(s.sv, "b", 60000);
    EXPECT_STATUS(rlock_acquire(both, 20, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    for (long k = 1; k <= 60; k++) {
        shim_fail(shim_here(), SHIM_ALLOC, k, SHIM_EVER, ENOMEM);
        rlock_status status = rlock_acquire(both, 20, RLOCK_WATCHDOG);
        shim_clear(shim_here());
        EXPECT(status == RLOCK_ENOMEM || status == RLOCK_TIMEOUT);
    }
    EXPECT_INT(rlock_hold_count(of[0]), 0);
    rlock_free(both);
    rlock_free(of[0]);
    rlock_free(of[1]);
    scene_stop(&s);
}

/* --- what is there -------------------------------------------------------- */

static bool see_lock(const rlock_lock_info *l, void *arg)
{
    *(int *)arg += l->n_holders == 1;
    return true;
}

static rlock_status ask_locks(rlock_client *cl, int *seen)
{
    return rlock_scan(cl, NULL, RLOCK_SCAN_ALL, see_lock, seen);
}

static bool see_server(const rlock_server_info *x, void *arg)
{
    *(int *)arg += x->status == RLOCK_OK;
    return true;
}

static rlock_status ask_servers(rlock_client *cl, int *seen)
{
    return rlock_servers(cl, see_server, seen);
}

static void see_wait(const rlock_wait *w, void *arg)
{
    *(int *)arg += w->n_holders == 1;
}

static rlock_status ask_waits(rlock_client *cl, int *seen)
{
    return rlock_waits_for(cl, see_wait, seen);
}

static void see_figure(const rlock_metric *m, void *arg)
{
    *(int *)arg += *m->name != '\0';
}

static rlock_status ask_figures(rlock_client *cl, int *seen)
{
    return rlock_metrics_each(cl, see_figure, seen);
}

static bool see_text(const char *bytes, size_t len, void *arg)
{
    (void)bytes, (void)len;
    *(int *)arg = 1;
    return true;
}

static rlock_status ask_text(rlock_client *cl, int *seen)
{
    return rlock_metrics_write(&cl, 1, RLOCK_METRICS_TEXT, see_text, seen);
}

/* Behind the server, if one is to be named. */
static void expect_said_last(const char *what)
{
    const char *said = rlock_last_error()->message;
    EXPECT_CONTAINS(said, what);
    EXPECT_STR(said + strlen(said) - strlen(what), what);
}

/* Of another program: so many that questions about them need more room. */
static void take_many(server *sv)
{
    for (int i = 0; i < 60; i++)
        server_cmd(sv, "HSET java-%0200d %s:117 1", i,
                   "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52");
}

/* The kth allocation fails, for each k, until nothing does. */
static void expect_no_memory(rlock_status (*ask)(rlock_client *cl, int *seen))
{
    scene s = silent_scene(0, false);
    other_client other = other_client_join(&s, NULL);
    bool failed = true;
    int all = 0;
    take_many(s.sv);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK);
    waiter *w = waiter_start(other.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(ask(s.cl, &all), RLOCK_OK);
    EXPECT(all > 0);
    for (long k = 1; failed; k++) {
        int seen = 0;
        shim_fail(shim_here(), SHIM_ALLOC, k, k, ENOMEM);
        rlock_status got = ask(s.cl, &seen);
        failed = shim_failed(shim_here(), SHIM_ALLOC) > 0;
        shim_clear(shim_here());
        if (got == RLOCK_OK) {
            EXPECT_INT(seen, all);
            continue;
        }
        EXPECT(failed && seen == 0);
        EXPECT_INT(got, RLOCK_ENOMEM);
        EXPECT_INT(rlock_last_error()->sys_errno, 0);
        expect_said_last("out of memory");
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    other_client_leave(&other);
    scene_stop(&s);
}

TEST_CASE(shimmed_memory, locks_are_not_told_without_memory,
          expect_no_memory(ask_locks))
TEST_CASE(shimmed_memory, servers_are_not_told_without_memory,
          expect_no_memory(ask_servers))
TEST_CASE(shimmed_memory, waits_are_not_told_without_memory,
          expect_no_memory(ask_waits))
TEST_CASE(shimmed_memory, figures_are_not_told_without_memory,
          expect_no_memory(ask_figures))
TEST_CASE(shimmed_memory, figures_are_not_written_without_memory,
          expect_no_memory(ask_text))
