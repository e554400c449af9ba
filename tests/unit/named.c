/* Which names have bytes of their own. */
#include "base/named.h"

#include "test.h"

static rl_named_one *named(rl_named *t, const char *name)
{
    return rl_named_of(t, name, strlen(name));
}

static bool is_named(rl_named *t, const char *name)
{
    return named(t, name) != rl_named_first(t);
}

/* How many there are, with the others'. */
static size_t count(const rl_named *t)
{
    size_t n = 0;
    for (const rl_named_one *x = rl_named_first(t); x; x = x->next)
        n++;
    return n;
}

TEST(named, each_name_has_its_own_and_keeps_them)
{
    rl_named *t = rl_named_new(10, sizeof(atomic_int));
    rl_named_one *a = named(t, "a"), *ab = named(t, "ab");
    EXPECT(a != ab && is_named(t, "a") && is_named(t, "ab"));
    EXPECT(named(t, "a") == a && named(t, "ab") == ab);
    EXPECT(a->len == 1 && a->name[0] == 'a');
    EXPECT_INT(count(t), 3);
    rl_named_free(t, false);
}

TEST(named, those_that_come_first_are_told_in_their_order)
{
    char name[16];
    rl_named *t = rl_named_new(100, sizeof(atomic_int));
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof name, "job%d", i);
        EXPECT(is_named(t, name) == (i < 100));
    }
    const rl_named_one *x = rl_named_first(t);
    for (int i = 0; i < 100; i++) {
        x = x->next;
        size_t len = (size_t)snprintf(name, sizeof name, "job%d", i);
        EXPECT(x->len == len && memcmp(x->name, name, len) == 0);
        EXPECT(named(t, name) == x);
    }
    EXPECT(!x->next);
    rl_named_free(t, false);
}

TEST(named, one_place_is_a_place)
{
    rl_named *t = rl_named_new(1, sizeof(atomic_int));
    EXPECT(is_named(t, "a") && !is_named(t, "b") && is_named(t, "a"));
    rl_named_free(t, false);
}

/* Its label would be the same. */
TEST(named, a_lock_that_is_called_other_is_one_of_the_others)
{
    rl_named *t = rl_named_new(10, sizeof(atomic_int));
    EXPECT(!is_named(t, "other") && is_named(t, "others"));
    EXPECT_INT(count(t), 2);
    rl_named_free(t, false);
}

TEST(named, what_is_no_utf8_is_one_of_the_others)
{
    rl_named *t = rl_named_new(10, sizeof(atomic_int));
    EXPECT(!is_named(t, "a\xff") && !is_named(t, "a\xfe"));
    EXPECT(rl_named_of(t, "a\0b", 3) == rl_named_first(t));
    EXPECT(is_named(t, "a\xef\xbf\xbd") && is_named(t, "\xf0\x9f\x94\x92"));
    EXPECT_INT(count(t), 3);
    rl_named_free(t, false);
}

enum { THREADS = 4, NAMES = 64, PLACES = 40, ROUNDS = 50 };

static atomic_int *counter(const rl_named_one *x)
{
    return x->bytes;
}

static intptr_t count_all(void *arg)
{
    char name[16];
    for (int i = 0; i < ROUNDS * NAMES; i++) {
        snprintf(name, sizeof name, "job%d", i % NAMES);
        atomic_fetch_add(counter(named(arg, name)), 1);
    }
    return 0;
}

TEST(named, no_thread_counts_for_another_name)
{
    test_thread *t[THREADS];
    rl_named *of = rl_named_new(PLACES, sizeof(atomic_int));
    for (int i = 0; i < THREADS; i++)
        t[i] = test_spawn(count_all, of);
    for (int i = 0; i < THREADS; i++)
        EXPECT_INT(test_join(t[i]), 0);
    const rl_named_one *x = rl_named_first(of);
    EXPECT_INT(*counter(x), THREADS * ROUNDS * (NAMES - PLACES));
    EXPECT_INT(count(of), 1 + PLACES);
    while ((x = x->next) != NULL)
        EXPECT_INT(*counter(x), THREADS * ROUNDS);
    rl_named_free(of, false);
}
