/*
 * Semaphores when holders and waiters are gone, answers are missing, or Redisson has
 * permits, too; with replicas, and in a cluster.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_scene.h"
#include "other_client.h"
#include "permits.h"
#include "replica_scene.h"
#include "sentinels.h"

/* --- processes ------------------------------------------------------------ */

static void hold_in_child(child *c, void *lease_ms)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    opts.watchdog_lease_ms = (intptr_t)lease_ms;
    rlock_semaphore *s = test_semaphore(server_client(NULL, &opts), POOL, 3);
    take(s, 2, RLOCK_WATCHDOG);
    child_tell(c, 'h');
    child_expect(c, 'e');
}

TEST(semaphore_gone, what_a_killed_process_had_comes_back)
{
    child *c = child_start(hold_in_child, (void *)(intptr_t)BRISK_MS);
    scene s = scene_start(0, 0);
    rlock_permit *p;
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    child_give_uri(c, s.sv);
    child_expect(c, 'h');
    EXPECT_STATUS(rlock_semaphore_acquire(pool, 2, 0, 0, &p), RLOCK_BUSY);
    child_kill(c);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_semaphore_acquire(pool, 3, SOON, 0, &p), RLOCK_OK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, BRISK_MS + SLACK_MS);
    give_back(p);
    expect_pool_left(s.sv, 3);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

static void wait_in_child(child *c, void *n)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    rlock_semaphore *s = test_semaphore(server_client(NULL, &opts), POOL, 3);
    for (intptr_t i = 0; i < (intptr_t)n; i++)
        taker_start(s, 1, RLOCK_FOREVER, RLOCK_WATCHDOG);
    child_expect(c, 'e');
}

/* Who has not heard its bell yet would be granted his without a message. */
static bool all_hear(server *sv)
{
    redisReply *r = server_cmd(sv, "HVALS rlock_wants:{" POOL "}");
    bool hear = true;
    for (size_t i = 0; i < r->elements; i++)
        hear = hear && r->element[i]->str[r->element[i]->len - 1] != '-';
    return hear;
}

