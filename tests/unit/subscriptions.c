/* Which channels a server is asked for, and who is woken by what it says. */
#include "subscribed.h"

#include <errno.h>

#include "collide.h"
#include "shim.h"

#define OTHER_BELL "rlock_sbell:{other}:" ID

/* --- what is wanted ------------------------------------------------------- */

static void expect_wanted(bool cluster, bool foreign, const char *said)
{
    house h;
    open_house(&h, cluster, foreign);
    int64_t before_us = rl_now_us();
    EXPECT(!rl_subscriptions_are_wanted(all(&h)));
    EXPECT_INT(rl_subscriptions_until(all(&h)), RL_NEVER);
    EXPECT_INT(want(&h, &job), *said != '\0');
    EXPECT_INT(rl_subscriptions_are_wanted(all(&h)), *said != '\0');
    if (*said)
        EXPECT_BETWEEN(rl_subscriptions_until(all(&h)), before_us + KEPT_US,
                       rl_now_us() + KEPT_US);
    EXPECT_STR(adjust(&h, rl_now_us()), said);
    EXPECT(!want(&h, &job)); /* it is there, and lasts longer */
    EXPECT_STR(adjust(&h, rl_now_us()), "");
    close_house(&h);
}

TEST_CASE(subscriptions, of_one_server_a_name_needs_no_channel,
          expect_wanted(false, false, ""))
TEST_CASE(subscriptions, redissons_is_wanted_where_the_program_says_so,
          expect_wanted(false, true, "SUBSCRIBE " CHANNEL " "))
TEST_CASE(subscriptions, of_a_cluster_each_name_has_a_bell,
          expect_wanted(true, false, "SSUBSCRIBE " BELL " "))

TEST(subscriptions, what_is_said_is_a_command_of_two_words)
{
    house h;
    open_house(&h, false, true);
    want(&h, &job);
    EXPECT(rl_subscriptions_adjust(&h.e.node, h.conn, rl_now_us()));
    EXPECT_STR(h.said, "*2\r\n$9\r\nSUBSCRIBE\r\n$28\r\n" CHANNEL "\r\n");
    close_house(&h);
}

/* Of each kind, and in a cluster, what Redisson publishes on when it is free. */
static void expect_channel(unsigned scope, const char *name, bool sharded,
                           const char *said)
{
    house h;
    rl_target what = {
        .name = name, .len = strlen(name), .scope = scope, .sharded = sharded};
    open_house(&h, false, true);
    EXPECT_INT(want(&h, &what), *said != '\0');
    EXPECT_STR(adjust(&h, rl_now_us()), said);
    close_house(&h);
}

#define COUNTED "redisson_countdownlatch__channel__"

TEST_CASE(subscriptions, of_a_semaphore_a_permit_is_told_on_a_channel,
          expect_channel(RL_LAYOUT_PERMIT, "job", false,
                         "SUBSCRIBE redisson_sc:{job} "))
TEST_CASE(subscriptions, of_a_side_its_lock_has_the_channel,
          expect_channel(RL_LAYOUT_READ, "job", false,
                         "SUBSCRIBE redisson_rwlock:{job} "))
TEST_CASE(subscriptions, of_a_latch_its_end_is_told_on_a_channel,
          expect_channel(RL_LATCH_SCOPE, "job", false,
                         "SUBSCRIBE " COUNTED "{job} "))
TEST_CASE(subscriptions, of_a_latch_it_is_so_whatever_it_is_called,
          expect_channel(RL_LATCH_SCOPE, "{job}", false,
                         "SUBSCRIBE " COUNTED "{{job}} "))
TEST_CASE(subscriptions, of_a_latch_in_a_cluster_it_is_where_its_name_is,
          expect_channel(RL_LATCH_SCOPE, "job", true,
                         "SUBSCRIBE " COUNTED "{job} "))
TEST_CASE(subscriptions, of_a_latch_it_may_be_elsewhere_and_is_not_wanted,
          expect_channel(RL_LATCH_SCOPE, "{job}", true, ""))
TEST_CASE(subscriptions, of_a_lock_it_is_where_its_name_is_in_braces,
          expect_channel(RLOCK_LAYOUT_HASH, "{job}", true,
                         "SUBSCRIBE " CHANNEL " "))

TEST(subscriptions, of_a_cluster_both_may_be_wanted)
{
    house h;
    open_house(&h, true, true);
    EXPECT(want(&h, &job));
    EXPECT_INT(all(&h)->count, 2);
    const char *said = adjust(&h, rl_now_us());
    EXPECT_CONTAINS(said, "SSUBSCRIBE " BELL " ");
    EXPECT_CONTAINS(said, "SSUBSCRIBE " CHANNEL " ");
    close_house(&h);
}

