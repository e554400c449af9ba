/*
 * rlock_force_unlock_hold(): the hold that was looked at is freed, on whatever
 * servers and in whatever layout, and none that has come meanwhile.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "cluster_scene.h"
#include "layouts.h"
#include "nodes.h"

#define UUID "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"

static rlock_holder holder_of(rlock *lk)
{
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
    return h;
}

static rlock_status free_who_has(rlock *lk)
{
    rlock_holder h = holder_of(lk);
    return rlock_force_unlock_hold(lk, h.raw);
}

/* --- one server ----------------------------------------------------------- */

static void expect_freed(rlock_layout layout)
{
    scene s = scene_of(layout, 0);
    other_client r = other_client_of(&s, layout);
    lock_times(r.lk, 3);
    rlock_holder h = holder_of(s.lk);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, h.raw), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, h.raw), RLOCK_NOT_HELD);
    EXPECT_CONTAINS(rlock_last_error()->message, "that hold");
    unlock_times(r.lk, 3, RLOCK_LOST);
    other_client_leave(&r);
    scene_stop(&s);
}

TEST_CASE(force_hold, all_levels_of_a_hold_are_freed,
          expect_freed(RLOCK_LAYOUT_HASH))
TEST_CASE(force_hold, a_string_is, expect_freed(RLOCK_LAYOUT_STRING))
TEST_CASE(force_hold, a_timestamp_is, expect_freed(RLOCK_LAYOUT_TIMESTAMP))

static void expect_the_next_stays(rlock_layout layout)
{
    scene s = scene_of(layout, 0);
    other_client r = other_client_of(&s, layout);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    rlock_holder seen = holder_of(s.lk);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK); /* the same thread's next hold */
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, seen.raw), RLOCK_NOT_HELD);
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    other_client_leave(&r);
    scene_stop(&s);
}

TEST_CASE(force_hold, a_hold_that_has_come_meanwhile_is_not_touched,
          expect_the_next_stays(RLOCK_LAYOUT_HASH))
TEST_CASE(force_hold, in_a_string_it_is_not,
          expect_the_next_stays(RLOCK_LAYOUT_STRING))
TEST_CASE(force_hold, in_a_timestamp_it_is_not,
          expect_the_next_stays(RLOCK_LAYOUT_TIMESTAMP))

/* A renewal has written another time. */
TEST(force_hold, a_timestamp_that_was_renewed_since_is_freed)
{
    scene s = scene_of(RLOCK_LAYOUT_TIMESTAMP, 0);
    other_client r = other_client_of(&s, RLOCK_LAYOUT_TIMESTAMP);
    EXPECT_STATUS(rlock_lock(r.lk), RLOCK_OK);
    rlock_holder seen = holder_of(s.lk);
    EXPECT_STATUS(rlock_extend(r.lk, 90000), RLOCK_OK);
    EXPECT(strcmp(value_of(s.sv).is, seen.raw) != 0);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, seen.raw), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_LOST);
    other_client_leave(&r);
    scene_stop(&s);
}

/* Takes the lock, and again when it is told to. */
static void live(child *c, void *arg)
{
    rlock_client *cl;
    rlock *lk;
    rlock_options opts = RLOCK_OPTIONS_INIT;
    (void)arg;
    opts.uri = child_take_uri(c);
    EXPECT_STATUS(rlock_client_new(&opts, &cl), RLOCK_OK);
    EXPECT_STATUS(rlock_new(cl, SCENE_LOCK, &lk), RLOCK_OK);
    child_expect(c, 'l');
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    child_tell(c, 'h');
    child_expect(c, 'u');
    child_tell(c, rlock_unlock(lk) == RLOCK_OK ? 'o' : 'l');
    rlock_client_free(cl);
    rlock_free(lk);
}

