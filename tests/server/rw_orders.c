/*
 * Read-write locks in orders that are rare: sides whose lease ends while others keep
 * the lock, what Redisson finds and leaves, and holds of other types.
 */
#include "replica_scene.h"
#include "rw_scene.h"

/* The side's own lease is over by the server's clock, and not yet here. */
static void end_lease_there(server *sv, const char *field)
{
    EXPECT_INT(server_int(sv, "ZADD " RW_LEASES " XX CH 1 %s", field), 1);
}

static const char *holder_of(rlock *side)
{
    static rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(side, &h, sizeof h), RLOCK_OK);
    return h.raw;
}

/* --- leases that end in between ------------------------------------------- */

/* Whoever begins to write is not the only one to read when his own lease is over. */
TEST(rw_orders,
     nobody_begins_to_write_beside_another_reader_once_his_lease_is_over)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    end_lease_there(r.s.sv, holder_of(r.mine.read));
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.mine.write), RLOCK_BUSY);
    EXPECT_INT(rw_mode(r.mine.write), 1);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_LOST);
    rw_scene_stop(&r);
}

/* More than are taken out at a time. */
TEST(rw_orders,
     many_whose_lease_is_over_do_not_keep_the_only_reader_from_writing)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    for (int i = 0; i < 250; i++) {
        server_cmd(r.s.sv, "HSET " SCENE_LOCK " dead:1:%d:x 1", i);
        server_cmd(r.s.sv, "ZADD " RW_LEASES " 1 dead:1:%d:x", i);
    }
    EXPECT_STATUS(rlock_trylock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw_orders, it_is_read_when_only_the_lease_of_the_write_side_is_over)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_acquire(r.mine.write, 0, 300), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_INT(rw_mode(r.mine.read), 2);
    EVENTUALLY(SOON, !rlock_is_held(r.mine.write));
    EVENTUALLY(SOON, rw_mode(r.mine.read) == 1);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

/* A resource that has seen the other writer's token refuses what it still writes. */
TEST(rw_orders, a_write_side_that_is_lost_keeps_its_token_when_its_owner_reads)
{
    rw_scene r = rw_scene_start(60000);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    uint64_t token = rlock_token(r.mine.write);
    server_cmd(r.s.sv, "DEL " SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(r.theirs.write), RLOCK_OK);
    uint64_t other = rlock_token(r.theirs.write);
    EXPECT(other > token);
    EXPECT_STATUS(rlock_unlock(r.theirs.write), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT(rlock_token(r.mine.read) > other);
    EXPECT(rlock_token(r.mine.write) == token);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

static intptr_t read_beside(void *lk)
{
    EXPECT_STATUS(rlock_acquire(lk, 0, 60000), RLOCK_OK);
    return 0;
}

/* A reader's lease is in a sorted set, and the key's is longer already. */
TEST(rw_orders, a_server_out_of_memory_renews_and_extends_both_sides)
{
    rw_scene r = rw_scene_start(BRISK_MS);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    server_cmd(r.s.sv, "CONFIG SET maxmemory 1");
    watch_renewals(r.s.cl, 8);
    server_cmd(r.s.sv, "CONFIG SET maxmemory 0");
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    test_join(test_spawn(read_beside, r.theirs.read));
    server_cmd(r.s.sv, "CONFIG SET maxmemory 1");
    watch_renewals(r.s.cl, 4);
    EXPECT_STATUS(rlock_extend(r.mine.read, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_INT(stats_of(r.s.cl).lost, 0);
    EXPECT_STATUS(rlock_force_unlock(r.mine.read), RLOCK_OK);
    server_cmd(r.s.sv, "FLUSHALL");
    rw_scene_stop(&r);
}

/* --- tokens --------------------------------------------------------------- */

#define TOKEN   "rlock_token:{" SCENE_LOCK "}"
#define HOUR_MS (3600 * 1000LL)

/* As long as it is read, the token is there for who begins to read. */
static void expect_token_outlives(rw_scene *r)
{
    int64_t token_ms = key_ttl(r->s.sv, TOKEN);
    EXPECT(token_ms > key_ttl(r->s.sv, SCENE_LOCK) - SLACK_MS);
    EXPECT_STATUS(rlock_unlock(r->mine.read), RLOCK_OK);
    server_cmd(r->s.sv, "DEL " TOKEN);
    rw_scene_stop(r);
}

TEST(rw_orders, a_token_stays_for_as_long_as_a_reader_s_lease)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_acquire(r.mine.read, 0, 5 * HOUR_MS), RLOCK_OK);
    expect_token_outlives(&r);
}

TEST(rw_orders, a_token_stays_for_as_long_as_a_reader_s_lease_is_extended)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_extend(r.mine.read, 5 * HOUR_MS), RLOCK_OK);
    expect_token_outlives(&r);
}

