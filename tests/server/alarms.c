/* Alarms: what the program is told of before it is lost, if it wants that. */
#include <stdatomic.h>

#include "client.h"
#include "dialer.h"
#include "nodes.h"

/* A scene whose client warns. */
static scene warned(int64_t hold_ms, bool renew_late, int64_t lease_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = lease_ms;
    opts.warn_hold_ms = hold_ms;
    opts.warn_renew_late = renew_late;
    return scene_with(server_start(NULL), &opts);
}

static void sum_up(const rlock_metric *m, void *arg)
{
    if (strcmp(m->name, "rlock_alarms") == 0)
        *(double *)arg += m->value;
}

static double alarms(rlock_client *cl)
{
    double n = 0;
    EXPECT_STATUS(rlock_metrics_each(cl, sum_up, &n), RLOCK_OK);
    return n;
}

TEST(alarms, what_is_held_for_long_is_told_once_a_hold)
{
    scene s = warned(120, false, 0);
    rlock_event ev;
    for (int i = 1; i <= 2; i++) {
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        events_wait(s.ev, RLOCK_EVENT_HELD_LONG, i, SOON);
        EXPECT_BETWEEN(test_now_ms() - began_ms, 119, 120 + SLACK_MS);
        EXPECT(events_last(s.ev, RLOCK_EVENT_HELD_LONG, &ev));
        EXPECT_BETWEEN(ev.elapsed_ms, 120, 120 + SLACK_MS);
        EXPECT(ev.token == rlock_token(s.lk));
        EXPECT_STATUS(ev.status, RLOCK_OK);
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK); /* is no new hold */
        unlock_times(s.lk, 2, RLOCK_OK);
    }
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_HELD_LONG),
                    "held for longer than 120 ms");
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_HELD_LONG), 2);
    EXPECT_INT(alarms(s.cl), 2);
    scene_stop(&s);
}

/* The control has begun before, and is told. */
TEST(alarms, what_ends_in_time_is_not_told)
{
    scene s = warned(300, false, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    lock_times(s.lk, 1);
    unlock_times(s.lk, 1, RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_HELD_LONG, 1, SOON);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_HELD_LONG), 1);
    rlock_event ev;
    EXPECT(events_last(s.ev, RLOCK_EVENT_HELD_LONG, &ev));
    EXPECT_INT(ev.name_len, strlen("other"));
    rlock_free(other);
    scene_stop(&s);
}

