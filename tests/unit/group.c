/* Holds that are one lock: states, and the one loss that is told. */
#include "hold/group.h"

#include "base/clock.h"

#include "test.h"

typedef struct house {
    rl_home home;
    rl_stats stats;
    int refs, told;
    rlock_event_type type;
    bool closed;
} house;

static void ref(rl_home *home)
{
    ((house *)(void *)home)->refs++;
}

static void unref(rl_home *home)
{
    ((house *)(void *)home)->refs--;
}

static bool tell(rl_home *home, const rlock_event *ev)
{
    house *h = (house *)(void *)home;
    h->told++;
    h->type = ev->type;
    return !h->closed;
}

/* Of a quorum, with so many nodes that have it; or, without, of all. */
static rl_group *group_of(house *h, size_t quorum, unsigned nodes)
{
    *h = (house){.home = {.ref = ref, .unref = unref, .tell = tell}};
    h->home.has_on_event = true;
    h->home.stats = &h->stats;
    rl_group *g = rl_group_new(&h->home, quorum);
    EXPECT(g);
    for (unsigned i = 0; i < nodes; i++)
        rl_group_join(g, i, 1000, RL_NEVER);
    return g;
}

static rl_group *owned_group(house *h, size_t quorum, unsigned nodes)
{
    rl_group *g = group_of(h, quorum, nodes);
    EXPECT(rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    return g;
}

TEST(group, counts_its_home_as_long_as_anybody_has_it)
{
    house h;
    rl_group *g = group_of(&h, 2, 3);
    EXPECT_INT(h.refs, 1);
    rl_group_ref(g);
    rl_group_unref(g);
    EXPECT_INT(h.refs, 1);
    rl_group_unref(g);
    EXPECT_INT(h.refs, 0);
    rl_group_unref(NULL);
}

TEST(group, moves_only_from_the_state_it_is_in)
{
    house h;
    rl_group *g = group_of(&h, 2, 3);
    EXPECT(!rl_group_is_owned(g));
    EXPECT(!rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_OVER));
    EXPECT(rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    EXPECT(rl_group_is_owned(g));
    EXPECT(!rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    EXPECT(rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_OVER));
    EXPECT(!rl_group_is_owned(g));
    rl_group_unref(g);
}

TEST(group, of_a_quorum_is_lost_with_the_hold_that_makes_too_few)
{
    house h;
    rl_group *g = owned_group(&h, 2, 3);
    EXPECT(!rl_group_lose_one(g, 2, RL_NEVER, 0));
    EXPECT(rl_group_is_owned(g));
    EXPECT(rl_group_lose_one(g, 0, RL_NEVER, 0));
    EXPECT(!rl_group_is_owned(g));
    rl_group_unref(g);
}

TEST(group, is_lost_exactly_once)
{
    house h;
    rl_group *g = owned_group(&h, 0, 0);
    EXPECT(rl_group_lose_one(g, 0, RL_NEVER, 0));
    EXPECT(!rl_group_lose_one(g, 0, RL_NEVER, 0));
    EXPECT(!rl_group_lose_one(g, 0, RL_NEVER, 0));
    rl_group_unref(g);
}

typedef struct node {
    rl_group *g;
    unsigned i;
} node;

static intptr_t lose_one(void *arg)
{
    const node *x = arg;
    return rl_group_lose_one(x->g, x->i, RL_NEVER, 0);
}

TEST(group, is_lost_exactly_once_when_several_notice)
{
    for (int i = 0; i < 20; i++) {
        house h;
        test_thread *t[4];
        node x[4];
        intptr_t lost = 0;
        rl_group *g = owned_group(&h, 3, 4);
        for (unsigned k = 0; k < 4; k++) {
            x[k] = (node){g, k};
            t[k] = test_spawn(lose_one, &x[k]);
        }
        for (int k = 0; k < 4; k++)
            lost += test_join(t[k]);
        EXPECT_INT(lost, 1);
        rl_group_unref(g);
    }
}

TEST(group, that_is_over_is_not_lost_any_more)
{
    house h;
    rl_group *g = owned_group(&h, 3, 3);
    EXPECT(rl_group_move(g, RL_GROUP_OWNED, RL_GROUP_OVER));
    EXPECT(!rl_group_lose_one(g, 0, RL_NEVER, 0));
    rl_group_unref(g);
}

/* What is lost before it is owned makes the owner's try fail, no more. */
TEST(group, that_is_forming_is_not_lost)
{
    house h;
    rl_group *g = group_of(&h, 2, 2);
    EXPECT(!rl_group_lose_one(g, 0, RL_NEVER, 0));
    rl_group_unref(g);
}

TEST(group, a_hold_that_came_late_counts)
{
    house h;
    rl_group *g = owned_group(&h, 2, 2);
    rl_group_join(g, 2, 1000, RL_NEVER);
    EXPECT(!rl_group_lose_one(g, 0, 1500, 0));
    EXPECT(rl_group_lose_one(g, 1, 1500, 0));
    rl_group_unref(g);
}

/* Of three nodes the first may have been missing from 2000 to 4000. */
static rl_group *group_with_one_back(house *h)
{
    rl_group *g = owned_group(h, 2, 3);
    EXPECT(!rl_group_lose_one(g, 0, 2000, 0));
    rl_group_join(g, 0, 4000, RL_NEVER);
    return g;
}

/* Before it joined, it and the one that is gone may have been missing. */
TEST(group, of_a_quorum_is_lost_though_another_has_joined_since_it_may_be_gone)
{
    house h;
    rl_group *g = group_with_one_back(&h);
    EXPECT(rl_group_lose_one(g, 1, 2000, 0));
    rl_group_unref(g);
}

TEST(group, of_a_quorum_is_not_lost_when_another_had_joined_before)
{
    house h;
    rl_group *g = group_with_one_back(&h);
    EXPECT(!rl_group_lose_one(g, 1, 4000, 0));
    EXPECT(rl_group_is_owned(g));
    rl_group_unref(g);
}

/* --- by the clock --------------------------------------------------------- */

/* Of three nodes the first is believed in until 5000, which nobody notices. */
static rl_group *group_with_one_late(house *h)
{
    rl_group *g = owned_group(h, 2, 3);
    rl_group_set_until(g, 0, 5000);
    return g;
}

TEST(group, of_a_quorum_does_not_count_a_lease_that_has_run_out)
{
    house h;
    rl_group *g = group_with_one_late(&h);
    EXPECT(rl_group_lose_one(g, 1, RL_NEVER, 5000));
    rl_group_unref(g);
}

TEST(group, of_a_quorum_counts_a_lease_that_has_not_run_out_yet)
{
    house h;
    rl_group *g = group_with_one_late(&h);
    EXPECT(!rl_group_lose_one(g, 1, RL_NEVER, 4999));
    EXPECT(rl_group_is_owned(g));
    rl_group_unref(g);
}

TEST(group, of_a_quorum_is_lost_when_too_few_leases_are_left)
{
    house h;
    rl_group *g = group_with_one_late(&h);
    rl_group_set_until(g, 2, 6000);
    EXPECT(!rl_group_expire(g, 5999));
    EXPECT(rl_group_is_owned(g));
    EXPECT(rl_group_expire(g, 6000));
    EXPECT(!rl_group_is_owned(g));
    EXPECT(!rl_group_expire(g, 6000)); /* that has been reported */
    rl_group_unref(g);
}

TEST(group, of_a_quorum_lasts_as_long_as_the_worst_of_the_best_quorum)
{
    house h;
    rl_group *g = group_with_one_late(&h);
    rl_group_set_until(g, 1, 7000);
    rl_group_set_until(g, 2, 6000);
    EXPECT_INT(rl_group_until(g, RL_ALL_NODES), 6000);
    EXPECT_INT(rl_group_until(g, 1 << 0 | 1 << 1), 5000);
    EXPECT_INT(rl_group_until(g, 1 << 1), 0);
    EXPECT(!rl_group_lose_one(g, 1, RL_NEVER, 4000));
    EXPECT_INT(rl_group_until(g, RL_ALL_NODES), 5000);
    EXPECT(rl_group_lose_one(g, 2, RL_NEVER, 4000));
    EXPECT_INT(rl_group_until(g, RL_ALL_NODES), 0);
    rl_group_unref(g);
}

/* --- of all --------------------------------------------------------------- */

TEST(group, of_a_quorum_is_void_once_it_is_lost_or_over)
{
    house h;
    rl_group *g = owned_group(&h, 2, 2);
    EXPECT(!rl_group_is_void(g));
    EXPECT(rl_group_lose_one(g, 0, RL_NEVER, 0));
    EXPECT(rl_group_is_void(g));
    rl_group_unref(g);
}

/* Nobody is told, but its acquire finds out. */
TEST(group, without_a_quorum_knows_that_it_has_lost_one_while_it_forms)
{
    house h;
    rl_group *g = group_of(&h, 0, 0);
    EXPECT(!rl_group_lose_one(g, 0, RL_NEVER, 0));
    EXPECT(!rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    EXPECT(rl_group_move(g, RL_GROUP_SPOILT, RL_GROUP_FORMING));
    EXPECT(rl_group_move(g, RL_GROUP_FORMING, RL_GROUP_OWNED));
    EXPECT(rl_group_lose_one(g, 0, RL_NEVER, 0));
    rl_group_unref(g);
}

/* The holds of a Multi lock are locks by themselves. */
TEST(group, without_a_quorum_is_never_void)
{
    house h;
    rl_group *g = owned_group(&h, 0, 0);
    EXPECT(rl_group_lose_one(g, 0, RL_NEVER, 0));
    EXPECT(!rl_group_is_void(g));
    rl_group_unref(g);
}

TEST(group, has_one_count_and_one_policy)
{
    house h;
    rl_group *g = owned_group(&h, 2, 3);
    rl_group_set_count(g, 4);
    rl_group_set_renewed(g, true);
    EXPECT(rl_group_count(g) == 4 && rl_group_is_renewed(g));
    rl_group_set_renewed(g, false);
    EXPECT(!rl_group_is_renewed(g));
    rl_group_unref(g);
}

TEST(group, tells_its_home)
{
    house h;
    rlock_event ev = {.type = RLOCK_EVENT_LOST};
    rl_group *g = owned_group(&h, 2, 3);
    EXPECT(rl_group_has_on_event(g) && rl_group_tell(g, &ev));
    EXPECT(h.told == 1 && h.type == RLOCK_EVENT_LOST);
    h.closed = true;
    EXPECT(!rl_group_tell(g, &ev));
    rl_group_count_loss(g, "jobs", 4);
    EXPECT_INT(rl_count_of(&h.stats.lost[RL_LOSS_GROUP]), 1);
    rl_group_unref(g);
}

TEST(group, whose_home_does_not_listen_tells_nobody)
{
    house h;
    rlock_event ev = {.type = RLOCK_EVENT_LOST};
    rl_group *g = owned_group(&h, 2, 3);
    h.home.has_on_event = false;
    EXPECT(!rl_group_has_on_event(g) && !rl_group_tell(g, &ev));
    EXPECT_INT(h.told, 0);
    rl_group_unref(g);
}
