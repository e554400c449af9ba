/* How many desks there are, for jobs that have been started, and how long they stay.
 */
#include "stage.h"

enum { DESKS = 256, MOST_DESKS = 16 * DESKS, DESKS_KEPT = 64 };

#define STUCK_US 20000
#define TIDY_US  1000000

/* --- while all are taken -------------------------------------------------- */

/* So many are taken, and nobody has left one for so long: is there one more? */
static bool is_admitted(stage *g, size_t desks, int64_t stuck_us)
{
    sleeper x;
    open_stage(g);
    rl_link *own = rl_list_first(&g->a.idle);
    rl_list_remove(own);
    g->a.desks = desks;
    g->a.left_us = rl_now_us() - stuck_us;
    start(g, &x, 0);
    drive(g);
    bool admitted = x.overs == 1;
    if (!admitted) { /* one of them is left, and he sits down there */
        rl_list_add_last(&g->a.idle, own);
        drive(g);
        EXPECT_INT(x.overs, 1);
        return false;
    }
    rl_list_add_last(&g->a.idle, own);
    return true;
}

static void expect_desk(size_t desks, int64_t stuck_us, bool wanted)
{
    stage g;
    EXPECT(is_admitted(&g, desks, stuck_us) == wanted);
    close_stage(&g);
}

#define HALF (STUCK_US / 2)

TEST_CASE(started_desks, there_are_256, expect_desk(DESKS - 1, 0, true))
TEST_CASE(started_desks, there_are_no_more_while_somebody_leaves,
          expect_desk(DESKS, HALF, false))
TEST_CASE(started_desks, nor_are_there_if_there_have_been_more,
          expect_desk(DESKS + 44, HALF, false))
TEST_CASE(started_desks, there_are_as_many_more_when_nobody_leaves_for_20_ms,
          expect_desk(2 * DESKS - 1, STUCK_US + HALF, true))
TEST_CASE(started_desks, and_no_more_than_that,
          expect_desk(2 * DESKS, STUCK_US + HALF, false))
TEST_CASE(started_desks, each_20_ms_there_are_as_many_more,
          expect_desk(3 * DESKS - 1, 2 * STUCK_US + HALF, true))
TEST_CASE(started_desks, there_are_4096_at_most,
          expect_desk(MOST_DESKS - 1, 1000 * STUCK_US, true))
TEST_CASE(started_desks, there_are_never_more_than_4096,
          expect_desk(MOST_DESKS, 1000 * STUCK_US, false))

static size_t idle(const stage *g)
{
    size_t n = 0;
    for (rl_link *k = rl_list_first(&g->a.idle); k;
         k = rl_list_next(&g->a.idle, k))
        n++;
    return n;
}

/* Its desk stays for the next, or goes with him. */
static void expect_left(size_t desks, size_t after, size_t kept)
{
    stage g;
    int64_t before_us = rl_now_us();
    EXPECT(is_admitted(&g, desks, 100 * STUCK_US));
    EXPECT_BETWEEN(g.a.left_us, before_us, rl_now_us());
    EXPECT_INT(g.a.desks, after);
    EXPECT_INT(idle(&g), 1 + kept);
    close_stage(&g);
}

TEST_CASE(started_desks, one_of_256_stays, expect_left(DESKS - 1, DESKS, 1))
TEST_CASE(started_desks, one_of_more_goes, expect_left(DESKS, DESKS, 0))
TEST_CASE(started_desks, one_of_many_more_goes,
          expect_left(DESKS + 44, DESKS + 44, 0))

/* --- what is kept --------------------------------------------------------- */

/* So many desks stand idle; it was tidied just now. */
static void open_idle(stage *g, size_t n)
{
    open_stage(g);
    while (g->a.desks < n) {
        rl_desk *d = calloc(1, sizeof *d);
        EXPECT(d);
        rl_list_add_last(&g->a.idle, &d->link);
        g->a.desks++;
    }
    g->a.tidied_us = 5 * TIDY_US;
}

static void tidy_after(stage *g, int64_t us, size_t left)
{
    rl_async_tidy(&g->a, g->a.tidied_us + us);
    EXPECT_INT(g->a.desks, left);
    EXPECT_INT(idle(g), left);
}

