/*
 * Faults of the client process: killed, stopped, out of descriptors; threads
 * that end or are canceled; callbacks that hang.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "dialer.h"

static void hold_in_child(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    (void)arg;
    opts.uri = child_take_uri(c);
    opts.watchdog_lease_ms = 1500;
    rlock_client *cl = server_client(NULL, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    child_tell(c, 'l');
    child_expect(c, 'g'); /* meanwhile it may be stopped, or killed */
    EXPECT(!rlock_is_held(lk));
    EXPECT_INT(rlock_token(lk), 0);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    child_tell(c, 'y');
    rlock_free(lk);
    rlock_client_free(cl);
}

/* The control: while the process lives its lock is renewed, and kept. */
static void expect_kept_by_child(scene *s)
{
    EXPECT_STATUS(rlock_acquire(s->lk, 2000, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
}

TEST(client, fault_078_the_lock_of_a_killed_process_is_free_with_its_lease)
{
    child *c = child_start(hold_in_child, NULL);
    scene s = scene_server(NULL);
    child_give_uri(c, s.sv);
    child_expect(c, 'l');
    scene_client(&s, 0, 0);
    expect_kept_by_child(&s);
    child_kill(c);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 1500 + 600);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(client, fault_079_a_process_stopped_for_longer_than_its_lease_has_lost)
{
    child *c = child_start(hold_in_child, NULL);
    scene s = scene_server(NULL);
    child_give_uri(c, s.sv);
    child_expect(c, 'l');
    scene_client(&s, 0, 0);
    expect_kept_by_child(&s);
    child_stop(c);
    uint64_t first = strtoull(
        server_str(s.sv, "GET rlock_token:{%s}", SCENE_LOCK), NULL, 10);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT(first > 0 && rlock_token(s.lk) > first);
    long long ttl_ms = server_int(s.sv, "PTTL %s", SCENE_LOCK);
    child_continue(c);
    child_tell(c, 'g');
    child_expect(c, 'y');
    child_end(c);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1); /* its late unlock hurt nobody */
    EXPECT(server_int(s.sv, "PTTL %s", SCENE_LOCK) <= ttl_ms);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* The watchdog hangs in the program's connect callback. */
TEST(client, fault_081_a_watchdog_that_hangs_delays_no_loss)
{
    dialer d = {0};
    scene s = scene_dialed(&d, 1500, 200);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    atomic_store(&d.hangs, true);
    int before = atomic_load(&d.dialed);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    EVENTUALLY(5000, atomic_load(&d.dialed) > before);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, 5000);
    EXPECT(!rlock_is_held(s.lk));
    atomic_store(&d.hangs, false);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(client, fault_083_an_unlock_during_a_renewal_is_an_unlock)
{
    scene s = scene_proxied(1500, 0);
    expect_undisturbed(&s); /* the control */
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REPLY, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_let_go(s.px);
    expect_renewals(&s, 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

/* Descriptors that a new program would inherit. */
static int inheritable(void)
{
    int n = 0;
    for (int fd = 3; fd < 256; fd++) {
        int flags = fcntl(fd, F_GETFD);
        n += flags >= 0 && !(flags & FD_CLOEXEC);
    }
    return n;
}

TEST(client, fault_085_no_descriptor_is_inherited_by_a_new_program)
{
    scene s = scene_server(NULL);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    int before = inheritable(), plain = open("/dev/null", O_RDONLY);
    EXPECT_INT(inheritable(), before + 1); /* the control */
    close(plain);
    scene_client(&s, 0, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 100, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    EXPECT_INT(inheritable(), before);
    scene_stop(&s);
}

static intptr_t lock_and_end(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    return 0;
}

static intptr_t lock_unlock_and_end(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(arg), RLOCK_OK);
    return 0;
}

TEST(client, fault_086_a_thread_that_ends_abandons_its_hold)
{
    scene s = scene_start(1500, 0);
    test_join(test_spawn(lock_unlock_and_end, s.lk)); /* the control */
    expect_nothing_left(s.sv);
    test_join(test_spawn(lock_and_end, s.lk));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 1);
    EXPECT_INT(stats_of(s.cl).held_now, 0);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_LOST), 0);
    scene_stop(&s);
}

static void *lock_until_canceled(void *arg)
{
    EXPECT_STATUS(rlock_lock(arg), RLOCK_OK);
    EXPECT(rlock_is_held(arg));
    pthread_testcancel();
    return NULL;
}

/* It takes effect when the call is over; nothing is left half-done. */
TEST(client, fault_090_a_thread_is_not_canceled_inside_a_call)
{
    scene s = scene_start(1500, 0);
    pthread_t thread;
    void *result;
    expect_undisturbed(&s); /* the control */
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    EXPECT_INT(pthread_create(&thread, NULL, lock_until_canceled, s.lk), 0);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_INT(pthread_cancel(thread), 0);
    EXPECT_STATUS(rlock_force_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(pthread_join(thread, &result), 0);
    EXPECT(result == PTHREAD_CANCELED);
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

typedef struct gate {
    atomic_bool entered, open;
    atomic_int left;
} gate;

static void hang(const rlock_event *ev, void *arg)
{
    gate *g = arg;
    if (ev->type != RLOCK_EVENT_LOST)
        return;
    atomic_store(&g->entered, true);
    while (!atomic_load(&g->open))
        test_pause_ms(1);
    atomic_fetch_add(&g->left, 1);
}

TEST(client, fault_096_a_callback_that_hangs_delays_neither_renewal_nor_loss)
{
    gate g = {.open = true};
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.watchdog_lease_ms = 1500;
    opts.on_event = hang;
    opts.event_arg = &g;
    rlock_client *cl = server_client(s.sv, &opts);
    rlock *lk = test_lock(cl, SCENE_LOCK), *kept = test_lock(cl, "kept");
    rlock *late = test_lock(cl, "late");
    EXPECT_STATUS(rlock_acquire(lk, 0, 100), RLOCK_OK); /* the control */
    EVENTUALLY(5000, atomic_load(&g.left) == 1);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_LOST);
    atomic_store(&g.open, false);
    atomic_store(&g.entered, false);
    /* The server may have the lost lock for some milliseconds yet. */
    EXPECT_STATUS(rlock_acquire(lk, 5000, 100), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(kept), RLOCK_OK);
    EVENTUALLY(5000, atomic_load(&g.entered));
    uint64_t before = stats_of(cl).renewals;
    EXPECT_STATUS(rlock_acquire(late, 0, 200), RLOCK_OK);
    EVENTUALLY(10000, stats_of(cl).renewals >= before + 4);
    EXPECT(rlock_is_held(kept));
    EXPECT(!rlock_is_held(late));
    EXPECT_STATUS(rlock_unlock(late), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(kept), RLOCK_OK);
    atomic_store(&g.open, true);
    rlock_client_free(cl);
    rlock_free(lk);
    rlock_free(kept);
    rlock_free(late);
    scene_stop(&s);
}

TEST(client, fault_098_thousands_of_locks_are_renewed)
{
    enum { N = 3000 };
    scene s = scene_start(4500, 0);
    expect_undisturbed(&s); /* the control */
    rlock **lk = calloc(N, sizeof *lk);
    char name[16];
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "lock%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    expect_renewals(&s, 2 * N);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    EXPECT_INT(stats_of(s.cl).held_now, N);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(rlock_unlock(lk[i]), RLOCK_OK);
        rlock_free(lk[i]);
    }
    free(lk);
    scene_stop(&s);
}
