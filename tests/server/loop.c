/*
 * Nothing on the client's loop blocks, whatever servers do: renewals, rings and
 * losses of all servers wait for each other there.
 */
#include "loop.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cluster_scene.h"
#include "loop_thread.h"
#include "nodes.h"
#include "other_client.h"
#include "replica_scene.h"
#include "rlock_config.h"
#include "sentinels.h"
#include "storm.h"

enum { LOCKS = 100 };

/* Of its own time: here mostly 0.1 to 0.2 ms, with thousands up to 0.8. A build
   with sanitizers takes longer. */
#define LONGEST_US (SANITIZED ? 100000 : 5000)

static void expect_it_never_blocked(void)
{
    EXPECT(loop_thread_turns() > 10);
    EXPECT_STR(loop_thread_blocked_in(), "");
    EXPECT_INT(loop_thread_blocked(), 0);
    EXPECT_BETWEEN(loop_thread_longest_us(), 1, LONGEST_US);
}

static void take_many(rlock_client *cl, rlock *lk[LOCKS])
{
    char name[16];
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "many%d", i);
        lk[i] = test_lock(cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
}

/* Whether they are still held or not. */
static void give_back(rlock *lk[LOCKS])
{
    for (int i = 0; i < LOCKS; i++) {
        rlock_unlock(lk[i]);
        rlock_free(lk[i]);
    }
}

static void expect_news(const scene *s, rlock_event_type type)
{
    int before = events_count(s->ev, type);
    EVENTUALLY(SOON, events_count(s->ev, type) > before);
}

TEST(loop, does_not_block_while_a_server_hangs_breaks_and_starts_anew)
{
    rlock *lk[LOCKS];
    scene s = scene_held_proxied(BRISK_MS, 300);
    take_many(s.cl, lk);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    proxy_cut_all(s.px);
    expect_news(&s, RLOCK_EVENT_RECONNECTED);
    server_pause(s.sv);
    expect_news(&s, RLOCK_EVENT_RENEW_FAILED);
    server_resume(s.sv);
    expect_renewals(&s, LOCKS);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    expect_news(&s, RLOCK_EVENT_RENEW_FAILED);
    proxy_refuse(s.px, false);
    expect_renewals(&s, LOCKS);
    server_cmd(s.sv, "FLUSHALL");
    EVENTUALLY(SOON, stats_of(s.cl).lost >= LOCKS);
    rlock_cancel(s.lk);
    waiter_end(w);
    give_back(lk);
    scene_stop(&s);
    expect_it_never_blocked();
}

/* The connection is there: those who wait until one has been made all go on in the
   same turn. */
