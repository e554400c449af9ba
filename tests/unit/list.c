/* The linked list. */
#include "base/list.h"
#include "test.h"

typedef struct thing {
    char name;
    rl_link link;
} thing;

/* The names in the list, in its order. */
static const char *names(const rl_list *l)
{
    static _Thread_local char text[32];
    char *at = text;
    for (rl_link *k = rl_list_first(l); k; k = rl_list_next(l, k))
        *at++ = RL_CONTAINER(k, thing, link)->name;
    *at = '\0';
    return text;
}

TEST(list, has_no_first_and_no_last_when_empty)
{
    rl_list l;
    rl_list_init(&l);
    EXPECT(rl_list_is_empty(&l));
    EXPECT(!rl_list_first(&l));
    EXPECT(!rl_list_last(&l));
}

TEST(list, keeps_the_order_of_adding_at_both_ends)
{
    thing a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    rl_list l;
    rl_list_init(&l);
    rl_list_add_last(&l, &b.link);
    rl_list_add_last(&l, &c.link);
    rl_list_add_first(&l, &a.link);
    EXPECT_STR(names(&l), "abc");
    EXPECT(rl_list_first(&l) == &a.link);
    EXPECT(rl_list_last(&l) == &c.link);
    EXPECT(!rl_list_is_empty(&l));
}

TEST(list, adds_before_any_link)
{
    thing a = {.name = 'a'}, b = {.name = 'b'}, c = {.name = 'c'};
    rl_list l;
    rl_list_init(&l);
    rl_list_add_last(&l, &c.link);
    rl_list_add_before(&c.link, &a.link);
    rl_list_add_before(&c.link, &b.link);
    EXPECT_STR(names(&l), "abc");
}

TEST(list, removes_at_any_place)
{
    thing t[5];
    rl_list l;
    rl_list_init(&l);
    for (int i = 0; i < 5; i++) {
        t[i] = (thing){.name = (char)('a' + i)};
        rl_list_add_last(&l, &t[i].link);
    }
    rl_list_remove(&t[2].link);
    EXPECT_STR(names(&l), "abde");
    rl_list_remove(&t[0].link);
    EXPECT_STR(names(&l), "bde");
    rl_list_remove(&t[4].link);
    EXPECT_STR(names(&l), "bd");
    rl_list_remove(&t[1].link);
    rl_list_remove(&t[3].link);
    EXPECT(rl_list_is_empty(&l));
}

TEST(list, a_link_knows_whether_it_is_in_a_list)
{
    thing a = {.name = 'a'};
    rl_list l;
    rl_list_init(&l);
    EXPECT(!rl_link_is_in(&a.link));
    rl_list_add_last(&l, &a.link);
    EXPECT(rl_link_is_in(&a.link));
    rl_list_remove(&a.link);
    EXPECT(!rl_link_is_in(&a.link));
    rl_list_remove(&a.link);
    EXPECT(rl_list_is_empty(&l));
}

TEST(list, a_link_can_go_back_in)
{
    thing a = {.name = 'a'}, b = {.name = 'b'};
    rl_list l;
    rl_list_init(&l);
    rl_list_add_last(&l, &a.link);
    rl_list_add_last(&l, &b.link);
    rl_list_remove(&a.link);
    rl_list_add_last(&l, &a.link);
    EXPECT_STR(names(&l), "ba");
}
