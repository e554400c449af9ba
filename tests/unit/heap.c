/* The heap of due times, against a plain list that is searched. */
#include "base/heap.h"
#include "test.h"

enum { NODES = 300, STEPS = 20000 };

static uint64_t rng = 88172645463325252u;

static uint64_t draw(uint64_t below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return rng % below;
}

static void reserve_and_set(rl_heap *h, rl_heap_node *n, int64_t due_us)
{
    EXPECT(rl_heap_reserve(h));
    rl_heap_set(h, n, due_us);
}

static void forget(rl_heap *h, rl_heap_node *n)
{
    rl_heap_remove(h, n);
    rl_heap_unreserve(h);
}

/* Takes the first node out and returns its time. */
static int64_t pop(rl_heap *h)
{
    rl_heap_node *n = rl_heap_first(h);
    EXPECT(n);
    forget(h, n);
    return n->due_us;
}

TEST(heap, is_empty_at_first)
{
    rl_heap h = {0};
    EXPECT(!rl_heap_first(&h));
    rl_heap_fini(&h);
}

TEST(heap, gives_the_earliest_first)
{
    rl_heap h = {0};
    rl_heap_node n[NODES] = {0};
    for (int i = 0; i < NODES; i++)
        reserve_and_set(&h, &n[i], (int64_t)draw(100) - 50);
    int64_t last = INT64_MIN;
    for (int i = 0; i < NODES; i++) {
        int64_t due = pop(&h);
        EXPECT(due >= last);
        last = due;
    }
    EXPECT(!rl_heap_first(&h));
    rl_heap_fini(&h);
}

TEST(heap, orders_the_ends_of_time)
{
    rl_heap h = {0};
    rl_heap_node n[3] = {0};
    reserve_and_set(&h, &n[0], INT64_MAX);
    reserve_and_set(&h, &n[1], INT64_MIN);
    reserve_and_set(&h, &n[2], 0);
    EXPECT(pop(&h) == INT64_MIN);
    EXPECT(pop(&h) == 0);
    EXPECT(pop(&h) == INT64_MAX);
    rl_heap_fini(&h);
}

TEST(heap, moves_a_node_that_is_set_again)
{
    rl_heap h = {0};
    rl_heap_node n[3] = {0};
    for (int i = 0; i < 3; i++)
        reserve_and_set(&h, &n[i], 10 * (i + 1));
    rl_heap_set(&h, &n[2], 5);
    EXPECT(rl_heap_first(&h) == &n[2]);
    rl_heap_set(&h, &n[2], 15);
    EXPECT(rl_heap_first(&h) == &n[0]);
    EXPECT_INT(h.count, 3);
    rl_heap_fini(&h);
}

TEST(heap, removes_from_the_middle)
{
    rl_heap h = {0};
    rl_heap_node n[5] = {0};
    for (int i = 0; i < 5; i++)
        reserve_and_set(&h, &n[i], i);
    forget(&h, &n[1]);
    EXPECT_INT(n[1].at, 0);
    for (int i = 0; i < 5; i++) {
        if (i != 1)
            EXPECT_INT(pop(&h), i);
    }
    rl_heap_fini(&h);
}

TEST(heap, removing_what_is_not_in_it_has_no_effect)
{
    rl_heap h = {0};
    rl_heap_node in = {0}, out = {0};
    reserve_and_set(&h, &in, 1);
    rl_heap_remove(&h, &out);
    EXPECT_INT(h.count, 1);
    EXPECT(rl_heap_first(&h) == &in);
    rl_heap_fini(&h);
}

TEST(heap, has_room_for_all_that_was_reserved)
{
    rl_heap h = {0};
    rl_heap_node n[NODES] = {0};
    for (int i = 0; i < NODES; i++)
        EXPECT(rl_heap_reserve(&h));
    rl_heap_node **nodes = h.nodes;
    EXPECT(h.room >= NODES);
    for (int i = 0; i < NODES; i++)
        rl_heap_set(&h, &n[i], -i);
    EXPECT(h.nodes == nodes);
    EXPECT_INT(h.count, NODES);
    rl_heap_fini(&h);
}

TEST(heap, a_reservation_given_back_is_used_again)
{
    rl_heap h = {0};
    EXPECT(rl_heap_reserve(&h));
    size_t room = h.room;
    for (int i = 0; i < 1000; i++) {
        rl_heap_unreserve(&h);
        EXPECT(rl_heap_reserve(&h));
    }
    EXPECT_INT(h.room, room);
    rl_heap_fini(&h);
}

TEST(heap, one_node_comes_and_goes)
{
    rl_heap h = {0};
    rl_heap_node n = {0};
    for (int i = 0; i < 100; i++) {
        reserve_and_set(&h, &n, i);
        EXPECT(rl_heap_first(&h) == &n);
        EXPECT_INT(pop(&h), i);
        EXPECT(!rl_heap_first(&h));
    }
    rl_heap_fini(&h);
}