TEST(semaphore_gone, those_who_were_killed_in_line_cost_nothing)
{
    enum { DEAD = 20 };
    child *c = child_start(wait_in_child, (void *)(intptr_t)DEAD);
    scene s = scene_start(0, 0);
    int64_t at_ms;
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    rlock_permit *all = take(pool, 3, RLOCK_WATCHDOG);
    child_give_uri(c, s.sv);
    EVENTUALLY(SOON, standing_at(s.sv) == DEAD);
    taker *t = taker_stand(s.sv, pool, 3, DEAD + 1);
    EVENTUALLY(SOON, all_hear(s.sv));
    child_kill(c);
    EVENTUALLY(SOON, server_cmd(s.sv, "PUBSUB CHANNELS *")->elements == 1);
    int64_t freed_ms = test_now_ms();
    give_back(all);
    EXPECT_STATUS(taker_end(t, NULL, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, WELL_BEFORE_POLL_MS);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* A child of fork() has none, and frees its copies. */
TEST(semaphore_gone, a_child_of_fork_has_no_permits)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    rlock_permit *p = take(pool, 1, RLOCK_WATCHDOG);
    pid_t pid = fork();
    if (pid == 0) {
        rlock_permit *none;
        EXPECT(!rlock_permit_is_held(p));
        EXPECT_STATUS(rlock_permit_extend(p, 5000), RLOCK_EFORKED);
        EXPECT_STATUS(rlock_permit_release(p), RLOCK_EFORKED);
        EXPECT_STATUS(rlock_semaphore_acquire(pool, 1, 0, 0, &none),
                      RLOCK_EFORKED);
        rlock_semaphore_free(pool);
        _exit(0);
    }
    int status;
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(status, 0);
    EXPECT(rlock_permit_is_held(p) && free_of(pool) == 2);
    give_back(p);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* --- answers that are missing --------------------------------------------- */

static void expect_taken_once(proxy_action how)
{
    scene s = scene_proxied(0, 0);
    rlock_permit *p;
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    proxy_rule(s.px, proxy_sha("permit/acquire"), 1, how, NULL);
    EXPECT_STATUS(rlock_semaphore_acquire(pool, 2, SOON, 0, &p), RLOCK_OK);
    EXPECT_INT(free_of(pool), 1);
    EXPECT_STATUS(rlock_permit_extend(p, RLOCK_WATCHDOG), RLOCK_OK);
    give_back(p);
    expect_pool_left(s.sv, 3);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST_CASE(semaphore_gone, an_acquire_that_was_not_executed_is_asked_again,
          expect_taken_once(PROXY_SENT | PROXY_CLOSED))
TEST_CASE(semaphore_gone, one_whose_answer_is_missing_takes_once,
          expect_taken_once(PROXY_EXECUTED | PROXY_CLOSED))

TEST(semaphore_gone, a_release_whose_answer_is_missing_gives_back_once)
{
    scene s = scene_proxied(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    rlock_permit *p = take(pool, 2, RLOCK_WATCHDOG);
    proxy_rule(s.px, proxy_sha("permit/release"), 1,
               PROXY_EXECUTED | PROXY_CLOSED, NULL);
    give_back(p);
    EXPECT_INT(free_of(pool), 3);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(semaphore_gone, what_was_added_without_an_answer_is_added_once)
{
    scene s = scene_proxied(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    proxy_rule(s.px, proxy_sha("permit/add"), 1, PROXY_EXECUTED | PROXY_CLOSED,
               NULL);
    EXPECT_STATUS(rlock_semaphore_add(pool, 2), RLOCK_OK);
    EXPECT_INT(free_of(pool), 5);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* The keeper goes on with it. */
TEST(semaphore_gone, what_cannot_be_given_back_now_is_given_back_later)
{
    scene s = scene_proxied(0, 500);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 3);
    rlock_permit *p = take(pool, 2, RLOCK_WATCHDOG);
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EXPECT_STATUS(rlock_permit_release(p), RLOCK_EIO);
    EXPECT_INT(held_at(s.sv), 2);
    proxy_refuse(s.px, false);
    EVENTUALLY(SOON, held_at(s.sv) == 0);
    EXPECT_INT(free_of(pool), 3);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* --- Redisson ------------------------------------------------------------- */

/* As its RPermitExpirableSemaphore does it. */
static void release_as_java(server *sv)
{
    server_cmd(sv, "ZREM " POOL_PERMITS " 0123456789abcdef");
    server_cmd(sv, "INCRBY " POOL " 1");
    server_cmd(sv, "PUBLISH redisson_sc:{" POOL "} 1");
}

static void expect_had_from_java(bool listens, int64_t least_ms,
                                 int64_t most_ms)
{
    scene s = scene_server(NULL);
    s.opts.redisson_channel = listens;
    scene_client(&s, 0, 0);
    int64_t at_ms;
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 1);
    server_cmd(s.sv, "SET " POOL " 0");
    server_cmd(s.sv, "ZADD " POOL_PERMITS " 922337203685477 0123456789abcdef");
    taker *t = taker_stand(s.sv, pool, 1, 1);
    if (listens)
        EVENTUALLY(SOON,
                   server_cmd(s.sv, "PUBSUB CHANNELS redisson_sc*")->elements ==
                       1);
    int64_t freed_ms = test_now_ms();
    release_as_java(s.sv);
    EXPECT_STATUS(taker_end(t, NULL, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, least_ms, most_ms);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST_CASE(semaphore_gone, what_java_gives_back_is_found_within_a_third_second,
          expect_had_from_java(false, 0, WELL_BEFORE_POLL_MS))
TEST_CASE(semaphore_gone, what_java_gives_back_wakes_who_listens,
          expect_had_from_java(true, 0, WELL_BEFORE_POLL_MS))

/* Who is served before him has not to wake him. Returns how long it took. */
static int64_t second_has_from_java(scene *s, rlock_semaphore *pool)
{
    int64_t at_ms;
    server_cmd(s->sv, "SET " POOL " 1");
    server_cmd(s->sv, "ZADD " POOL_PERMITS " 922337203685477 0123456789abcdef");
    rlock_permit *ours = take(pool, 1, RLOCK_WATCHDOG), *p;
    taker *first = taker_stand(s->sv, pool, 1, 1);
    taker *second = taker_stand(s->sv, pool, 1, 2);
    long long looks = script_calls(s->sv);
    EVENTUALLY(SOON, script_calls(s->sv) >= looks + 3);
    give_back(ours);
    EXPECT_STATUS(taker_end(first, &p, NULL), RLOCK_OK);
    int64_t freed_ms = test_now_ms();
    release_as_java(s->sv);
    EXPECT_STATUS(taker_end(second, NULL, &at_ms), RLOCK_OK);
    give_back(p);
    return at_ms - freed_ms;
}

TEST(semaphore_gone, who_has_become_the_first_finds_what_java_gives_back)
{
    enum { TIMES = 5 };
    scene s = scene_start(0, 0);
    int64_t ms = 0;
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 2);
    for (int i = 0; i < TIMES; i++)
        ms += second_has_from_java(&s, pool);
    EXPECT_BETWEEN(ms, 0, TIMES * 500);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* --- pub/sub, rights ------------------------------------------------------ */

TEST(semaphore_gone, who_must_not_subscribe_waits_in_line)
{
    scene s = scene_server(NULL);
    server_cmd(s.sv, "ACL SETUSER default resetchannels");
    scene_client(&s, 0, 0);
    other_client o = other_client_join(&s, NULL);
    rlock_semaphore *mine = test_semaphore(s.cl, POOL, 3),
                    *theirs = test_semaphore(o.cl, POOL, 3);
    rlock_permit *all = take(mine, 3, RLOCK_WATCHDOG), *p;
    taker *a = taker_stand(s.sv, theirs, 2, 1);
    taker *b = taker_stand(s.sv, mine, 2, 2);
    give_back(all);
    EXPECT_STATUS(taker_end(a, &p, NULL), RLOCK_OK);
    EXPECT(!taker_returned(b));
    give_back(p);
    EXPECT_STATUS(taker_end(b, NULL, NULL), RLOCK_OK);
    rlock_semaphore_free(mine);
    rlock_semaphore_free(theirs);
    other_client_leave(&o);
    scene_stop(&s);
}

/* As src/doc/rights.md has them. */
#define RIGHTS                                                                 \
    "ACL SETUSER app on >secret resetkeys resetchannels -@all ~pool "          \
    "~{pool}:timeout ~rlock_token:* ~rlock_queue:* ~rlock_undone:* "           \
    "~rlock_line:* ~rlock_wants:* &rlock_bell:* &redisson_lock__channel:* "    \
    "&redisson_sc:* +ping +eval +evalsha +subscribe +unsubscribe +publish "    \
    "+time +exists +get +set +del +pexpire +pttl +hset +hexists +hlen +hscan " \
    "+hdel +zadd +zrem +zpopmin +zrank +zrange +hget +zrevrange +zscore "      \
    "+incrby +decrby +zcard +zcount +zmscore +zrangebyscore"

/* One has all, and another one waits, as a user with these rights. */
static rlock_status wait_as_user(const char *less)
{
    scene s = scene_server(NULL);
    server_cmd(s.sv, RIGHTS);
    server_cmd(s.sv, less);
    rlock_client *cl = user_client(s.sv), *rival = user_client(s.sv);
    rlock_semaphore *mine = test_semaphore(cl, POOL, 3),
                    *theirs = test_semaphore(rival, POOL, 3);
    rlock_permit *p;
    rlock_status got = rlock_semaphore_acquire(mine, 2, 0, 0, &p);
    if (got == RLOCK_OK) {
        taker *t = taker_start(theirs, 2, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, standing_at(s.sv) == 1 || taker_returned(t));
        EXPECT_STATUS(rlock_permit_extend(p, 60000), RLOCK_OK);
        EXPECT_STATUS(rlock_semaphore_add(mine, 1), RLOCK_OK);
        give_back(p);
        got = taker_end(t, NULL, NULL);
        EXPECT_INT(free_of(mine), 4);
    }
    rlock_semaphore_free(mine);
    rlock_semaphore_free(theirs);
    rlock_client_free(cl);
    rlock_client_free(rival);
    server_stop(s.sv);
    return got;
}

TEST(semaphore_gone, a_user_with_the_rights_that_are_told_can_use_it)
{
    EXPECT_STATUS(wait_as_user("PING"), RLOCK_OK);
}

TEST(semaphore_gone, a_right_that_is_missing_is_told)
{
    EXPECT_STATUS(wait_as_user("ACL SETUSER app -decrby"), RLOCK_ESERVER);
}

/* --- replicas ------------------------------------------------------------- */

static rlock_semaphore *pool_of(rlock_client *cl, int min_replicas)
{
    rlock_semaphore *s;
    rlock_semaphore_options o = RLOCK_SEMAPHORE_OPTIONS_INIT;
    o.permits = 3;
    o.min_replicas = min_replicas;
    EXPECT_STATUS(rlock_semaphore_new_ex(cl, POOL, strlen(POOL), &o, &s),
                  RLOCK_OK);
    return s;
}

TEST(semaphore_gone, replicas_have_what_is_taken_granted_and_renewed)
{
    replica_scene f = replica_scene_start(1, 0, BRISK_MS);
    rlock_semaphore *pool = pool_of(f.s.cl, 1);
    rlock_permit *p = take(pool, 1, RLOCK_WATCHDOG), *q;
    EXPECT_INT(held_at(f.replica[0]), 1);
    taker *t = taker_stand(f.s.sv, pool, 3, 1);
    watch_renewals(f.s.cl, 3);
    EXPECT(rlock_permit_is_held(p));
    give_back(p);
    EXPECT_STATUS(taker_end(t, &q, NULL), RLOCK_OK);
    EXPECT_INT(held_at(f.replica[0]), 3);
    give_back(q);
    rlock_semaphore_free(pool);
    replica_scene_stop(&f);
}

TEST(semaphore_gone, without_the_replicas_none_are_taken)
{
    replica_scene f = replica_scene_start(1, 0, 0);
    rlock_semaphore *pool = pool_of(f.s.cl, 1);
    rlock_permit *none;
    server_pause(f.replica[0]);
    EXPECT_STATUS(rlock_semaphore_acquire(pool, 1, 0, RLOCK_WATCHDOG, &none),
                  RLOCK_EQUORUM);
    EVENTUALLY(SOON, held_at(f.s.sv) == 0);
    server_resume(f.replica[0]);
    rlock_semaphore_free(pool);
    replica_scene_stop(&f);
}

/* --- a cluster, Sentinels ------------------------------------------------- */

TEST(semaphore_gone, in_a_cluster_each_has_its_turn_too)
{
    enum { N = 10 };
    need_sharded_channels();
    cluster_scene l, visitor;
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &visitor);
    const char *name = cluster_name_on(l.c, 1, POOL);
    rlock_semaphore *a = test_semaphore(l.cl, name, 2),
                    *b = test_semaphore(visitor.cl, name, 2);
    for (int i = 0; i < N; i++) {
        rlock_semaphore *first = i % 2 ? a : b, *second = i % 2 ? b : a;
        rlock_permit *p = take(first, 2, RLOCK_WATCHDOG);
        taker *t = taker_start(second, 2, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(i % 2 ? visitor.cl : l.cl).waiting_now == 1);
        give_back(p);
        EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_OK);
    }
    EXPECT_INT(free_of(a), 2);
    EXPECT_INT(stats_of(l.cl).lost + stats_of(visitor.cl).lost, 0);
    rlock_semaphore_free(a);
    rlock_semaphore_free(b);
    cluster_scene_leave(&visitor);
    cluster_scene_stop(&l);
}

/* A release has two keys, which are not together while their slot moves. */
TEST(semaphore_gone, permits_outlive_a_slot_that_moves)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    const char *name = cluster_name_on(l.c, 0, POOL);
    unsigned slot = cluster_slot(name);
    rlock_semaphore *a = test_semaphore(l.cl, name, 2);
    rlock_permit *p = take(a, 1, RLOCK_WATCHDOG), *q = take(a, 1, 60000);
    cluster_move_slot(l.c, slot, 1);
    EXPECT(rlock_permit_is_held(p));
    give_back(p);
    EXPECT_INT(free_of(a), 1);
    cluster_slot_begin(l.c, slot, 2);
    EXPECT_STATUS(rlock_permit_release(q), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "TRYAGAIN");
    cluster_slot_move_keys(l.c, slot, 2);
    cluster_slot_end(l.c, slot, 2);
    EVENTUALLY(SOON, free_of(a) == 2);
    rlock_semaphore_free(a);
    cluster_scene_stop(&l);
}

TEST(semaphore_gone, behind_sentinels_permits_and_waits_go_on)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *all = sentinels_start(master, 1);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = sentinels_uri(all);
    scene one = scene_with(master, &opts), two = scene_with(master, &opts);
    rlock_semaphore *a = test_semaphore(one.cl, POOL, 3),
                    *b = test_semaphore(two.cl, POOL, 3);
    rlock_permit *p = take(a, 2, RLOCK_WATCHDOG);
    taker *t = taker_stand(master, b, 2, 1);
    EVENTUALLY(SOON, replica_follows(master));
    server_kill(master);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    EVENTUALLY(SOON, standing_at(replica) == 1);
    EXPECT(rlock_permit_is_held(p) && !taker_returned(t));
    give_back(p);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).lost + stats_of(two.cl).lost, 0);
    rlock_semaphore_free(a);
    rlock_semaphore_free(b);
    scene_leave(&one);
    scene_leave(&two);
    sentinels_stop(all);
    server_stop(replica);
    server_stop(master);
}