TEST(started_desks, of_those_that_nobody_needs_64_are_kept_each_second)
{
    stage g;
    open_idle(&g, 100);
    tidy_after(&g, TIDY_US - 1, 100);
    tidy_after(&g, TIDY_US, 64);
    EXPECT_INT(g.a.tidied_us, 6 * TIDY_US);
    tidy_after(&g, TIDY_US, 64);
    close_stage(&g);
}

TEST(started_desks, of_those_that_were_needed_lately_all_are_kept)
{
    stage g;
    open_idle(&g, 100);
    g.a.most = 80;
    tidy_after(&g, TIDY_US, 80);
    EXPECT_INT(g.a.most, 0);
    tidy_after(&g, TIDY_US - 1, 80);
    tidy_after(&g, TIDY_US, 64);
    close_stage(&g);
}

TEST(started_desks, of_few_none_goes)
{
    stage g;
    open_idle(&g, 64);
    tidy_after(&g, TIDY_US, 64);
    close_stage(&g);
}

TEST(started_desks, of_those_that_are_taken_none_goes)
{
    stage g;
    open_idle(&g, 3);
    g.a.desks += 200;
    g.a.at_desks = 200;
    rl_async_tidy(&g.a, g.a.tidied_us + TIDY_US);
    EXPECT(g.a.desks == 200 && idle(&g) == 0 && g.a.most == 200);
    g.a.at_desks = 0;
    close_stage(&g);
}

TEST(started_desks, how_many_were_needed_is_known_until_it_is_tidied)
{
    stage g;
    sleeper x[3];
    open_stage(&g);
    g.a.at_desks = 2; /* these ask */
    for (int i = 0; i < 3; i++)
        start(&g, &x[i], 0);
    drive(&g);
    EXPECT_INT(g.a.most, 3);
    g.a.at_desks = 0;
    start(&g, &x[0], 0);
    drive(&g);
    EXPECT_INT(g.a.most, 3);
    close_stage(&g);
}

TEST(started_desks, room_for_thousands_that_slept_is_given_back)
{
    enum { N = 3000 };
    static sleeper x[N];
    stage g;
    open_stage(&g);
    for (int i = 0; i < N; i++)
        start(&g, &x[i], 1);
    for (int i = 0; i < N / 100; i++)
        drive(&g);
    EXPECT(g.a.sleeping.count == N && g.a.sleeping.room >= N);
    for (int i = 0; i < N; i++)
        rl_started_cancel(&x[i].s);
    for (int i = 0; i < N / 100; i++)
        drive(&g);
    EXPECT_INT(g.a.jobs, 0);
    rl_async_tidy(&g.a, g.a.tidied_us + TIDY_US);
    EXPECT(g.a.sleeping.room < N);
    close_stage(&g);
}

/* --- what one job needs --------------------------------------------------- */

TEST(started_desks, what_there_is_already_is_not_made_again)
{
    stage g;
    open_stage(&g);
    struct rl_leg *spare = g.a.spare;
    EXPECT(rl_async_furnish(&g.a));
    EXPECT(g.a.spare == spare && g.a.desks == 1 && idle(&g) == 1);
    close_stage(&g);
}

TEST(started_desks, the_spare_legs_are_enough_for_the_most_servers)
{
    stage g;
    open_stage(&g);
    memset(g.a.spare, 7, RL_PARTS_MAX * sizeof *g.a.spare);
    close_stage(&g);
}

/* The legs, or the desk; and a second time there is memory. */
static void expect_lacking(int which)
{
    stage g = {.loop.signal = RL_SIGNAL_NONE};
    rl_async_init(&g.a, &g.loop, NULL);
    shim_fail(shim_here(), SHIM_ALLOC, which, which, ENOMEM);
    bool furnished = rl_async_furnish(&g.a);
    shim_clear(shim_here());
    EXPECT(!furnished);
    EXPECT(rl_async_furnish(&g.a) && g.a.spare && idle(&g) == 1);
    rl_async_fini(&g.a, false);
}

TEST_CASE(started_desks, without_legs_none_can_begin, expect_lacking(1))
TEST_CASE(started_desks, without_a_desk_none_can_begin, expect_lacking(2))