TEST(rw_orders, a_token_stays_for_as_long_as_the_lease_of_one_level_more)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.mine.read, 0, 5 * HOUR_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    expect_token_outlives(&r);
}

TEST(rw_orders, a_token_stays_for_the_reader_who_has_written_for_a_moment)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_acquire(r.mine.read, 0, 5 * HOUR_MS), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.mine.write, 0, 1000), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    expect_token_outlives(&r);
}

/* What was undone has left a later token, which those who come have, too. */
TEST(rw_orders,
     who_was_refused_to_write_has_the_token_of_those_who_read_after_it)
{
    replica_scene f = replica_scene_start(1, 1, 0);
    sides x = sides_of(f.s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(x.read), RLOCK_OK);
    replica_scene_cut_off(&f, 0);
    EXPECT_STATUS(rlock_trylock(x.write), RLOCK_EQUORUM);
    EVENTUALLY(SOON, rw_mode(x.read) == 1);
    EXPECT_INT(rlock_token(x.read), server_int(f.s.sv, "INCRBY " TOKEN " 0"));
    EXPECT_STATUS(rlock_unlock(x.read), RLOCK_OK);
    sides_free(&x);
    replica_scene_stop(&f);
}

/* --- beside Redisson ------------------------------------------------------ */

#define JAVA "8743c9c0-0795-4907-87fd-6c719a6b4586:51"

/* A reader of ours has died, and the key with it; then one of Redisson's came,
   who knows nothing of leases. */
TEST(rw_orders, who_reads_without_a_lease_is_seen_beside_leases_that_were_left)
{
    rw_scene r = rw_scene_start(0);
    rlock_rw_state now = RLOCK_RW_STATE_INIT;
    int64_t ttl_ms;
    server_cmd(r.s.sv, "ZADD " RW_LEASES " 1 dead:1:1:x");
    server_cmd(r.s.sv, "HSET " SCENE_LOCK " mode read " JAVA " 1");
    server_cmd(r.s.sv, "PEXPIRE " SCENE_LOCK " 30000");
    EXPECT_STATUS(rlock_ttl(r.mine.read, &ttl_ms), RLOCK_OK);
    EXPECT_BETWEEN(ttl_ms, 20000, 30000);
    EXPECT_STATUS(rlock_rw_inspect(r.mine.read, &now), RLOCK_OK);
    EXPECT(now.mode == 1 && now.holders == 1);
    EXPECT_BETWEEN(now.ttl_ms, 20000, 30000);
    server_cmd(r.s.sv, "DEL " SCENE_LOCK " " RW_LEASES);
    rw_scene_stop(&r);
}

/* --- other types ---------------------------------------------------------- */

/* How many clients that stand in line hear nothing yet: they look once more when
   they do. */
static long long deaf_at(server *sv)
{
    return server_int(sv, "EVAL %s 1 rlock_wants:{" SCENE_LOCK "}",
                      "local n = 0 "
                      "for _, v in ipairs(redis.call('HVALS', KEYS[1])) do "
                      "n = n + (v:sub(-1) == '-' and 1 or 0) end return n");
}

/* Their lock is gone while they stand in line, and others come for another kind. */
TEST(rw_orders,
     who_waits_to_write_is_granted_that_by_nobody_who_wants_a_fair_lock)
{
    rw_scene r = rw_scene_start(0);
    rlock *fair = test_fair_lock(r.s.cl, SCENE_LOCK);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    waiter *w = rw_stand(&r, r.theirs.write, RLOCK_FOREVER, 1);
    EVENTUALLY(SOON, deaf_at(r.s.sv) == 0);
    server_int(r.s.sv, "DEL " SCENE_LOCK);
    waiter *f = waiter_start(fair, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(rw_mode(r.theirs.write), 2);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(waiter_end(f), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_LOST);
    rlock_free(fair);
    rw_scene_stop(&r);
}

TEST(rw_orders, no_hold_of_another_type_is_ended_by_force)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock_hold(r.theirs.read, holder_of(r.s.lk)),
                  RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock_hold(r.theirs.write, holder_of(r.s.lk)),
                  RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_unlock(r.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock_hold(r.s.lk, holder_of(r.mine.read)),
                  RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}
