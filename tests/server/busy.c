/* Who does not get a lock is told who has it. */
#include "other_client.h"

/* "held by <host>:<pid>:<tid>", as who has it now is called on the server. */
static const char *held_by(rlock *lk)
{
    static char text[600];
    rlock_holder h;
    EXPECT_STATUS(rlock_holder_info(lk, &h, sizeof h), RLOCK_OK);
    if (*h.hold_id) /* the uuid tells people nothing */
        *strrchr(h.raw, ':') = '\0';
    snprintf(text, sizeof text, "held by %s", h.raw);
    return text;
}

static const char *told(void)
{
    return rlock_last_error()->message;
}

/* In ms, after " for "; -1: it does not say for how long. */
static int64_t told_age_ms(void)
{
    double s;
    const char *at = strstr(told(), " for ");
    return at && sscanf(at, " for %lf s", &s) == 1 ? (int64_t)(s * 1000) : -1;
}

TEST(busy, a_try_is_told_who_has_it_and_for_how_long)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    int64_t before_ms = test_now_ms();
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EVENTUALLY(SOON, rlock_trylock(s.lk) == RLOCK_BUSY && told_age_ms() >= 300);
    EXPECT_BETWEEN(told_age_ms(), 300, test_now_ms() - before_ms);
    EXPECT_CONTAINS(told(), held_by(s.lk));
    EXPECT_CONTAINS(told(), "lock 'job' at unix:");
    other_client_leave(&v);
    scene_stop(&s);
}

TEST(busy, whose_wait_ran_out_is_told_who_has_it_then)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_CONTAINS(told(), held_by(s.lk));
    EXPECT(told_age_ms() >= 0);
    /* The bell is heard by now. */
    EXPECT_STATUS(rlock_acquire(s.lk, 400, 1000), RLOCK_TIMEOUT);
    EXPECT_CONTAINS(told(), held_by(s.lk));
    EXPECT(told_age_ms() >= 400);
    other_client_leave(&v);
    scene_stop(&s);
}

static intptr_t wait_in_vain(void *lk)
{
    EXPECT_STATUS(rlock_acquire(lk, 600, 1000), RLOCK_TIMEOUT);
    EXPECT_CONTAINS(told(), "free by now");
    EXPECT(!strstr(told(), "held by another"));
    return 0;
}

/* Who waits looks every 2 s, and nobody rings for what is deleted. */
TEST(busy, whose_wait_ran_out_is_not_told_that_it_is_held_when_it_is_not)
{
    scene s = scene_start(0, 0);
    take_by_hand(s.sv, SCENE_LOCK, 60000);
    test_thread *t = test_spawn(wait_in_vain, s.lk);
    EVENTUALLY(SOON, queued(s.sv, SCENE_LOCK) == 1);
    server_cmd(s.sv, "DEL " SCENE_LOCK);
    test_join(t);
    scene_stop(&s);
}

/* It knows no token of ours, so not since when. */
TEST(busy, another_program_is_told_as_it_calls_itself)
{
    scene s = scene_start(0, 0);
    server_cmd(s.sv, "HSET " SCENE_LOCK " somebody 1");
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_CONTAINS(told(), ": held by somebody");
    EXPECT_INT(told_age_ms(), -1);
    EXPECT_STATUS(rlock_acquire(s.lk, 50, 1000), RLOCK_TIMEOUT);
    EXPECT_CONTAINS(told(), ": held by somebody");
    scene_stop(&s);
}

/* Its token went with its key, after an hour, or by a flush. */
TEST(busy, since_when_may_be_unknown)
{
    scene s = scene_start(0, 0);
    other_client v = other_client_join(&s, NULL);
    EXPECT_STATUS(rlock_lock(v.lk), RLOCK_OK);
    EXPECT_INT(server_int(s.sv, "DEL rlock_token:{" SCENE_LOCK "}"), 1);
    EXPECT_STATUS(rlock_trylock(s.lk), RLOCK_BUSY);
    EXPECT_CONTAINS(told(), held_by(s.lk));
    EXPECT_INT(told_age_ms(), -1);
    other_client_leave(&v);
    scene_stop(&s);
}
