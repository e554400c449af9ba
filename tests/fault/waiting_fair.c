/*
 * What reviews found wrong in waiting, each as a test that failed before it was
 * put right. The names say what is right.
 */
#include <stdatomic.h>

#include "other_client.h"

/* Not one lease for each. */
TEST(waiting_fair, all_who_wait_give_a_dead_server_up_together)
{
    enum { N = 4, LEASE_MS = 500 };
    scene s = scene_start(LEASE_MS, 0);
    waiter *w[N];
    int64_t at_ms, first_ms = INT64_MAX, last_ms = 0;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    for (int i = 0; i < N; i++)
        w[i] = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, N);
    server_kill(s.sv);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(waiter_status(w[i], &at_ms), RLOCK_EIO);
        first_ms = at_ms < first_ms ? at_ms : first_ms;
        last_ms = at_ms > last_ms ? at_ms : last_ms;
        waiter_end(w[i]);
    }
    EXPECT_BETWEEN(last_ms - first_ms, 0, LEASE_MS);
    scene_stop(&s);
}

TEST(waiting_fair, a_bell_that_breaks_at_once_is_connected_with_pauses)
{
    scene s = scene_start(0, 0);
    long long killed = 0;
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t until_ms = test_now_ms() + 1000;
    while (test_now_ms() < until_ms) {
        killed += server_int(s.sv, "CLIENT KILL TYPE pubsub");
        test_pause_ms(1);
    }
    EXPECT_BETWEEN(killed, 2, 10);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}

/* A bell that the test hears, and follows when it likes. */
typedef struct bystander {
    server *sv;
    redisContext *cx;
} bystander;

static bystander bystander_start(server *sv)
{
    bystander b = {sv, redisConnectUnix(server_path(sv))};
    EXPECT(b.cx && !b.cx->err);
    redisReply *r = redisCommand(b.cx, "SUBSCRIBE rlock_bell:bystander");
    EXPECT(r && r->type == REDIS_REPLY_ARRAY);
    freeReplyObject(r);
    return b;
}

static void bystander_queues(bystander *b)
{
    EXPECT_INT(server_int(b->sv, "ZADD rlock_queue:{%s} 1 rlock_bell:bystander",
                          SCENE_LOCK),
               1);
}

TEST(waiting_fair, making_way_for_a_client_is_not_contending)
{
    scene s = scene_start(0, 0);
    bystander b = bystander_start(s.sv);
    for (int i = 0; i < 50; i++) {
        EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
        bystander_queues(&b);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
        EXPECT_INT(queued(s.sv, SCENE_LOCK), 0);
        EXPECT_STATUS(rlock_acquire(s.lk, 5000, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    }
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_CONTENDED), 0);
    EXPECT_INT(stats_of(s.cl).acquires_contended, 0);
    redisFree(b.cx);
    scene_stop(&s);
}

/* A release, with an answer that takes 60 ms and more; then how long the next
   acquire takes. */
static int64_t acquire_after_a_slow_release(scene *s, bystander *rung,
                                            int64_t wait_ms)
{
    EXPECT_STATUS(rlock_lock(s->lk), RLOCK_OK);
    if (rung)
        bystander_queues(rung);
    proxy_rule(s->px, proxy_sha("release"), 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    int64_t began_us = test_now_us();
    EXPECT_STATUS(rlock_acquire(s->lk, wait_ms, RLOCK_WATCHDOG), RLOCK_OK);
    int64_t took_us = test_now_us() - began_us;
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    return took_us;
}

/* For as long as its own way to the server takes, but at most 20 ms. */
TEST(waiting_fair, a_client_is_held_back_only_where_its_release_rang_another)
{
    scene s = scene_proxied(0, 0);
    bystander b = bystander_start(s.sv);
    int64_t alone_us = INT64_MAX, hasty_us = INT64_MAX, polite_us = 0, us;
    for (int i = 0; i < 3; i++) {
        us = acquire_after_a_slow_release(&s, NULL, 5000);
        alone_us = us < alone_us ? us : alone_us;
        us = acquire_after_a_slow_release(&s, &b, 0);
        hasty_us = us < hasty_us ? us : hasty_us;
        us = acquire_after_a_slow_release(&s, &b, 5000);
        polite_us = us > polite_us ? us : polite_us;
    }
    EXPECT_BETWEEN(alone_us, 0, 10000);
    EXPECT_BETWEEN(hasty_us, 0, 10000);
    EXPECT(polite_us >= 10000);
    redisFree(b.cx);
    scene_stop(&s);
}

typedef struct player {
    rlock_client *cl;
    rlock *lk;
    atomic_bool *stop;
    atomic_int turns;
    test_thread *thread;
} player;

static intptr_t play(void *arg)
{
    player *p = arg;
    while (!atomic_load(p->stop)) {
        EXPECT_STATUS(rlock_lock(p->lk), RLOCK_OK);
        atomic_fetch_add(&p->turns, 1);
        test_pause_ms(1); /* the other falls asleep */
        EXPECT_STATUS(rlock_unlock(p->lk), RLOCK_OK);
    }
    return 0;
}

static void join_in(player *p, scene *s, const rlock_options *opts,
                    atomic_bool *stop)
{
    p->cl = server_client(s->sv, opts);
    p->lk = test_lock(p->cl, SCENE_LOCK);
    p->stop = stop;
    p->thread = test_spawn(play, p);
}

static void leave_game(player *p)
{
    test_join(p->thread);
    rlock_free(p->lk);
    rlock_client_free(p->cl);
}

/* The second one is a little further from the server. */
TEST(waiting_fair, clients_that_lock_without_a_pause_all_get_turns)
{
    enum { TURNS = 300 };
    scene s = scene_server(NULL);
    s.px = proxy_start(s.sv);
    rlock_options further = RLOCK_OPTIONS_INIT;
    further.uri = proxy_uri(s.px);
    atomic_bool stop = false;
    player a = {0}, b = {0};
    join_in(&a, &s, NULL, &stop);
    join_in(&b, &s, &further, &stop);
    EVENTUALLY(5000, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 2);
    int a_before = atomic_load(&a.turns), b_before = atomic_load(&b.turns);
    int a_turns, b_turns;
    do {
        test_pause_ms(1);
        a_turns = atomic_load(&a.turns) - a_before;
        b_turns = atomic_load(&b.turns) - b_before;
    } while (a_turns + b_turns < TURNS);
    atomic_store(&stop, true);
    leave_game(&a);
    leave_game(&b);
    EXPECT(a_turns >= TURNS / 10);
    EXPECT(b_turns >= TURNS / 10);
    scene_stop(&s);
}
