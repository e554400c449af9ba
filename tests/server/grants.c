/*
 * With the option grants: a release gives the lock to the client that waits first,
 * and tells it so. Who it is given to, what that costs, and what becomes of it when
 * nobody is there to take it.
 */
#include <stdatomic.h>

#include "cluster_scene.h"
#include "direct.h"
#include "grants_scene.h"

/* How many script calls it takes from that release until the next one has it. */
static long long calls_for_a_section(grants_scene *p, int64_t lease_ms)
{
    grants_hear_bells(p);
    waiter *first = grants_have_waited(p);
    waiter *second = grants_queue_up(p, p->o.lk, lease_ms);
    long long before = script_calls(p->s.sv);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(second, NULL), RLOCK_OK);
    long long calls = script_calls(p->s.sv) - before;
    EXPECT_INT(levels(p->s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    return calls;
}

/* --- to whom -------------------------------------------------------------- */

TEST(grants, the_release_is_all_that_a_grant_costs)
{
    grants_scene p = grants_scene_start(true, true);
    EXPECT_INT(calls_for_a_section(&p, RLOCK_WATCHDOG), 1);
    grants_scene_stop(&p);
}

TEST(grants, who_has_not_the_option_is_rung_as_ever)
{
    grants_scene p = grants_scene_start(true, false);
    EXPECT_INT(calls_for_a_section(&p, RLOCK_WATCHDOG), 2);
    grants_scene_stop(&p);
}

TEST(grants, a_release_without_the_option_rings_who_has_it)
{
    grants_scene p = grants_scene_start(false, true);
    EXPECT_INT(calls_for_a_section(&p, RLOCK_WATCHDOG), 2);
    grants_scene_stop(&p);
}

TEST(grants, who_comes_first_is_granted_it_first)
{
    enum { N = 5 };
    grants_scene p = grants_scene_start(true, true);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    other_client o[N];
    int64_t at_ms, before_ms = 0;
    opts.grants = true;
    waiter *first = grants_have_waited(&p), *w[N];
    for (int i = 0; i < N; i++) {
        o[i] = other_client_join(&p.s, &opts);
        w[i] = waiter_start(o[i].lk, 30000, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, queued(p.s.sv, SCENE_LOCK) == i + 1);
    }
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        EXPECT_STATUS(waiter_status(w[i], &at_ms), RLOCK_OK);
        EXPECT(at_ms >= before_ms);
        before_ms = at_ms;
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
        other_client_leave(&o[i]);
    }
    grants_scene_stop(&p);
}

/* Its programs stand in no queue, and would wait for as long as others do. */
TEST(grants, while_redisson_listens_the_lock_is_given_to_nobody)
{
    grants_scene p = grants_scene_start(true, true);
    redisContext *java = redisConnectUnix(server_path(p.s.sv));
    freeReplyObject(redisCommand(
        java, "SUBSCRIBE redisson_lock__channel:{" SCENE_LOCK "}"));
    EXPECT_INT(calls_for_a_section(&p, RLOCK_WATCHDOG), 2);
    redisFree(java);
    grants_scene_stop(&p);
}

/* Its bell, by which both were to be rung, is not in the queue any more. */
TEST(grants, who_waits_beside_it_by_a_fair_handle_is_not_forgotten)
{
    grants_scene p = grants_scene_start(true, true);
    rlock_lock_options opts = RLOCK_LOCK_OPTIONS_INIT;
    rlock *fair;
    opts.fair = true;
    EXPECT_STATUS(
        rlock_new_ex(p.o.cl, SCENE_LOCK, strlen(SCENE_LOCK), &opts, &fair),
        RLOCK_OK);
    waiter *first = grants_have_waited(&p);
    waiter *plain = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
    waiter *in_line = waiter_start(fair, 30000, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, server_int(p.s.sv, "ZCARD rlock_line:{job}") == 1);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(plain, NULL), RLOCK_OK);
    EVENTUALLY(WELL_BEFORE_POLL_MS, queued(p.s.sv, SCENE_LOCK) == 1);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(waiter_end(plain), RLOCK_OK);
    waiter_expect_rung(in_line, freed_ms);
    EXPECT_STATUS(waiter_end(in_line), RLOCK_OK);
    rlock_free(fair);
    grants_scene_stop(&p);
}

/* --- what is granted ------------------------------------------------------ */

TEST(grants, what_was_granted_is_kept_by_renewals)
{
    grants_scene p = grants_scene_start(true, true);
    waiter *first = grants_have_waited(&p);
    waiter *second = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(second, NULL), RLOCK_OK);
    EVENTUALLY(SOON, key_ttl(p.s.sv, SCENE_LOCK) > 20000);
    EXPECT_INT(stats_of(p.o.cl).lost, 0);
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    grants_scene_stop(&p);
}