static void connect_for_jobs(scene *s)
{
    request r = request_new(s->lk);
    EXPECT_STATUS(loop_acquire(s->cl, &r, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(loop_unlock(s->cl, &r), RLOCK_OK);
    request_free(&r);
}

TEST(loop, does_not_block_while_thousands_have_been_started)
{
    scene s = scene_start(BRISK_MS, 0);
    connect_for_jobs(&s);
    storm st = storm_new(s.cl, 2000);
    storm_acquire(&st, SOON, RLOCK_WATCHDOG);
    storm_settle(&st, 1);
    storm_expect(&st, RLOCK_OK);
    expect_renewals(&s, 2000);
    storm_unlock(&st);
    storm_settle(&st, 2);
    storm_free(&st);
    scene_stop(&s);
    expect_it_never_blocked();
}

/* Clients that the server rings: the lock goes from one to the other. */
TEST(loop, does_not_block_while_waiters_are_rung)
{
    enum { WAITERS = 16 };
    test_thread *t[WAITERS];
    scene s = scene_held(BRISK_MS, 0);
    other_client r = other_client_join(&s, NULL);
    for (int i = 0; i < WAITERS; i++)
        t[i] = test_spawn(lock_once, i % 2 ? r.lk : s.lk);
    waiters_settle(s.sv, 2, s.cl, WAITERS / 2);
    EVENTUALLY(SOON, stats_of(r.cl).waiting_now == WAITERS / 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    for (int i = 0; i < WAITERS; i++)
        test_join(t[i]);
    other_client_leave(&r);
    scene_stop(&s);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_replicas_are_waited_for)
{
    rlock *lk[LOCKS];
    replica_scene f = replica_scene_start(1, 1, BRISK_MS);
    take_many(f.s.cl, lk);
    expect_renewals(&f.s, LOCKS);
    replica_scene_cut_off(&f, 0);
    EVENTUALLY(SOON, stats_of(f.s.cl).lost > 0);
    give_back(lk);
    replica_scene_stop(&f);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_a_server_that_speaks_tls_hangs)
{
#ifndef RL_HAS_OPENSSL
    SKIP("rlock was built without OpenSSL");
#endif
    rlock *lk[LOCKS];
    rlock_options o = RLOCK_OPTIONS_INIT;
    authority *a = authority_new();
    server *sv = server_start(NULL);
    o.uri = secure_uri("127.0.0.1", secure_listen(sv, a, "server", "no"));
    o.tls_ca_file = authority_file(a, "ca");
    o.watchdog_lease_ms = BRISK_MS;
    o.command_timeout_ms = 300;
    scene s = scene_with(sv, &o);
    take_many(s.cl, lk);
    expect_renewals(&s, LOCKS);
    server_pause(sv);
    expect_news(&s, RLOCK_EVENT_RENEW_FAILED);
    server_resume(sv);
    expect_news(&s, RLOCK_EVENT_RECONNECTED);
    expect_renewals(&s, LOCKS);
    give_back(lk);
    scene_stop(&s);
    authority_free(a);
    expect_it_never_blocked();
}

/* Nobody dispatches: it is the loop that has them all go on. */
TEST(loop, does_not_block_while_thousands_go_on_that_waited_for_a_connection)
{
    scene s = scene_start(0, SOON);
    storm st = storm_new(s.cl, 4000);
    server_pause(s.sv);
    storm_acquire(&st, SOON, RLOCK_WATCHDOG);
    test_pause_ms(600); /* 256 get so far at once, and later more */
    server_resume(s.sv);
    EVENTUALLY(SOON, stats_of(s.cl).acquires == 4000);
    storm_settle(&st, 1);
    storm_unlock(&st);
    storm_settle(&st, 2);
    storm_free(&st);
    scene_stop(&s);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_a_client_is_freed_in_the_midst_of_all)
{
    rlock *lk[LOCKS];
    scene s = scene_proxied(BRISK_MS, 300);
    take_many(s.cl, lk);
    connect_for_jobs(&s);
    storm st = storm_new(s.cl, 500);
    storm_acquire(&st, SOON, RLOCK_WATCHDOG);
    storm_settle(&st, 1);
    server_pause(s.sv);
    storm_unlock(&st);
    rlock_client_free(s.cl);
    s.cl = NULL;
    server_resume(s.sv);
    storm_free(&st);
    for (int i = 0; i < LOCKS; i++)
        rlock_free(lk[i]);
    rlock_free(s.lk);
    s.lk = NULL;
    scene_stop(&s);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_nodes_of_a_red_lock_hang)
{
    nodes ns = nodes_proxied(5);
    party p = party_join(&ns, BRISK_MS, 2000);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, party_holding(&p) == 5);
    proxy_freeze(ns.px[0], true);
    server_pause(ns.sv[1]);
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    }
    uint64_t before = stats_of(p.cl[2]).renewals;
    EVENTUALLY(SOON, stats_of(p.cl[2]).renewals >= before + 3);
    proxy_freeze(ns.px[0], false);
    server_resume(ns.sv[1]);
    EVENTUALLY(SOON, nodes_having(&ns) == 5);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_end(&p, &ns);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_a_master_of_a_cluster_is_replaced)
{
    rlock *lk[LOCKS];
    cluster_scene l;
    cluster_scene_start(&l, 9000); /* it outlives the failover */
    take_many(l.cl, lk);
    server_kill(cluster_server(l.c, 0));
    EVENTUALLY(SOON, stats_of(l.cl).failovers > 0);
    uint64_t before = stats_of(l.cl).renewals;
    EVENTUALLY(SOON, stats_of(l.cl).renewals >= before + LOCKS / 2);
    give_back(lk);
    cluster_scene_stop(&l);
    expect_it_never_blocked();
}

TEST(loop, does_not_block_while_sentinels_hang_and_fail_over)
{
    rlock *lk[LOCKS];
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *by = sentinels_start(master, 3);
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.uri = sentinels_uri(by);
    scene s = scene_with(master, &o);
    take_many(s.cl, lk);
    EVENTUALLY(SOON, replica_follows(master));
    sentinels_await_client(by, 3);
    sentinels_pause(by, 0);
    server_kill(master);
    events_wait(s.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    give_back(lk);
    scene_leave(&s);
    sentinels_stop(by);
    server_stop(replica);
    server_stop(master);
    expect_it_never_blocked();
}

/* --- what is seen of it ---------------------------------------------------- */

/* Two ends of a connection, with a byte to read at each. */
static void make_ends(int fd[2], int flags)
{
    EXPECT_INT(socketpair(AF_UNIX, SOCK_STREAM | flags, 0, fd), 0);
    EXPECT_INT(send(fd[0], "x", 1, MSG_DONTWAIT), 1);
    EXPECT_INT(send(fd[1], "x", 1, MSG_DONTWAIT), 1);
}

static void exchange(int flags, int how)
{
    char byte;
    int fd[2];
    make_ends(fd, flags);
    EXPECT_INT(recv(fd[0], &byte, 1, how), 1);
    EXPECT_INT(send(fd[0], "x", 1, how), 1);
    close(fd[0]);
    close(fd[1]);
}

/* It would have the name of the thread that started it. */
static void *pause_for(void *ms)
{
    pthread_setname_np(pthread_self(), "another");
    test_pause_ms(*(int *)ms);
    return NULL;
}

static void join_who_works(void)
{
    pthread_t t;
    int ms = 200;
    EXPECT_INT(pthread_create(&t, NULL, pause_for, &ms), 0);
    pthread_join(t, NULL);
}

static void wait_on_a_condition(void)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    struct timespec long_ago = {.tv_sec = 1};
    pthread_mutex_lock(&m);
    pthread_cond_timedwait(&c, &m, &long_ago);
    pthread_mutex_unlock(&m);
}

static void sleep_shortly(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1}, NULL);
}

