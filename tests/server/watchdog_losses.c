/*
 * The watchdog: holds that it could not renew are lost in time; and what it
 * does behind a callback that hangs.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "scene.h"

/* --- losses -------------------------------------------------------------- */

/* Renewed for the last time before gone_ms: what may be believed until when? */
static void expect_lost_in_time(scene *s, int64_t gone_ms, int64_t lease_ms)
{
    for (;;) {
        int64_t now = test_now_ms();
        int64_t valid = rlock_valid_ms(s->lk);
        if (valid > 0 && now + valid > gone_ms + lease_ms)
            FAIL("valid until %lld ms after the last renewal",
                 (long long)(now + valid - gone_ms));
        if (valid == 0 && !rlock_is_held(s->lk))
            break;
        test_pause_ms(1);
    }
    EXPECT_INT(rlock_hold_count(s->lk), 0);
    EXPECT(rlock_token(s->lk) == 0);
    events_wait(s->ev, RLOCK_EVENT_LOST, 1, SOON);
    /* The end of the lease, and what a busy machine needs to tell. */
    EXPECT_BETWEEN(events_time(s->ev, RLOCK_EVENT_LOST) - gone_ms, lease_ms / 2,
                   lease_ms + 300);
}

TEST(watchdog_losses, a_hold_is_lost_at_its_deadline_when_the_server_stays_away)
{
    scene s = scene_held(1200, 0);
    expect_renewals(&s, 2);
    server_kill(s.sv);
    expect_lost_in_time(&s, test_now_ms(), 1200);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_NOT_HELD);
    scene_stop(&s);
}

