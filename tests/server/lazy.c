/*
 * How a server is checked that a client relies on: once, on one connection,
 * whatever else is opened meanwhile, and so that nothing of it is taken for the
 * answer to what is asked there next. Of a lazy client several threads may open
 * the first ones.
 */
#include <stdatomic.h>

#include "scene.h"

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

enum { THREADS = 8, ROUNDS = 60, SECTIONS = 5 };

typedef struct crowd {
    rlock_client *cl;
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
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
}

static intptr_t begin_at_once(void *arg)
{
    crowd *c = arg;
    rlock *lk = test_lock(c->cl, SCENE_LOCK);
    atomic_fetch_add(&c->ready, 1);
    while (atomic_load(&c->ready) < THREADS)
        ;
    for (int i = 0; i < SECTIONS; i++)
        enter(c, lk);
    rlock_free(lk);
    return 0;
}

static void round_of_threads(proxy *px, const rlock_options *opts)
{
    crowd c = {.inside = 0};
    test_thread *t[THREADS];
    proxy_refuse(px, true);
    EXPECT_STATUS(rlock_client_new(opts, &c.cl), RLOCK_OK);
    proxy_refuse(px, false);
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(begin_at_once, &c);
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    EXPECT_INT(atomic_load(&c.entered), THREADS * SECTIONS);
    rlock_client_free(c.cl);
}

TEST(lazy, threads_that_begin_at_once_exclude_each_other)
{
    server *sv = server_start(NULL);
    proxy *px = proxy_start(sv);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = proxy_uri(px);
    opts.lazy = true;
    opts.connect_timeout_ms = opts.command_timeout_ms = SOON;
    for (int i = 0; i < ROUNDS; i++)
        round_of_threads(px, &opts);
    proxy_stop(px);
    server_stop(sv);
}
