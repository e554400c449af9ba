/* The option to listen on Redisson's channels. */
#include "scene.h"

#define CHANNEL "redisson_lock__channel:{" SCENE_LOCK "}"

static scene listening(void)
{
    scene s = scene_server(NULL);
    s.opts.redisson_channel = true;
    scene_client(&s, 0, 0);
    return s;
}

static long long listeners(server *sv)
{
    redisReply *r = server_cmd(sv, "PUBSUB NUMSUB %s", CHANNEL);
    EXPECT_INT(r->elements, 2);
    return r->element[1]->integer;
}

/* As Redisson's unlock does it; returns when. */
static int64_t unlock_as_java(server *sv)
{
    int64_t at_ms = test_now_ms();
    server_cmd(sv, "DEL %s", SCENE_LOCK);
    server_cmd(sv, "PUBLISH %s 0", CHANNEL);
    return at_ms;
}

static void expect_woken_by_java(scene *s)
{
    int64_t at_ms;
    waiter *w = waiter_start(s->lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, listeners(s->sv) == 1);
    int64_t freed_ms = unlock_as_java(s->sv);
    EXPECT_STATUS(waiter_status(w, &at_ms), RLOCK_OK);
    EXPECT_BETWEEN(at_ms - freed_ms, 0, 500);
    waiter_end(w);
}

TEST(ears, a_release_of_redisson_ends_a_wait_at_once)
{
    scene s = listening();
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    expect_woken_by_java(&s);
    scene_stop(&s);
}

TEST(ears, a_second_wait_listens_again)
{
    scene s = listening();
    for (int i = 0; i < 2; i++) {
        take_by_hand(s.sv, SCENE_LOCK, 60000);
        expect_woken_by_java(&s);
    }
    scene_stop(&s);
}

/* So that no release rings a connection that is about to end. */
TEST(ears, a_client_that_has_listened_takes_leave)
{
    scene s = listening();
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    expect_woken_by_java(&s);
    long long before = server_calls(s.sv, "unsubscribe");
    EXPECT_STATUS(rlock_client_close(s.cl, 0), RLOCK_OK);
    s.cl = NULL;
    EXPECT_INT(server_calls(s.sv, "unsubscribe"), before + 1);
    EVENTUALLY(5000, listeners(s.sv) == 0);
    scene_stop(&s);
}

TEST(ears, nobody_listens_once_nobody_waits)
{
    scene s = listening();
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, listeners(s.sv) == 1);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    EVENTUALLY(8000, listeners(s.sv) == 0); /* who waits again finds it */
    scene_stop(&s);
}

/* It is wanted anew with each look. */
TEST(ears, who_waits_for_long_is_listened_for_all_the_while)
{
    scene s = listening();
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, listeners(s.sv) == 1);
    for (int64_t since_ms = test_now_ms(); test_since_ms(since_ms) < 7000;)
        EXPECT_INT(listeners(s.sv), 1);
    unlock_as_java(s.sv);
    EXPECT_STATUS(waiter_end(w), RLOCK_OK);
    scene_stop(&s);
}

/* Their channel is one. */
TEST(ears, a_name_and_the_same_in_braces_both_hear_redisson)
{
    scene s = listening();
    rlock *lk[] = {s.lk, test_lock(s.cl, "{" SCENE_LOCK "}")};
    waiter *w[2];
    for (int i = 0; i < 2; i++) {
        take_by_hand(s.sv, i ? "{" SCENE_LOCK "}" : SCENE_LOCK, 60000);
        w[i] = waiter_start(lk[i], RLOCK_FOREVER, RLOCK_WATCHDOG);
    }
    waiters_settle(s.sv, 1, s.cl, 2);
    EVENTUALLY(5000, listeners(s.sv) == 1);
    server_cmd(s.sv, "DEL {%s}", SCENE_LOCK);
    int64_t freed_ms = unlock_as_java(s.sv);
    for (int i = 0; i < 2; i++) {
        int64_t at_ms;
        EXPECT_STATUS(waiter_status(w[i], &at_ms), RLOCK_OK);
        EXPECT_BETWEEN(at_ms - freed_ms, 0, 500);
        EXPECT_STATUS(waiter_end(w[i]), RLOCK_OK);
    }
    rlock_free(lk[1]);
    scene_stop(&s);
}

TEST(ears, a_broken_subscription_is_made_again)
{
    scene s = listening();
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    EVENTUALLY(5000, listeners(s.sv) == 1);
    server_cmd(s.sv, "CLIENT KILL TYPE pubsub");
    EVENTUALLY(5000, listeners(s.sv) == 1);
    unlock_as_java(s.sv);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    waiter_end(w);
    scene_stop(&s);
}

TEST(ears, without_the_option_nobody_listens)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    waiter *w = waiter_start(s.lk, RLOCK_FOREVER, RLOCK_WATCHDOG);
    waiters_settle(s.sv, 1, s.cl, 1);
    EXPECT_INT(listeners(s.sv), 0);
    rlock_cancel(s.lk);
    EXPECT_STATUS(waiter_end(w), RLOCK_CANCELED);
    scene_stop(&s);
}
