/*
 * The end of a client: what it holds stays for its lease, or is released, as
 * the program says.
 */
#include "cluster_scene.h"
#include "layouts.h"
#include "multi_scene.h"
#include "nodes.h"

/* Frees the client that the scene has; its lock's handle stays. */
static rlock_status end_client(scene *s, unsigned flags)
{
    rlock_client *cl = s->cl;
    s->cl = NULL;
    return rlock_client_close(cl, flags);
}

static intptr_t hold_until_closed(void *arg)
{
    rlock *lk = arg;
    lock_times(lk, 2);
    EVENTUALLY(SOON, !rlock_is_held(lk));
    EXPECT_STATUS(rlock_unlock(lk), RLOCK_ECLOSED);
    return 0;
}

TEST(close, without_a_flag_what_is_held_stays_for_its_lease)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(end_client(&s, 0), RLOCK_OK);
    EXPECT(key_ttl(s.sv, SCENE_LOCK) > 20000);
    scene_stop(&s);
}

BOTH(close, releases_what_is_held_however_often)
{
    scene s = scene_of(layout, 0);
    lock_times(s.lk, 3);
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT(!held_on_server(s.sv));
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_ECLOSED);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

TEST(close, releases_what_other_threads_and_owners_hold)
{
    scene s = scene_start(0, 0);
    rlock *of_thread = test_lock(s.cl, "thread's");
    rlock *of_owner = test_lock(s.cl, "owner's");
    rlock_owner *o;
    EXPECT_STATUS(rlock_owner_new("job", &o), RLOCK_OK);
    rlock_owner_set(o);
    EXPECT_STATUS(rlock_acquire(of_owner, 0, 60000), RLOCK_OK);
    rlock_owner_set(NULL);
    test_thread *t = test_spawn(hold_until_closed, of_thread);
    EVENTUALLY(SOON, levels(s.sv, "thread's") == 2);
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT(!key_exists(s.sv, "thread's") && !key_exists(s.sv, "owner's"));
    test_join(t);
    rlock_owner_free(o);
    rlock_free(of_thread);
    rlock_free(of_owner);
    expect_nothing_left(s.sv);
    scene_stop(&s);
}

static intptr_t hold_until_not_held(void *arg)
{
    rlock *lk = arg;
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EVENTUALLY(SOON, !rlock_is_held(lk));
    return 0;
}

static intptr_t try_it(void *arg)
{
    return rlock_trylock(arg);
}

static intptr_t close_with_all(void *arg)
{
    return rlock_client_close(arg, RLOCK_CLOSE_RELEASE_HELD);
}

/* A call of another thread's has the close wait, and the thread learns of it. */
TEST(close, releases_what_a_thread_holds_that_ends_when_it_notices)
{
    scene s = scene_proxied(0, 0);
    rlock *other = test_lock(s.cl, "other");
    test_thread *holder = test_spawn(hold_until_not_held, s.lk);
    EVENTUALLY(SOON, held_on_server(s.sv));
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    test_thread *caller = test_spawn(try_it, other);
    EVENTUALLY(SOON, proxy_fired(s.px));
    test_thread *closer = test_spawn(close_with_all, s.cl);
    s.cl = NULL;
    test_join(holder);
    proxy_let_go(s.px);
    EXPECT_STATUS(test_join(caller), RLOCK_OK);
    EXPECT_STATUS(test_join(closer), RLOCK_OK);
    EXPECT(!held_on_server(s.sv) && !key_exists(s.sv, "other"));
    EXPECT_INT(events_count(s.ev, RLOCK_EVENT_ABANDONED), 0);
    rlock_free(other);
    scene_stop(&s);
}

TEST(close, a_release_at_the_end_wakes_who_waits)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    other_client_wait(&s, &v, 1, RLOCK_FOREVER);
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    expect_woken(&v);
    waiter_end(v.w);
    other_client_leave(&v);
    scene_stop(&s);
}

