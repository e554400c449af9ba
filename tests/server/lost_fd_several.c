/* rlock_lost_fd() of Multi and Red locks. */
#include <errno.h>
#include <sys/resource.h>

#include "descriptor.h"
#include "multi_scene.h"
#include "nodes.h"

/* --- Multi ---------------------------------------------------------------- */

TEST(lost_fd_several, of_a_multi_lock_is_readable_when_any_member_is_lost)
{
    scene s = scene_start(BRISK_MS, 0), t = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_across(&s, "ab", &t, "c");
    for (size_t i = 0; i < m.n; i++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        int fd = lost_fd_of_held(m.all);
        server_cmd(m.sv[i], "DEL %s", m.name[i]);
        fd_wait(fd, SOON);
        EXPECT_INT(lost_fd_of_lost(m.all), fd);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
        EXPECT(!fd_is_readable(fd));
    }
    multi_scene_end_across(&m, &s, &t);
}

TEST(lost_fd_several, of_a_multi_lock_is_readable_at_its_deadline)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    int64_t began = test_now_ms();
    EXPECT_STATUS(rlock_acquire(m.all, 0, 700), RLOCK_OK);
    int fd = lost_fd_of_held(m.all);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 688, 700 + SLACK_MS);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    multi_scene_end(&m, &s);
}

TEST(lost_fd_several, of_a_multi_lock_is_one_whatever_the_order_and_level)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "abc");
    rlock *turned[] = {m.lk[2], m.lk[0], m.lk[1]}, *other;
    EXPECT_STATUS(rlock_multi_new(turned, 3, &other), RLOCK_OK);
    lock_times(m.all, 2);
    int fd = lost_fd_of_held(m.all);
    EXPECT_INT(lost_fd_of_held(other), fd);
    EXPECT_STATUS(rlock_unlock(other), RLOCK_OK);
    EXPECT_INT(lost_fd_of_held(m.all), fd);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    EXPECT(!fd_is_open(fd));
    expect_no_lost_fd(m.all, RLOCK_NOT_HELD);
    rlock_free(other);
    multi_scene_end(&m, &s);
}

TEST(lost_fd_several, members_have_descriptors_of_their_own)
{
    scene s = scene_start(BRISK_MS, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    int all = lost_fd_of_held(m.all), a = lost_fd_of_held(m.lk[0]),
        b = lost_fd_of_held(m.lk[1]);
    EXPECT(all != a && all != b && a != b);
    server_cmd(s.sv, "DEL b");
    fd_wait(all, SOON);
    EXPECT(fd_is_readable(b) && !fd_is_readable(a));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_LOST);
    EXPECT(!fd_is_open(all) && !fd_is_open(a) && !fd_is_open(b));
    multi_scene_end(&m, &s);
}

/* It was held before, and is not held with the others any more. */
TEST(lost_fd_several, a_member_that_stays_held_keeps_no_descriptor)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.lk[0]), RLOCK_OK);
    int a = lost_fd_of_held(m.lk[0]), before = 0;
    for (int i = 0; i < 100; i++) {
        EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
        int fd = lost_fd_of_held(m.all);
        EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
        EXPECT(!fd_is_open(fd) && !fd_is_readable(a));
        if (i == 0)
            before = fds_open();
    }
    EXPECT_INT(fds_open(), before);
    EXPECT_INT(lost_fd_of_held(m.lk[0]), a);
    EXPECT_STATUS(rlock_unlock(m.lk[0]), RLOCK_OK);
    multi_scene_end(&m, &s);
}

TEST(lost_fd_several, of_a_multi_lock_needs_all_members)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    EXPECT_STATUS(rlock_lock(m.lk[0]), RLOCK_OK);
    expect_no_lost_fd(m.all, RLOCK_NOT_HELD);
    expect_blame_of(2, "b");
    multi_scene_end(&m, &s);
}

TEST(lost_fd_several, of_a_multi_lock_tells_that_there_is_none_to_be_had)
{
    scene s = scene_start(0, 0);
    multi_scene m = multi_scene_of(&s, "ab");
    struct rlimit limit, none;
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    EXPECT_INT(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    EXPECT_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    expect_no_lost_fd(m.all, RLOCK_ENOMEM);
    EXPECT_INT(rlock_last_error()->sys_errno, EMFILE);
    EXPECT_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    lost_fd_of_held(m.all);
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_OK);
    multi_scene_end(&m, &s);
}

TEST(lost_fd_several, of_a_multi_lock_is_readable_when_a_client_is_freed)
{
    scene s = scene_start(0, 0), t = scene_start(0, 0);
    multi_scene m = multi_scene_across(&s, "a", &t, "b");
    EXPECT_STATUS(rlock_lock(m.all), RLOCK_OK);
    int fd = lost_fd_of_held(m.all);
    scene_free_client(&t);
    EXPECT(fd_is_readable(fd));
    EXPECT_STATUS(rlock_unlock(m.all), RLOCK_ECLOSED);
    EXPECT(!fd_is_open(fd));
    multi_scene_end_across(&m, &s, &t);
}

