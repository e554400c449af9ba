/*
 * Faults of the catalogue that come from the operating system: calls that are
 * done in part or not at all, descriptors and threads that run out, clocks that
 * jump. Each test is run without its fault first, or shows that
 * the same goes well before or after it.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "other_client.h"
#include "shim.h"

#define HOUR_MS (3600 * 1000)

/* Lock, keep it, one level more, unlock: what a fault disturbs. */
static void use_lock(scene *s)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    expect_renewals(s, 1);
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT(rlock_is_held(s->lk));
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT_INT(stats_of(s->cl).renew_failures, 0);
    expect_nothing_left(s->sv);
}

/* --- 64: short writes and reads, sockets that are full -------------------- */

/* The same lock without the fault, and with it on all threads. */
static void use_lock_with(shim_call call, long last, int err)
{
    scene s = scene_start(1500, 0);
    use_lock(&s);
    shim_fail(shim_everywhere(), call, 1, last, err);
    use_lock(&s);
    EXPECT(shim_failed(shim_everywhere(), call) > 0);
    shim_clear(shim_everywhere());
    scene_stop(&s);
}

TEST(shimmed, fault_064_what_is_sent_byte_by_byte_arrives)
{
    use_lock_with(SHIM_SEND, SHIM_EVER, SHIM_SHORT);
}

TEST(shimmed, fault_064_what_comes_byte_by_byte_is_understood)
{
    use_lock_with(SHIM_RECV, SHIM_EVER, SHIM_SHORT);
}

TEST(shimmed, fault_064_a_full_socket_is_waited_for)
{
    use_lock_with(SHIM_SEND, 3, EAGAIN);
}

TEST(shimmed, fault_064_a_reply_that_is_not_there_yet_is_waited_for)
{
    use_lock_with(SHIM_RECV, 3, EAGAIN);
}

TEST(shimmed, fault_064_interrupted_calls_are_made_again)
{
    use_lock_with(SHIM_SEND, 3, EINTR);
    use_lock_with(SHIM_RECV, 3, EINTR);
    use_lock_with(SHIM_POLL, 3, EINTR);
}

TEST(shimmed, fault_064_a_socket_that_stays_full_ends_the_call_in_time)
{
    scene s = scene_start(0, 200);
    expect_undisturbed(&s); /* the control */
    int64_t began_ms = test_now_ms();
    shim_fail(shim_here(), SHIM_SEND, 1, SHIM_EVER, EAGAIN);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    shim_clear(shim_here());
    EXPECT_BETWEEN(test_now_ms() - began_ms, 200, 900);
    EXPECT_CONTAINS(rlock_last_error()->message, "cannot send");
    expect_nothing_left(s.sv); /* it is known that nothing was executed */
    scene_stop(&s);
}

TEST(shimmed, fault_064_a_poll_that_fails_is_reported_as_what_it_is)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK); /* the control */
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    shim_fail(shim_here(), SHIM_POLL, 1, SHIM_EVER, ENOMEM);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    shim_clear(shim_here());
    server_resume(s.sv);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 2000);
    EXPECT_INT(rlock_last_error()->sys_errno, ENOMEM);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    scene_stop(&s);
}

/* --- 66: no descriptor is left -------------------------------------------- */

/* From now on the process gets no descriptor; returns the limits of before. */
static struct rlimit allow_no_more_descriptors(void)
{
    struct rlimit before, none;
    int next = dup(0);
    EXPECT(next >= 0);
    close(next);
    EXPECT_INT(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)next;
    EXPECT_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    return before;
}

TEST(shimmed, fault_066_without_descriptors_calls_fail_and_renewals_go_on)
{
    scene s = scene_start(1500, 0);
    rlock_client *cl = NULL;
    s.opts.uri = server_uri(s.sv);
    EXPECT_STATUS(rlock_client_new(&s.opts, &cl), RLOCK_OK); /* control */
    rlock_client_free(cl);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1); /* the watchdog has its connection */
    struct rlimit before = allow_no_more_descriptors();
    rlock_status status = rlock_client_new(&s.opts, &cl);
    expect_renewals(&s, 2);
    setrlimit(RLIMIT_NOFILE, &before);
    EXPECT_INT(status, RLOCK_EIO);
    EXPECT(!cl);
    EXPECT_INT(rlock_last_error()->sys_errno, EMFILE);
    EXPECT_CONTAINS(rlock_last_error()->message, strerror(EMFILE));
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(shimmed, fault_066_a_lock_that_finds_no_descriptor_is_had_later)
{
    scene s = scene_start(0, 0);
    rlock_stats stats;
    other_client b = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_trylock(b.lk), RLOCK_OK); /* the control */
    EXPECT_STATUS(rlock_unlock(b.lk), RLOCK_OK);
    other_client_leave(&b);
    shim_fail(shim_everywhere(), SHIM_SOCKET, 1, SHIM_EVER, ENFILE);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT_INT(rlock_last_error()->sys_errno, ENFILE);
    waiter *w = waiter_start(s.lk, 20000, RLOCK_WATCHDOG);
    EVENTUALLY(5000, stats_of(s.cl).waiting_now == 1);
    shim_clear(shim_everywhere());
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_client_stats(s.cl, &stats, sizeof stats), RLOCK_OK);
    EXPECT_INT(stats.acquires, 1);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Without a descriptor the doorbell cannot be woken, and is not started. */
