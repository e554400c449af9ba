/* Calls of scripts as they are written, and the table of the scripts. */
#include "wire/script.h"

#include <ctype.h>

#include "test.h"

static void expect_bytes(rl_bytes *b, const char *wanted)
{
    EXPECT(!b->lacking);
    EXPECT_INT(rl_bytes_left(b), strlen(wanted));
    EXPECT(memcmp(b->at + b->begin, wanted, strlen(wanted)) == 0);
    rl_bytes_fini(b);
}

TEST(script, a_call_begins_with_the_scripts_sum)
{
    char wanted[100];
    rl_bytes b = {0};
    rl_put_call(&b, RL_SCRIPT_HASH_RENEW, false, 1, 2);
    snprintf(wanted, sizeof wanted,
             "*6\r\n$7\r\nEVALSHA\r\n$40\r\n%s\r\n$1\r\n1\r\n",
             rl_scripts[RL_SCRIPT_HASH_RENEW].sha1);
    expect_bytes(&b, wanted);
}

TEST(script, a_call_to_a_server_that_lacks_it_has_the_text)
{
    static char wanted[20000];
    const rl_script *s = &rl_scripts[RL_SCRIPT_HASH_RENEW];
    rl_bytes b = {0};
    rl_put_call(&b, RL_SCRIPT_HASH_RENEW, true, 1, 2);
    snprintf(wanted, sizeof wanted,
             "*6\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n1\r\n", s->len, s->body);
    expect_bytes(&b, wanted);
}

static void expect_numbers(int keys, int args, const char *words,
                           const char *count)
{
    rl_bytes b = {0};
    rl_put_call(&b, RL_SCRIPT_PROBE, false, keys, args);
    EXPECT(memcmp(b.at, words, strlen(words)) == 0);
    size_t len = strlen(count);
    EXPECT(memcmp(b.at + b.end - len, count, len) == 0);
    rl_bytes_fini(&b);
}

TEST_CASE(script, a_call_without_keys_says_so,
          expect_numbers(0, 0, "*3\r\n", "\r\n$1\r\n0\r\n"))
TEST_CASE(script, a_call_counts_its_keys_and_words,
          expect_numbers(4, 6, "*13\r\n", "\r\n$1\r\n4\r\n"))

TEST(script, every_script_has_a_name_a_text_and_a_sum)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++) {
        const rl_script *s = &rl_scripts[i];
        EXPECT(s->name && *s->name);
        EXPECT_INT(s->len, strlen(s->body));
        EXPECT_INT(strlen(s->sha1), 40);
        for (const char *at = s->sha1; *at; at++)
            EXPECT(isxdigit((unsigned char)*at) && !isupper(*at));
    }
}

TEST(script, no_two_scripts_have_one_sum)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++) {
        for (int k = 0; k < i; k++)
            EXPECT(strcmp(rl_scripts[i].sha1, rl_scripts[k].sha1) != 0);
    }
}

/* What a script includes is in its text: a server includes nothing. */
TEST(script, no_text_has_an_include_left)
{
    for (int i = 0; i < RL_SCRIPT_COUNT; i++)
        EXPECT(!strstr(rl_scripts[i].body, "include:"));
}

static void expect_name(rl_script_id id, const char *layout, const char *verb)
{
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s/%s", layout, verb);
    EXPECT_STR(rl_scripts[id].name, wanted);
}

static void expect_layout(rlock_layout layout, const char *name)
{
    const rl_layout *l = &rl_layouts[layout];
    expect_name(l->acquire, name, "acquire");
    expect_name(l->release, name, "release");
    expect_name(l->renew, name, "renew");
    expect_name(l->renew_many, name, "renew_many");
    expect_name(l->extend, name, "extend");
    expect_name(l->force_release, name, "force_release");
    expect_name(l->inspect, name, "inspect");
    if (layout == RLOCK_LAYOUT_TIMESTAMP) {
        EXPECT(l->take_many == RL_SCRIPT_COUNT);
        EXPECT(l->free_many == RL_SCRIPT_COUNT);
        return;
    }
    expect_name(l->take_many, name, "take_many");
    expect_name(l->free_many, name, "free_many");
}

TEST_CASE(script, the_hash_layout_has_its_scripts,
          expect_layout(RLOCK_LAYOUT_HASH, "hash"))
TEST_CASE(script, the_string_layout_has_its_scripts,
          expect_layout(RLOCK_LAYOUT_STRING, "string"))
TEST_CASE(script, the_timestamp_layout_has_its_scripts,
          expect_layout(RLOCK_LAYOUT_TIMESTAMP, "timestamp"))

/* What a server answers is checked against this. */
TEST(script, every_script_answers_numbers_arrays_or_texts)
{
    const unsigned all = RL_REPLY_BIT(REDIS_REPLY_INTEGER) |
                         RL_REPLY_BIT(REDIS_REPLY_ARRAY) |
                         RL_REPLY_BIT(REDIS_REPLY_STRING);
    for (int i = 0; i < RL_SCRIPT_COUNT; i++)
        EXPECT(rl_scripts[i].replies != 0 && !(rl_scripts[i].replies & ~all));
}
