/* By whom what happens is told: on the loop, or by a thread that may block. */
#include <errno.h>

#include "base/os.h"
#include "notifier.h"
#include "shim.h"

static void call_back(const rlock_event *ev, void *arg)
{
    (void)arg;
    at->tid = rl_os_thread_id();
    note(ev);
    atomic_fetch_add(&at->called, 1);
}

static void open_blocking(desk *d)
{
    open_desk(d);
    d->e.core.set.dispatch_events = false;
    d->e.core.set.on_event = call_back;
}

TEST(notifier_thread, who_may_block_is_called_on_a_thread_of_its_own)
{
    desk d;
    open_blocking(&d);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    report(&d, h, RLOCK_EVENT_RENEWED);
    EXPECT_INT(turn(&d), d.p.now_us); /* once more, as there is one now */
    EXPECT(d.e.notifier.thread.started);
    EXPECT_INT(turn(&d), h->expiry.due_us);
    rl_holds_stop(holds(&d));
    EXPECT_INT(turn(&d), RL_LOOP_LEAVE);
    rl_thread_join(&d.e.notifier.thread);
    EXPECT_INT(d.told, 1);
    EXPECT(d.tid && d.tid != rl_os_thread_id());
    close_desk(&d);
}

TEST(notifier_thread, without_a_thread_it_is_tried_again_after_10_ms)
{
    desk d;
    open_blocking(&d);
    report(&d, hold_of(&d, &d.owner, NULL, LEASE_MS), RLOCK_EVENT_RENEWED);
    shim_fail(shim_here(), SHIM_THREAD, 1, SHIM_EVER, EAGAIN);
    EXPECT_INT(turn(&d), d.p.now_us + 10 * MS);
    EXPECT(!d.e.notifier.thread.started && d.told == 0);
    rl_holds_stop(holds(&d));
    EXPECT_INT(turn(&d), RL_LOOP_LEAVE); /* nobody tries again */
    shim_clear(shim_here());
    close_desk(&d);
}

static void start_notifier(desk *d)
{
    rl_loop_init(&d->e.loop);
    EXPECT(rl_loop_open(&d->e.loop));
    EXPECT(rl_notifier_start(&d->e));
    EXPECT(rl_link_is_in(&d->e.notifier.watcher.link));
}

static void stop_notifier(desk *d)
{
    rl_holds_stop(holds(d));
    EXPECT_INT(turn(d), RL_LOOP_LEAVE);
    rl_thread_join(&d->e.notifier.thread);
    rl_loop_stop(&d->e.loop);
    rl_loop_fini(&d->e.loop, false);
}

TEST(notifier_thread, who_fetches_his_events_needs_no_thread)
{
    desk d;
    open_desk(&d);
    start_notifier(&d);
    EXPECT(!d.e.notifier.thread.started);
    stop_notifier(&d);
    close_desk(&d);
}

static bool is_told(desk *d, int n)
{
    return atomic_load(&d->called) == n;
}

TEST(notifier_thread, who_is_called_has_a_thread_from_the_beginning)
{
    desk d;
    open_blocking(&d);
    start_notifier(&d);
    EXPECT(d.e.notifier.thread.started);
    rl_hold *h = hold_of(&d, &d.owner, NULL, LEASE_MS);
    for (int n = 1; n <= 3; n++) {
        report(&d, h, RLOCK_EVENT_RENEWED);
        turn(&d);
        EVENTUALLY(SOON, is_told(&d, n));
    }
    stop_notifier(&d);
    close_desk(&d);
}

TEST(notifier_thread, without_a_thread_it_does_not_begin)
{
    desk d;
    open_blocking(&d);
    rl_loop_init(&d.e.loop);
    EXPECT(rl_loop_open(&d.e.loop));
    shim_fail(shim_here(), SHIM_THREAD, 1, SHIM_EVER, EAGAIN);
    EXPECT(!rl_notifier_start(&d.e));
    shim_clear(shim_here());
    EXPECT(!d.e.notifier.thread.started);
    rl_loop_stop(&d.e.loop);
    rl_loop_fini(&d.e.loop, false);
    close_desk(&d);
}

/* All of which was there before the thread was. */
TEST(notifier_thread, at_the_end_its_thread_tells_all_that_there_is)
{
    desk d;
    open_blocking(&d);
    report(&d, hold_of(&d, &d.owner, NULL, LEASE_MS), RLOCK_EVENT_RENEWED);
    report(&d, hold_of(&d, &d.p.owner, NULL, LEASE_MS), RLOCK_EVENT_RENEWED);
    rl_holds_reconnected(holds(&d));
    rl_notifier_warn(&d.e, "beware");
    rl_notifier_failover(&d.e, "h:2");
    rl_holds_stop(holds(&d));
    EXPECT_INT(turn(&d), d.p.now_us); /* it has one now */
    rl_thread_join(&d.e.notifier.thread);
    EXPECT_INT(d.told, 5);
    close_desk(&d);
}

/* The loop runs, and leaves it when all has been told. */
TEST(notifier_thread, who_stops_it_returns_when_it_has_ended)
{
    desk d;
    open_blocking(&d);
    start_notifier(&d);
    EXPECT(rl_loop_start(&d.e.loop));
    rl_holds_reconnected(holds(&d));
    rl_holds_stop(holds(&d));
    rl_notifier_stop(&d.e);
    EXPECT(!rl_link_is_in(&d.e.notifier.watcher.link));
    EXPECT(d.told == 1 && !d.e.notifier.thread.started);
    rl_loop_stop(&d.e.loop);
    rl_loop_fini(&d.e.loop, false);
    close_desk(&d);
}

/* Somebody may have waited there when it was made. */
TEST(notifier_thread, a_child_leaves_what_threads_wait_with)
{
    desk d;
    open_desk(&d);
    rl_notifier_fini(&d.e.notifier, true);
    rl_cond_fini(&d.e.notifier.wake);
    EXPECT(rl_notifier_init(&d.e));
    close_desk(&d);
}
