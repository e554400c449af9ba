/*
 * How a server is checked that a client relies on: once, on one connection,
 * whatever else is opened meanwhile, and so that nothing of it is taken for the
 * answer to what is asked there next. Of a lazy client several threads may open
 * the first ones.
 */
#include <stdatomic.h>

#include "cluster.h"
#include "loop.h"
#include "nodes.h"

/* A scene whose client has not met its server yet. */
static scene scene_unmet(const char *needle, proxy_action action)
{
    scene s = scene_server(NULL);
    s.px = proxy_start(s.sv);
    s.opts = (rlock_options)RLOCK_OPTIONS_INIT;
    s.opts.uri = proxy_uri(s.px);
    s.opts.lazy = true;
    s.opts.connect_timeout_ms = s.opts.command_timeout_ms = SOON;
    proxy_refuse(s.px, true);
    s.cl = server_client(s.sv, &s.opts);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    proxy_forget(s.px);
    proxy_rule(s.px, needle, 1, action, NULL);
    proxy_refuse(s.px, false);
    return s;
}

static void unmet_stop(scene *s)
{
    scene_free_client(s);
    proxy_stop(s->px);
    server_stop(s->sv);
}

/* Each answer is that to its own question, on whatever connection. */
static void expect_sound(scene *s)
{
    uint64_t last = 0;
    char holder[300];
    int count;
    for (int i = 0; i < 20; i++) {
        EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_OK);
        EXPECT(rlock_token(s->lk) > last);
        last = rlock_token(s->lk);
        read_lock(s->sv, holder, sizeof holder, &count);
        EXPECT_INT(count, 1);
        EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
        EXPECT(!key_exists(s->sv, SCENE_LOCK));
        EXPECT_STATUS(rlock_client_ping(s->cl), RLOCK_OK);
    }
}

static intptr_t try_once(void *lk)
{
    rlock_status s = rlock_trylock(lk);
    return s != RLOCK_OK ? s : rlock_unlock(lk);
}

/*
 * The caller's connection, and the keeper's, are there at once; one of them
 * listens, when the other one's probe would ring.
 */
TEST(lazy, a_server_is_checked_on_one_connection)
{
    scene s = scene_unmet("UNSUBSCRIBE", PROXY_HOLD_REQUEST);
    test_thread *first = test_spawn(try_once, s.lk);
    EVENTUALLY(SOON, proxy_fired(s.px));
    EVENTUALLY(SOON, proxy_count(s.px, "PING") >= 2);
    proxy_let_go(s.px);
    EXPECT_STATUS((rlock_status)test_join(first), RLOCK_OK);
    expect_sound(&s);
    EXPECT_INT(proxy_count(s.px, "UNSUBSCRIBE"), 1);
    unmet_stop(&s);
}

