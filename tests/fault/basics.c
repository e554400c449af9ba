/*
 * What other lock libraries got wrong, each as a test that fails on that
 * defect. The names say what is right. See also defects_hold.c and
 * defects_waiting.c.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "scene.h"

/* --- counting ------------------------------------------------------------ */

/* A timed-out acquire that is sent again. */
TEST(basics, an_acquire_that_is_sent_again_counts_once)
{
    scene s = scene_proxied(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(rlock_hold_count(s.lk), 2);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

TEST(basics, one_unlock_after_a_timed_out_acquire_frees_the_lock)
{
    scene s = scene_proxied(0, 1000);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

/* The caller was told that it failed: then the lock is not taken. */
TEST(basics, a_grant_that_the_caller_never_saw_is_undone)
{
    scene s = scene_proxied(0, 1000);
    rlock_client *b = server_client(s.sv, NULL);
    rlock *lk = test_lock(b, SCENE_LOCK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_STATUS(rlock_acquire(lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(b);
    scene_stop(&s);
}

/* --- losses -------------------------------------------------------------- */

TEST(basics, a_loss_is_reported_and_answered_by_every_call)
{
    scene s = scene_start(BRISK_MS, 0);
    rlock_event ev;
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    uint64_t token = rlock_token(s.lk);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT(events_last(s.ev, RLOCK_EVENT_LOST, &ev));
    EXPECT_STR(ev.name, SCENE_LOCK);
    EXPECT(ev.token == token);
    EXPECT_INT(ev.status, RLOCK_LOST);
    EXPECT(*ev.message);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(rlock_hold_count(s.lk), 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_extend(s.lk, 1000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(basics, an_extend_of_a_stolen_or_missing_lock_fails)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    take_by_hand(s.sv, SCENE_LOCK, 5000);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_LOST);
    EXPECT_BETWEEN(key_ttl(s.sv, SCENE_LOCK), 1, 5000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1); /* the other's */
    scene_stop(&s);
}

/* It knows by itself, and asks nobody for long. */
TEST(basics, releasing_an_expired_lock_returns_at_once)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 100), RLOCK_OK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 500);
    server_resume(s.sv);
    scene_stop(&s);
}

/* Cleared early, the lock could never be freed again. */
TEST(basics, a_release_that_failed_is_not_forgotten)
{
    scene s = scene_proxied(0, 200);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_EIO);
    waiter *w = waiter_start(s.lk, 10000, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    proxy_let_go(s.px); /* the old release hurts nobody */
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

/* --- answers ------------------------------------------------------------- */

TEST(basics, held_by_another_and_server_down_are_different_answers)
{
    scene s = scene_start(0, 200);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_acquire(s.lk, 20, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    server_cmd(s.sv, "SET %s x", SCENE_LOCK);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EWRONGTYPE);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    server_cmd(s.sv, "REPLICAOF 127.0.0.1 1");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "READONLY");
    server_kill(s.sv);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    scene_stop(&s);
}

/* A wait that the server's end cuts short is no timeout of the lock. */
TEST(basics, a_wait_for_a_dead_server_is_not_reported_as_held_by_another)
{
    scene s = scene_start(0, 200);
    server_kill(s.sv);
    EXPECT_STATUS(rlock_acquire(s.lk, 200, RLOCK_WATCHDOG), RLOCK_EIO);
    scene_stop(&s);
}

/* --- who owns ------------------------------------------------------------ */

static void try_inherited(child *c, void *arg)
{
    rlock *lk = arg;
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_hold_count(lk), 0);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_EFORKED);
    EXPECT_STATUS(rlock_extend(lk, 1000), RLOCK_EFORKED);
    child_tell(c, 'y');
}

TEST(basics, a_fork_inherits_no_hold)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    child *c = child_start(try_inherited, s.lk);
    child_expect(c, 'y');
    child_end(c);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

static intptr_t lock_and_exit(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    return gettid();
}

static intptr_t try_to_inherit(void *arg)
{
    rlock *lk = arg;
    EXPECT(!rlock_is_held(lk));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    return gettid();
}

/* Often the new thread has the stack, and so the pthread_t, of the old. */
TEST(basics, a_new_thread_inherits_nothing_of_an_ended_one)
{
    scene s = scene_start(1000, 0);
    test_join(test_spawn(lock_and_exit, s.lk));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    test_join(test_spawn(try_to_inherit, s.lk));
    EVENTUALLY(10000, levels(s.sv, SCENE_LOCK) == 0);
    EXPECT_INT(stats_of(s.cl).renewals, 0);
    scene_stop(&s);
}

/* Same host name, same pid, same thread: still two holders. */
TEST(basics, fault_088_two_clients_with_the_same_host_and_pid_are_two_owners)
{
    scene s = scene_server(NULL);
    s.opts.host_id = "same";
    scene_client(&s, 0, 0);
    rlock_client *b = server_client(s.sv, &s.opts);
    rlock *lk = test_lock(b, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_OK); /* the control: its own */
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(b);
    scene_stop(&s);
}

/* --- manners ------------------------------------------------------------- */

typedef struct reentrant_caller {
    rlock *lk;
    atomic_int held;
} reentrant_caller;

static void look_inside(const rlock_event *ev, void *arg)
{
    reentrant_caller *r = arg;
    if (r->lk && ev->type == RLOCK_EVENT_ACQUIRED && ev->count == 1) {
        EXPECT_STATUS(rlock_lock(r->lk), RLOCK_OK);
        atomic_store(&r->held, rlock_hold_count(r->lk));
        EXPECT_STATUS(rlock_unlock(r->lk), RLOCK_OK);
    }
}

/* With a mutex held in the callback this would hang. */
TEST(basics, a_callback_may_lock_the_same_lock)
{
    scene s = scene_server(NULL);
    reentrant_caller r = {0};
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.on_event = look_inside;
    opts.event_arg = &r;
    rlock_client *cl = server_client(s.sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    r.lk = lk;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_INT(atomic_load(&r.held), 2);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    rlock_client_free(cl);
    scene_stop(&s);
}

/* Everything goes wrong, and nothing is said of it on stdout or stderr. */
static void fail_in_silence(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    rlock_client *cl = NULL;
    char text[100];
    int out[2];
    (void)arg;
    EXPECT_INT(pipe2(out, O_CLOEXEC | O_NONBLOCK), 0);
    EXPECT_INT(dup2(out[1], 1), 1);
    EXPECT_INT(dup2(out[1], 2), 2);
    opts.uri = "nonsense";
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EINVAL);
    opts.uri = "unix:///nowhere";
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_EIO);
    opts.uri = child_take_uri(c);
    opts.command_timeout_ms = 100;
    opts.watchdog_lease_ms = BRISK_MS;
    cl = server_client(NULL, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_acquire(lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    child_tell(c, 'k'); /* the server is killed */
    EVENTUALLY(10000, !rlock_is_held(lk));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    rlock_free(lk);
    rlock_client_free(cl);
    EXPECT(read(out[0], text, sizeof text) < 0);
    child_tell(c, 'y');
}

TEST(basics, nothing_is_printed_and_nothing_exits)
{
    child *c = child_start(fail_in_silence, NULL);
    scene s = scene_server(NULL);
    child_give_uri(c, s.sv);
    child_expect(c, 'k');
    server_kill(s.sv);
    child_expect(c, 'y');
    child_end(c);
    scene_stop(&s);
}