TEST(subscriptions, what_nobody_wants_for_5_s_is_left)
{
    house h;
    open_house(&h, true, false);
    EXPECT(want(&h, &job));
    EXPECT_STR(adjust(&h, rl_now_us()), "SSUBSCRIBE " BELL " ");
    int64_t until_us = rl_subscriptions_until(all(&h));
    EXPECT(want(&h, &other));
    EXPECT_CONTAINS(adjust(&h, until_us - 1), "SSUBSCRIBE ");
    EXPECT_INT(rl_subscriptions_until(all(&h)), until_us);
    EXPECT_STR(adjust(&h, until_us), "SUNSUBSCRIBE " BELL " ");
    EXPECT_INT(all(&h)->count, 1);
    EXPECT(rl_subscriptions_until(all(&h)) >= until_us);
    EXPECT(want(&h, &job));
    close_house(&h);
}

/* It comes and goes before the doorbell has looked. */
TEST(subscriptions, what_was_not_asked_for_is_not_left)
{
    house h;
    open_house(&h, false, true);
    EXPECT(want(&h, &job));
    EXPECT_STR(adjust(&h, rl_subscriptions_until(all(&h))), "");
    EXPECT_INT(all(&h)->count, 0);
    EXPECT_INT(rl_subscriptions_until(all(&h)), RL_NEVER);
    close_house(&h);
}

TEST(subscriptions, what_cannot_be_said_breaks_the_connection)
{
    house h;
    open_house(&h, false, true);
    EXPECT(want(&h, &job));
    h.broken = true;
    EXPECT(!rl_subscriptions_adjust(&h.e.node, h.conn, rl_now_us()));
    EXPECT(rl_conn_is_broken(h.conn));
    close_house(&h);
}

/* One of two; the other is said whole. */
TEST(subscriptions, what_lacks_memory_breaks_the_connection)
{
    house h;
    open_house(&h, false, true);
    want(&h, &job);
    want(&h, &other);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    bool adjusted = rl_subscriptions_adjust(&h.e.node, h.conn, rl_now_us());
    shim_clear(shim_here());
    EXPECT(!adjusted && rl_conn_is_broken(h.conn));
    close_house(&h);
}

/* Two channels of one hash, which are told apart by all of their bytes. */
static void expect_apart(const char *name)
{
    house h;
    rl_target what = {.name = name, .len = strlen(name)};
    rl_key key = rl_key_redisson(name, strlen(name));
    open_house(&h, false, true);
    want(&h, &job);
    collide(&all(&h)->map, rl_hash(key.text, key.len, 0));
    want(&h, &what);
    EXPECT_INT(all(&h)->count, 2);
    close_house(&h);
}

TEST_CASE(subscriptions, two_channels_of_one_hash_are_two, expect_apart("jab"))
TEST_CASE(subscriptions, two_channels_of_which_one_is_longer_are_two,
          expect_apart("job2"))

TEST(subscriptions, more_than_1024_are_not_wanted)
{
    house h;
    char name[8];
    rl_target what = job;
    open_house(&h, false, true);
    for (int i = 0; i <= 1024; i++) {
        what.name = name;
        what.len = (size_t)snprintf(name, sizeof name, "%d", i);
        want(&h, &what);
        EXPECT_INT(all(&h)->count, i < 1024 ? i + 1 : 1024);
    }
    want(&h, &what);
    EXPECT_INT(all(&h)->count, 1024);
    close_house(&h);
}

TEST(subscriptions, without_memory_nothing_is_wanted)
{
    house h;
    open_house(&h, false, true);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    bool woken = want(&h, &job);
    shim_clear(shim_here());
    EXPECT(!woken && !rl_subscriptions_are_wanted(all(&h)));
    close_house(&h);
}

/* --- what is heard -------------------------------------------------------- */

TEST(subscriptions, a_bell_is_heard_once_the_server_has_said_so)
{
    house h;
    guest g;
    open_waiting(&h, &g, true, false);
    EXPECT(!rl_subscriptions_hear(&h.e.node, &job));
    expect_heard(&h, "ssubscribe", BELL, NULL);
    EXPECT(rl_subscriptions_hear(&h.e.node, &job));
    EXPECT(!rl_subscriptions_hear(&h.e.node, &other));
    expect_woken(&g, 1, RL_WAKE_LOOK);
    expect_heard(&h, "smessage", BELL, "job");
    expect_woken(&g, 2, RL_WAKE_RUNG);
    EXPECT(rl_subscriptions_hear(&h.e.node, &job));
    close_waiting(&h, &g);
}

/* Which one, it does not say. */
static void expect_refused(house *h, const char *error)
{
    rl_item none;
    rl_reply r = {.top = {.type = REDIS_REPLY_ERROR, .len = strlen(error)}};
    snprintf(r.text, sizeof r.text, "%s", error);
    r.top.str = r.text;
    EXPECT(!rl_subscriptions_take(&h->e.node, &r, &none));
}