TEST(heap, what_is_due_at_one_time_comes_all)
{
    rl_heap h = {0};
    rl_heap_node n[NODES] = {0};
    for (int i = 0; i < NODES; i++)
        reserve_and_set(&h, &n[i], 7);
    for (int i = 0; i < NODES; i++)
        EXPECT_INT(pop(&h), 7);
    for (int i = 0; i < NODES; i++)
        EXPECT_INT(n[i].at, 0);
    rl_heap_fini(&h);
}

TEST(heap, a_node_set_to_its_own_time_stays)
{
    rl_heap h = {0};
    rl_heap_node n[3] = {0};
    for (int i = 0; i < 3; i++)
        reserve_and_set(&h, &n[i], i);
    rl_heap_set(&h, &n[1], 1);
    EXPECT_INT(h.count, 3);
    for (int i = 0; i < 3; i++)
        EXPECT_INT(pop(&h), i);
    rl_heap_fini(&h);
}

TEST(heap, the_first_may_become_the_last)
{
    rl_heap h = {0};
    rl_heap_node n[5] = {0};
    for (int i = 0; i < 5; i++)
        reserve_and_set(&h, &n[i], i);
    rl_heap_set(&h, &n[0], 100);
    for (int i = 1; i < 5; i++)
        EXPECT_INT(pop(&h), i);
    EXPECT_INT(pop(&h), 100);
    rl_heap_fini(&h);
}

TEST(heap, removes_the_first_and_the_last)
{
    rl_heap h = {0};
    rl_heap_node n[5] = {0};
    for (int i = 0; i < 5; i++)
        reserve_and_set(&h, &n[i], i);
    forget(&h, &n[0]);
    forget(&h, &n[4]);
    for (int i = 1; i < 4; i++)
        EXPECT_INT(pop(&h), i);
    rl_heap_fini(&h);
}

TEST(heap, removing_twice_is_removing_once)
{
    rl_heap h = {0};
    rl_heap_node n[2] = {0};
    reserve_and_set(&h, &n[0], 1);
    reserve_and_set(&h, &n[1], 2);
    rl_heap_remove(&h, &n[0]);
    rl_heap_remove(&h, &n[0]);
    EXPECT_INT(h.count, 1);
    EXPECT(rl_heap_first(&h) == &n[1]);
    rl_heap_fini(&h);
}

TEST(heap, can_be_used_again_after_its_end)
{
    rl_heap h = {0};
    rl_heap_node n = {0};
    reserve_and_set(&h, &n, 1);
    forget(&h, &n);
    rl_heap_fini(&h);
    reserve_and_set(&h, &n, 2);
    EXPECT_INT(pop(&h), 2);
    rl_heap_fini(&h);
}

/* The model: due times by index; NONE: not in the heap. */
#define NONE INT64_MAX

static void check(const rl_heap *h, const rl_heap_node *n, const int64_t *due)
{
    int64_t least = NONE;
    size_t count = 0;
    for (int i = 0; i < NODES; i++) {
        EXPECT((n[i].at != 0) == (due[i] != NONE));
        if (due[i] == NONE)
            continue;
        EXPECT(n[i].due_us == due[i]);
        EXPECT(h->nodes[n[i].at - 1] == &n[i]);
        least = due[i] < least ? due[i] : least;
        count++;
    }
    EXPECT_INT(h->count, count);
    const rl_heap_node *first = rl_heap_first(h);
    EXPECT(first ? first->due_us == least : count == 0);
}

static void step(rl_heap *h, rl_heap_node *n, int64_t *due)
{
    int i = (int)draw(NODES);
    if (draw(3) == 0) {
        rl_heap_remove(h, &n[i]);
        due[i] = NONE;
    } else {
        due[i] = (int64_t)draw(1000);
        rl_heap_set(h, &n[i], due[i]);
    }
}

TEST(heap, agrees_with_a_model)
{
    rl_heap h = {0};
    rl_heap_node n[NODES] = {0};
    int64_t due[NODES];
    for (int i = 0; i < NODES; i++) {
        due[i] = NONE;
        EXPECT(rl_heap_reserve(&h));
    }
    for (int i = 0; i < STEPS; i++) {
        step(&h, n, due);
        if (i % 16 == 0)
            check(&h, n, due);
    }
    rl_heap_fini(&h);
}

TEST(heap, room_that_was_needed_once_can_be_given_back)
{
    static rl_heap_node n[NODES];
    rl_heap h = {0};
    for (int i = 0; i < NODES; i++)
        reserve_and_set(&h, &n[i], NODES - i);
    size_t most = h.room;
    rl_heap_trim(&h);
    EXPECT_INT(h.room, most);
    for (int i = 10; i < NODES; i++)
        forget(&h, &n[i]);
    rl_heap_trim(&h);
    EXPECT(h.room < most && h.room >= 10);
    for (int i = 9; i >= 0; i--)
        EXPECT_INT(pop(&h), NODES - i);
    rl_heap_fini(&h);
}