static void wait_for_lock(bool with_doorbell)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 0);
    if (!with_doorbell)
        shim_fail(shim_everywhere(), SHIM_EVENTFD, 1, SHIM_EVER, EMFILE);
    waiter *w = waiter_start(s.lk, 20000, RLOCK_WATCHDOG);
    if (with_doorbell)
        waiters_settle(s.sv, 1, s.cl, 1);
    else
        EVENTUALLY(5000, shim_failed(shim_everywhere(), SHIM_EVENTFD) > 0);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    shim_clear(shim_everywhere());
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(shimmed, fault_066_without_a_doorbell_waiters_still_get_the_lock)
{
    wait_for_lock(true); /* the control */
    wait_for_lock(false);
}

/* --- 80: the machine sleeps ----------------------------------------------- */

/* What the machine's clocks show after it slept. */
static void suspend(int64_t ms)
{
    shim_clock(shim_everywhere(), CLOCK_BOOTTIME, ms);
    shim_clock(shim_everywhere(), CLOCK_REALTIME, ms);
}

TEST(shimmed, fault_080_a_sleep_shorter_than_the_lease_keeps_the_hold)
{
    scene s = scene_start(6000, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    int64_t valid_ms = rlock_valid_ms(s.lk);
    suspend(2500);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, valid_ms - 2500);
    expect_renewals(&s, 1);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(shimmed, fault_080_a_sleep_longer_than_the_lease_loses_the_hold_at_once)
{
    scene s = scene_proxied(3000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1); /* the control; the next is a second away */
    EXPECT(rlock_is_held(s.lk));
    int renewals = proxy_count(s.px, proxy_sha("renew"));
    suspend(3100);
    server_cmd(s.sv, "DEL %s", SCENE_LOCK); /* the server's time went on */
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_INT(rlock_token(s.lk), 0);
    EXPECT_STATUS(rlock_extend(s.lk, 10000), RLOCK_LOST);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    EXPECT_INT(proxy_count(s.px, proxy_sha("renew")), renewals);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 1);
    expect_all_undone(s.sv);
    scene_stop(&s);
}

