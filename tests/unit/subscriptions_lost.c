/* Who looks when a subscription has ended, and what a child frees of them. */
#include "subscribed.h"

/* --- what is lost --------------------------------------------------------- */

TEST(subscriptions_lost, when_the_connection_is_gone_all_look_and_none_is_heard)
{
    rl_target elsewhere = other;
    house h;
    guest g, o;
    elsewhere.slot = 70;
    open_waiting(&h, &g, true, false);
    enter(&h.e.core.rooms, &o, &elsewhere);
    want(&h, &elsewhere);
    expect_heard(&h, "ssubscribe", BELL, NULL);
    rl_subscriptions_lose_all(&h.e.node);
    expect_woken(&g, 2, RL_WAKE_LOOK);
    expect_woken(&o, 1, RL_WAKE_LOOK);
    EXPECT(!rl_subscriptions_hear(&h.e.node, &job) && all(&h)->count == 0);
    leave(&h.e.core.rooms, &o, false);
    close_waiting(&h, &g);
}

TEST(subscriptions_lost, those_of_a_slot_that_has_moved_look_and_no_others)
{
    static const char moved[] = "MOVED 19 10.0.0.1:6379";
    rl_target here = other, there = job;
    house h;
    guest g[2];
    rl_item name;
    open_house(&h, true, false);
    there.slot = 19;
    here.slot = 70;
    h.e.cluster->suspected = false;
    nudges = 0;
    enter(&h.e.core.rooms, &g[0], &there);
    enter(&h.e.core.rooms, &g[1], &here);
    want(&h, &there);
    want(&h, &here);
    rl_reply r = {.top = {.type = REDIS_REPLY_ERROR,
                          .str = moved,
                          .len = sizeof moved - 1}};
    EXPECT(rl_subscriptions_take(&h.e.node, &r, &name) && !name.str);
    expect_woken(&g[0], 1, RL_WAKE_LOOK);
    EXPECT_INT(g[1].woken, 0);
    EXPECT_INT(all(&h)->count, 1);
    EXPECT_INT(nudges, 1); /* where slots are is asked anew */
    r.top.str = "MOVED 0 10.0.0.1:6379";
    EXPECT(rl_subscriptions_take(&h.e.node, &r, &name));
    EXPECT_INT(all(&h)->count, 1); /* which nobody wanted */
    r.top.str = "MOVED70 10.0.0.1:6379";
    EXPECT(!rl_subscriptions_take(&h.e.node, &r, &name));
    r.top.str = "ERR unknown command";
    EXPECT(!rl_subscriptions_take(&h.e.node, &r, &name));
    EXPECT_INT(all(&h)->count, 1);
    for (int k = 0; k < 2; k++)
        leave(&h.e.core.rooms, &g[k], false);
    close_house(&h);
}

/* --- in a child ----------------------------------------------------------- */

/* Who forked may have been in the middle of it. */
static void expect_left(bool busy) RL_UNCHECKED
{
    house h;
    open_house(&h, false, true);
    want(&h, &job);
    if (busy)
        rl_mutex_lock(&all(&h)->mutex);
    rl_subscriptions_fini(all(&h), true);
    EXPECT_INT(all(&h)->count, busy);
    if (busy)
        rl_mutex_unlock(&all(&h)->mutex);
    else
        rl_mutex_fini(&all(&h)->mutex);
    EXPECT(busy || rl_subscriptions_init(all(&h)));
    close_house(&h);
}

TEST_CASE(subscriptions_lost, a_child_frees_those_that_are_whole,
          expect_left(false))
TEST_CASE(subscriptions_lost, a_child_leaves_those_that_may_be_half,
          expect_left(true))
