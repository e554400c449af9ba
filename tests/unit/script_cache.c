/* What is remembered of scripts' SHA1s. */
#include "op/script_cache.h"

#include "test.h"

static const char one[RL_SHA1_LEN + 1] =
    "1111111111111111111111111111111111111111";
static const char two[RL_SHA1_LEN + 1] =
    "2222222222222222222222222222222222222222";

static void expect_found(rl_script_cache *s, const char *text, unsigned guards,
                         const char *wanted)
{
    char sha1[RL_SHA1_LEN + 1] = "none";
    bool found = rl_script_cache_find(s, text, strlen(text), guards, sha1);
    EXPECT_STR(found ? sha1 : "none", wanted);
}

TEST(script_cache, finds_what_was_noted_for_these_guards)
{
    rl_script_cache s;
    rl_script_cache_init(&s);
    expect_found(&s, "return 1", 0, "none");
    rl_script_cache_note(&s, "return 1", 8, 0, one);
    rl_script_cache_note(&s, "return 1", 8, 1, two);
    expect_found(&s, "return 1", 0, one);
    expect_found(&s, "return 1", 1, two);
    expect_found(&s, "return 2", 0, "none");
    expect_found(&s, "return ", 0, "none");
    expect_found(&s, "", 0, "none");
    rl_script_cache_fini(&s, false);
}

/* Their places are the same, as only some bytes choose it. */
TEST(script_cache, do_not_mix_up_texts_that_are_nearly_the_same)
{
    char text[1000], other[1000];
    rl_script_cache s;
    rl_script_cache_init(&s);
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    rl_script_cache_note(&s, text, strlen(text), 0, one);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        memcpy(other, text, sizeof other);
        other[i] = 'y';
        expect_found(&s, other, 0, "none");
    }
    expect_found(&s, text, 0, one);
    rl_script_cache_fini(&s, false);
}

TEST(script_cache, do_not_grow)
{
    static char text[RL_CACHED_TEXT + 2];
    int kept = 0;
    rl_script_cache s;
    rl_script_cache_init(&s);
    memset(text, 'x', sizeof text - 1);
    rl_script_cache_note(&s, text, RL_CACHED_TEXT + 1, 0, one);
    expect_found(&s, text, 0, "none");
    for (int i = 0; i < 1000; i++) {
        snprintf(text, sizeof text, "return %d", i);
        rl_script_cache_note(&s, text, strlen(text), 0, one);
        expect_found(&s, text, 0, one);
    }
    for (size_t i = 0; i < RL_CACHED_SCRIPTS; i++)
        kept += s.place[i] != NULL;
    EXPECT_BETWEEN(kept, RL_CACHED_SCRIPTS / 2, RL_CACHED_SCRIPTS);
    rl_script_cache_fini(&s, false);
}
