/* A lock without tokens whose acquire is not answered, and what comes late. */
#include "scene.h"

#define ACQUIRE proxy_sha("tokenless/acquire")

static scene tokenless_scene(int64_t timeout_ms)
{
    scene s = scene_proxied(0, timeout_ms);
    rlock_lock_options o = RLOCK_LOCK_OPTIONS_INIT;
    o.no_tokens = true;
    rlock_free(s.lk);
    EXPECT_STATUS(rlock_new_ex(s.cl, SCENE_LOCK, strlen(SCENE_LOCK), &o, &s.lk),
                  RLOCK_OK);
    return s;
}

/* The keeper frees what may have been granted; nothing else has to. */
static void expect_undone(scene *s)
{
    EVENTUALLY(SOON, !key_exists(s->sv, SCENE_LOCK));
    EXPECT_STATUS(rlock_trylock(s->lk), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(s->lk), RLOCK_OK);
    EXPECT(!key_exists(s->sv, SCENE_LOCK));
}

static void expect_given_up(proxy_action how)
{
    scene s = tokenless_scene(1000);
    proxy_rule(s.px, ACQUIRE, 1, how, NULL);
    int before = proxy_count(s.px, ACQUIRE);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_EIO);
    EXPECT(proxy_fired(s.px) && !rlock_is_held(s.lk));
    EXPECT_INT(proxy_count(s.px, ACQUIRE) - before, 1);
    expect_undone(&s);
    scene_stop(&s);
}

TEST_CASE(tokenless, who_does_not_wait_is_told_when_the_answer_is_lost,
          expect_given_up(PROXY_CUT_AFTER))
TEST_CASE(tokenless, who_does_not_wait_is_told_when_no_answer_comes,
          expect_given_up(PROXY_SWALLOW_REPLY))

TEST(tokenless, who_waits_has_it_by_another_hold_when_the_answer_was_lost)
{
    scene s = tokenless_scene(1000);
    proxy_rule(s.px, ACQUIRE, 1, PROXY_CUT_AFTER, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT(proxy_fired(s.px));
    EXPECT_INT(levels(s.sv, SCENE_LOCK), 1);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_OK);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    scene_stop(&s);
}

/* The first try comes when others have had the lock, and finds its tombstone. */
TEST(tokenless, a_try_that_comes_late_takes_nothing)
{
    scene s = tokenless_scene(300);
    rlock_client *b = server_client(s.sv, NULL);
    rlock *theirs = test_lock(b, SCENE_LOCK);
    proxy_rule(s.px, ACQUIRE, 1, PROXY_HOLD_REQUEST, NULL);
    EXPECT_STATUS(rlock_acquire(s.lk, SOON, RLOCK_WATCHDOG), RLOCK_OK);
    EXPECT_STATUS(rlock_force_unlock(theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_trylock(theirs), RLOCK_OK);
    EXPECT_STATUS(rlock_unlock(theirs), RLOCK_OK);
    proxy_let_go(s.px);
    EXPECT(!key_exists(s.sv, SCENE_LOCK));
    EXPECT_STATUS(rlock_extend(s.lk, 5000), RLOCK_LOST);
    EXPECT_STATUS(rlock_unlock(s.lk), RLOCK_LOST);
    rlock_free(theirs);
    rlock_client_free(b);
    scene_stop(&s);
}
