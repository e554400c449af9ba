#include "wire/hash_slot.h"

#include <string.h>

#include "../support/test.h"

static unsigned slot(const char *key)
{
    return rl_hash_slot(key, strlen(key));
}

static bool fits(const char *name)
{
    return rl_hash_slot_fits(name, strlen(name));
}

/* What CLUSTER KEYSLOT says of them. */
TEST(hash_slot, is_the_one_that_redis_takes)
{
    EXPECT_INT(slot("123456789"), 12739);
    EXPECT_INT(slot("foo"), 12182);
    EXPECT_INT(slot(""), 0);
    EXPECT_INT(slot("job"), slot("{job}"));
}

TEST(hash_slot, is_that_of_what_stands_in_the_first_braces)
{
    EXPECT_INT(slot("{user1000}.following"), slot("user1000"));
    EXPECT_INT(slot("foo{bar}{zap}"), slot("bar"));
    EXPECT_INT(slot("foo{{bar}}zap"), slot("{bar"));
}

TEST(hash_slot, is_that_of_all_if_nothing_stands_there)
{
    EXPECT(slot("foo{}{bar}") != slot("bar"));
    EXPECT(slot("{}x") != slot("x"));
    EXPECT(slot("a{b") != slot("b"));
}

TEST(hash_slot, names_without_braces_or_with_a_tag_have_their_keys_together)
{
    EXPECT(fits("job") && fits("{job}") && fits("a{b}c") && fits("{{a}}"));
    EXPECT(fits("{a}{b}") && fits("x:y/z") && fits("{a}{}"));
}

/* Fault 36b: the server would refuse every call, on whichever node. */
TEST(hash_slot, names_with_braces_that_are_no_tag_have_not)
{
    EXPECT(!fits("{}x") && !fits("x{}y") && !fits("a{b") && !fits("b}"));
    EXPECT(!fits("a}b") && !fits("}") && !fits("a{}b{c}"));
}
