/*
 * Read-write locks: who excludes whom, who comes first, what one owner may have of
 * both sides, and which tokens they get.
 */
#include <stdatomic.h>

#include "direct.h"
#include "rw_scene.h"

/* --- who excludes whom ---------------------------------------------------- */

TEST(rw, many_read_at_a_time_and_nobody_writes_meanwhile)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(on_another_thread(rlock_trylock, r.theirs.write), RLOCK_BUSY);
    EXPECT_INT(rw_mode(r.mine.write), 1);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(on_another_thread(rlock_trylock, r.theirs.write), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_INT(rw_mode(r.mine.write), 0);
    rw_scene_stop(&r);
}

TEST(rw, one_writes_alone)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    EXPECT_INT(rw_mode(r.mine.read), 2);
    EXPECT_STATUS(rlock_trylock(r.theirs.read), RLOCK_BUSY);
    EXPECT_CONTAINS(rlock_last_error()->message, "held by ");
    EXPECT_STATUS(rlock_trylock(r.theirs.write), RLOCK_BUSY);
    EXPECT_STATUS(on_another_thread(rlock_trylock, r.mine.read), RLOCK_BUSY);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.theirs.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.write), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw, levels_are_counted_for_each_side)
{
    rw_scene r = rw_scene_start(0);
    lock_times(r.mine.read, 3);
    EXPECT_INT(rlock_hold_count(r.mine.read), 3);
    EXPECT_INT(rlock_hold_count(r.mine.write), 0);
    unlock_times(r.mine.read, 2, RLOCK_OK);
    EXPECT(rlock_is_held(r.mine.read));
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_NOT_HELD);
    unlock_times(r.mine.read, 1, RLOCK_OK);
    lock_times(r.mine.write, 3);
    EXPECT_INT(rlock_hold_count(r.mine.write), 3);
    unlock_times(r.mine.write, 3, RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_NOT_HELD);
    rw_scene_stop(&r);
}

/* --- who comes first ------------------------------------------------------ */

TEST(rw, all_who_wait_to_read_come_in_together)
{
    enum { N = 6 };
    rw_scene r = rw_scene_start(0);
    waiter *w[N];
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    for (int i = 0; i < N; i++)
        w[i] = rw_stand(&r, i % 2 ? r.mine.read : r.theirs.read, 30000, i + 1);
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    for (int i = 0; i < N; i++)
        waiter_expect_rung(w[i], freed_ms); /* and none of them has unlocked */
    for (int i = 0; i < N; i++)
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
    EXPECT_INT(stats_of(r.s.cl).lost + stats_of(r.o.cl).lost, 0);
    rw_scene_stop(&r);
}

TEST(rw, nobody_begins_to_read_past_one_who_waits_to_write)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    waiter *writer = rw_stand(&r, r.theirs.write, 30000, 1);
    EXPECT_STATUS(on_another_thread(rlock_trylock, r.theirs.read), RLOCK_BUSY);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK); /* one level more does */
    waiter *reader = rw_stand(&r, r.theirs.read, 30000, 2);
    int64_t freed_ms = test_now_ms();
    unlock_times(r.mine.read, 2, RLOCK_OK);
    waiter_expect_rung(writer, freed_ms);
    EXPECT(!waiter_returned(reader));
    freed_ms = test_now_ms();
    EXPECT_STATUS(waiter_end(writer), RLOCK_OK);
    waiter_expect_rung(reader, freed_ms);
    EXPECT_STATUS(waiter_end(reader), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw, one_who_gives_up_writing_lets_those_behind_read)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    waiter *writer = rw_stand(&r, r.theirs.write, RLOCK_FOREVER, 1);
    waiter *reader = rw_stand(&r, r.theirs.read, RLOCK_FOREVER, 2);
    int64_t canceled_ms = test_now_ms();
    rlock_cancel(r.theirs.write);
    EXPECT_STATUS(waiter_end(writer), RLOCK_CANCELED);
    waiter_expect_rung(reader, canceled_ms);
    EXPECT_STATUS(waiter_end(reader), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw, a_wait_that_runs_out_is_a_timeout)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.theirs.read, 60, RLOCK_WATCHDOG),
                  RLOCK_TIMEOUT);
    EXPECT_STATUS(rlock_acquire(r.theirs.write, 60, RLOCK_WATCHDOG),
                  RLOCK_TIMEOUT);
    EXPECT_INT(rw_in_line(r.s.sv), 0);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    rw_scene_stop(&r);
}