/* One process is looked at, and ends; another one has the lock by then. */
TEST(force_hold, of_two_processes_the_one_that_was_seen_is_meant)
{
    child *one = child_start(live, NULL), *two = child_start(live, NULL);
    scene s = scene_start(0, 0);
    child_give_uri(one, s.sv);
    child_give_uri(two, s.sv);
    child_tell(one, 'l');
    child_expect(one, 'h');
    rlock_holder seen = holder_of(s.lk);
    EXPECT_INT(seen.pid, child_pid(one));
    child_tell(two, 'l');
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, seen.raw), RLOCK_OK);
    child_expect(two, 'h'); /* it was woken */
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, seen.raw), RLOCK_NOT_HELD);
    child_tell(one, 'u');
    child_expect(one, 'l');
    child_tell(two, 'u');
    child_expect(two, 'o');
    child_end(one);
    child_end(two);
    scene_stop(&s);
}

TEST(force_hold, a_waiter_is_woken)
{
    scene s = scene_held(0, 0);
    other_client r = other_client_join(&s, NULL);
    other_client_wait(&s, &r, 1, RLOCK_FOREVER);
    EXPECT_STATUS(free_who_has(s.lk), RLOCK_OK);
    expect_woken(&r);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    other_client_leave(&r);
    scene_stop(&s);
}

TEST(force_hold, a_thread_of_the_same_client_is_woken)
{
    scene s = scene_held(0, 0);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(free_who_has(s.lk), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_BETWEEN(test_now_ms() - began_ms, 0, WELL_BEFORE_POLL_MS);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

/* --- other programs' ------------------------------------------------------ */

TEST(force_hold, redissons_is_freed_and_its_waiters_are_told)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "HSET " SCENE_LOCK " " UUID ":117 2");
    long long before = server_calls(s.sv, "publish");
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, UUID ":118"), RLOCK_NOT_HELD);
    EXPECT_INT(server_calls(s.sv, "publish"), before);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, UUID ":117"), RLOCK_OK);
    EXPECT_INT(server_calls(s.sv, "publish"), before + 1);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(force_hold, any_text_may_hold_a_string)
{
    scene s = scene_of(RLOCK_LAYOUT_STRING, 0);
    text theirs = others_take(s.sv, RLOCK_LAYOUT_STRING, 60000);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, "x"), RLOCK_NOT_HELD);
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, theirs.is), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    scene_stop(&s);
}

/* --- what is refused ------------------------------------------------------ */

static void expect_refused(rlock_layout layout, const char *holder_id)
{
    scene s = scene_of_held(layout, 0);
    long long before = commands(s.sv);
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, holder_id), RLOCK_EINVAL);
    EXPECT_INT(commands(s.sv) - before, 1);
    EXPECT(held_on_server(s.sv));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST_CASE(force_hold, no_text_is_no_holder_id,
          expect_refused(RLOCK_LAYOUT_HASH, ""))
TEST_CASE(force_hold, a_uuid_alone_is_no_holder_id,
          expect_refused(RLOCK_LAYOUT_HASH, UUID))
TEST_CASE(force_hold, in_a_string_no_text_is_none,
          expect_refused(RLOCK_LAYOUT_STRING, ""))
TEST_CASE(force_hold, another_programs_timestamp_names_no_hold,
          expect_refused(RLOCK_LAYOUT_TIMESTAMP, "1800000000.123"))

TEST(force_hold, null_pointers_are_refused)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_force_unlock_hold(NULL, UUID ":1"), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "the lock");
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, NULL), RLOCK_EINVAL);
    EXPECT_CONTAINS(rlock_last_error()->message, "the holder id");
    scene_stop(&s);
}

TEST(force_hold, a_key_of_another_type_is_left_alone)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "SET " SCENE_LOCK " x");
    EXPECT_STATUS(rlock_force_unlock_hold(s.lk, UUID ":1"), RLOCK_EWRONGTYPE);
    EXPECT(key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(force_hold, of_a_client_that_is_freed_and_in_a_child_nobody_is_asked)
{
    scene s = scene_start(0, 0);
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        EXPECT_STATUS(rlock_force_unlock_hold(s.lk, UUID ":1"), RLOCK_EFORKED);
        _exit(0);
    }
    EXPECT_INT(waitpid(pid, &status, 0), pid);
    EXPECT_INT(status, 0);
    rlock *lk = test_lock(s.cl, "other");
    scene_free_client(&s);
    EXPECT_STATUS(rlock_force_unlock_hold(lk, UUID ":1"), RLOCK_ECLOSED);
    rlock_free(lk);
    scene_stop(&s);
}