TEST(watchdog_losses, a_hold_is_lost_at_its_deadline_when_the_server_is_silent)
{
    scene s = scene_held(1200, 0);
    expect_renewals(&s, 2);
    server_pause(s.sv);
    expect_lost_in_time(&s, test_now_ms(), 1200);
    server_resume(s.sv);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(watchdog_losses, a_loss_tells_its_cause_once)
{
    scene s = scene_held(BRISK_MS, 0);
    rlock *again = test_lock(s.cl, "again");
    rlock_event ev;
    server_kill(s.sv);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(events_last(s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT_INT(ev.status, RLOCK_LOST);
    EXPECT_STR(ev.message, "its lease ran out");
    EXPECT(ev.token != 0);
    EXPECT_BETWEEN(ev.elapsed_ms, 300, SOON);
    server_restart(s.sv);
    EXPECT_STATUS(rlock_lock(again), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_renewals(&s, 3);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 1);
    EXPECT_INT(stats_of(s.cl).lost, 1);
    rlock_free(again);
    scene_stop(&s);
}

/* What the server still had must not bring it back. */
TEST(watchdog_losses, a_lost_hold_is_not_revived_when_the_server_answers_again)
{
    scene s = scene_held_proxied(BRISK_MS, 0);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REQUEST, NULL);
    EVENTUALLY(SOON, proxy_fired(s.px));
    proxy_refuse(s.px, true);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    proxy_refuse(s.px, false);
    proxy_let_go(s.px);
    EXPECT(!rlock_is_held(s.lk));
    EVENTUALLY(SOON, server_int(s.sv, "EXISTS job") == 0);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(watchdog_losses, a_deleted_lock_is_lost_and_not_made_again)
{
    scene s = scene_held(900, 0);
    EXPECT_INT(server_int(s.sv, "DEL job"), 1);
    int64_t began = test_now_ms();
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_BETWEEN(events_time(s.ev, RLOCK_EVENT_LOST) - began, 0, 300 + 400);
    EXPECT_CONTAINS(events_message(s.ev, RLOCK_EVENT_LOST), "no longer knows");
    EXPECT_INT(server_int(s.sv, "EXISTS job"), 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(watchdog_losses, a_hold_of_another_owner_is_not_renewed)
{
    scene s = scene_held(BRISK_MS, 0);
    server_cmd(s.sv, "DEL job");
    server_cmd(s.sv, "HSET job stranger 1");
    server_cmd(s.sv, "PEXPIRE job 60000");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STR(server_str(s.sv, "HGET job stranger"), "1");
    EXPECT_BETWEEN(server_int(s.sv, "PTTL job"), 1000, 60000);
    scene_stop(&s);
}

TEST(watchdog_losses, one_bad_lock_does_not_disturb_the_others)
{
    scene s = scene_held(1500, 0);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    server_cmd(s.sv, "SET job x");
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STR(events_message(s.ev, RLOCK_EVENT_LOST),
               "the key is no lock any more");
    expect_renewals(&s, 5);
    EXPECT(rlock_is_held(other));
    EXPECT_INT(stats_of(s.cl).lost, 1);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STR(server_str(s.sv, "GET job"), "x");
    rlock_free(other);
    scene_stop(&s);
}

TEST(watchdog_losses, an_explicit_lease_is_lost_at_its_deadline)
{
    scene s = scene_held(60000, 0);
    rlock *other = test_lock(s.cl, "other");
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(other, 0, 500), RLOCK_OK);
    int64_t granted = test_now_ms();
    EVENTUALLY(SOON, !rlock_is_held(other));
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    int64_t lost = events_time(s.ev, RLOCK_EVENT_LOST);
    EXPECT(lost - began >= 500 - 8);
    EXPECT(lost - granted <= 500 + 300);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_LOST);
    EXPECT(rlock_is_held(s.lk));
    rlock_free(other);
    scene_stop(&s);
}

/* --- the callback -------------------------------------------------------- */

typedef struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool open;
    atomic_int entered;
} gate;

static void stand_at_gate(const rlock_event *ev, void *arg)
{
    gate *g = arg;
    if (ev->type != RLOCK_EVENT_RENEWED)
        return;
    atomic_fetch_add(&g->entered, 1);
    pthread_mutex_lock(&g->mutex);
    while (!g->open)
        pthread_cond_wait(&g->changed, &g->mutex);
    pthread_mutex_unlock(&g->mutex);
}

static void open_gate(gate *g)
{
    pthread_mutex_lock(&g->mutex);
    g->open = true;
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->mutex);
}

TEST(watchdog_losses, a_slow_callback_delays_no_renewal)
{
    gate g = {.mutex = PTHREAD_MUTEX_INITIALIZER,
              .changed = PTHREAD_COND_INITIALIZER};
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 900;
    opts.on_event = stand_at_gate;
    opts.event_arg = &g;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, atomic_load(&g.entered) == 1);
    watch_renewals(cl, 6);
    EXPECT(rlock_is_held(lk));
    EXPECT_INT(atomic_load(&g.entered), 1);
    open_gate(&g);
    EVENTUALLY(SOON, atomic_load(&g.entered) > 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}

/* The callback's statuses, of calls that it makes on the notifier's thread. */
typedef struct caller {
    _Atomic(rlock_client *) cl;
    atomic_int done;
    rlock_status status[7];
} caller;

static void call_back(const rlock_event *ev, void *arg)
{
    caller *c = arg;
    rlock_client *cl = atomic_load(&c->cl);
    rlock *lk = NULL, *held = NULL;
    rlock_stats stats;
    rlock_holder holder;
    if (ev->type != RLOCK_EVENT_RENEWED || !cl || atomic_load(&c->done))
        return;
    c->status[0] = rlock_new(cl, "of the callback", &lk);
    c->status[1] = rlock_new_n(cl, ev->name, ev->name_len, &held);
    c->status[2] = rlock_lock(lk);
    c->status[3] = rlock_client_ping(cl);
    c->status[4] = rlock_client_stats(cl, &stats, sizeof stats);
    c->status[5] = rlock_holder_info(held, &holder, sizeof holder);
    c->status[6] = rlock_unlock(lk);
    rlock_free(held);
    rlock_free(lk);
    atomic_store(&c->done, 1);
}

TEST(watchdog_losses, the_callback_may_call_the_library)
{
    caller c = {.done = 0};
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = BRISK_MS;
    opts.on_event = call_back;
    opts.event_arg = &c;
    rlock_client *cl = server_client(sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    atomic_store(&c.cl, cl);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, atomic_load(&c.done));
    for (int i = 0; i < 7; i++)
        EXPECT_INT(c.status[i], RLOCK_OK);
    EXPECT_INT(server_int(sv, "EXISTS %s", "of the callback"), 0);
    rlock_free(lk);
    rlock_client_free(cl);
    server_stop(sv);
}
