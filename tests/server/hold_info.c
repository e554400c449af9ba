/*
 * rlock_hold_info(): does a hold that was looked at still have the lock, alone or
 * among many that read; and who of those rlock_holder_info() tells.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "layouts.h"
#include "nodes.h"
#include "rw_scene.h"

#define UUID "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"

static rlock_holder holder_of(rlock *lk)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
    return h;
}

static rlock_status asked(rlock *lk, const rlock_holder *about)
{
    rlock_holder h;
    memset(&h, 'x', sizeof h);
    rlock_status s = rlock_hold_info(lk, about->raw, &h, sizeof h);
    static const rlock_holder none;
    if (s == RLOCK_OK)
        EXPECT_STR(h.raw, about->raw);
    else
        EXPECT(memcmp(&h, &none, sizeof h) == 0);
    return s;
}

/* --- one holder ----------------------------------------------------------- */

static void expect_told_while_it_has_it(rlock_layout layout)
{
    scene s = scene_of(layout, 0);
    other_client r = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    rlock_holder seen = holder_of(s.lk), h;
    EXPECT_STATUS(rlock_hold_info(s.lk, seen.raw, &h, sizeof h), RLOCK_OK);
    EXPECT(h.pid == getpid() && h.count == 1);
    EXPECT_BETWEEN(h.ttl_ms, 1, 30000);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(asked(s.lk, &seen), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK); /* the same thread's next hold */
    EXPECT_STATUS(asked(s.lk, &seen), RLOCK_NOT_HELD);
    EXPECT_CONTAINS(rlock_last_error()->message, "that hold");
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    other_client_leave(&r);
    scene_stop(&s);
}

TEST_CASE(hold_info, tells_of_a_hold_while_it_has_the_lock,
          expect_told_while_it_has_it(RLOCK_LAYOUT_HASH))
TEST_CASE(hold_info, tells_of_a_string,
          expect_told_while_it_has_it(RLOCK_LAYOUT_STRING))

TEST(hold_info, tells_of_redissons)
{
    scene s = scene_start(0, 0);
    rlock_holder h;
    server_cmd(s.sv, "HSET " SCENE_LOCK " " UUID ":117 2");
    EXPECT_STATUS(rlock_hold_info(s.lk, UUID ":117", &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.count, 2);
    EXPECT_STATUS(rlock_hold_info(s.lk, UUID ":118", &h, sizeof h),
                  RLOCK_NOT_HELD);
    scene_stop(&s);
}

TEST(hold_info, of_a_red_lock_asks_a_majority)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    rlock_holder seen = holder_of(q.lk);
    EXPECT_STATUS(asked(q.lk, &seen), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(q.lk), RLOCK_OK);
    EXPECT_STATUS(asked(q.lk, &seen), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_unlock(q.lk), RLOCK_OK);
    party_leave(&q);
    party_end(&p, &ns);
}

/* --- many that read ------------------------------------------------------- */

TEST(hold_info, tells_of_each_that_reads_and_to_each_of_itself)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.theirs.read), RLOCK_OK);
    rlock_holder mine = holder_of(r.mine.read);
    rlock_holder theirs = holder_of(r.theirs.read);
    EXPECT(strcmp(mine.hold_id, theirs.hold_id) != 0);
    EXPECT_STATUS(asked(r.mine.read, &theirs), RLOCK_OK);
    EXPECT_STATUS(asked(r.theirs.read, &mine), RLOCK_OK);
    EXPECT_STATUS(asked(r.mine.write, &mine), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(asked(r.theirs.read, &mine), RLOCK_NOT_HELD);
    EXPECT_STR(holder_of(r.mine.read).raw, theirs.raw);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    EXPECT_STATUS(asked(r.mine.read, &theirs), RLOCK_NOT_HELD);
    rw_scene_stop(&r);
}

TEST(hold_info, does_not_tell_of_a_reader_whose_lease_is_over)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.theirs.read, 0, 300), RLOCK_OK);
    rlock_holder theirs = holder_of(r.theirs.read);
    EVENTUALLY(SOON, asked(r.mine.read, &theirs) == RLOCK_NOT_HELD);
    EXPECT_INT(server_int(r.s.sv, "HEXISTS " SCENE_LOCK " %s", theirs.raw), 1);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_LOST);
    rw_scene_stop(&r);
}

static int64_t left_of(rlock *lk, const rlock_holder *about)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_hold_info(lk, about->raw, &h, sizeof h), RLOCK_OK);
    return h.ttl_ms;
}

