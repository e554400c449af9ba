/* Which semaphores there are: what rlock_scan() tells of who has permits. */
#include <unistd.h>

#include "cluster_scene.h"
#include "permits.h"
#include "scanned.h"

#define UUID "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"

TEST(scan_permits, a_semaphore_is_told_while_somebody_has_a_permit)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 5);
    rlock_permit *two = take(pool, 2, 20000), *one = take(pool, 1, 20000);
    scan_told t = scan_only(s.cl, NULL, 0);
    EXPECT_STR(t.name, POOL);
    EXPECT_INT(t.l.kind, RLOCK_KIND_PERMIT);
    EXPECT(t.l.n_holders == 1 && t.l.holders_in_all == 2 && !t.l.foreign);
    EXPECT(t.l.available == 2 && t.l.waiting == 0 && t.l.token == 0);
    EXPECT_BETWEEN(t.l.ttl_ms, 15000, 20000);
    EXPECT(t.h.count == 1 || t.h.count == 2);
    EXPECT_INT(t.h.pid, getpid());
    give_back(two);
    EXPECT_INT(scan_only(s.cl, POOL, RLOCK_SCAN_ALL).l.available, 4);
    EXPECT_INT(scan_look(s.cl, "other", 0).n, 0);
    give_back(one);
    EXPECT_INT(scan_look(s.cl, NULL, RLOCK_SCAN_ALL | RLOCK_SCAN_IDLE).n, 0);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* More than there are at all. */
TEST(scan_permits, a_semaphore_is_told_while_somebody_waits_for_permits)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 2);
    taker *t = taker_stand(s.sv, pool, 3, 1);
    scan_told x = scan_only(s.cl, NULL, 0);
    EXPECT_INT(x.l.kind, RLOCK_KIND_PERMIT);
    EXPECT(!x.l.holders && x.l.waiting == 1 && x.l.available == 2);
    rlock_semaphore_cancel(pool);
    EXPECT_STATUS(taker_end(t, NULL, NULL), RLOCK_CANCELED);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(scan_permits, of_permits_those_whose_lease_is_over_are_not_told)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "SET " POOL " 1");
    server_int(s.sv, "ZADD " POOL_PERMITS " 1000 web3:1:2:" UUID ":1");
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 0);
    server_int(s.sv, "ZADD " POOL_PERMITS " 922337203685477 62fd10");
    scan_told t = scan_only(s.cl, NULL, 0);
    EXPECT(t.l.foreign && t.l.ttl_ms == -1 && t.l.holders_in_all == 1);
    EXPECT_STR(t.h.raw, "62fd10");
    scene_stop(&s);
}

TEST(scan_permits, a_permit_whose_lease_is_over_is_free)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 5);
    server_cmd(s.sv, "SET " POOL " 4");
    server_int(s.sv, "ZADD " POOL_PERMITS " 1000 web3:1:2:" UUID ":1");
    rlock_permit *two = take(pool, 2, 20000);
    EXPECT_INT(free_of(pool), 3);
    EXPECT_INT(scan_only(s.cl, NULL, 0).l.available, 3);
    give_back(two);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

/* So many as there are seconds, or ms, since 1970. */
static void expect_told_of_so_many(int64_t permits)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, permits);
    rlock_permit *two = take(pool, 2, 20000);
    scan_told t = scan_only(s.cl, NULL, RLOCK_SCAN_ALL);
    EXPECT_INT(t.l.kind, RLOCK_KIND_PERMIT);
    EXPECT(t.l.holders_in_all == 1 && t.h.count == 2);
    EXPECT_INT(t.l.available, permits - 2);
    give_back(two);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}

TEST(scan_permits, one_with_as_many_as_a_unix_time_is_told)
{
    expect_told_of_so_many(1700000000);
    expect_told_of_so_many(1700000000000);
    expect_told_of_so_many(RLOCK_SEMAPHORE_MAX);
}

TEST(scan_permits, anothers_sorted_set_is_no_semaphore)
{
    scene s = scene_start(0, 0);
    server_int(s.sv, "ZADD {jobs}:timeout 922337203685477 7");
    server_int(s.sv, "ZADD {text}:timeout 922337203685477 7");
    server_cmd(s.sv, "SET text words");
    server_cmd(s.sv, "SET {%s}:timeout 5", "string");
    EXPECT_INT(scan_look(s.cl, NULL, RLOCK_SCAN_ALL | RLOCK_SCAN_IDLE).n, 0);
    scene_stop(&s);
}

TEST(scan_permits, a_semaphore_at_any_master_is_told)
{
    cluster_scene l;
    cluster_scene_start(&l, 0);
    rlock_semaphore *pool[3];
    rlock_permit *p[3];
    for (int i = 0; i < 3; i++) {
        pool[i] = test_semaphore(l.cl, cluster_name_on(l.c, i, "pool"), 1);
        p[i] = take(pool[i], 1, RLOCK_WATCHDOG);
    }
    scan_seen all = scan_look(l.cl, "pool*", 0);
    EXPECT_INT(all.n, 3);
    for (int i = 0; i < 3; i++) {
        EXPECT_INT(all.of[i].l.kind, RLOCK_KIND_PERMIT);
        give_back(p[i]);
        rlock_semaphore_free(pool[i]);
    }
    cluster_scene_stop(&l);
}

/* What only its permits tell of is guessed, and passed over. */
TEST(scan_permits, permits_to_which_one_has_no_right_are_not_told)
{
    scene s = scene_start(0, 0);
    rlock_semaphore *pool = test_semaphore(s.cl, POOL, 5);
    rlock_permit *one = take(pool, 1, 20000);
    scan_seen all = {0};
    server_str(s.sv, "ACL SETUSER default -zcount");
    EXPECT_STATUS(rlock_scan(s.cl, NULL, 0, scan_copy, &all), RLOCK_OK);
    server_str(s.sv, "ACL SETUSER default +zcount");
    EXPECT_INT(all.n, 0);
    EXPECT_INT(scan_look(s.cl, NULL, 0).n, 1);
    give_back(one);
    rlock_semaphore_free(pool);
    scene_stop(&s);
}
