/*
 * Read-write locks over several processes, when those who read, write or wait are
 * killed, stopped, or hear nothing; in a cluster, and with Sentinels.
 */
#include "cluster_scene.h"
#include "direct.h"
#include "rw_scene.h"
#include "sentinels.h"

/* --- processes ------------------------------------------------------------ */

enum { ROUNDS = SANITIZED ? 8 : 30, THREADS = 4, PROCESSES = 3 };

/* Whoever writes makes both numbers the same; whoever reads finds them so. */
static void use(redisContext *data, sides *x, int i)
{
    redisReply *r;
    bool writes = i % 4 == 0;
    rlock *lk = writes ? x->write : x->read;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    if (writes) {
        freeReplyObject(redisCommand(data, "INCR one"));
        freeReplyObject(redisCommand(data, "INCR two"));
    } else {
        EXPECT((r = redisCommand(data, "EVAL %s 0",
                                 "return redis.call('GET', 'one') == "
                                 "redis.call('GET', 'two') and 1 or 0")));
        EXPECT_INT(r->integer, 1);
        freeReplyObject(r);
    }
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
}

typedef struct user {
    const char *path;
    sides x;
} user;

static intptr_t use_often(void *arg)
{
    user *u = arg;
    redisContext *data = redisConnectUnix(u->path);
    EXPECT(data && !data->err);
    for (int i = 0; i < ROUNDS; i++)
        use(data, &u->x, i);
    redisFree(data);
    return 0;
}

static void crowd_in_child(child *c, void *arg)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    test_thread *t[THREADS];
    (void)arg;
    opts.uri = child_take_uri(c);
    rlock_client *cl = server_client(NULL, &opts);
    user u = {.path = opts.uri + strlen("unix://"),
              .x = sides_of(cl, SCENE_LOCK)};
    child_expect(c, 'g');
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(use_often, &u);
    for (int i = 0; i < THREADS; i++)
        test_join(t[i]);
    EXPECT_INT(stats_of(cl).lost, 0);
    sides_free(&u.x);
    rlock_client_free(cl);
    child_tell(c, 'd');
}

TEST(rw_gone, nobody_reads_what_is_being_written_by_any_process)
{
    server *sv = children_meet(PROCESSES, crowd_in_child);
    EXPECT_INT(server_int(sv, "INCR one"), server_int(sv, "INCR two"));
    EXPECT(!key_exists(sv, SCENE_LOCK));
    server_stop(sv);
}

/* --- who is gone ---------------------------------------------------------- */

#define SHORT_MS 1000

static void hold_in_child(child *c, void *side)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    opts.watchdog_lease_ms = SHORT_MS;
    rlock_client *cl = server_client(NULL, &opts);
    sides x = sides_of(cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(*(const char *)side == 'r' ? x.read : x.write),
                  RLOCK_OK);
    child_tell(c, 'h');
    child_expect(c, 'e');
}

/* A process has a side, with a lease that is short; ours reads, too, with one that
   is long. */
static void expect_free_after_its_lease(const char *side)
{
    child *c = child_start(hold_in_child, (void *)(uintptr_t)side);
    scene s = scene_start(0, 0);
    sides x = sides_of(s.cl, SCENE_LOCK);
    child_give_uri(c, s.sv);
    child_expect(c, 'h');
    if (*side == 'r')
        EXPECT_STATUS(rlock_lock(x.read), RLOCK_OK);
    child_kill(c);
    int64_t killed_ms = test_now_ms();
    while (rlock_acquire(x.write, 0, RLOCK_WATCHDOG) != RLOCK_OK)
        EXPECT_BETWEEN(test_since_ms(killed_ms), 0, SHORT_MS + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(x.write), RLOCK_OK);
    if (*side == 'r')
        EXPECT_STATUS(rlock_unlock(x.read), RLOCK_OK);
    sides_free(&x);
    scene_stop(&s);
}

TEST_CASE(rw_gone, one_who_was_killed_reading_bars_nobody_beyond_its_lease,
          expect_free_after_its_lease("r"))
TEST_CASE(rw_gone, one_who_was_killed_writing_bars_nobody_beyond_its_lease,
          expect_free_after_its_lease("w"))

/* It waits, and knows when that lease ends. */
TEST(rw_gone, who_waits_to_write_comes_in_when_the_dead_one_s_lease_ends)
{
    child *c = child_start(hold_in_child, (void *)(uintptr_t) "r");
    rw_scene r = rw_scene_start(0);
    child_give_uri(c, r.s.sv);
    child_expect(c, 'h');
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    child_kill(c);
    int64_t killed_ms = test_now_ms(), at_ms;
    waiter *w = rw_stand(&r, r.mine.write, RLOCK_FOREVER, 1);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - killed_ms, 0, 2500 + SLACK_MS);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rw_scene_stop(&r);
}

