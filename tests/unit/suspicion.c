/* When a cluster is asked for its map: what somebody has complained of, whom it
   takes long to connect to, a minute without any. */
#include "route/suspicion.h"

#include "base/clock.h"
#include "slotmap.h"

enum { MS = 1000, S = 1000 * MS, NOW_US = 1000 * S, GAP_US = 100 * MS };

/* It was just asked, and the next time for no reason is far away. */
static land *begin_calm(void)
{
    land *l = begin();
    l->c.asked_us = NOW_US;
    l->c.gap_us = GAP_US;
    l->c.routine_us = NOW_US + 60 * S;
    return l;
}

static rl_server *nth(land *l, unsigned number)
{
    return l->c.server[number - 1];
}

static void suspect(land *l, unsigned number)
{
    rl_cluster_suspect(&l->c, nth(l, number)->made);
}

/* Some thread begins to connect to it now. */
static void dial(land *l, unsigned number)
{
    rl_cluster_dials(&l->c, nth(l, number)->made, true);
    nth(l, number)->dial_us = NOW_US;
}

TEST(suspicion, without_one_it_is_asked_after_a_minute)
{
    land *l = begin_calm();
    EXPECT_INT(rl_suspicion_next_us(&l->c), NOW_US + 60 * S);
    EXPECT(!rl_suspicion_is_due(&l->c, NOW_US + 60 * S - 1));
    EXPECT(rl_suspicion_is_due(&l->c, NOW_US + 60 * S));
    end(l);
}

TEST(suspicion, is_followed_once_and_a_gap_after_the_last_time)
{
    land *l = begin_calm();
    rl_cluster_suspect(&l->c, NULL);
    EXPECT_INT(l->nudges, 1);
    EXPECT_INT(rl_suspicion_next_us(&l->c), NOW_US + GAP_US);
    EXPECT(!rl_suspicion_is_due(&l->c, NOW_US + GAP_US - 1));
    EXPECT(rl_suspicion_is_due(&l->c, NOW_US + GAP_US));
    EXPECT(!rl_suspicion_is_due(&l->c, NOW_US + GAP_US));
    end(l);
}

TEST(suspicion, of_a_server_that_has_been_left_is_none)
{
    land *l = begin_calm();
    nth(l, 1)->retired = true;
    suspect(l, 1);
    EXPECT(!rl_suspicion_is_due(&l->c, NOW_US + GAP_US));
    suspect(l, 2);
    EXPECT(rl_suspicion_is_due(&l->c, NOW_US + GAP_US));
    end(l);
}

TEST(suspicion, falls_on_who_takes_longer_to_connect_to_than_it_has_lately)
{
    land *l = begin_calm();
    l->c.took_us = 40 * MS;
    dial(l, 2);
    EXPECT_INT(rl_suspicion_next_us(&l->c), NOW_US + 290 * MS);
    EXPECT(!rl_suspicion_is_due(&l->c, NOW_US + 290 * MS - 1));
    EXPECT(!nth(l, 2)->suspect);
    EXPECT(rl_suspicion_is_due(&l->c, NOW_US + 290 * MS));
    EXPECT(nth(l, 2)->suspect && !nth(l, 1)->suspect);
    end(l);
}

TEST(suspicion, counts_from_the_first_of_those_who_connect)
{
    land *l = begin_calm();
    dial(l, 1);
    rl_cluster_dials(&l->c, nth(l, 1)->made, true);
    EXPECT_INT(nth(l, 1)->dial_us, NOW_US);
    rl_cluster_dials(&l->c, nth(l, 1)->made, false);
    EXPECT(rl_suspicion_is_due(&l->c, NOW_US + 250 * MS));
    end(l);
}

TEST(suspicion, does_not_fall_on_who_is_connected_to_or_was_left)
{
    land *l = begin_calm();
    dial(l, 1);
    rl_cluster_dials(&l->c, nth(l, 1)->made, false);
    dial(l, 2);
    nth(l, 2)->retired = true;
    EXPECT_INT(rl_suspicion_next_us(&l->c), NOW_US + 60 * S);
    EXPECT(!rl_suspicion_is_due(&l->c, NOW_US + S));
    end(l);
}

TEST(suspicion, of_a_moment_ago_lasts_unless_its_server_is_left)
{
    land *l = begin_calm();
    rl_mutex_lock(&l->c.mutex);
    EXPECT(!rl_suspicion_lasts_locked(&l->c, rl_now_us()));
    rl_mutex_unlock(&l->c.mutex);
    suspect(l, 1);
    rl_mutex_lock(&l->c.mutex);
    l->c.accused_us = NOW_US;
    EXPECT(rl_suspicion_lasts_locked(&l->c, NOW_US + 1500 * MS - 1));
    EXPECT(!rl_suspicion_lasts_locked(&l->c, NOW_US + 1500 * MS));
    nth(l, 1)->retired = true;
    EXPECT(!rl_suspicion_lasts_locked(&l->c, NOW_US));
    rl_mutex_unlock(&l->c.mutex);
    end(l);
}

TEST(suspicion, begins_trouble_that_lasts_until_three_seconds_without_any)
{
    land *l = begin_calm();
    const int64_t later_us = NOW_US + 10 * S;
    rl_cluster_suspect(&l->c, NULL);
    EXPECT(rl_suspicion_is_due(&l->c, later_us));
    EXPECT_INT(l->c.trouble_us, later_us);
    rl_cluster_suspect(&l->c, NULL);
    EXPECT(rl_suspicion_is_due(&l->c, later_us + 3 * S));
    EXPECT_INT(l->c.trouble_us, later_us);
    rl_cluster_suspect(&l->c, NULL);
    EXPECT(rl_suspicion_is_due(&l->c, later_us + 6 * S + 1));
    EXPECT_INT(l->c.trouble_us, later_us + 6 * S + 1);
    end(l);
}

/* What nobody is known for is asked of the first of whom nothing bad is known. */
static void expect_located(land *l, const char *host)
{
    rl_place at;
    rl_fault f;
    EXPECT_INT(rl_cluster_locate(&l->c, 0, &at, &f), RLOCK_OK);
    EXPECT_STR(at.host, host);
}

TEST(suspicion, has_others_asked_for_the_way)
{
    land *l = begin_calm();
    l->c.known = true;
    expect_located(l, "a");
    suspect(l, 1);
    expect_located(l, "b");
    nth(l, 2)->retired = true;
    expect_located(l, "c");
    suspect(l, 3);
    expect_located(l, "c"); /* better than nobody */
    end(l);
}