/* The server may have closed what was at rest. */
TEST(close, releases_over_a_new_connection_if_the_old_one_was_closed)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    server_cmd(s.sv, "CLIENT KILL TYPE normal");
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(close, a_release_that_is_cut_off_is_made_again)
{
    scene s = scene_proxied(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("release"), 1, PROXY_CUT_BEFORE, NULL);
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

TEST(close, a_server_that_hangs_is_waited_for_no_longer_than_a_command)
{
    scene s = scene_start(0, 700);
    rlock *other = test_lock(s.cl, "other");
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_lock(other), RLOCK_OK);
    server_pause(s.sv);
    int64_t began_ms = test_now_ms();
    EXPECT_STATUS(in_time(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), began_ms,
                          700 + SLACK_MS),
                  RLOCK_EIO);
    EXPECT_CONTAINS(rlock_last_error()->message, "2 locks were not released");
    server_resume(s.sv);
    rlock_free(other);
    scene_stop(&s);
}

TEST(close, what_the_server_refuses_to_release_is_told)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_STR(server_str(s.sv, "ACL SETUSER default -hdel"), "OK");
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_ESERVER);
    EXPECT_CONTAINS(rlock_last_error()->message, "1 lock was not released");
    scene_stop(&s);
}

/* What the server has said to be gone, another may have by now. */
TEST(close, what_was_lost_to_another_stays_his)
{
    scene s = scene_start(300, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "DEL " SCENE_LOCK), 1);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "HEXISTS " SCENE_LOCK " " BY_HAND), 1);
    scene_stop(&s);
}

TEST(close, of_a_multi_lock_the_members_of_this_client_are_released)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "ab", &t, "cd");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_STATUS(end_client(&s, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT(!key_exists(s.sv, "a") && !key_exists(s.sv, "b"));
    EXPECT(key_exists(t.sv, "c") && key_exists(t.sv, "d"));
    EXPECT_STATUS(end_client(&t, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    EXPECT(!key_exists(t.sv, "c") && !key_exists(t.sv, "d"));
    multi_scene_end_across(&m, &s, &t);
}

TEST(close, of_a_red_lock_each_client_releases_its_vote)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_connect(&p);
    EXPECT_STATUS(rlock_lock(p.lk), RLOCK_OK);
    /* Of one that does not know yet that it has a vote a tombstone stays. */
    for (size_t i = 0; i < 3; i++)
        EVENTUALLY(SOON, stats_of(p.cl[i]).held_now == 1);
    for (size_t i = 0; i < 3; i++) {
        EXPECT_STATUS(rlock_client_close(p.cl[i], RLOCK_CLOSE_RELEASE_HELD),
                      RLOCK_OK);
        p.cl[i] = NULL;
        EXPECT(!node_has(ns.sv[i]));
    }
    nodes_expect_nothing_left(&ns);
    party_end(&p, &ns);
}

TEST(close, in_a_cluster_all_masters_release)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    static const char *const names[] = {"a", "b", "c", "d", "e", "f"};
    rlock *lk[6];
    for (size_t i = 0; i < 6; i++) {
        lk[i] = cluster_scene_lock(&l, names[i]);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
    }
    EXPECT_STATUS(rlock_client_close(l.cl, RLOCK_CLOSE_RELEASE_HELD), RLOCK_OK);
    l.cl = NULL;
    for (size_t i = 0; i < 6; i++) {
        EXPECT_INT(cluster_scene_levels(&l, names[i]), 0);
        rlock_free(lk[i]);
    }
    cluster_scene_stop(&l);
}

TEST(close, flags_that_there_are_not_leave_the_client_open)
{
    scene s = scene_start(0, 0);
    EXPECT_STATUS(rlock_client_close(s.cl, 2), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_client_close(NULL, 2), RLOCK_EINVAL);
    EXPECT_STATUS(rlock_client_close(NULL, 0), RLOCK_OK);
    EXPECT_STATUS(rlock_client_ping(s.cl), RLOCK_OK);
    scene_stop(&s);
}