static void wait_in_child(child *c, void *side)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = child_take_uri(c);
    sides x = sides_of(server_client(NULL, &opts), SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(*(const char *)side == 'r' ? x.read : x.write),
                  RLOCK_OK);
}

/* Of those who do not yet, one may be granted it by a look: waiting_deaf.c. */
static bool all_hear(server *sv)
{
    return server_int(sv, "EVAL %s 1 " RW_WANTS,
                      "for _, v in ipairs(redis.call('HVALS', KEYS[1])) do "
                      "if v:sub(-1) == '-' then return 0 end end "
                      "return 1") == 1;
}

static void expect_dead_ahead_cost_nothing(const char *side)
{
    child *c = child_start(wait_in_child, (void *)(uintptr_t)side);
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.theirs.write), RLOCK_OK);
    child_give_uri(c, r.s.sv);
    EVENTUALLY(SOON, rw_in_line(r.s.sv) == 1);
    waiter *w = rw_stand(&r, r.mine.write, RLOCK_FOREVER, 2);
    EVENTUALLY(SOON, server_cmd(r.s.sv, "PUBSUB CHANNELS *")->elements == 2);
    EVENTUALLY(SOON, all_hear(r.s.sv));
    child_kill(c);
    EVENTUALLY(SOON, server_cmd(r.s.sv, "PUBSUB CHANNELS *")->elements == 1);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(r.theirs.write), RLOCK_OK);
    waiter_expect_rung(w, freed_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    server_cmd(r.s.sv, "EVAL %s 0",
               "for _, k in ipairs(redis.call('KEYS', '*:rwlock_timeout:1')) "
               "do redis.call('DEL', k) end");
    rw_scene_stop(&r);
}

TEST_CASE(rw_gone, one_who_was_killed_waiting_to_read_costs_nothing,
          expect_dead_ahead_cost_nothing("r"))
TEST_CASE(rw_gone, one_who_was_killed_waiting_to_write_costs_nothing,
          expect_dead_ahead_cost_nothing("w"))

/* --- without pub/sub ------------------------------------------------------ */

TEST(rw_gone, who_must_not_subscribe_waits_in_line)
{
    scene s = scene_server(NULL);
    server_cmd(s.sv, "ACL SETUSER default resetchannels");
    scene_client(&s, 0, 0);
    sides x = sides_of(s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(x.write), RLOCK_OK);
    waiter *one = waiter_start(x.read, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiter *two = waiter_start(x.read, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, rw_in_line(s.sv) == 2);
    waiter *writer = waiter_start(x.write, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, rw_in_line(s.sv) == 3);
    EXPECT_STATUS(rlock_unlock(x.write), RLOCK_OK);
    EXPECT_STATUS(waiter_status(one, NULL), RLOCK_OK);
    EXPECT_STATUS(waiter_status(two, NULL), RLOCK_OK);
    EXPECT(!waiter_returned(writer));
    EXPECT_STATUS(waiter_end(one), RLOCK_OK);
    EXPECT_STATUS(waiter_end(two), RLOCK_OK);
    EXPECT_STATUS(waiter_end(writer), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).lost, 0);
    sides_free(&x);
    scene_stop(&s);
}

/* --- a cluster ------------------------------------------------------------ */

TEST(rw_gone, in_a_cluster_each_has_its_turn_too)
{
    enum { N = 10 };
    cluster_scene l, visitor;
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &visitor);
    sides a = sides_of(l.cl, "job"), b = sides_of(visitor.cl, "job");
    for (int i = 0; i < N; i++) {
        sides *first = i % 2 ? &a : &b, *second = i % 2 ? &b : &a;
        EXPECT_STATUS(rlock_lock(first->read), RLOCK_OK);
        waiter *w = waiter_start(second->write, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(i % 2 ? visitor.cl : l.cl).waiting_now == 1);
        EXPECT_STATUS(rlock_unlock(first->read), RLOCK_OK);
        EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
        waiter *reader =
            waiter_start(first->read, RLOCK_FOREVER, RLOCK_WATCHDOG);
        EVENTUALLY(SOON, stats_of(i % 2 ? l.cl : visitor.cl).waiting_now == 1);
        EXPECT_STATUS(waiter_end(w), RLOCK_OK);
        EXPECT_STATUS(waiter_end(reader), RLOCK_OK);
    }
    EXPECT_INT(stats_of(l.cl).lost + stats_of(visitor.cl).lost, 0);
    sides_free(&a);
    sides_free(&b);
    cluster_scene_leave(&visitor);
    cluster_scene_stop(&l);
}