/* Its home tells, whichever client notices. */
TEST(alarms, a_red_lock_is_told_once_by_its_home)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.warn_hold_ms = 150;
    nodes ns = nodes_start(3);
    party p = party_clients_of(&ns, &opts);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    events_wait(p.ev[0], RLOCK_EVENT_HELD_LONG, 1, SOON);
    rlock_event ev;
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_HELD_LONG, &ev));
    EXPECT(ev.token == rlock_token(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_INT(events_count(p.ev[0], RLOCK_EVENT_HELD_LONG), 1);
    EXPECT_INT(alarms(p.cl[0]) + alarms(p.cl[1]) + alarms(p.cl[2]), 1);
    party_end(&p, &ns);
}

/* One after the other loses its data, and is asked anew. */
TEST(alarms, a_red_lock_is_as_old_as_ever_when_each_node_was_granted_anew)
{
    enum { LEASE_MS = SANITIZED ? 3 * BRISK_MS : BRISK_MS };
    rlock_event ev;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = LEASE_MS;
    nodes ns = nodes_start(3);
    party p = party_clients_of(&ns, &opts);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    party_hold_renewed(&p);
    int64_t locked_ms = test_now_ms();
    for (size_t i = 0; i < 3; i++) {
        server_cmd(ns.sv[i], "FLUSHALL");
        EVENTUALLY(SOON, party_holding(&p) == 2);
        EVENTUALLY(SOON, party_holding(&p) == 3);
        party_await_renewals(&p);
    }
    int64_t held_ms = test_now_ms() - locked_ms;
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT(events_last(p.ev[0], RLOCK_EVENT_RELEASED, &ev));
    EXPECT(ev.elapsed_ms >= held_ms - 1);
    party_end(&p, &ns);
}

/* --- waits ---------------------------------------------------------------- */

typedef struct waits {
    scene s; /* has the lock */
    events *ev;
    rlock_client *cl;
    rlock *lk;
} waits;

static waits open_waits(int64_t warn_ms)
{
    waits w = {.s = scene_held(0, 0), .ev = events_new()};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.warn_wait_ms = warn_ms;
    events_hook(w.ev, &opts);
    w.cl = server_client(w.s.sv, &opts);
    w.lk = test_lock(w.cl, SCENE_LOCK);
    return w;
}

static void close_waits(waits *w)
{
    rlock_free(w->lk);
    rlock_client_free(w->cl);
    events_free(w->ev);
    scene_stop(&w->s);
}

TEST(alarms, who_waits_for_long_is_told_once_who_has_it)
{
    waits w = open_waits(200);
    int64_t began_ms = test_now_ms();
    test_thread *t = test_spawn(wait_and_unlock, w.lk);
    events_wait(w.ev, RLOCK_EVENT_WAITED_LONG, 1, SOON);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 199, 200 + SLACK_MS);
    rlock_event ev;
    EXPECT(events_last(w.ev, RLOCK_EVENT_WAITED_LONG, &ev));
    EXPECT_BETWEEN(ev.elapsed_ms, 200, 200 + SLACK_MS);
    char by[80];
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(w.s.lk, &h, sizeof h), RLOCK_OK);
    snprintf(by, sizeof by, ":%lld:%lld for ", (long long)h.pid,
             (long long)h.tid);
    EXPECT_CONTAINS(events_message(w.ev, RLOCK_EVENT_WAITED_LONG), by);
    EXPECT(queued(w.s.sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_unlock(w.s.lk), RLOCK_OK);
    EXPECT_STATUS((rlock_status)test_join(t), RLOCK_OK);
    EXPECT_INT(events_count(w.ev, RLOCK_EVENT_WAITED_LONG), 1);
    EXPECT_INT(alarms(w.cl), 1);
    close_waits(&w);
}

TEST(alarms, each_thread_that_waits_for_long_is_told)
{
    waits w = open_waits(200);
    test_thread *t[2] = {test_spawn(wait_and_unlock, w.lk),
                         test_spawn(wait_and_unlock, w.lk)};
    events_wait(w.ev, RLOCK_EVENT_WAITED_LONG, 2, SOON);
    EXPECT_STATUS(rlock_unlock(w.s.lk), RLOCK_OK);
    for (int i = 0; i < 2; i++)
        EXPECT_STATUS((rlock_status)test_join(t[i]), RLOCK_OK);
    EXPECT_INT(events_count(w.ev, RLOCK_EVENT_CONTENDED), 2);
    EXPECT_INT(alarms(w.cl), 2);
    close_waits(&w);
}

/* A started wait tells who dispatches. */
static void note_done(rlock *lk, rlock_status s, void *arg)
{
    EXPECT(lk != NULL);
    *(rlock_status *)arg = s;
}

TEST(alarms, a_started_wait_is_told_when_it_is_dispatched)
{
    waits w = open_waits(200);
    rlock_status s = RLOCK_EIO;
    rlock_owner *owner;
    EXPECT_STATUS(rlock_owner_new("agent", &owner), RLOCK_OK);
    rlock_owner *former = rlock_owner_set(owner);
    EXPECT_STATUS(rlock_acquire_start(w.lk, 600, 0, note_done, &s), RLOCK_OK);
    rlock_owner_set(former);
    EVENTUALLY(SOON,
               rlock_client_dispatch(w.cl) == RLOCK_OK && s == RLOCK_TIMEOUT);
    EXPECT_INT(events_count(w.ev, RLOCK_EVENT_WAITED_LONG), 1);
    EXPECT_CONTAINS(events_message(w.ev, RLOCK_EVENT_WAITED_LONG), "held by ");
    rlock_owner_free(owner);
    close_waits(&w);
}

/* --- renewals ------------------------------------------------------------- */

#define LATE_LEASE_MS 3000

/* The server stands still from before the renewal to behind half of the lease.
 */
