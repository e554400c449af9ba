/* When a spin for an answer is worth it. */
#include "net/spin.h"

#include "test.h"

enum { GOOD_US = 20, VAIN_US = 100, SLICE_US = 3000 };

/* How many waits there are before the next spin? */
static int waits(rl_spin *l)
{
    int n = 0;
    while (!rl_spin_is_worth_it(l))
        n++;
    return n;
}

static int waits_after(rl_spin *l, int64_t took_us)
{
    rl_spin_note(l, took_us);
    return waits(l);
}

TEST(spin, a_look_out_is_worth_it_as_long_as_answers_come)
{
    rl_spin l = {0};
    for (int i = 0; i < 1000; i++)
        EXPECT_INT(waits_after(&l, GOOD_US), 0);
}

TEST(spin, look_outs_in_vain_become_rarer)
{
    rl_spin l = {0};
    EXPECT_INT(waits_after(&l, VAIN_US), 1);
    EXPECT_INT(waits_after(&l, VAIN_US), 3);
    EXPECT_INT(waits_after(&l, VAIN_US), 7);
}

TEST(spin, look_outs_in_vain_never_cease)
{
    rl_spin l = {0};
    for (int i = 0; i < 100; i++)
        EXPECT(waits_after(&l, VAIN_US) <= 255);
    EXPECT_INT(waits_after(&l, VAIN_US), 255);
}

TEST(spin, an_answer_after_one_in_vain_makes_up_for_it)
{
    rl_spin l = {0};
    EXPECT_INT(waits_after(&l, VAIN_US), 1);
    EXPECT_INT(waits_after(&l, GOOD_US), 0);
    EXPECT_INT(waits_after(&l, VAIN_US), 1);
}

/* Or one in two would be in vain, and none of them rare. */
TEST(spin, each_answer_halves_the_waits_after_the_next_one_in_vain)
{
    rl_spin l = {0};
    for (int i = 0; i < 100; i++)
        waits_after(&l, VAIN_US);
    EXPECT_INT(waits_after(&l, GOOD_US), 0);
    EXPECT_INT(waits_after(&l, VAIN_US), 255);
    for (int i = 0; i < 3; i++)
        rl_spin_note(&l, GOOD_US);
    EXPECT_INT(waits_after(&l, VAIN_US), 63);
}

TEST(spin, a_lost_time_slice_makes_look_outs_rare)
{
    rl_spin l = {0};
    EXPECT_INT(waits_after(&l, SLICE_US), 64);
    EXPECT_INT(waits_after(&l, SLICE_US), 192);
    for (int i = 0; i < 100; i++)
        waits_after(&l, SLICE_US);
    EXPECT_INT(waits_after(&l, SLICE_US), 16384);
}

/* A neighbour leaves us the processor for some dozens of them in between. */
TEST(spin, some_good_ones_do_not_make_up_for_a_lost_time_slice)
{
    rl_spin l = {0};
    rl_spin_note(&l, SLICE_US);
    for (int i = 0; i < 99; i++)
        rl_spin_note(&l, GOOD_US);
    EXPECT_INT(waits_after(&l, SLICE_US), 192);
}

TEST(spin, many_good_ones_do_make_up_for_it)
{
    rl_spin l = {0};
    rl_spin_note(&l, SLICE_US);
    for (int i = 0; i < 100; i++)
        rl_spin_note(&l, GOOD_US);
    EXPECT_INT(waits_after(&l, SLICE_US), 64);
}

static bool at_the_second_look(void *arg)
{
    int *looks = arg;
    return ++*looks == 2;
}

/* Somebody may get our processor in just these microseconds, but not each time. */
TEST(spin, what_comes_soon_is_counted_as_soon)
{
    bool counted = false;
    for (int i = 0; i < 100 && !counted; i++) {
        rl_spin l = {0};
        int looks = 0;
        EXPECT(rl_spin_a_while(&l, at_the_second_look, &looks));
        counted = l.answered == 1;
    }
    EXPECT(counted);
}