/* --- several servers ------------------------------------------------------ */

TEST(force_hold, a_multi_lock_has_a_hold_for_each_member)
{
    scene s = scene_start(0, 0);
    rlock *all, *member[] = {s.lk, test_lock(s.cl, "other")};
    EXPECT_STATUS(rlock_multi_new(member, 2, &all), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(all), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock_hold(all, holder_of(s.lk).raw),
                  RLOCK_ENOTSUP);
    EXPECT_STATUS(free_who_has(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(all), RLOCK_LOST);
    rlock_free(all);
    rlock_free(member[1]);
    scene_stop(&s);
}

/* Whatever each node's client calls its host. */
TEST(force_hold, a_red_lock_is_freed_on_all_nodes)
{
    static const char *const hosts[] = {"one", "two", "three"};
    nodes ns = nodes_start(3);
    party q = party_join(&ns, 0, 0), p = {.n = 3};
    for (size_t i = 0; i < 3; i++) {
        rlock_options o = RLOCK_OPTIONS_INIT;
        o.host_id = hosts[i];
        p.cl[i] = server_client(ns.sv[i], &o);
    }
    p.lk = party_lock(&p, SCENE_LOCK, NULL);
    party_hold(&p, 60000);
    rlock_holder seen = holder_of(q.lk);
    EXPECT_STATUS(rlock_force_unlock_hold(q.lk, seen.raw), RLOCK_OK);
    EXPECT_INT(nodes_having(&ns), 0);
    EXPECT_STATUS(rlock_force_unlock_hold(q.lk, seen.raw), RLOCK_NOT_HELD);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    party_leave(&p);
    party_end(&q, &ns);
}

TEST(force_hold, of_a_red_lock_the_next_hold_is_not_touched)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    rlock_holder seen = holder_of(q.lk);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EVENTUALLY(SOON, nodes_having(&ns) == 0);
    party_hold(&p, 60000);
    EXPECT_STATUS(rlock_force_unlock_hold(q.lk, seen.raw), RLOCK_NOT_HELD);
    EXPECT_INT(nodes_having(&ns), 3);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    party_leave(&q);
    party_end(&p, &ns);
}

TEST(force_hold, of_a_red_lock_most_nodes_have_to_answer)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0), q = party_join(&ns, 0, 0);
    party_hold(&p, 60000);
    rlock_holder seen = holder_of(q.lk);
    server_kill(ns.sv[2]);
    EXPECT_STATUS(rlock_force_unlock_hold(q.lk, seen.raw), RLOCK_OK);
    server_kill(ns.sv[1]);
    EXPECT_STATUS(rlock_force_unlock_hold(q.lk, seen.raw), RLOCK_EQUORUM);
    rlock_unlock(p.lk);
    party_leave(&q);
    party_end(&p, &ns);
}

/* The waiter is rung on a sharded channel, and the slot moves in between. */
TEST(force_hold, in_a_cluster_it_follows_the_slot_and_wakes)
{
    cluster_scene l, other;
    need_sharded_channels();
    cluster_scene_start(&l, 0);
    cluster_scene_join(&l, &other);
    const char *name = cluster_name_on(l.c, 0, "job");
    rlock *lk = cluster_scene_lock(&l, name);
    rlock *theirs = cluster_scene_lock(&other, name);
    EXPECT_STATUS(rlock_lock(theirs), RLOCK_OK);
    rlock_holder seen = holder_of(lk);
    cluster_move_slot(l.c, cluster_slot(name), 1);
    waiter *w = waiter_start(lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, cluster_int(l.c, 1, "ZCARD rlock_queue:{%s}", name) == 1);
    EXPECT_STATUS(rlock_force_unlock_hold(lk, seen.raw), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock_hold(lk, seen.raw), RLOCK_NOT_HELD);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(theirs), RLOCK_LOST);
    rlock_free(lk);
    rlock_free(theirs);
    cluster_scene_leave(&other);
    cluster_scene_stop(&l);
}