TEST(shimmed, fault_080_who_asks_nothing_after_a_sleep_is_told_of_the_loss)
{
    scene s = scene_proxied(3000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1); /* the control */
    int renewals = proxy_count(s.px, proxy_sha("renew"));
    suspend(3100);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT_INT(proxy_count(s.px, proxy_sha("renew")), renewals);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* Waits in the library are timed by a clock that stood still meanwhile. */
TEST(shimmed, fault_080_a_long_lease_that_ran_out_in_a_sleep_is_told_at_once)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    suspend(31000);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 3000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(shimmed, fault_080_a_renewal_that_fell_due_in_a_sleep_is_made_at_once)
{
    scene s = scene_proxied(12000, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1); /* the next is four seconds away */
    int renewals = proxy_count(s.px, proxy_sha("renew"));
    suspend(5000);
    EVENTUALLY(2500, proxy_count(s.px, proxy_sha("renew")) > renewals);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Either the lock is freed, or the machine sleeps until the wait is over. */
static void wait_an_hour(bool asleep)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 0);
    waiter *w = waiter_start(s.lk, HOUR_MS, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT(!waiter_returned(w));
    if (asleep)
        suspend(HOUR_MS);
    else
        server_cmd(s.sv, "DEL %s", SCENE_LOCK);
    EXPECT_INT(waiter_status(w, NULL), asleep ? RLOCK_TIMEOUT : RLOCK_OK);
    waiter_end(w);
    EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

TEST(shimmed, fault_080_a_wait_counts_the_time_the_machine_slept)
{
    wait_an_hour(false); /* the control */
    wait_an_hour(true);
}

/* --- 82: no thread can be started ----------------------------------------- */

/* With this the kernel refuses new threads of the calling one. */
typedef struct refusal {
    struct rlimit limit;
    bool was_root;
} refusal;

/* Of this thread alone; setresuid() of libc would be about all of them. */
static void set_user(uid_t real, uid_t effective)
{
    EXPECT_INT(syscall(SYS_setresuid, real, effective, 0), 0);
}

static refusal refuse_threads(void)
{
    refusal r = {.was_root = getuid() == 0};
    EXPECT_INT(getrlimit(RLIMIT_NPROC, &r.limit), 0);
    struct rlimit none = r.limit;
    none.rlim_cur = 0;
    EXPECT_INT(setrlimit(RLIMIT_NPROC, &none), 0);
    if (r.was_root) /* whom no limit stops */
        set_user(65534, 65534);
    return r;
}

static void allow_threads(const refusal *r)
{
    if (r->was_root)
        set_user(0, 0);
    setrlimit(RLIMIT_NPROC, &r->limit);
    prctl(PR_SET_DUMPABLE, 1); /* the leak checker needs that */
}

static void *do_nothing(void *arg)
{
    return arg;
}

static int start_a_thread(void)
{
    pthread_t t;
    int err = pthread_create(&t, NULL, do_nothing, NULL);
    if (err == 0)
        pthread_join(t, NULL);
    return err;
}

TEST(shimmed, fault_082_where_no_thread_can_start_nothing_is_locked)
{
    scene s = scene_start(1500, 0);
    EXPECT_INT(start_a_thread(), 0);
    long long calls = script_calls(s.sv);
    refusal r = refuse_threads();
    int err = start_a_thread();
    rlock_status status = rlock_lock(s.lk);
    allow_threads(&r);
    if (err == 0) {
        rlock_unlock(s.lk);
        scene_stop(&s);
        SKIP("RLIMIT_NPROC has no effect here");
    }
    EXPECT_INT(status, RLOCK_ENOMEM);
    EXPECT_CONTAINS(rlock_last_error()->message, "watchdog thread");
    EXPECT_INT(script_calls(s.sv), calls);
    use_lock(&s); /* the control */
    scene_stop(&s);
}

/* The first thread of a client or the second; both are needed to lock. */
static void without_thread(long nth)
{
    scene s = scene_start(1500, 0);
    long long calls = script_calls(s.sv);
    shim_fail(shim_here(), SHIM_THREAD, nth, nth, EAGAIN);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_ENOMEM);
    EXPECT_INT(script_calls(s.sv), calls);
    EXPECT_INT(shim_failed(shim_here(), SHIM_THREAD), 1);
    use_lock(&s); /* the control */
    scene_stop(&s);
}

TEST(shimmed, fault_082_a_thread_that_cannot_start_is_started_the_next_time)
{
    without_thread(1);
    without_thread(2);
}

TEST(shimmed, fault_082_a_failed_renewal_never_ends_renewing)
{
    scene s = scene_start(1500, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 1); /* the control */
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_RENEW_FAILED), 0);
    for (int i = 1; i <= 3; i++) {
        shim_fail(shim_everywhere(), SHIM_SEND, 1, 1, ECONNRESET);
        EVENTUALLY(10000, (int)stats_of(s.cl).renew_failures >= i);
        expect_renewals(&s, 1);
    }
    EXPECT(events_count(s.ev, RLOCK_EVENT_RENEW_FAILED) > 0);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- 93: the wall clock jumps --------------------------------------------- */

TEST(shimmed, fault_093_a_jump_of_the_wall_clock_changes_nothing)
{
    scene s = scene_start(1500, 0);
    use_lock(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    for (int hours = 1; hours >= -1; hours -= 2) {
        shim_clock(shim_everywhere(), CLOCK_REALTIME, hours * HOUR_MS);
        EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 1500);
        expect_renewals(&s, 2);
        EXPECT(rlock_is_held(s.lk));
    }
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    scene_stop(&s);
}

TEST(shimmed, fault_093_nobody_looks_at_the_wall_clock)
{
    scene s = scene_server(NULL);
    shim_clear(shim_everywhere());
    scene_client(&s, 1500, 0);
    use_lock(&s);
    take_by_hand(s.sv, SCENE_LOCK, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 20, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    scene_free_client(&s);
    EXPECT_INT(shim_seen(shim_everywhere(), SHIM_WALL_CLOCK), 0);
    time(NULL);
    EXPECT_INT(shim_seen(shim_everywhere(), SHIM_WALL_CLOCK), 1);
    scene_stop(&s);
}
