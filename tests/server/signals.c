/* The library and the signals of somebody else's process. */
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "dialer.h"

/* Death by SIGPIPE would be the failure. */
static void use_dead_connections(rlock_client *cl, server *sv)
{
    rlock *lk = test_lock(cl, SCENE_LOCK), *other = test_lock(cl, "other");
    for (int i = 0; i < 5; i++) {
        rlock_status s = rlock_acquire(lk, SOON, RLOCK_WATCHDOG);
        EXPECT(s == RLOCK_OK || s == RLOCK_LOST);
        EXPECT_STATUS(rlock_client_ping(cl), RLOCK_OK);
        server_restart(sv);
        s = rlock_trylock(other);
        EXPECT(s == RLOCK_OK || s == RLOCK_EIO || s == RLOCK_LOST);
        rlock_unlock(lk);
        rlock_unlock(other);
    }
    server_kill(sv);
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
        EXPECT_STATUS(rlock_client_ping(cl), RLOCK_EIO);
    }
    rlock_free(lk);
    rlock_free(other);
}

static void survive_the_server(server *sv, const rlock_options *opts)
{
    rlock_options own = *opts;
    own.watchdog_lease_ms = BRISK_MS;
    EXPECT(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    rlock_client *cl = server_client(sv, &own);
    use_dead_connections(cl, sv);
    rlock_client_free(cl);
    server_stop(sv);
}

TEST(signals, no_sigpipe_when_a_server_on_a_unix_socket_goes_away)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    survive_the_server(server_start(NULL), &opts);
}

TEST(signals, no_sigpipe_when_a_server_on_tcp_goes_away)
{
    server *sv = server_start_tcp(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://127.0.0.1:%d", server_port(sv));
    opts.uri = uri;
    survive_the_server(sv, &opts);
}

TEST(signals, no_sigpipe_on_a_connection_of_the_callback)
{
    server *sv = server_start(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.connect = connect_plainly;
    opts.connect_arg = (void *)server_path(sv);
    survive_the_server(sv, &opts);
}

typedef struct signals {
    struct sigaction action[NSIG];
    sigset_t mask, pending;
} signals;

static void read_signals(signals *s)
{
    memset(s, 0, sizeof *s);
    for (int i = 1; i < NSIG; i++)
        sigaction(i, NULL, &s->action[i]);
    pthread_sigmask(SIG_SETMASK, NULL, &s->mask);
    sigpending(&s->pending);
}

static void expect_same_signals(const signals *before)
{
    signals now;
    read_signals(&now);
    for (int i = 1; i < NSIG; i++) {
        if (now.action[i].sa_handler != before->action[i].sa_handler ||
            now.action[i].sa_flags != before->action[i].sa_flags ||
            sigismember(&now.mask, i) != sigismember(&before->mask, i) ||
            sigismember(&now.pending, i) != sigismember(&before->pending, i))
            FAIL("signal %d is not as it was", i);
    }
}

TEST(signals, signal_dispositions_and_mask_are_left_alone)
{
    signals before;
    sigset_t some;
    server *sv = server_start(NULL);
    sigemptyset(&some);
    sigaddset(&some, SIGUSR1);
    EXPECT_INT(pthread_sigmask(SIG_BLOCK, &some, NULL), 0);
    signal(SIGPIPE, SIG_DFL);
    server_cmd(sv, "PING");
    read_signals(&before);
    rlock_client *cl = server_client(sv, NULL);
    expect_same_signals(&before);
    rlock *lk = test_lock(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    test_thread *t = test_spawn(lock_once, lk);
    EVENTUALLY(SOON, stats_of(cl).waiting_now == 1);
    expect_same_signals(&before);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    test_join(t);
    server_kill(sv);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EIO);
    expect_same_signals(&before);
    rlock_free(lk);
    rlock_client_free(cl);
    expect_same_signals(&before);
    server_stop(sv);
}

static volatile sig_atomic_t ticks;

static void on_tick(int sig)
{
    (void)sig;
    ticks = ticks + 1;
}

/* SIGALRM every so often, and system calls are not restarted after it. */
static void storm(int every_us)
{
    struct sigaction act = {.sa_handler = on_tick};
    struct itimerval timer = {{0, every_us}, {0, every_us}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static void calm(void)
{
    struct itimerval timer = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &timer, NULL);
}

TEST(signals, a_storm_of_signals_disturbs_nothing)
{
    need_host_names();
    server *sv = server_start_tcp(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[64];
    snprintf(uri, sizeof uri, "redis://localhost:%d", server_port(sv));
    opts.uri = uri;
    storm(150);
    int64_t until = test_now_ms() + 300;
    do {
        rlock_client *cl = server_client(sv, &opts);
        rlock *lk = test_lock(cl, SCENE_LOCK);
        for (int i = 0; i < 20; i++)
            lock_once(lk);
        EXPECT_INT(stats_of(cl).reconnects, 0);
        rlock_free(lk);
        rlock_client_free(cl);
    } while (test_now_ms() < until);
    calm();
    EXPECT(ticks > 20);
    server_stop(sv);
}

TEST(signals, a_storm_of_signals_stretches_no_deadline)
{
    scene s = scene_held(0, 400);
    rlock *other = test_lock(s.cl, "other");
    rlock_client *second = server_client(s.sv, NULL);
    rlock *same = test_lock(second, SCENE_LOCK);
    storm(2000);
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(same, 500, 1000), RLOCK_TIMEOUT);
    EXPECT_BETWEEN(test_now_ms() - began, 499, 500 + 500);
    server_pause(s.sv);
    began = test_now_ms();
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began, 399, 400 + 500);
    began = test_now_ms();
    EXPECT_STATUS(rlock_trylock(other), RLOCK_EIO);
    EXPECT_BETWEEN(test_now_ms() - began, 399, 400 + 500);
    calm();
    EXPECT(ticks > 100);
    server_resume(s.sv);
    rlock_free(other);
    rlock_free(same);
    rlock_client_free(second);
    scene_stop(&s);
}