typedef struct crowd {
    rlock *lk;
    atomic_bool *stop;
} crowd;

/* One after the other, with others beside. */
static intptr_t read_on(void *arg)
{
    const crowd *c = arg;
    while (!atomic_load(c->stop)) {
        EXPECT_STATUS(rlock_lock(c->lk), RLOCK_OK);
        test_pause_ms(5);
        EXPECT_STATUS(rlock_unlock(c->lk), RLOCK_OK);
    }
    return 0;
}

TEST(rw, a_writer_comes_in_between_many_who_read)
{
    enum { READERS = 24, WRITES = 20 };
    rw_scene r = rw_scene_start(0);
    atomic_bool stop = false;
    test_thread *t[READERS];
    crowd c[] = {{r.mine.read, &stop}, {r.theirs.read, &stop}};
    int64_t took_ms[WRITES];
    for (int i = 0; i < READERS; i++)
        t[i] = test_spawn(read_on, &c[i % 2]);
    for (int i = 0; i < WRITES; i++) {
        int64_t began_ms = test_now_ms();
        EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
        took_ms[i] = test_since_ms(began_ms);
        EXPECT_INT(server_int(r.s.sv, "HLEN " SCENE_LOCK), 2);
        EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++)
        test_join(t[i]);
    EXPECT_BETWEEN(test_median(took_ms, WRITES), 0, SLACK_MS);
    EXPECT_INT(stats_of(r.s.cl).lost + stats_of(r.o.cl).lost, 0);
    rw_scene_stop(&r);
}

/* --- one owner, both sides ------------------------------------------------ */

TEST(rw, the_only_one_who_reads_may_begin_to_write_at_once)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    waiter *w = rw_stand(&r, r.theirs.write, RLOCK_FOREVER, 1);
    uint64_t before = rlock_token(r.mine.read);
    EXPECT_STATUS(rlock_trylock(r.mine.write),
                  RLOCK_OK); /* before all in line */
    EXPECT(rlock_token(r.mine.write) > before);
    EXPECT_INT(rlock_token(r.mine.read), rlock_token(r.mine.write));
    EXPECT_INT(rw_mode(r.mine.read), 2);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EXPECT_INT(rw_mode(r.mine.read), 1);
    EXPECT(rlock_is_held(r.mine.read) && !waiter_returned(w));
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    waiter_expect_rung(w, freed_ms);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw, whoever_reads_beside_others_is_told_that_the_wait_would_not_end)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    waiter *w = waiter_start(r.theirs.read, 0, RLOCK_WATCHDOG);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.mine.write), RLOCK_EDEADLK);
    EXPECT_CONTAINS(rlock_last_error()->message, "others read it");
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(rlock_acquire(r.mine.write, RLOCK_FOREVER, RLOCK_WATCHDOG),
                  RLOCK_EDEADLK);
    EXPECT_BETWEEN(test_since_ms(began_ms), 0, SLACK_MS);
    EXPECT(rlock_is_held(r.mine.read));
    EXPECT_INT(rw_in_line(r.s.sv), 0);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.mine.write), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT(rlock_is_held(r.mine.write));
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw, who_writes_may_read_and_go_on_reading_with_nobody_between)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    waiter *reader = rw_stand(&r, r.theirs.read, RLOCK_FOREVER, 1);
    waiter *writer = rw_stand(&r, r.theirs.write, RLOCK_FOREVER, 2);
    EXPECT_STATUS(rlock_trylock(r.mine.read), RLOCK_OK);
    EXPECT_INT(rlock_token(r.mine.read), rlock_token(r.mine.write));
    int64_t freed_ms = test_now_ms();
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    waiter_expect_rung(reader, freed_ms);
    EXPECT(rlock_is_held(r.mine.read) && !waiter_returned(writer));
    EXPECT_STATUS(waiter_end(reader), RLOCK_OK);
    EXPECT(!waiter_returned(writer));
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(waiter_end(writer), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(rw, each_side_of_an_owner_ends_by_its_own_lease)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_acquire(r.mine.read, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.mine.write, 0, 400), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.theirs.read), RLOCK_BUSY);
    EVENTUALLY(SOON, !rlock_is_held(r.mine.write));
    EVENTUALLY(SOON, rlock_trylock(r.theirs.read) == RLOCK_OK);
    EXPECT(rlock_is_held(r.mine.read));
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

