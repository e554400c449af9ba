/* The hash table, against an array. */
#include "base/map.h"

#include "base/hash.h"
#include "test.h"

enum { THINGS = 2000, STEPS = 50000 };

typedef struct thing {
    int key;
    bool in;
    rl_map_node node;
} thing;

static uint64_t rng = 2463534242u;

static uint64_t draw(uint64_t below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % below;
}

static bool equal(const rl_map_node *n, const void *key)
{
    return RL_CONTAINER(n, thing, node)->key == *(const int *)key;
}

static uint64_t hash_of(int key)
{
    return rl_hash(&key, sizeof key, 0);
}

static thing *find(const rl_map *m, uint64_t hash, int key)
{
    rl_map_node *n = rl_map_find(m, hash, &key);
    return n ? RL_CONTAINER(n, thing, node) : NULL;
}

static thing *make_things(void)
{
    thing *t = calloc(THINGS, sizeof *t);
    EXPECT(t);
    for (int i = 0; i < THINGS; i++)
        t[i].key = i;
    return t;
}

TEST(map, finds_nothing_when_empty)
{
    rl_map m;
    EXPECT(rl_map_init(&m, equal));
    EXPECT(!find(&m, hash_of(1), 1));
    rl_map_fini(&m);
}

TEST(map, finds_all_while_it_grows)
{
    rl_map m;
    thing *t = make_things();
    EXPECT(rl_map_init(&m, equal));
    size_t first_size = m.size;
    for (int i = 0; i < THINGS; i++) {
        rl_map_add(&m, &t[i].node, hash_of(i));
        EXPECT(find(&m, hash_of(i / 2), i / 2) == &t[i / 2]);
    }
    EXPECT(m.size > first_size);
    for (int i = 0; i < THINGS; i++)
        EXPECT(find(&m, hash_of(i), i) == &t[i]);
    EXPECT(!find(&m, hash_of(THINGS), THINGS));
    rl_map_fini(&m);
    free(t);
}

TEST(map, tells_apart_what_has_one_hash)
{
    rl_map m;
    thing *t = make_things();
    EXPECT(rl_map_init(&m, equal));
    for (int i = 0; i < 100; i++)
        rl_map_add(&m, &t[i].node, 7);
    for (int i = 0; i < 100; i += 3)
        rl_map_remove(&m, &t[i].node);
    for (int i = 0; i < 100; i++)
        EXPECT(find(&m, 7, i) == (i % 3 ? &t[i] : NULL));
    rl_map_fini(&m);
    free(t);
}

/* Three in one bucket; the one that is removed is the only one to go. */
static void expect_removed_alone(int which)
{
    rl_map m;
    thing t[3];
    EXPECT(rl_map_init(&m, equal));
    for (int i = 0; i < 3; i++) {
        t[i] = (thing){.key = i};
        rl_map_add(&m, &t[i].node, 7);
    }
    rl_map_remove(&m, &t[which].node);
    EXPECT_INT(m.count, 2);
    for (int i = 0; i < 3; i++)
        EXPECT(find(&m, 7, i) == (i == which ? NULL : &t[i]));
    rl_map_fini(&m);
}

TEST_CASE(map, removes_the_head_of_a_chain, expect_removed_alone(2))
TEST_CASE(map, removes_from_the_middle_of_a_chain, expect_removed_alone(1))
TEST_CASE(map, removes_the_end_of_a_chain, expect_removed_alone(0))

TEST(map, what_was_removed_can_be_added_again)
{
    rl_map m;
    thing t = {.key = 1};
    EXPECT(rl_map_init(&m, equal));
    for (int i = 0; i < 100; i++) {
        rl_map_add(&m, &t.node, hash_of(1));
        EXPECT(find(&m, hash_of(1), 1) == &t);
        rl_map_remove(&m, &t.node);
        EXPECT(!find(&m, hash_of(1), 1));
    }
    EXPECT_INT(m.count, 0);
    rl_map_fini(&m);
}

TEST(map, the_youngest_of_equal_keys_is_found)
{
    rl_map m;
    thing t[2] = {{.key = 1}, {.key = 1}};
    EXPECT(rl_map_init(&m, equal));
    rl_map_add(&m, &t[0].node, 7);
    rl_map_add(&m, &t[1].node, 7);
    EXPECT(find(&m, 7, 1) == &t[1]);
    rl_map_remove(&m, &t[1].node);
    EXPECT(find(&m, 7, 1) == &t[0]);
    rl_map_fini(&m);
}

static void count_one(rl_map_node *n, void *arg)
{
    (void)n;
    ++*(int *)arg;
}

TEST(map, each_of_none_is_none)
{
    rl_map m;
    int calls = 0;
    EXPECT(rl_map_init(&m, equal));
    rl_map_each(&m, count_one, &calls);
    EXPECT_INT(calls, 0);
    rl_map_fini(&m);
}

TEST(map, each_comes_by_once_in_one_bucket)
{
    rl_map m;
    int calls = 0;
    thing *t = make_things();
    EXPECT(rl_map_init(&m, equal));
    for (int i = 0; i < 50; i++)
        rl_map_add(&m, &t[i].node, 7);
    rl_map_each(&m, count_one, &calls);
    EXPECT_INT(calls, 50);
    rl_map_fini(&m);
    free(t);
}

TEST(map, one_key_under_another_hash_is_not_found)
{
    rl_map m;
    thing t = {.key = 1};
    EXPECT(rl_map_init(&m, equal));
    rl_map_add(&m, &t.node, 64);
    EXPECT(!find(&m, 128, 1)); /* the same bucket */
    rl_map_fini(&m);
}

static void count_and_remove(rl_map_node *n, void *arg)
{
    rl_map *m = arg;
    thing *t = RL_CONTAINER(n, thing, node);
    EXPECT(!t->in);
    t->in = true;
    if (t->key % 2)
        rl_map_remove(m, n);
}

TEST(map, each_may_remove_what_it_is_given)
{
    rl_map m;
    thing *t = make_things();
    EXPECT(rl_map_init(&m, equal));
    for (int i = 0; i < THINGS; i++)
        rl_map_add(&m, &t[i].node, hash_of(i));
    rl_map_each(&m, count_and_remove, &m);
    EXPECT_INT(m.count, THINGS / 2);
    for (int i = 0; i < THINGS; i++) {
        EXPECT(t[i].in);
        EXPECT(find(&m, hash_of(i), i) == (i % 2 ? NULL : &t[i]));
    }
    rl_map_fini(&m);
    free(t);
}

TEST(map, agrees_with_a_model)
{
    rl_map m;
    thing *t = make_things();
    size_t count = 0;
    EXPECT(rl_map_init(&m, equal));
    for (int i = 0; i < STEPS; i++) {
        thing *x = &t[draw(THINGS)];
        EXPECT(find(&m, hash_of(x->key), x->key) == (x->in ? x : NULL));
        if (x->in)
            rl_map_remove(&m, &x->node);
        else
            rl_map_add(&m, &x->node, hash_of(x->key));
        x->in = !x->in;
        count += x->in ? 1 : (size_t)-1;
        EXPECT_INT(m.count, count);
    }
    rl_map_fini(&m);
    free(t);
}