TEST(grants, a_lease_that_was_asked_for_is_had_in_full)
{
    grants_scene p = grants_scene_start(true, true);
    waiter *first = grants_have_waited(&p);
    waiter *second = grants_queue_up(&p, p.o.lk, 60000);
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(waiter_status(second, NULL), RLOCK_OK);
    EXPECT_BETWEEN(key_ttl(p.s.sv, SCENE_LOCK), 40000, 60000);
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    grants_scene_stop(&p);
}

typedef struct noted {
    rlock *lk;
    rlock_client *cl;
    _Atomic uint64_t *last;
    int sections;
} noted;

static intptr_t note_tokens(void *arg)
{
    const noted *n = arg;
    for (int i = 0; i < n->sections; i++) {
        EXPECT_STATUS(rlock_lock(n->lk), RLOCK_OK);
        uint64_t token = rlock_token(n->lk);
        EXPECT(token > atomic_exchange(n->last, token));
        EXPECT_STATUS(rlock_unlock(n->lk), RLOCK_OK);
    }
    return 0;
}

/* Threads of two clients, one of which grants, or both. */
static void expect_turns(bool second)
{
    enum { SECTIONS = SANITIZED ? 40 : 150, THREADS = 6 };
    grants_scene p = grants_scene_start(true, second);
    _Atomic uint64_t last = 0;
    noted mine = {p.s.lk, p.s.cl, &last, SECTIONS};
    noted theirs = {p.o.lk, p.o.cl, &last, SECTIONS};
    test_thread *t[THREADS];
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(note_tokens, i % 2 ? &theirs : &mine);
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    EXPECT_INT(stats_of(p.s.cl).lost + stats_of(p.o.cl).lost, 0);
    EXPECT_INT(levels(p.s.sv, SCENE_LOCK), 0);
    grants_scene_stop(&p);
}

TEST_CASE(grants, tokens_grow_from_section_to_section, expect_turns(true))
TEST_CASE(grants, tokens_grow_beside_a_client_that_is_rung, expect_turns(false))

/* --- nobody is there ------------------------------------------------------ */

TEST(grants, who_is_dead_is_passed_over_at_once)
{
    grants_scene p = grants_scene_start(true, true);
    waiter *first = grants_have_waited(&p);
    server_cmd(p.s.sv, "ZADD " GRANTS_QUEUE " 1 rlock_bell:of-the-dead");
    server_cmd(p.s.sv, "HSET " GRANTS_WHO " rlock_bell:of-the-dead %s",
               "1 " BY_HAND " 30000 5000");
    waiter *second = waiter_start(p.o.lk, 30000, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, queued(p.s.sv, SCENE_LOCK) == 2);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    waiter_expect_rung(second, freed_ms);
    EXPECT_STATUS(waiter_end(second), RLOCK_OK);
    grants_scene_stop(&p);
}

/* A place in the queue that is another one's by now. */
TEST(grants, what_was_wanted_in_another_place_is_not_granted)
{
    grants_scene p = grants_scene_start(true, true);
    waiter *first = grants_have_waited(&p);
    redisContext *other = redisConnectUnix(server_path(p.s.sv));
    freeReplyObject(redisCommand(other, "SUBSCRIBE rlock_bell:of-another"));
    server_cmd(p.s.sv, "ZADD " GRANTS_QUEUE " 2 rlock_bell:of-another");
    server_cmd(p.s.sv, "HSET " GRANTS_WHO " rlock_bell:of-another %s",
               "1 " BY_HAND " 30000 5000");
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_INT(levels(p.s.sv, SCENE_LOCK), 0);
    redisFree(other);
    server_cmd(p.s.sv, "DEL " GRANTS_WHO);
    grants_scene_stop(&p);
}

TEST(grants, who_gives_up_is_granted_nothing_and_leaves_nothing)
{
    grants_scene p = grants_scene_start(true, true);
    waiter *first = grants_have_waited(&p);
    for (int i = 0; i < 5; i++) {
        EXPECT_STATUS(rlock_acquire(p.o.lk, 20, RLOCK_WATCHDOG), RLOCK_TIMEOUT);
        EXPECT_CONTAINS(rlock_last_error()->message, "held by ");
    }
    EVENTUALLY(SOON, queued(p.s.sv, SCENE_LOCK) == 0 &&
                         !key_exists(p.s.sv, GRANTS_WHO));
    EXPECT_STATUS(waiter_end(first), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(p.o.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.o.lk), RLOCK_OK);
    grants_scene_stop(&p);
}