TEST(alarms, a_renewal_that_is_late_is_told)
{
    test_lease(LATE_LEASE_MS);
    scene s = warned(0, true, LATE_LEASE_MS);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int64_t began_ms = test_now_ms();
    server_pause(s.sv);
    events_wait(s.ev, RLOCK_EVENT_RENEW_LATE, 1, SOON);
    EXPECT(test_now_ms() - began_ms >= LATE_LEASE_MS / 2 - 50);
    server_resume(s.sv);
    EVENTUALLY(SOON, stats_of(s.cl).renewals >= 1);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_RENEW_LATE),
                    "before half of its lease was over");
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RENEW_LATE), 1);
    EXPECT_INT(alarms(s.cl), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Who waits for a fair lock that another client has, which is unlocked. */
static waiter *wait_in_line(server *sv, rlock *theirs, rlock *mine)
{
    EXPECT_STATUS(rlock_lock(theirs), RLOCK_OK);
    waiter *w = waiter_start(mine, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, server_int(sv, "ZCARD rlock_line:{f}") == 1 &&
                         queued(sv, "f") == 1);
    EXPECT_STATUS(rlock_unlock(theirs), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    return w;
}

/* The same, granted by a message, with 3 s (locks.md). It may have looked by
   itself just then, and has the whole lease. */
static waiter *granted_in_line(server *sv, rlock *theirs, rlock *mine)
{
    for (int i = 0; i < 20; i++) {
        waiter *w = wait_in_line(sv, theirs, mine);
        if (key_ttl(sv, "f") <= LATE_LEASE_MS)
            return w;
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    }
    FAIL("it always looks by itself");
}

/* The first renewal never comes. */
TEST(alarms, a_grant_in_line_that_is_not_renewed_is_told_in_time)
{
    test_lease(LATE_LEASE_MS);
    server *sv = server_start(NULL);
    server_load_scripts(sv);
    proxy *px = proxy_start(sv);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = proxy_uri(px);
    opts.warn_renew_late = true;
    scene s = scene_with(sv, &opts);
    rlock_client *other = server_client(sv, NULL);
    rlock_lock_options fair = RLOCK_LOCK_OPTIONS_INIT;
    rlock *mine, *theirs;
    fair.fair = true;
    EXPECT_STATUS(rlock_new_ex(s.cl, "f", 1, &fair, &mine), RLOCK_OK);
    EXPECT_STATUS(rlock_new_ex(other, "f", 1, &fair, &theirs), RLOCK_OK);
    proxy_rule(px, proxy_sha("renew"), PROXY_EVERY, PROXY_SENT | PROXY_TIMEOUT,
               NULL);
    waiter *w = granted_in_line(sv, theirs, mine);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RENEW_LATE), 1);
    EXPECT_BETWEEN(events_time(s.ev, RLOCK_EVENT_LOST) -
                       events_time(s.ev, RLOCK_EVENT_RENEW_LATE),
                   LATE_LEASE_MS / 4, LATE_LEASE_MS / 2);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rlock_free(mine);
    rlock_free(theirs);
    rlock_client_free(other);
    scene_leave(&s);
    proxy_stop(px);
    server_stop(sv);
}

/* Nothing fails, and nothing is answered, before the lease is over. */
TEST(alarms, a_renewal_that_a_connect_callback_holds_up_is_told)
{
    test_lease(LATE_LEASE_MS);
    dialer d = {0};
    scene s = scene_dialed(&d, LATE_LEASE_MS, 0);
    scene_free_client(&s);
    s.opts.warn_renew_late = true;
    EXPECT_STATUS(rlock_client_new(&s.opts, &s.cl), RLOCK_OK);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    atomic_store(&d.hangs, true);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RENEW_LATE), 1);
    atomic_store(&d.hangs, false);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

static scene late_at_once(void)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = LATE_LEASE_MS;
    opts.command_timeout_ms = LATE_LEASE_MS / 10;
    opts.warn_renew_late = true;
    return scene_with(server_start(NULL), &opts);
}

