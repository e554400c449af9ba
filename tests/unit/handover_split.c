/*
 * A hand-over while the lock's slot moves: it is put off, and at the last
 * moment the lock is freed by its one key instead, if that can be.
 */
#include "op/round.h"
#include "pair.h"

/* The commands' limit is PLAY_TIMEOUT_MS; its last half second is the last. */
#define LAST_MOMENT_US ((PLAY_TIMEOUT_MS - 500) * MS)

static void put_off_hand_over(pair *t)
{
    play_in_cluster(&t->p, 0);
    EXPECT(unlock(t));
    while (t->p.now_us < PLAY_BEGAN_US + LAST_MOMENT_US) {
        EXPECT_STR(play_called(&t->p, 0), "hash/handover");
        EXPECT_INT(play_answer(&t->p, 0, TRYAGAIN), RL_ASK);
        EXPECT_INT(play_rest(&t->p), RL_ASK);
    }
}

/* Who was offered it is told that it was not to be, and asks by itself. */
TEST(handover_split, a_hand_over_is_taken_back_and_the_lock_dropped)
{
    pair t;
    open_pair(&t);
    put_off_hand_over(&t);
    EXPECT_STR(play_called(&t.p, 0), "hash/drop");
    EXPECT_INT(answer(&t, YES), RL_ASK);
    EXPECT(t.x.ok && !t.x.heir);
    EXPECT_INT(play_answer(&t.p, 0, GRANTED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}

/* It may have got the lock by the try that has no answer. */
TEST(handover_split, a_hand_over_in_doubt_is_not_taken_back)
{
    pair t;
    open_pair(&t);
    play_in_cluster(&t.p, 0);
    EXPECT(unlock(&t));
    EXPECT_INT(play_cut(&t.p, 0), RL_ASK);
    while (t.p.now_us < PLAY_BEGAN_US + LAST_MOMENT_US) {
        if (rl_round_rests(t.p.op))
            EXPECT_INT(play_rest(&t.p), RL_ASK);
        EXPECT_STR(play_called(&t.p, 0), "hash/handover");
        EXPECT_INT(play_answer(&t.p, 0, TRYAGAIN), RL_ASK);
    }
    EXPECT_INT(play_rest(&t.p), RL_ASK);
    EXPECT_STR(play_called(&t.p, 0), "hash/handover");
    EXPECT_INT(answer(&t, HANDED(123)), RL_DONE);
    close_pair(&t, RLOCK_OK);
}
