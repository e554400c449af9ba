/* What the doorbell is told for Redisson's channels: names come and go. */
#include "room.h"

typedef struct news {
    int came, went;
    char last[20];
} news;

static void came(const char *name, size_t len, void *arg)
{
    news *n = arg;
    n->came++;
    snprintf(n->last, sizeof n->last, "%.*s", (int)len, name);
}

static void went(const char *name, size_t len, void *arg)
{
    news *n = arg;
    n->went++;
    snprintf(n->last, sizeof n->last, "%.*s", (int)len, name);
}

static news look(rl_rooms *r, bool all)
{
    news n = {0};
    rl_rooms_news(r, all, came, went, &n);
    return n;
}

TEST(room_news, a_name_is_news_once_when_it_begins_to_be_waited_for)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 2);
    EXPECT(!g[0].waiter.room->listened);
    news n = look(&r, false);
    EXPECT(n.came == 1 && n.went == 0);
    EXPECT_STR(n.last, "job");
    EXPECT(g[1].waiter.room->listened);
    n = look(&r, false);
    EXPECT(n.came == 0 && n.went == 0);
    close_with(&r, g, 2);
}

TEST(room_news, all_names_are_news_to_a_new_connection)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 1);
    enter(&r, &g[1], &other);
    look(&r, false);
    EXPECT_INT(look(&r, true).came, 2);
    EXPECT_INT(look(&r, false).came, 0);
    close_with(&r, g, 2);
}

TEST(room_news, a_name_is_news_once_when_nobody_waits_for_it_any_more)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 2);
    look(&r, false);
    leave(&r, &g[0], false);
    EXPECT_INT(look(&r, false).went, 0);
    leave(&r, &g[1], true);
    news n = look(&r, false);
    EXPECT(n.came == 0 && n.went == 1);
    EXPECT_STR(n.last, "job");
    EXPECT_INT(look(&r, false).went, 0);
    close_with(&r, g, 2);
}

TEST(room_news, a_name_that_came_and_went_between_two_looks_is_no_news)
{
    rl_rooms r;
    guest g;
    open_with(&r, &g, 1);
    leave(&r, &g, true);
    news n = look(&r, false);
    EXPECT(n.came == 0 && n.went == 0);
    close_with(&r, &g, 1);
}

/* Listened on it already: it must not be given up because the old room went. */
TEST(room_news, a_name_that_went_and_came_again_has_not_gone)
{
    rl_rooms r;
    guest g[2];
    open_with(&r, g, 1);
    look(&r, false);
    leave(&r, &g[0], true);
    enter(&r, &g[1], &string_job);
    news n = look(&r, false);
    EXPECT(n.came == 1 && n.went == 0);
    close_with(&r, g, 2);
}