/* Each of them begins before a renewal that was due could be tried again. */
TEST(alarms, extends_in_vain_do_not_hide_that_a_renewal_is_late)
{
    test_lease(LATE_LEASE_MS);
    scene s = late_at_once();
    rlock_status extended;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_pause(s.sv);
    do
        extended = rlock_extend(s.lk, RLOCK_WATCHDOG);
    while (extended == RLOCK_EIO);
    EXPECT_STATUS(extended, RLOCK_LOST);
    server_resume(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RENEW_LATE), 1);
    EXPECT_INT(alarms(s.cl), 1);
    scene_stop(&s);
}

static void sum_delays(const rlock_metric *m, void *arg)
{
    if (strcmp(m->name, "rlock_renewal_delay_seconds") == 0)
        *(double *)arg = m->sum;
}

/* The third node of a Red lock answers when the others have. */
static void expect_in_time(rlock_status (*renew)(rlock *lk))
{
    double delays_s = 0;
    nodes ns = nodes_start(3);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.warn_renew_late = opts.metrics = true;
    party p = party_clients_of(&ns, &opts);
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    party_hold(&p, LONG_LEASE);
    server_pause(ns.sv[2]);
    EXPECT_STATUS(renew(p.lk), RLOCK_OK);
    server_resume(ns.sv[2]);
    EVENTUALLY(SOON, stats_of(p.cl[2]).renewals >= 1);
    EXPECT_STATUS(rlock_metrics_each(p.cl[2], sum_delays, &delays_s), RLOCK_OK);
    EXPECT_BETWEEN(delays_s * 1000, 0, SOON);
    EXPECT_INT(events_count(p.ev[2], RLOCK_EVENT_RENEW_LATE), 0);
    EXPECT_INT(alarms(p.cl[2]), 0);
    unlock_times(p.lk, rlock_hold_count(p.lk), RLOCK_OK);
    party_end(&p, &ns);
}

static rlock_status extend_renewed(rlock *lk)
{
    return rlock_extend(lk, RLOCK_WATCHDOG);
}

TEST_CASE(alarms, renewals_that_an_extend_begins_are_not_late_at_a_slow_node,
          expect_in_time(extend_renewed))
TEST_CASE(alarms, renewals_that_a_level_begins_are_not_late_at_a_slow_node,
          expect_in_time(rlock_lock))

typedef struct order {
    atomic_int renewed, before; /* before it was late; -1: it was not */
} order;

static void note_order(const rlock_event *ev, void *arg)
{
    order *o = arg;
    if (ev->type == RLOCK_EVENT_RENEWED)
        atomic_fetch_add(&o->renewed, 1);
    if (ev->type == RLOCK_EVENT_RENEW_LATE)
        atomic_store(&o->before, atomic_load(&o->renewed));
}

static void be_stopped(child *c, void *arg)
{
    order o = {.before = -1};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    (void)arg;
    opts.uri = child_take_uri(c);
    opts.watchdog_lease_ms = LATE_LEASE_MS;
    opts.warn_renew_late = true;
    opts.on_event = note_order;
    opts.event_arg = &o;
    rlock_client *cl = server_client(NULL, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    child_tell(c, 'h');
    child_expect(c, 'g');
    EVENTUALLY(SOON, atomic_load(&o.before) >= 0);
    EVENTUALLY(SOON, atomic_load(&o.renewed) >= 1);
    EXPECT_INT(atomic_load(&o.before), 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
}

/* The process is stopped; what is late comes at once, and when it goes on. */
TEST(alarms, a_renewal_is_told_as_late_before_it_is_told)
{
    test_lease(LATE_LEASE_MS);
    child *c = child_start(be_stopped, NULL);
    server *sv = server_start(NULL);
    child_give_uri(c, sv);
    child_expect(c, 'h');
    int64_t began_ms = test_now_ms();
    child_stop(c);
    EVENTUALLY(SOON, test_since_ms(began_ms) >= LATE_LEASE_MS * 6 / 10);
    child_continue(c);
    child_tell(c, 'g');
    child_end(c);
    server_stop(sv);
}

/* As long as nobody wants them: a hold that is old, and one that is late. */
TEST(alarms, nobody_is_told_who_has_not_asked)
{
    scene s = warned(0, false, BRISK_MS);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_pause(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    server_resume(s.sv);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_HELD_LONG), 0);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RENEW_LATE), 0);
    EXPECT_INT(alarms(s.cl), 0);
    scene_stop(&s);
}
