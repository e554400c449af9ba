/* SHA-1: as published, and whichever way the bytes come. */
#include "base/sha1.h"

#include "wire/script.h"

#include "test.h"

static void expect_sum(const char *text, const char *wanted)
{
    rl_sha1 s;
    char sum[RL_SHA1_LEN + 1];
    rl_sha1_begin(&s);
    rl_sha1_add(&s, text, strlen(text));
    rl_sha1_end(&s, sum);
    EXPECT_STR(sum, wanted);
}

TEST_CASE(sha1, of_nothing,
          expect_sum("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"))
TEST_CASE(sha1, is_as_published,
          expect_sum("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"))
TEST_CASE(sha1, is_as_published_for_more_than_a_block,
          expect_sum("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                     "84983e441c3bd26ebaae4aa1f95129e5e54670f1"))

TEST(sha1, of_a_million_bytes_is_as_published)
{
    rl_sha1 s;
    char sum[RL_SHA1_LEN + 1], some[1000];
    memset(some, 'a', sizeof some);
    rl_sha1_begin(&s);
    for (int i = 0; i < 1000; i++)
        rl_sha1_add(&s, some, sizeof some);
    rl_sha1_end(&s, sum);
    EXPECT_STR(sum, "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
}

/* CMake has another one. */
TEST(sha1, is_the_one_that_the_build_works_out_for_every_script)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++)
        expect_sum(rl_scripts[i].body, rl_scripts[i].sha1);
}

TEST(sha1, does_not_depend_on_how_the_bytes_come)
{
    char text[200], whole[RL_SHA1_LEN + 1], parts[RL_SHA1_LEN + 1];
    memset(text, 'x', sizeof text);
    for (size_t len = 0; len < sizeof text; len++) {
        rl_sha1 s, t;
        rl_sha1_begin(&s);
        rl_sha1_add(&s, text, len);
        rl_sha1_end(&s, whole);
        rl_sha1_begin(&t);
        rl_sha1_add(&t, text, len / 3);
        for (size_t i = len / 3; i < len; i++)
            rl_sha1_add(&t, text + i, 1);
        rl_sha1_end(&t, parts);
        EXPECT_STR(parts, whole);
    }
}