/* The next one has to do it, and says what came of that. */
TEST(lazy, a_check_that_failed_is_made_again)
{
    scene s = scene_unmet("UNSUBSCRIBE", PROXY_CUT_BEFORE);
    EVENTUALLY(SOON, try_once(s.lk) == RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(proxy_count(s.px, "UNSUBSCRIBE"), 2);
    expect_sound(&s);
    unmet_stop(&s);
}

static intptr_t new_client(void *arg)
{
    scene *s = arg;
    return rlock_client_new(&s->opts, &s->cl);
}

/* What somebody says on the channel that is tried is not the answer to that. */
static void ring_while_checked(scene *s)
{
    EVENTUALLY(SOON, proxy_fired(s->px));
    redisReply *r = server_cmd(s->sv, "PUBSUB CHANNELS rlock_bell:*");
    EXPECT_INT(r->elements, 1);
    char bell[100];
    snprintf(bell, sizeof bell, "%s", r->element[0]->str);
    EXPECT_INT(server_int(s->sv, "PUBLISH %s job", bell), 1);
    proxy_let_go(s->px);
}

TEST(lazy, a_ring_is_no_answer_to_the_check_of_the_server)
{
    scene s = scene_unmet("UNSUBSCRIBE", PROXY_HOLD_REQUEST);
    test_thread *first = test_spawn(try_once, s.lk);
    ring_while_checked(&s);
    EXPECT_STATUS((rlock_status)test_join(first), RLOCK_OK);
    expect_sound(&s);
    EXPECT_INT(stats_of(s.cl).reconnects, 0);
    unmet_stop(&s);
}

TEST(lazy, a_ring_is_no_answer_while_a_client_is_made)
{
    scene s = scene_server(NULL);
    s.px = proxy_start(s.sv);
    s.ev = events_new();
    s.opts = (rlock_options)RLOCK_OPTIONS_INIT;
    events_hook(s.ev, &s.opts);
    s.opts.uri = proxy_uri(s.px);
    s.opts.connect_timeout_ms = s.opts.command_timeout_ms = SOON;
    s.opts.watchdog_lease_ms = BRISK_MS;
    proxy_rule(s.px, "UNSUBSCRIBE", 1, PROXY_HOLD_REQUEST, NULL);
    test_thread *maker = test_spawn(new_client, &s);
    ring_while_checked(&s);
    EXPECT_STATUS((rlock_status)test_join(maker), RLOCK_OK);
    s.lk = test_lock(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    expect_renewals(&s, 2);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    expect_sound(&s);
    EXPECT_INT(stats_of(s.cl).reconnects, 0);
    EXPECT_INT(stats_of(s.cl).renew_failures, 0);
    scene_stop(&s);
}

/* --- threads that begin at once ------------------------------------------- */

enum { THREADS = 8, ROUNDS = 30, SECTIONS = 5 };

/* Clients of all nodes, none of which has met its server. */
typedef struct unmet {
    size_t n;
    int64_t connect_ms;
    proxy *px[RLOCK_RED_MAX];
    char uri[RLOCK_RED_MAX][100];
    rlock_client *cl[RLOCK_RED_MAX];
} unmet;

static rlock *lock_of(const unmet *u)
{
    rlock *lk;
    if (u->n == 1)
        return test_lock(u->cl[0], SCENE_LOCK);
    EXPECT_STATUS(rlock_red_new(u->cl, u->n, SCENE_LOCK, &lk), RLOCK_OK);
    return lk;
}

typedef struct crowd {
    const unmet *of;
    atomic_int ready, inside, entered;
    atomic_uint_fast64_t last;
} crowd;

static void enter(crowd *c, rlock *lk)
{
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT_INT(atomic_fetch_add(&c->inside, 1), 0);
    uint64_t token = rlock_token(lk);
    EXPECT(token > atomic_exchange(&c->last, token));
    atomic_fetch_add(&c->entered, 1);
    atomic_fetch_sub(&c->inside, 1);
    rlock_status s = rlock_unlock(lk); /* a node may be slow to answer */
    EXPECT(s == RLOCK_OK || (s == RLOCK_EQUORUM && c->of->n > 1));
}

static intptr_t begin_at_once(void *arg)
{
    crowd *c = arg;
    rlock *lk = lock_of(c->of);
    atomic_fetch_add(&c->ready, 1);
    while (atomic_load(&c->ready) < THREADS)
        ;
    for (int i = 0; i < SECTIONS; i++)
        enter(c, lk);
    rlock_free(lk);
    return 0;
}

static unmet unmet_of(proxy *const px[], size_t n, const char *scheme)
{
    unmet u = {.n = n, .connect_ms = SOON};
    for (size_t i = 0; i < n; i++) {
        u.px[i] = px[i];
        snprintf(u.uri[i], sizeof u.uri[i], "%s%s", scheme,
                 strstr(proxy_uri(px[i]), "://"));
    }
    return u;
}

static void meet_nobody(unmet *u)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.lazy = true;
    opts.connect_timeout_ms = u->connect_ms;
    opts.command_timeout_ms = SOON;
    if (u->n > 1) /* for so long, no node votes */
        opts.watchdog_lease_ms = 3 * BRISK_MS;
    for (size_t i = 0; i < u->n; i++) {
        proxy_refuse(u->px[i], true);
        opts.uri = u->uri[i];
        EXPECT_STATUS(rlock_client_new(&opts, &u->cl[i]), RLOCK_OK);
    }
    for (size_t i = 0; i < u->n; i++)
        proxy_refuse(u->px[i], false);
}

static void free_clients(unmet *u)
{
    for (size_t i = 0; i < u->n; i++)
        rlock_client_free(u->cl[i]);
}

static void round_of_threads(unmet *u)
{
    crowd c = {.of = u};
    test_thread *t[THREADS];
    meet_nobody(u);
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(begin_at_once, &c);
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    EXPECT_INT(atomic_load(&c.entered), THREADS * SECTIONS);
    free_clients(u);
}

TEST(lazy, threads_that_begin_at_once_exclude_each_other)
{
    server *sv = server_start(NULL);
    proxy *px = proxy_start(sv);
    unmet u = unmet_of(&px, 1, "unix");
    for (int i = 0; i < ROUNDS; i++)
        round_of_threads(&u);
    proxy_stop(px);
    server_stop(sv);
}

TEST(lazy, threads_that_begin_at_once_at_a_majority_exclude_each_other)
{
    nodes ns = nodes_proxied(3);
    unmet u = unmet_of(ns.px, 3, "unix");
    for (int i = 0; i < ROUNDS / 3; i++)
        round_of_threads(&u);
    nodes_stop(&ns);
}

TEST(lazy, threads_that_begin_at_once_in_a_cluster_exclude_each_other)
{
    cluster *c = cluster_start();
    proxy *px = proxy_start_tcp(cluster_server(c, 0));
    unmet u = unmet_of(&px, 1, "redis-cluster");
    u.connect_ms = 300; /* for three times that it is looked for */
    for (int i = 0; i < ROUNDS / 5; i++)
        round_of_threads(&u);
    proxy_stop(px);
    cluster_stop(c);
}

/* Its first connection leads to a server that is a replica by now. */
TEST(lazy, a_failover_before_the_first_lock_of_a_cluster_is_followed)
{
    cluster *c = cluster_start();
    proxy *px = proxy_start_tcp(cluster_server(c, 0));
    unmet u = unmet_of(&px, 1, "redis-cluster");
    u.connect_ms = 300;
    meet_nobody(&u);
    EVENTUALLY(SOON, stats_of(u.cl[0]).nodes > 0);
    rlock *lk = test_lock(u.cl[0], cluster_name_on(c, 1, "job"));
    cluster_fail_over(c, 4);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    rlock_free(lk);
    free_clients(&u);
    proxy_stop(px);
    cluster_stop(c);
}

/* What is started by a loop, which goes on from callback to callback. */
typedef struct begun {
    request r[THREADS];
    rlock *lk;
    uint64_t last;
    int inside, left;
} begun;

static uint64_t token_of(request *r)
{
    rlock_owner *former = rlock_owner_set(r->owner);
    uint64_t token = rlock_token(r->lk);
    rlock_owner_set(former);
    return token;
}

static void go_on(request *r)
{
    begun *b = r->arg;
    EXPECT_STATUS(r->status, RLOCK_OK);
    if (!request_holds(r)) {
        b->left++;
        return;
    }
    EXPECT(token_of(r) > b->last);
    b->last = token_of(r);
    EXPECT_STATUS(request_unlock(r), RLOCK_OK);
}

static void round_of_starts(unmet *u)
{
    begun b = {.left = 0};
    meet_nobody(u);
    b.lk = test_lock(u->cl[0], SCENE_LOCK);
    for (int i = 0; i < THREADS; i++) {
        b.r[i] = request_new(b.lk);
        b.r[i].then = go_on;
        b.r[i].arg = &b;
        EXPECT_STATUS(request_acquire(&b.r[i], RLOCK_FOREVER, RLOCK_WATCHDOG),
                      RLOCK_OK);
    }
    LOOP_UNTIL(u->cl[0], b.left == THREADS);
    for (int i = 0; i < THREADS; i++)
        request_free(&b.r[i]);
    rlock_free(b.lk);
    free_clients(u);
}

TEST(lazy, what_is_started_at_once_excludes_each_other)
{
    server *sv = server_start(NULL);
    proxy *px = proxy_start(sv);
    unmet u = unmet_of(&px, 1, "unix");
    for (int i = 0; i < ROUNDS; i++)
        round_of_starts(&u);
    proxy_stop(px);
    server_stop(sv);
}

/* --- an answer that makes no sense ---------------------------------------- */

/* Of the type that is due; what comes behind it is not believed either. */
static void expect_connection_left(bool started)
{
    scene s = scene_unmet(NULL, PROXY_ANSWER);
    request r = request_new(s.lk);
    EXPECT_STATUS(try_once(s.lk), RLOCK_OK);
    if (started) {
        EXPECT_STATUS(loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_STATUS(loop_unlock(s.cl, &r), RLOCK_OK);
    }
    long long before = server_closed(s.sv);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, "$1\r\n0\r\n");
    EXPECT_STATUS(started ? loop_acquire(s.cl, &r, 0, RLOCK_WATCHDOG)
                          : rlock_trylock(s.lk),
                  RLOCK_EIO);
    EXPECT_CONTAINS(started ? r.error.message : rlock_last_error()->message,
                    "unexpected reply");
    EXPECT_STATUS(started ? loop_acquire(s.cl, &r, SOON, RLOCK_WATCHDOG)
                          : rlock_lock(s.lk),
                  RLOCK_OK);
    EVENTUALLY(SOON, server_closed(s.sv) == before + 1);
    EXPECT_STATUS(started ? loop_unlock(s.cl, &r) : rlock_unlock(s.lk),
                  RLOCK_OK);
    expect_sound(&s);
    request_free(&r);
    unmet_stop(&s);
}

TEST_CASE(lazy, a_connection_with_an_answer_without_sense_is_left,
          expect_connection_left(false))
TEST_CASE(lazy, the_same_of_the_connection_of_what_was_started,
          expect_connection_left(true))
