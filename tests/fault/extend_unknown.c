/*
 * Extends without an answer, which may still arrive, and grants that came late:
 * for how long is the hold believed in, and is it renewed in time?
 */
#include "dialer.h"

static long long ttl_of(server *sv, const char *name)
{
    return server_int(sv, "PTTL %s", name);
}

/* --- extends that stay without an answer --------------------------------- */

static void lose_an_extend(scene *s, int64_t lease_ms)
{
    proxy_rule(s->px, proxy_sha("extend"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_extend(s->lk, lease_ms), RLOCK_EIO);
    EXPECT(proxy_fired(s->px));
}

/* What we believe in, the server keeps; it may be renewed between the looks. */
static void expect_kept(scene *s)
{
    int64_t began_ms = test_now_ms();
    int64_t valid_ms = rlock_valid_ms(s->lk);
    long long ttl_ms = ttl_of(s->sv, SCENE_LOCK);
    EXPECT(valid_ms <= ttl_ms + test_now_ms() - began_ms);
}

TEST(extend_unknown,
     an_extend_that_may_still_arrive_caps_the_longer_ones_after_it)
{
    scene s = scene_proxied(0, 200);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 2000), RLOCK_OK);
    lose_an_extend(&s, 4000);
    EXPECT_STATUS(rlock_extend(s.lk, 30000), RLOCK_EIO);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 4000);
    expect_kept(&s);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(ttl_of(s.sv, SCENE_LOCK), 1, 4000);
    expect_kept(&s);
    EXPECT_STATUS(rlock_extend(s.lk, 3000), RLOCK_OK); /* not above it */
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 3000);
    expect_kept(&s);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

TEST(extend_unknown, an_extend_that_may_still_arrive_caps_the_renewals_after_it)
{
    scene s = scene_proxied(9000, 200);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, 1200), RLOCK_OK);
    lose_an_extend(&s, 1500);
    EXPECT_STATUS(rlock_acquire(s.lk, 0, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 1500);
    expect_kept(&s);
    proxy_let_go(s.px);
    EXPECT_BETWEEN(ttl_of(s.sv, SCENE_LOCK), 1, 1500);
    uint64_t before = stats_of(s.cl).renewals;
    do {
        EXPECT_BETWEEN(rlock_valid_ms(s.lk), 1, 1500);
        expect_kept(&s);
        test_pause_ms(1);
    } while (stats_of(s.cl).renewals < before + 3);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- extends and late grants of renewed holds ---------------------------- */

static void expect_renewed_on(scene *s)
{
    uint64_t before = stats_of(s->cl).renewals;
    EVENTUALLY(20000, stats_of(s->cl).renewals >= before + 2);
    EXPECT_INT(stats_of(s->cl).lost, 0);
}

/* The command timeout is longer than the lease. */
TEST(extend_unknown, an_extend_without_an_answer_costs_no_renewed_hold)
{
    scene s = scene_proxied(1800, 20000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_EIO);
    EXPECT(proxy_fired(s.px));
    expect_renewed_on(&s);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* Begun shortly before the first renewal, which it puts off. */
TEST(extend_unknown, renewal_goes_on_at_once_after_an_extend_that_failed)
{
    scene s = scene_proxied(1800, 1000);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    EVENTUALLY(5000, rlock_valid_ms(s.lk) <= 1260);
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_SWALLOW_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, RLOCK_WATCHDOG), RLOCK_EIO);
    expect_renewed_on(&s);
    EXPECT(rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* A renewal a third of the lease after the grant would come too late. */
TEST(extend_unknown, a_hold_whose_grant_came_late_is_renewed_in_time)
{
    scene s = scene_proxied(3000, 20000);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REPLY, NULL);
    waiter *w = waiter_start(s.lk, 0, RLOCK_WATCHDOG);
    EVENTUALLY(5000, proxy_fired(s.px));
    EVENTUALLY(5000, ttl_of(s.sv, SCENE_LOCK) < 900);
    proxy_let_go(s.px);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    expect_renewed_on(&s);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    EXPECT_INT(stats_of(s.cl).releases, 1);
    scene_stop(&s);
}

/* The renewal has used up its own time; the extend's begins after it. */
TEST(extend_unknown, an_extend_has_time_left_after_a_renewal_that_it_waited_for)
{
    scene s = scene_proxied(2400, 0);
    EXPECT_STATUS(rlock_lock(s.lk), RLOCK_OK);
    proxy_rule(s.px, proxy_sha("renew"), 1, PROXY_HOLD_REPLY, NULL);
    EVENTUALLY(5000, proxy_fired(s.px));
    proxy_rule(s.px, proxy_sha("extend"), 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_STATUS(rlock_extend(s.lk, 60000), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_BETWEEN(rlock_valid_ms(s.lk), 30000, 60000);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    scene_stop(&s);
}

/* --- many holds ---------------------------------------------------------- */

enum { MANY = 120 };

/* From the moment that the server is back every batch of renewals takes much
   longer than the next hold has left. Returns when each one has been renewed
   or lost. */
static void come_back_slowly(scene *s)
{
    uint64_t before = stats_of(s->cl).renewals;
    rlock_stats st;
    proxy_rule(s->px, proxy_sha("renew"), 1, PROXY_DRIP_REPLY, NULL);
    proxy_refuse(s->px, false);
    do {
        test_pause_ms(1);
        if (proxy_fired(s->px))
            proxy_rule(s->px, proxy_sha("renew"), 1, PROXY_DRIP_REPLY, NULL);
        st = stats_of(s->cl);
    } while (st.renewals - before < st.held_now);
}

TEST(extend_unknown, a_hold_that_is_lost_takes_no_others_with_it)
{
    scene s = scene_proxied(2400, 0);
    rlock *lk[MANY];
    char name[16];
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "lock%d", i);
        lk[i] = test_lock(s.cl, name);
        EXPECT_STATUS(rlock_lock(lk[i]), RLOCK_OK);
        test_pause_ms(6); /* between their deadlines */
    }
    proxy_refuse(s.px, true);
    proxy_cut_all(s.px);
    EVENTUALLY(10000, stats_of(s.cl).lost > 0);
    come_back_slowly(&s);
    proxy_rule(s.px, NULL, 1, PROXY_DRIP_REPLY, NULL);
    EXPECT_BETWEEN(stats_of(s.cl).held_now, MANY / 10, MANY - 1);
    for (int i = 0; i < MANY; i++) {
        rlock_status status = rlock_unlock(lk[i]);
        EXPECT(status == RLOCK_OK || status == RLOCK_LOST);
        rlock_free(lk[i]);
    }
    scene_stop(&s);
}