TEST(subscriptions, a_bell_that_a_busy_server_refused_is_asked_for_again)
{
    house h;
    guest g;
    open_waiting(&h, &g, true, false);
    int64_t before_us = rl_now_us();
    expect_refused(&h, "BUSY Redis is busy running a script");
    int64_t us = rl_subscriptions_until(all(&h));
    EXPECT_BETWEEN(us, before_us + 2000 * MS, rl_now_us() + 2000 * MS);
    EXPECT(want(&h, &other)); /* what is new does not wait */
    EXPECT_STR(adjust(&h, us - 1), "SSUBSCRIBE " OTHER_BELL " ");
    EXPECT_INT(rl_subscriptions_until(all(&h)), us);
    expect_heard(&h, "ssubscribe", OTHER_BELL, NULL);
    EXPECT_STR(adjust(&h, us), "SSUBSCRIBE " BELL " ");
    EXPECT_STR(adjust(&h, us + 1), "");
    close_waiting(&h, &g);
}

TEST(subscriptions, a_bell_that_is_refused_for_good_is_asked_for_once)
{
    house h;
    guest g;
    open_waiting(&h, &g, true, false);
    int64_t us = rl_subscriptions_until(all(&h));
    expect_refused(&h, "ERR unknown command 'SSUBSCRIBE'");
    EXPECT_INT(rl_subscriptions_until(all(&h)), us);
    close_waiting(&h, &g);
}

TEST(subscriptions, a_bell_that_the_server_has_ended_is_looked_after)
{
    house h;
    guest g;
    open_waiting(&h, &g, true, false);
    expect_heard(&h, "ssubscribe", BELL, NULL);
    expect_heard(&h, "sunsubscribe", BELL, NULL);
    expect_woken(&g, 2, RL_WAKE_LOOK);
    EXPECT(!rl_subscriptions_hear(&h.e.node, &job));
    EXPECT(!rl_subscriptions_are_wanted(all(&h)));
    close_waiting(&h, &g);
}

TEST(subscriptions, a_ring_that_nobody_wants_is_told_by_its_name)
{
    house h;
    guest g;
    const char *unwanted, *longest;
    char name[RLOCK_NAME_MAX + 2] = "";
    open_waiting(&h, &g, true, false);
    EXPECT(hear(&h, "smessage", BELL, "{job}", &unwanted));
    EXPECT_STR(unwanted, "{job}");
    memset(name, 'x', RLOCK_NAME_MAX + 1);
    EXPECT(hear(&h, "smessage", BELL, name, &unwanted) && !unwanted);
    longest = name + 1;
    EXPECT(hear(&h, "smessage", BELL, longest, &unwanted));
    EXPECT_STR(unwanted, longest);
    EXPECT(hear(&h, "smessage", BELL, "x", &unwanted));
    EXPECT_STR(unwanted, "x");
    EXPECT(hear(&h, "smessage", BELL, "", &unwanted) && !unwanted);
    EXPECT(hear(&h, "smessage", BELL, NULL, &unwanted) && !unwanted);
    EXPECT_INT(g.woken, 0);
    close_waiting(&h, &g);
}

/* It was on its way when the server was told. */
TEST(subscriptions, a_ring_of_a_bell_that_was_just_left_is_told_by_its_name)
{
    house h;
    const char *unwanted;
    open_house(&h, true, false);
    EXPECT(want(&h, &job));
    EXPECT_CONTAINS(adjust(&h, 0), "SSUBSCRIBE");
    expect_heard(&h, "ssubscribe", BELL, NULL);
    EXPECT_CONTAINS(adjust(&h, rl_now_us() + KEPT_US), "SUNSUBSCRIBE");
    EXPECT(hear(&h, "smessage", BELL, "job", &unwanted));
    EXPECT_STR(unwanted, "job");
    EXPECT(!hear(&h, "sunsubscribe", BELL, NULL, &unwanted) && !unwanted);
    close_house(&h);
}

/* Also one that makes no sense, as from another version. */
TEST(subscriptions, a_grant_is_no_name_that_nobody_wants)
{
    house h;
    guest g;
    const char *unwanted;
    open_waiting(&h, &g, true, false);
    EXPECT(hear(&h, "smessage", BELL, RL_GRANT_PREFIX "?", &unwanted));
    EXPECT(!unwanted && g.woken == 0);
    close_waiting(&h, &g);
}

