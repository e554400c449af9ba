/* Who of those in office is still there, by what several servers say. */
#include "route/census.h"

#include "slotmap.h"

/* What is said at an address; nothing: it cannot be reached. */
typedef struct voice {
    const char *host;
    void (*say)(rl_slotmap_reply *said);
    const char *self;
} voice;

static const voice *voices;
static size_t count, asked_in_all;

static bool ask_host(rl_slotmap_reply *into, const rl_place *at)
{
    asked_in_all++;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(voices[i].host, at->host) != 0)
            continue;
        rl_slotmap_reply_init(into);
        voices[i].say(into);
        by(into, voices[i].self);
        into->from = *at;
        return true;
    }
    return false;
}

static void say_ours(rl_slotmap_reply *said)
{
    claim_at(said, "a", "a", 1, 0, 5460);
    claim_at(said, "b", "b", 2, 5461, 10922);
    claim_at(said, "c", "c", 3, 10923, 16383);
    said->node[list(said, "r", "r", 1) - 1].master = false;
}

static void say_strange(rl_slotmap_reply *said)
{
    claim_at(said, "x", "a", 1, 0, 8191);
    claim_at(said, "y", "b", 2, 8192, 16383);
    list(said, "z", "c", 2);
}

/* Ours, without b: it was forgotten. */
static void say_less(rl_slotmap_reply *said)
{
    claim_at(said, "a", "a", 1, 0, 5460);
    claim_at(said, "n", "n", 0, 5461, 10922);
    claim_at(said, "c", "c", 3, 10923, 16383);
}

/* One asking, which began at the first that is there. Does it go on? */
#define TAKE(l, ...)                                                           \
    take(l, (voice[]){__VA_ARGS__},                                            \
         sizeof((voice[]){__VA_ARGS__}) / sizeof(voice))

static bool take(land *l, const voice *v, size_t n)
{
    rl_slotmap_reply *said = malloc(sizeof *said);
    EXPECT(said);
    voices = v;
    count = n;
    rl_place first = {.port = 6379};
    strcpy(first.host, v[0].host);
    EXPECT(ask_host(said, &first));
    asked_in_all = 0;
    rl_census_begin(&l->c, &said);
    rl_place at;
    while (rl_census_next(&l->c, said, &at))
        if (ask_host(said, &at))
            rl_census_take(&l->c, &said);
    bool again = rl_census_end(&l->c, &said);
    rl_mutex_lock(&l->c.mutex);
    rl_slotmap_judge(&l->c, said, &l->ch);
    rl_slotmap_publish(&l->c, &l->ch);
    rl_mutex_unlock(&l->c.mutex);
    rl_census_note_replicas(&l->c, said);
    free(said);
    return again;
}

TEST(census, who_knows_all_that_are_in_office_is_the_only_one_asked)
{
    land *l = begin();
    EXPECT(!TAKE(l, {"b", say_ours, "b"}, {"a", say_ours, "a"}));
    EXPECT_INT(asked_in_all, 0);
    end(l);
}

/* Its address was given to another cluster's server. */
TEST(census, one_server_of_another_cluster_changes_nothing)
{
    land *l = begin();
    for (int i = 0; i < 10; i++)
        EXPECT(!TAKE(l, {"a", say_strange, "x"}, {"b", say_ours, "b"},
                     {"c", say_ours, "c"}));
    EXPECT_STR(node(l, 0), "a");
    EXPECT_INT(asked_in_all, 3);
    end(l);
}

TEST(census, a_cluster_made_anew_is_believed_the_third_time)
{
    land *l = begin();
    for (int i = 1; i < RL_ERA_ASKINGS; i++) {
        EXPECT(TAKE(l, {"a", say_strange, "x"}, {"b", say_strange, "y"}));
        EXPECT_STR(node(l, 0), "a");
    }
    TAKE(l, {"b", say_strange, "y"}, {"a", say_strange, "x"});
    EXPECT_STR(node(l, 0), "x");
    EXPECT_STR(node(l, 16383), "y");
    EXPECT(!TAKE(l, {"b", say_strange, "y"}));
    end(l);
}

TEST(census, one_that_is_back_in_between_begins_the_count_anew)
{
    land *l = begin();
    for (int i = 0; i < 5; i++) {
        for (int k = 1; k < RL_ERA_ASKINGS; k++)
            EXPECT(TAKE(l, {"a", say_strange, "x"}, {"b", say_strange, "y"}));
        EXPECT(!TAKE(l, {"a", say_strange, "x"}, {"b", say_ours, "b"}));
    }
    EXPECT_STR(node(l, 0), "a");
    end(l);
}

/* Two answers, of a server that has two names. */
TEST(census, who_has_two_addresses_has_one_voice)
{
    land *l = begin();
    l->uri.endpoints = 1;
    l->uri.endpoint[0] = (rl_endpoint){.host = "alias", .port = 6379};
    for (int i = 0; i < 5; i++)
        EXPECT(!TAKE(l, {"alias", say_strange, "x"}, {"a", say_strange, "x"},
                     {"c", say_ours, "b"}));
    EXPECT_STR(node(l, 0), "a");
    end(l);
}

/* A shard was lost, and made anew by hand, with an epoch of 0. */
TEST(census, a_node_that_its_cluster_has_forgotten_is_replaced)
{
    land *l = begin();
    for (int i = 1; i < RL_ERA_ASKINGS; i++)
        EXPECT(TAKE(l, {"a", say_less, "a"}, {"c", say_less, "c"}));
    EXPECT_STR(owner(l, 5461), "b");
    TAKE(l, {"a", say_less, "a"}, {"c", say_less, "c"});
    EXPECT_STR(owner(l, 5461), "n");
    EXPECT(!server(l, "a")->retired && server(l, "b")->retired);
    end(l);
}

/* Who has not heard of it yet is one against all others. */
TEST(census, a_node_that_one_server_does_not_know_stays)
{
    land *l = begin();
    for (int i = 0; i < 5; i++)
        EXPECT(!TAKE(l, {"a", say_less, "a"}, {"c", say_ours, "c"},
                     {"b", say_ours, "b"}));
    EXPECT_STR(owner(l, 5461), "b");
    end(l);
}

TEST(census, replicas_are_asked_too)
{
    land *l = begin();
    EXPECT(!TAKE(l, {"a", say_ours, "a"}));
    EXPECT(l->c.replicas == 1 && l->c.replica->port == 6379);
    EXPECT_STR(l->c.replica->host, "r");
    for (int i = 0; i < 5; i++)
        EXPECT(!TAKE(l, {"a", say_strange, "x"}, {"r", say_ours, "r"}));
    EXPECT_STR(node(l, 0), "a");
    end(l);
}
