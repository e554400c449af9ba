/*
 * A stuck acquire arrives when its lock has been taken away, had by another,
 * and freed: the server grants it, and the hold that it was for is lost all the
 * same, because the grant has a later token. The watchdog finds that out.
 */
#include "other_client.h"

enum { LEASE_MS = 3000 };

/* Granted to the second try; the first is still on its way. */
static void acquire_doubtfully(scene *s, rlock *lk)
{
    proxy_rule(s->px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_lock(lk), RLOCK_OK);
    EXPECT(proxy_fired(s->px));
    watch_renewals(s->cl, 1); /* the next one is a period away */
}

/*
 * Another client has had it, and the stuck acquire takes it again. Taken away
 * by a command; NULL: by the other's force.
 */
static void be_outdone(scene *s, const char *taken_away_by)
{
    other_client r = other_client_join(s, NULL);
    if (taken_away_by)
        server_cmd(s->sv, taken_away_by);
    else
        EXPECT_STATUS(rlock_force_unlock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(r.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(r.lk), RLOCK_OK);
    proxy_let_go(s->px);
    EVENTUALLY(SOON, levels(s->sv, SCENE_LOCK) == 1);
    other_client_leave(&r);
}

static void lose_an_outdone_hold(const char *taken_away_by)
{
    scene s = scene_proxied(LEASE_MS, 200);
    acquire_doubtfully(&s, s.lk);
    be_outdone(&s, taken_away_by);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    EXPECT(!rlock_is_held(s.lk));
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    scene_stop(&s);
}

TEST(taken_away, a_hold_that_was_forced_is_lost)
{
    lose_an_outdone_hold(NULL);
}

TEST(taken_away, a_hold_whose_key_was_deleted_is_lost)
{
    lose_an_outdone_hold("DEL " SCENE_LOCK);
}

TEST(taken_away, a_hold_whose_server_was_flushed_is_lost)
{
    lose_an_outdone_hold("FLUSHALL");
}

/* Only a member that is waited for is asked for again by the same name. */
TEST(taken_away, a_multi_lock_with_such_a_member_is_lost)
{
    scene s = scene_proxied(LEASE_MS, 200);
    rlock *other = test_lock(s.cl, "zoo"), *all;
    EXPECT_STATUS(rlock_multi_new((rlock *[]){s.lk, other}, 2, &all), RLOCK_OK);
    take_by_hand(s.sv, SCENE_LOCK, 0);
    waiter *w = waiter_start(all, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    proxy_rule(s.px, proxy_sha("acquire"), 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    watch_renewals(s.cl, 1);
    be_outdone(&s, "DEL " SCENE_LOCK);
    events_wait(s.ev, RLOCK_EVENT_LOST, 1, SOON);
    waiter_end(w);
    rlock_free(all);
    rlock_free(other);
    scene_stop(&s);
}