TEST(subscriptions, what_is_said_of_other_channels_is_not_ours)
{
    house h;
    guest g;
    const char *unwanted;
    char much[20 * sizeof((rl_key *)0)->text] = "";
    open_waiting(&h, &g, false, true);
    EXPECT(!hear(&h, "message", BELL, "job", &unwanted) && !unwanted);
    memset(much, 'x', sizeof much - 1);
    EXPECT(!hear(&h, "message", much, "job", &unwanted));
    EXPECT(!hear(&h, "message", NULL, "job", &unwanted));
    rl_item name;
    rl_reply r = {.top = text_item("job")};
    EXPECT(!rl_subscriptions_take(&h.e.node, &r, &name) && !name.str);
    r = (rl_reply){.top.type = REDIS_REPLY_ARRAY, .count = 2};
    r.item[0] = text_item("message");
    r.item[1] = text_item(CHANNEL);
    EXPECT(!rl_subscriptions_take(&h.e.node, &r, &name));
    r.top = (rl_item){.type = REDIS_REPLY_ERROR, .str = "MOVED 1 h:1"};
    EXPECT(!rl_subscriptions_take(&h.e.node, &r, &name));
    EXPECT_INT(g.woken, 0);
    close_waiting(&h, &g);
}

/* Of Redisson's channel, which says nothing of the name's braces. */
TEST(subscriptions, redissons_release_wakes_whoever_waits_for_the_channel)
{
    static const rl_target braced = {.name = "{job}", .len = 5};
    house h;
    guest g[3];
    const rl_target *first[] = {&job, &braced};
    for (int i = 0; i < 2; i++) {
        open_house(&h, false, true);
        enter(&h.e.core.rooms, &g[0], &job);
        enter(&h.e.core.rooms, &g[1], &braced);
        enter(&h.e.core.rooms, &g[2], &other);
        want(&h, first[i]);
        EXPECT_STR(adjust(&h, rl_now_us()), "SUBSCRIBE " CHANNEL " ");
        expect_heard(&h, "subscribe", CHANNEL, NULL);
        expect_woken(&g[0], 1, RL_WAKE_LOOK);
        expect_woken(&g[1], 1, RL_WAKE_LOOK);
        expect_heard(&h, "message", CHANNEL, "0");
        expect_woken(&g[0], 2, RL_WAKE_RUNG);
        expect_woken(&g[1], 2, RL_WAKE_RUNG);
        EXPECT_INT(g[2].woken, 0);
        for (int k = 0; k < 3; k++)
            leave(&h.e.core.rooms, &g[k], false);
        close_house(&h);
    }
}

/* These have no second name: in braces is a part, or more than one. */
TEST(subscriptions, a_name_with_braces_inside_has_its_channel_alone)
{
    static const rl_target of[] = {{.name = "{a}{b}", .len = 6},
                                   {.name = "{a}x", .len = 4},
                                   {.name = "x{a}", .len = 4},
                                   {.name = "{{a}", .len = 4}};
    static const rl_target inner[] = {{.name = "a}{b", .len = 4},
                                      {.name = "a}", .len = 2},
                                      {.name = "{a", .len = 2},
                                      {.name = "{a", .len = 2}};
    for (int i = 0; i < 4; i++) {
        house h;
        guest g[2];
        open_house(&h, false, true);
        enter(&h.e.core.rooms, &g[0], &of[i]);
        enter(&h.e.core.rooms, &g[1], &inner[i]);
        want(&h, &of[i]);
        rl_key key = rl_key_redisson(of[i].name, of[i].len);
        char channel[100];
        snprintf(channel, sizeof channel, "%.*s", (int)key.len, key.text);
        expect_heard(&h, "message", channel, "0");
        expect_woken(&g[0], 1, RL_WAKE_RUNG);
        EXPECT_INT(g[1].woken, 0);
        for (int k = 0; k < 2; k++)
            leave(&h.e.core.rooms, &g[k], false);
        close_house(&h);
    }
}

/* The channel of a longer name has been heard before, with braces where this one
   ends. */
TEST(subscriptions, what_is_behind_a_name_is_no_part_of_it)
{
    static const rl_target braced = {.name = "{job}", .len = 5};
    static const rl_target longer = {.name = "xxxxx{{{{", .len = 9};
    house h;
    guest g;
    open_house(&h, false, true);
    enter(&h.e.core.rooms, &g, &job);
    want(&h, &braced);
    want(&h, &longer);
    EXPECT_INT(all(&h)->count, 2);
    rl_key key = rl_key_redisson(longer.name, longer.len);
    char channel[100];
    snprintf(channel, sizeof channel, "%.*s", (int)key.len, key.text);
    expect_heard(&h, "message", channel, "0");
    EXPECT_INT(g.woken, 0);
    expect_heard(&h, "message", CHANNEL, "0");
    expect_woken(&g, 1, RL_WAKE_RUNG);
    close_waiting(&h, &g);
}
