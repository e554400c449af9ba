/*
 * The last unlock while the lock's slot moves: calls of several keys are put
 * off, and at the last moment the lock is freed by its one key.
 */
#include "deed.h"
#include "hold/level.h"
#include "op/round.h"

/* The commands' limit is PLAY_TIMEOUT_MS; its last half second is the last. */
#define LAST_MOMENT_US ((PLAY_TIMEOUT_MS - 500) * MS)

static void begin_free_in_cluster(deed *d)
{
    open_with_hold(d, LEASE_MS);
    play_in_cluster(&d->p, 0);
    EXPECT_INT(
        rl_hold_count_down(&play_core(&d->p, 0)->holds, d->h, 0, d->p.now_us),
        RL_COUNTED);
    rl_part_release(d->x, play_core(&d->p, 0), d->h, 0, d->p.now_us);
    play_one(&d->p, &d->op, d->x);
    EXPECT_INT(play_begin(&d->p, &d->op), RL_ASK);
}

/* It is put off until the time is that long after the beginning. */
static void put_off(play *p, int64_t us)
{
    while (p->now_us < PLAY_BEGAN_US + us) {
        EXPECT_STR(play_called(p, 0), "hash/release");
        EXPECT_INT(play_answer(p, 0, TRYAGAIN), RL_ASK);
        EXPECT(rl_round_rests(p->op));
        EXPECT_INT(play_rest(p), RL_ASK);
    }
}

TEST(split, a_release_that_is_put_off_is_asked_again_after_a_rest)
{
    deed d;
    begin_free_in_cluster(&d);
    put_off(&d.p, 500 * MS);
    EXPECT_STR(play_called(&d.p, 0), "hash/release");
    EXPECT_INT(play_answer(&d.p, 0, YES), RL_DONE);
    EXPECT(d.x->ok);
    close_with_hold(&d);
}

TEST(split, at_the_last_moment_the_lock_is_dropped_by_its_one_key)
{
    deed d;
    begin_free_in_cluster(&d);
    put_off(&d.p, LAST_MOMENT_US);
    EXPECT_STR(play_called(&d.p, 0), "hash/drop");
    EXPECT_STR(play_word(&d.p, 0, 2), "1");
    EXPECT_STR(play_key(&d.p, 0, 1), "job");
    EXPECT_STR(play_arg(&d.p, 0, HOLDER_ARG), play_holder(d.h).text);
    EXPECT_INT(play_answer(&d.p, 0, YES), RL_DONE);
    EXPECT(d.x->ok);
    close_with_hold(&d);
}

TEST(split, a_drop_that_finds_nobody_tells_of_a_loss)
{
    deed d;
    begin_free_in_cluster(&d);
    put_off(&d.p, LAST_MOMENT_US);
    EXPECT_INT(play_answer(&d.p, 0, NO), RL_DONE);
    expect_fault(&d, RLOCK_LOST, "no longer knows");
    close_with_hold(&d);
}

/* What would stop a late acquire is another key. */
TEST(split, a_hold_in_doubt_is_not_dropped)
{
    deed d;
    begin_free_in_cluster(&d);
    d.h->unknown = true;
    put_off(&d.p, LAST_MOMENT_US);
    EXPECT_STR(play_called(&d.p, 0), "hash/release");
    EXPECT_INT(play_answer(&d.p, 0, YES), RL_DONE);
    close_with_hold(&d);
}

TEST(split, a_level_less_is_no_drop)
{
    deed d;
    open_with_hold(&d, LEASE_MS);
    play_in_cluster(&d.p, 0);
    d.h->count = 2;
    EXPECT_INT(
        rl_hold_count_down(&play_core(&d.p, 0)->holds, d.h, 1, d.p.now_us),
        RL_COUNTED);
    rl_part_release(d.x, play_core(&d.p, 0), d.h, 1, d.p.now_us);
    play_one(&d.p, &d.op, d.x);
    EXPECT_INT(play_begin(&d.p, &d.op), RL_ASK);
    put_off(&d.p, LAST_MOMENT_US);
    EXPECT_STR(play_called(&d.p, 0), "hash/release");
    EXPECT_INT(play_answer(&d.p, 0, YES), RL_DONE);
    EXPECT(d.x->ok);
    close_with_hold(&d);
}
