/* Acquires that arrive when their lock has been taken away, or given up. */
#include "dialer.h"

static size_t tombstones(server *sv)
{
    return server_cmd(sv, "KEYS rlock_undone:*")->elements;
}

/* --- acquires that are stuck --------------------------------------------- */

/* Granted to the second try; the first is still on its way. */
static void acquire_doubtfully(scene *s, int64_t lease_ms)
{
    proxy_rule(s->px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_acquire(s->lk, 10000, lease_ms), RLOCK_OK);
    EXPECT(proxy_fired(s->px));
}

static void expect_refused_when_it_arrives(scene *s)
{
    EVENTUALLY(5000, tombstones(s->sv) == 1);
    proxy_let_go(s->px);
    EXPECT_INT(levels(s->sv, SCENE_LOCK), 0);
    expect_all_undone(s->sv);
}

/* The server is not to keep for ten years what is late for minutes at most. */
TEST(acquire_stuck, a_tombstone_does_not_stand_as_long_as_a_lease_of_ten_years)
{
    scene s = scene_proxied(0, 200);
    acquire_doubtfully(&s, (int64_t)10 * 365 * 24 * 3600 * 1000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EVENTUALLY(5000, tombstones(s.sv) == 1);
    const char *key = server_cmd(s.sv, "KEYS rlock_undone:*")->element[0]->str;
    char name[200];
    snprintf(name, sizeof name, "%s", key);
    EXPECT_BETWEEN(key_ttl(s.sv, name), 500000, 600000);
    proxy_let_go(s.px);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    scene_stop(&s);
}

static void lose_a_doubtful_hold(const char *how)
{
    scene s = scene_proxied(0, 200);
    acquire_doubtfully(&s, 20000);
    server_cmd(s.sv, how);
    EXPECT_STATUS(rlock_extend(s.lk, 20000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    expect_refused_when_it_arrives(&s);
    scene_stop(&s);
}

TEST(acquire_stuck, a_stuck_acquire_does_not_take_a_lock_that_was_taken_away)
{
    lose_a_doubtful_hold("DEL " SCENE_LOCK);
}

TEST(acquire_stuck, a_stuck_acquire_does_not_take_a_lock_that_was_flushed)
{
    lose_a_doubtful_hold("FLUSHALL");
}

static intptr_t acquire_doubtfully_and_end(void *arg)
{
    acquire_doubtfully(arg, 700);
    return 0;
}

TEST(acquire_stuck, a_stuck_acquire_of_a_thread_that_ended_takes_nothing)
{
    scene s = scene_proxied(0, 200);
    test_join(test_spawn(acquire_doubtfully_and_end, &s));
    events_wait(s.ev, RLOCK_EVENT_ABANDONED, 1, 5000);
    expect_refused_when_it_arrives(&s);
    scene_stop(&s);
}

/* Memory for the tombstone comes only after the release. */
TEST(acquire_stuck, a_release_out_of_memory_still_stops_a_stuck_acquire)
{
    scene s = scene_proxied(6000, 200);
    acquire_doubtfully(&s, RLOCK_WATCHDOG);
    server_cmd(s.sv, "CONFIG SET maxmemory 1");
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 0);
    EXPECT_INT(tombstones(s.sv), 0);
    server_cmd(s.sv, "CONFIG SET maxmemory 0");
    expect_refused_when_it_arrives(&s);
    scene_stop(&s);
}