/* --- Red ------------------------------------------------------------------ */

TEST(lost_fd_several, of_a_red_lock_is_readable_when_the_majority_is_lost)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, BRISK_MS, 0);
    party_hold_renewed(&p);
    int fd = lost_fd_of_held(p.lk);
    long long before = server_calls(ns.sv[2], "flushall");
    server_cmd(ns.sv[2], "FLUSHALL");
    EXPECT_INT(server_calls(ns.sv[2], "flushall"), before + 1);
    EVENTUALLY(SOON, node_has(ns.sv[2])); /* it was noticed, and joins again */
    EXPECT(!fd_is_readable(fd));
    nodes_flush(&ns, 2);
    fd_wait(fd, SOON);
    EXPECT_INT(lost_fd_of_lost(p.lk), fd);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT(!fd_is_open(fd));
    party_end(&p, &ns);
}

TEST(lost_fd_several, of_a_red_lock_is_readable_at_its_deadline)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    int64_t began = test_now_ms();
    party_hold(&p, 800);
    int fd = lost_fd_of_held(p.lk);
    EXPECT_BETWEEN(fd_wait(fd, SOON) - began, 700, 800 + SLACK_MS);
    EXPECT(!rlock_is_held(p.lk));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    party_end(&p, &ns);
}

TEST(lost_fd_several, of_a_red_lock_is_one_for_all_levels_and_handles)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    rlock *same = party_lock(&p, SCENE_LOCK, NULL);
    party_hold(&p, LONG_LEASE);
    int fd = lost_fd_of_held(p.lk);
    EXPECT_STATUS(rlock_lock(same), RLOCK_OK);
    EXPECT_INT(lost_fd_of_held(same), fd);
    EXPECT_STATUS(rlock_unlock(same), RLOCK_OK);
    EXPECT_INT(lost_fd_of_held(p.lk), fd);
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_OK);
    EXPECT(!fd_is_open(fd));
    expect_no_lost_fd(p.lk, RLOCK_NOT_HELD);
    rlock_free(same);
    party_end(&p, &ns);
}

TEST(lost_fd_several, of_a_red_lock_tells_of_too_many_freed_clients)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LONG_LEASE);
    int fd = lost_fd_of_held(p.lk);
    party_free_client(&p, 2);
    EXPECT(!fd_is_readable(fd));
    EXPECT_INT(lost_fd_of_held(p.lk), fd);
    party_free_client(&p, 1);
    EXPECT(fd_is_readable(fd));
    EXPECT_STATUS(rlock_unlock(p.lk), RLOCK_LOST);
    EXPECT(!fd_is_open(fd));
    party_end(&p, &ns);
}

TEST(lost_fd_several, of_a_red_lock_without_its_home_stays_until_it_is_freed)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    party_hold(&p, LONG_LEASE);
    int fd = lost_fd_of_held(p.lk);
    for (size_t i = 0; i < 3; i++) {
        party_free_client(&p, i);
        EXPECT(fd_is_readable(fd));
        expect_no_lost_fd(p.lk, RLOCK_ECLOSED);
    }
    rlock_free(p.lk);
    p.lk = NULL;
    EXPECT(!fd_is_open(fd));
    party_end(&p, &ns);
}

static intptr_t hold_and_end(void *arg)
{
    party *p = arg;
    party_hold(p, LONG_LEASE);
    return lost_fd_of_held(p->lk);
}

TEST(lost_fd_several, of_a_red_lock_is_closed_when_the_owning_thread_ends)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, 0, 0);
    EXPECT(!fd_is_open((int)test_join(test_spawn(hold_and_end, &p))));
    party_end(&p, &ns);
}

TEST(lost_fd_several, of_a_multi_lock_is_readable_when_a_red_member_is_lost)
{
    nodes ns = nodes_start(3);
    party p = party_join(&ns, BRISK_MS, 0);
    rlock *members[] = {p.lk, test_lock(p.cl[0], "single")}, *all;
    EXPECT_STATUS(rlock_multi_new(members, 2, &all), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(all, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    int fd = lost_fd_of_held(all), red = lost_fd_of_held(p.lk);
    EXPECT(fd != red);
    for (size_t i = 1; i < 3; i++)
        server_cmd(ns.sv[i], "DEL " SCENE_LOCK);
    fd_wait(fd, SOON);
    EXPECT(fd_is_readable(red));
    EXPECT_STATUS(rlock_unlock(all), RLOCK_LOST);
    EXPECT(!fd_is_open(fd) && !fd_is_open(red));
    rlock_free(all);
    rlock_free(members[1]);
    party_end(&p, &ns);
}