static void await_nobody(void)
{
    poll(NULL, 0, 1);
}

static void connect_nowhere(void)
{
    connect(-1, NULL, 0);
}

static void exchange_and_wait(void)
{
    exchange(0, 0);
}

static void look_up(void)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST}, *found = NULL;
    EXPECT_INT(getaddrinfo("127.0.0.1", NULL, &hints, &found), 0);
    freeaddrinfo(found);
}

static void read_and_write(void)
{
    char byte;
    int fd[2];
    make_ends(fd, 0);
    EXPECT_INT(read(fd[0], &byte, 1), 1);
    EXPECT_INT(write(fd[0], "x", 1), 1);
    close(fd[0]);
    close(fd[1]);
}

/* What may not wait. */
static void exchange_at_once(void)
{
    poll(NULL, 0, 0);
    exchange(0, MSG_DONTWAIT);
    exchange(SOCK_NONBLOCK, 0);
}

static void *run_as_the_loop(void *fn)
{
    pthread_setname_np(pthread_self(), "rlock-loop");
    (*(void (**)(void))fn)();
    return NULL;
}

static void on_the_loop(void (*fn)(void))
{
    pthread_t t;
    EXPECT_INT(pthread_create(&t, NULL, run_as_the_loop, &fn), 0);
    pthread_join(t, NULL);
}

static void expect_seen(void (*fn)(void), int calls, const char *last)
{
    int before = loop_thread_blocked();
    on_the_loop(fn);
    EXPECT_INT(loop_thread_blocked() - before, calls);
    EXPECT_STR(loop_thread_blocked_in(), last);
}

TEST(loop, whatever_may_block_it_is_seen)
{
    expect_seen(await_nobody, 1, "poll");
    expect_seen(connect_nowhere, 1, "connect");
    expect_seen(look_up, 1, "getaddrinfo");
    expect_seen(wait_on_a_condition, 1, "pthread_cond_timedwait");
    expect_seen(join_who_works, 1, "pthread_join");
    expect_seen(sleep_shortly, 1, "nanosleep");
    expect_seen(exchange_and_wait, 2, "send");
    expect_seen(read_and_write, 2, "write");
    expect_seen(exchange_at_once, 0, "write");
    read_and_write(); /* on another thread */
    EXPECT_INT(loop_thread_blocked(), 10);
}

static void compute_for_20_ms(void)
{
    struct timespec t;
    struct pollfd p = {.fd = eventfd(0, EFD_CLOEXEC)};
    EXPECT(p.fd >= 0);
    poll(&p, 1, 0);
    do
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    while (t.tv_sec == 0 && t.tv_nsec < 20000000);
    poll(&p, 1, 0);
    close(p.fd);
}

TEST(loop, a_long_turn_is_seen)
{
    on_the_loop(compute_for_20_ms);
    EXPECT_BETWEEN(loop_thread_longest_us(), 10000, 1000000);
    EXPECT_INT(loop_thread_turns(), 2);
}