TEST(hold_info, tells_of_each_that_reads_what_is_left_of_its_own_lease)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_acquire(r.mine.read, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.theirs.read, 0, 60000), RLOCK_OK);
    rlock_holder mine = holder_of(r.mine.read);
    rlock_holder theirs = holder_of(r.theirs.read);
    EXPECT_BETWEEN(mine.ttl_ms, 1, 20000);
    EXPECT_BETWEEN(left_of(r.theirs.read, &mine), 1, 20000);
    EXPECT_BETWEEN(left_of(r.mine.read, &theirs), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.theirs.read), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(hold_info, a_side_stays_as_long_as_its_own_lease)
{
    rw_scene r = rw_scene_start(0);
    int64_t writes_ms, reads_ms;
    EXPECT_STATUS(rlock_acquire(r.mine.write, 0, 20000), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(r.mine.read, 0, 60000), RLOCK_OK);
    EXPECT_STATUS(rlock_ttl(r.theirs.write, &writes_ms), RLOCK_OK);
    EXPECT_STATUS(rlock_ttl(r.theirs.read, &reads_ms), RLOCK_OK);
    EXPECT_BETWEEN(writes_ms, 1, 20000);
    EXPECT_BETWEEN(reads_ms, 30000, 60000);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(hold_info, tells_of_who_writes_and_of_it_as_a_reader)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.mine.write), RLOCK_OK);
    rlock_holder writer = holder_of(r.theirs.write);
    EXPECT_STATUS(asked(r.theirs.write, &writer), RLOCK_OK);
    EXPECT_STATUS(asked(r.theirs.read, &writer), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    rlock_holder reader = holder_of(r.theirs.read);
    EXPECT_STATUS(asked(r.theirs.read, &reader), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.mine.write), RLOCK_OK);
    rw_scene_stop(&r);
}

/* --- what is refused ------------------------------------------------------ */

static void expect_status(rlock *lk, const char *id, rlock_status wanted)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_hold_info(lk, id, &h, sizeof h), wanted);
}

TEST(hold_info, what_is_no_holder_id_asks_nobody)
{
    scene s = scene_start(0, 0);
    long long before = commands(s.sv);
    expect_status(s.lk, "", RLOCK_EINVAL);
    expect_status(s.lk, UUID, RLOCK_EINVAL);
    expect_status(s.lk, NULL, RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "the holder id");
    expect_status(NULL, UUID ":1", RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "the lock");
    EXPECT_STATUS(rlock_hold_info(s.lk, UUID ":1", NULL, 0), RLOCK_EINVAL);
    rlock_holder h;
    EXPECT_STATUS(rlock_hold_info(s.lk, UUID ":1", &h, 3), RLOCK_EINVAL);
    EXPECT_INT(commands(s.sv) - before, 1);
    scene_stop(&s);
}

TEST(hold_info, the_id_may_be_the_one_in_what_is_filled)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    rlock_holder h = holder_of(s.lk);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_hold_info(s.lk, h.raw, &h, sizeof h), RLOCK_OK);
    EXPECT_INT(h.count, 2);
    unlock_times(s.lk, 2, RLOCK_OK);
    EXPECT_STATUS(rlock_hold_info(s.lk, h.raw, &h, sizeof h), RLOCK_NOT_HELD);
    EXPECT_INT(h.count, 0);
    scene_stop(&s);
}

TEST(hold_info, of_a_timestamp_and_of_several_names_is_not_supported)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    rlock *all, *member[] = {test_lock(s.cl, "a"), test_lock(s.cl, "b")};
    expect_status(s.lk, UUID ":1", RLOCK_ENOTSUP);
    EXPECT_STATUS(rlock_multi_new(member, 2, &all), RLOCK_OK);
    expect_status(all, UUID ":1", RLOCK_ENOTSUP);
    rlock_free(all);
    rlock_free(member[0]);
    rlock_free(member[1]);
    scene_stop(&s);
}

TEST(hold_info, a_key_of_another_type_is_told_as_that)
{
    rw_scene r = rw_scene_start(0);
    EXPECT_STATUS(rlock_lock(r.s.lk), RLOCK_OK);
    rlock_holder plain = holder_of(r.s.lk);
    expect_status(r.mine.read, plain.raw, RLOCK_EWRONGTYPE);
    expect_status(r.mine.write, plain.raw, RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_unlock(r.s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.mine.read), RLOCK_OK);
    expect_status(r.s.lk, plain.raw, RLOCK_EWRONGTYPE);
    EXPECT_STATUS(rlock_unlock(r.mine.read), RLOCK_OK);
    rw_scene_stop(&r);
}

TEST(hold_info, of_a_client_that_is_freed_and_in_a_child_nobody_is_asked)
{
    scene s = scene_start(0, 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        expect_status(s.lk, UUID ":1", RLOCK_EFORKED);
        _exit(0);
    }
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(status, 0);
    rlock *lk = test_lock(s.cl, "other");
    scene_free_client(&s);
    expect_status(lk, UUID ":1", RLOCK_ECLOSED);
    rlock_free(lk);
    scene_stop(&s);
}
