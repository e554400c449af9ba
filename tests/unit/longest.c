/* The longest lease of late of each name. */
#include "hold/longest.h"

#include <errno.h>

#include "base/clock.h"
#include "collide.h"
#include "shim.h"
#include "test.h"

#define NOW_US INT64_C(1000000000)
#define S      INT64_C(1000000)

static int64_t ms_of(rl_longest *l, const char *name, int64_t now_us)
{
    return rl_longest_ms(l, name, strlen(name), now_us);
}

static void note(rl_longest *l, const char *name, int64_t lease_ms,
                 int64_t now_us)
{
    EXPECT(rl_longest_note(l, name, strlen(name), lease_ms, now_us));
}

TEST(longest, a_name_that_was_never_locked_has_none)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    EXPECT_INT(ms_of(&l, "job", NOW_US), 0);
    rl_longest_fini(&l, false);
}

TEST(longest, the_longest_of_a_name_counts)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    note(&l, "job", 5000, NOW_US);
    note(&l, "job", 9000, NOW_US + 1 * S);
    note(&l, "job", 1000, NOW_US + 2 * S);
    note(&l, "other", 20000, NOW_US + 2 * S);
    EXPECT_INT(ms_of(&l, "job", NOW_US + 3 * S), 9000);
    EXPECT_INT(ms_of(&l, "other", NOW_US + 3 * S), 20000);
    rl_longest_fini(&l, false);
}

TEST(longest, a_name_that_begins_like_another_is_another)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    note(&l, "job", 5000, NOW_US);
    EXPECT_INT(ms_of(&l, "jobs", NOW_US), 0);
    EXPECT_INT(ms_of(&l, "jo", NOW_US), 0);
    rl_longest_fini(&l, false);
}

static void expect_another(const char *name)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    note(&l, "job", 5000, NOW_US);
    collide(&l.map, rl_hash(name, strlen(name), 0));
    EXPECT_INT(ms_of(&l, name, NOW_US), 0);
    rl_longest_fini(&l, false);
}

TEST_CASE(longest, a_name_of_the_same_hash_is_another, expect_another("jot"))
TEST_CASE(longest, what_a_name_begins_with_is_another_though_of_the_same_hash,
          expect_another("jo"))

TEST(longest, is_remembered_for_twice_its_length)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    note(&l, "job", 5000, NOW_US);
    EXPECT_INT(ms_of(&l, "job", NOW_US + 10 * S - 1), 5000);
    EXPECT_INT(ms_of(&l, "job", NOW_US + 10 * S), 0);
    rl_longest_fini(&l, false);
}

TEST(longest, is_remembered_from_when_it_was_last_asked_for)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    note(&l, "job", 5000, NOW_US);
    note(&l, "job", 5000, NOW_US + 9 * S);
    EXPECT_INT(ms_of(&l, "job", NOW_US + 18 * S), 5000);
    rl_longest_fini(&l, false);
}

TEST(longest, a_shorter_one_counts_once_the_longer_is_forgotten)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    note(&l, "job", 5000, NOW_US);
    note(&l, "job", 1000, NOW_US + 10 * S);
    EXPECT_INT(ms_of(&l, "job", NOW_US + 11 * S), 1000);
    rl_longest_fini(&l, false);
}

TEST(longest, an_endless_one_is_never_forgotten)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    note(&l, "job", RL_NEVER / 1000, NOW_US);
    EXPECT_INT(ms_of(&l, "job", RL_NEVER - 1), RL_NEVER / 1000);
    rl_longest_fini(&l, false);
}

TEST(longest, what_is_forgotten_takes_no_room)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    for (int i = 0; i < 5000; i++) {
        char name[20];
        snprintf(name, sizeof name, "job %d", i);
        note(&l, name, 1000, NOW_US + i * S);
    }
    EXPECT(l.map.count < 10);
    rl_longest_fini(&l, false);
}

TEST(longest, says_when_it_cannot_remember)
{
    rl_longest l;
    EXPECT(rl_longest_init(&l));
    shim_fail(shim_here(), SHIM_ALLOC, 1, SHIM_EVER, ENOMEM);
    bool noted = rl_longest_note(&l, "job", 3, 5000, NOW_US);
    shim_clear(shim_here());
    EXPECT(!noted);
    EXPECT_INT(ms_of(&l, "job", NOW_US), 0);
    rl_longest_fini(&l, false);
}