/* Whoever comes in between has it freed again, at once. */
TEST(grants, waits_that_end_while_it_is_granted_keep_it_from_nobody)
{
    enum { TRIES = 150 };
    grants_scene p = grants_scene_start(true, true);
    int had = 0;
    for (int i = 0; i < TRIES; i++) {
        waiter *first = grants_have_waited(&p);
        waiter *second = waiter_start(p.o.lk, 1 + i % 4, RLOCK_WATCHDOG);
        EXPECT_STATUS(waiter_end(first), RLOCK_OK);
        had += waiter_end(second) == RLOCK_OK;
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(rlock_acquire(p.s.lk, 2000, RLOCK_WATCHDOG), RLOCK_OK);
        EXPECT_BETWEEN(test_now_ms() - began_ms, 0, 1000);
        EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_OK);
    }
    EXPECT(had > 0);
    grants_scene_stop(&p);
}

/* --- by force; rights ----------------------------------------------------- */

TEST(grants, what_is_freed_by_force_rings)
{
    grants_scene p = grants_scene_start(true, true);
    EXPECT_STATUS(rlock_lock(p.s.lk), RLOCK_OK);
    waiter *w = grants_queue_up(&p, p.o.lk, RLOCK_WATCHDOG);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_force_unlock(p.s.lk), RLOCK_OK);
    waiter_expect_rung(w, freed_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.s.lk), RLOCK_LOST);
    grants_scene_stop(&p);
}

/* As src/doc/rights.md has them, but for +hget. */
#define RIGHTS                                                                 \
    "ACL SETUSER app on >secret resetkeys resetchannels -@all ~job "           \
    "~rlock_token:* ~rlock_queue:* ~rlock_undone:* &rlock_bell:* "             \
    "&redisson_lock__channel:* +ping +eval +evalsha +subscribe +unsubscribe "  \
    "+publish +time +exists +get +set +del +pexpire +pttl +hset +hexists "     \
    "+hlen +hscan +hdel +zadd +zrem +zpopmin +zrank +zrange +info"

/* Without it what was wanted cannot be read. */
static void expect_calls_of_a_user(const char *more, long long calls)
{
    scene s = scene_server(NULL);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    char uri[200];
    server_cmd(s.sv, RIGHTS);
    server_cmd(s.sv, "ACL SETUSER app %s", more);
    snprintf(uri, sizeof uri, "unix://app:secret@%s", server_path(s.sv));
    s.opts.uri = opts.uri = uri;
    s.opts.grants = opts.grants = true;
    scene_client(&s, 0, 0);
    grants_scene p = {.s = s, .o = other_client_join(&s, &opts)};
    EXPECT_INT(calls_for_a_section(&p, RLOCK_WATCHDOG), calls);
    grants_scene_stop(&p);
}

TEST_CASE(grants, who_may_not_read_what_was_wanted_rings,
          expect_calls_of_a_user("+ping", 2))
/* Whether somebody listens there it is not told. */
TEST_CASE(grants, who_may_not_publish_on_redissons_channel_rings,
          expect_calls_of_a_user("+hget resetchannels &rlock_bell:*", 2))
TEST_CASE(grants, a_user_with_that_right_grants,
          expect_calls_of_a_user("+hget", 1))

/* --- a cluster ------------------------------------------------------------ */

TEST(grants, in_a_cluster_too)
{
    enum { N = 20 };
    cluster_scene l;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    cluster_scene_start(&l, 0);
    opts.uri = l.opts.uri;
    opts.grants = true;
    rlock_client *one = server_client(NULL, &opts);
    rlock_client *two = server_client(NULL, &opts);
    rlock *a = test_lock(one, "job"), *b = test_lock(two, "job");
    EXPECT_STATUS(rlock_lock(a), RLOCK_OK);
    for (int i = 0; i < N; i++) {
        rlock *next = i % 2 ? a : b, *last = i % 2 ? b : a;
        waiter *w = waiter_start(next, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(i % 2 ? one : two).waiting_now == 1);
        EXPECT_STATUS(rlock_unlock(last), RLOCK_OK);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
        EXPECT_STATUS(rlock_lock(next), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_unlock(N % 2 ? b : a), RLOCK_OK);
    EXPECT_INT(stats_of(one).lost + stats_of(two).lost, 0);
    rlock_free(a);
    rlock_free(b);
    rlock_client_free(one);
    rlock_client_free(two);
    cluster_scene_stop(&l);
}