TEST(rw_gone, sides_go_on_when_a_replica_takes_over)
{
    cluster_scene l, visitor;
    cluster_scene_start(&l, 9000);
    cluster_scene_join(&l, &visitor);
    const char *name = cluster_name_on(l.c, 0, "job");
    sides a = sides_of(l.cl, name), b = sides_of(visitor.cl, name);
    EXPECT_STATUS(rlock_lock(a.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(b.read), RLOCK_OK);
    waiter *w = waiter_start(b.write, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, stats_of(visitor.cl).waiting_now == 1);
    EVENTUALLY(SOON, cluster_int(l.c, 0, "WAIT 1 100") == 1);
    cluster_kill(l.c, 0);
    cluster_await_owner(l.c, name, 3);
    events_wait(l.ev, RLOCK_EVENT_FAILOVER, 1, SOON);
    watch_renewals(l.cl, 1);
    EXPECT(rlock_is_held(a.read) && !waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(a.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(b.read), RLOCK_OK);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    sides_free(&a);
    sides_free(&b);
    cluster_scene_leave(&visitor);
    cluster_scene_stop(&l);
}

/* While it does, calls with more than one key are put off. */
TEST(rw_gone, who_writes_is_renewed_while_his_slot_moves)
{
    cluster_scene l;
    cluster_scene_start(&l, BRISK_MS);
    const char *name = cluster_name_on(l.c, 0, "job");
    unsigned slot = cluster_slot(name);
    sides x = sides_of(l.cl, name);
    EXPECT_STATUS(rlock_lock(x.write), RLOCK_OK);
    cluster_slot_begin(l.c, slot, 1);
    watch_renewals(l.cl, 4); /* more than a lease */
    cluster_slot_move_key(l.c, name, 1);
    watch_renewals(l.cl, 4);
    cluster_slot_move_keys(l.c, slot, 1);
    cluster_slot_end(l.c, slot, 1);
    EXPECT_STATUS(rlock_lock(x.read), RLOCK_OK);
    watch_renewals(l.cl, 6);
    EXPECT_STATUS(rlock_unlock(x.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(x.read), RLOCK_OK);
    EXPECT_INT(stats_of(l.cl).lost, 0);
    sides_free(&x);
    cluster_scene_stop(&l);
}

/* --- Sentinels ------------------------------------------------------------ */

/* Who stands in line hears it there, and has asked: what is replicated says neither. */
static void await_look(server *sv)
{
    EVENTUALLY(SOON,
               server_cmd(sv, "PUBSUB CHANNELS rlock_bell:*")->elements == 1);
    server_int(sv, "EVAL %s 1 " RW_WANTS,
               "redis.call('RPUSH', 'look', "
               "table.concat(redis.call('HVALS', KEYS[1]), ' ')) return 1");
    EVENTUALLY(SOON,
               server_int(sv, "EVAL %s 1 " RW_WANTS,
                          "return redis.call('LINDEX', 'look', 0) ~= "
                          "table.concat(redis.call('HVALS', KEYS[1]), ' ') "
                          "and 1 or 0") == 1);
}

TEST(rw_gone, sides_go_on_at_the_master_that_is_elected)
{
    server *master = server_start_tcp(NULL), *replica = replica_start(master);
    sentinels *all = sentinels_start(master, 1);
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.uri = sentinels_uri(all);
    scene one = scene_with(master, &opts), two = scene_with(master, &opts);
    sides a = sides_of(one.cl, SCENE_LOCK), b = sides_of(two.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(a.read), RLOCK_OK);
    waiter *w = waiter_start(b.write, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, rw_in_line(master) == 1);
    waiter *reader = waiter_start(b.read, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, rw_in_line(master) == 2);
    EVENTUALLY(SOON, replica_follows(master));
    server_kill(master);
    events_wait(one.ev, RLOCK_EVENT_FAILOVER, 1, ELECTED_SOON);
    await_look(replica);
    EXPECT_INT(rw_in_line(replica), 2);
    EXPECT(rlock_is_held(a.read) && !waiter_returned(w));
    EXPECT_STATUS(rlock_unlock(a.read), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT(!waiter_returned(reader));
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(waiter_end(reader), RLOCK_OK);
    EXPECT_INT(stats_of(one.cl).lost + stats_of(two.cl).lost, 0);
    sides_free(&a);
    sides_free(&b);
    scene_leave(&one);
    scene_leave(&two);
    sentinels_stop(all);
    server_stop(replica);
    server_stop(master);
}
