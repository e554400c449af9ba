/*
 * What fuzzing found wrong in this library, each as a test that failed before
 * it was put right. Some fail only under a sanitizer.
 */
#include "scene.h"

static void wait_once_for(const char *ttl_ms)
{
    scene s = scene_proxied(0, 0);
    char busy[80];
    snprintf(busy, sizeof busy, "*5\r\n:0\r\n:%s\r\n$1\r\n7\r\n:0\r\n:0\r\n",
             ttl_ms);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_ANSWER, busy);
    EXPECT_STATUS(rlock_acquire(s.lk, 10000, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(stats_of(s.cl).acquires_contended, 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(ttl_huge, a_ttl_beyond_all_measure_is_waited_for_like_a_long_one)
{
    wait_once_for("100");
    wait_once_for("9223372036854775807");
}