/* --- tokens --------------------------------------------------------------- */

static uint64_t token_of(rlock *lk)
{
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_OK);
    uint64_t token = rlock_token(lk);
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_OK);
    return token;
}

TEST(rw, those_who_read_between_two_writers_have_one_token)
{
    rw_scene r = rw_scene_start(0);
    uint64_t first = token_of(r.mine.write);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    uint64_t shared = rlock_token(r.mine.read);
    EXPECT(shared > first);
    EXPECT_INT(token_of(r.theirs.read), shared);
    EXPECT_INT(token_of(r.theirs.read), shared);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    uint64_t second = token_of(r.theirs.write);
    EXPECT(second > shared);
    EXPECT(token_of(r.mine.read) > second);
    rw_scene_stop(&r);
}

/* One minute is left of the token's key: those who go on reading keep it. */
TEST(rw, renewals_of_those_who_read_keep_their_token)
{
    rw_scene r = rw_scene_start(BRISK_MS);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    uint64_t shared = rlock_token(r.mine.read);
    server_cmd(r.s.sv, "PEXPIRE rlock_token:{job} 60000");
    EVENTUALLY(SOON, key_ttl(r.s.sv, "rlock_token:{job}") > 60000);
    EXPECT_INT(token_of(r.theirs.read), shared);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

/* --- other types ---------------------------------------------------------- */

TEST(rw, an_ordinary_lock_is_none_of_its_sides)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.theirs.read), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_trylock(r.theirs.write), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_lock(r.theirs.write), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock(r.theirs.read), RLOCK_EWRONGTYPE);
    EXPECT(rlock_is_held(r.s.lk));
    EXPECT_STATUS(rlock_unlock(r.s.lk), RLOCK_OK);
    EXPECT_INT(rw_in_line(r.s.sv), 0);
    rw_scene_stop(&r);
}

static void expect_no_plain_lock(rw_scene *r, bool fair)
{
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    rlock *lk;
    o.fair = fair;
    EXPECT_STATUS(
        rlock_new_ex(r->o.cl, SCENE_LOCK, strlen(SCENE_LOCK), &o, &lk),
        RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock(lk), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_is_locked(lk, &(bool){false}), RLOCK_EWRONGTYPE);
    rlock_free(lk);
}

TEST(rw, it_is_no_ordinary_lock)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    expect_no_plain_lock(&r, false);
    expect_no_plain_lock(&r, true);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    expect_no_plain_lock(&r, false);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    EVENTUALLY(SOON, queued(r.s.sv, SCENE_LOCK) == 0);
    rw_scene_stop(&r);
}

static void expect_left_alone(const char *value)
{
    rw_scene r = rw_scene_start(0);
    server_cmd(r.s.sv, value);
    EXPECT_STATUS(rlock_trylock(r.mine.read), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_force_unlock(r.mine.read), RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_is_locked(r.mine.read, &(bool){false}),
                  RLOCK_EWRONGTYPE);
    rlock_rw_state state = RLOCK_RW_STATE_INIT;
    EXPECT_STATUS(rlock_rw_inspect(r.mine.read, &state), RLOCK_EWRONGTYPE);
    EXPECT_INT(server_int(r.s.sv, "DEL " SCENE_LOCK), 1);
    rw_scene_stop(&r);
}

TEST_CASE(rw, a_string_is_left_alone, expect_left_alone("SET job x"))
TEST_CASE(rw, a_list_is_left_alone, expect_left_alone("RPUSH job x"))
TEST_CASE(rw, a_map_is_left_alone, expect_left_alone("HSET job a 1 b 2"))
TEST_CASE(rw, a_map_with_a_mode_of_its_own_is_left_alone,
          expect_left_alone("HSET job mode dark b 2"))
