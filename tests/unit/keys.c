/* Side keys: Redisson's rule, with and without a { in the name. */
#include "wire/keys.h"
#include "test.h"

#define UUID "01234567-89ab-4def-8123-456789abcdef"

static void expect_key(rl_key k, const char *wanted)
{
    EXPECT_INT(k.len, strlen(wanted));
    EXPECT(memcmp(k.text, wanted, k.len) == 0);
}

TEST(keys, a_plain_name_becomes_the_hash_tag)
{
    expect_key(rl_key_token("order:1", 7), "rlock_token:{order:1}");
    expect_key(rl_key_queue("order:1", 7), "rlock_queue:{order:1}");
    expect_key(rl_key_redisson("order:1", 7),
               "redisson_lock__channel:{order:1}");
    expect_key(rl_key_tombstone("order:1", 7, "host:1:2:" UUID),
               "rlock_undone:{order:1}:" UUID);
}

TEST(keys, a_name_with_a_tag_keeps_its_own)
{
    expect_key(rl_key_token("{u1}:a", 6), "rlock_token:{u1}:a");
    expect_key(rl_key_queue("a{u1}", 5), "rlock_queue:a{u1}");
    expect_key(rl_key_redisson("{u1}", 4), "redisson_lock__channel:{u1}");
    expect_key(rl_key_tombstone("{u1}", 4, "host:1:2:" UUID),
               "rlock_undone:{u1}:" UUID);
}

/* Redisson looks for { only, as we must. */
TEST(keys, one_opening_brace_is_enough)
{
    expect_key(rl_key_token("a{b", 3), "rlock_token:a{b");
    expect_key(rl_key_token("{", 1), "rlock_token:{");
    expect_key(rl_key_queue("{", 1), "rlock_queue:{");
    expect_key(rl_key_token("a}b", 3), "rlock_token:{a}b}");
}

/* In a cluster a bell is a channel of the name's slot. */
TEST(keys, a_bell_of_a_cluster_is_the_names)
{
    expect_key(rl_key_bell("order:1", 7, RL_SBELL_PREFIX UUID),
               "rlock_sbell:{order:1}:" UUID);
    expect_key(rl_key_bell("{u1}:a", 6, RL_SBELL_PREFIX UUID),
               "rlock_sbell:{u1}:a:" UUID);
    expect_key(rl_key_bell("order:1", 7, RL_BELL_PREFIX UUID),
               "rlock_bell:" UUID);
}

static void expect_written(void (*put)(rl_bytes *to, const char *name),
                           const char *name, const char *wanted)
{
    rl_bytes to = {0};
    char text[200];
    put(&to, name);
    int len =
        snprintf(text, sizeof text, "$%zu\r\n%s\r\n", strlen(wanted), wanted);
    EXPECT(!to.lacking && to.end - to.begin == (size_t)len &&
           memcmp(to.at + to.begin, text, (size_t)len) == 0);
    rl_bytes_fini(&to);
}

static void put_sharded_bell(rl_bytes *to, const char *name)
{
    rl_put_bell(to, name, strlen(name), RL_SBELL_PREFIX UUID);
}

static void put_bell(rl_bytes *to, const char *name)
{
    rl_put_bell(to, name, strlen(name), RL_BELL_PREFIX UUID);
}

static void put_waits(rl_bytes *to, const char *name)
{
    rl_put_waits_key(to, name, strlen(name));
}

TEST(keys, what_is_written_is_what_is_made)
{
    expect_written(put_sharded_bell, "a", "rlock_sbell:{a}:" UUID);
    expect_written(put_sharded_bell, "{a}b", "rlock_sbell:{a}b:" UUID);
    expect_written(put_bell, "a", "rlock_bell:" UUID);
    expect_written(put_waits, "a", "rlock_undone:{a}:who");
}

static void put_queue(rl_bytes *to, const char *name)
{
    rl_put_queue_key(to, name, strlen(name));
}

static void expect_queue(const char *name, const char *wanted)
{
    expect_key(rl_key_queue(name, strlen(name)), wanted);
    expect_written(put_queue, name, wanted);
}

TEST(keys, each_name_has_a_queue_of_its_own)
{
    expect_queue("a", "rlock_queue:{a}");
    expect_queue("{a}", "rlock_queue:{a}{}");
    expect_queue("{a}{}", "rlock_queue:{a}{}{}");
    expect_queue("{a}{}{}", "rlock_queue:{a}{}{}{}");
    expect_queue("a}b", "rlock_queue:{a}b}");
    expect_queue("{a}b}", "rlock_queue:{a}b}{}");
    expect_queue("{}", "rlock_queue:{}{}");
    expect_queue("{}{}", "rlock_queue:{}{}{}");
    /* Nobody's braces but its own. */
    expect_queue("{a}{b}", "rlock_queue:{a}{b}");
    expect_queue("{{a}", "rlock_queue:{{a}");
    expect_queue("{{a}}", "rlock_queue:{{a}}");
    expect_queue("a{}", "rlock_queue:a{}");
    expect_queue("{a}:1", "rlock_queue:{a}:1");
    expect_queue("}", "rlock_queue:{}}");
}

TEST(keys, a_name_may_hold_any_byte)
{
    rl_key k = rl_key_queue("a\0{", 3);
    EXPECT_INT(k.len, strlen("rlock_queue:") + 3);
    EXPECT(memcmp(k.text + strlen("rlock_queue:"), "a\0{", 3) == 0);
    k = rl_key_queue("\0\r\n", 3);
    EXPECT(memcmp(k.text, "rlock_queue:{\0\r\n}", k.len) == 0);
}

/* Redisson's rule is the same for each kind of key. */
static void expect_keys(const char *name, const char *tagged)
{
    char wanted[200];
    size_t len = strlen(name);
    snprintf(wanted, sizeof wanted, "rlock_token:%s", tagged);
    expect_key(rl_key_token(name, len), wanted);
    snprintf(wanted, sizeof wanted, "rlock_queue:%s", tagged);
    expect_key(rl_key_queue(name, len), wanted);
    snprintf(wanted, sizeof wanted, "redisson_lock__channel:%s", tagged);
    expect_key(rl_key_redisson(name, len), wanted);
    snprintf(wanted, sizeof wanted, "rlock_undone:%s:" UUID, tagged);
    expect_key(rl_key_tombstone(name, len, "h:1:2:" UUID), wanted);
}

#define NAME(place, name, tagged)                                              \
    TEST_CASE(keys, a_name_##place, expect_keys(name, tagged))

NAME(of_one_byte, "n", "{n}")
NAME(with_blanks, "a b", "{a b}")
NAME(with_colons, "a:b:c", "{a:b:c}")
NAME(with_an_empty_tag, "{}a", "{}a")
NAME(with_two_tags, "{a}{b}", "{a}{b}")
NAME(with_a_brace_at_the_end, "a{", "a{")
NAME(with_closing_braces_only, "}}", "{}}}")

/* A holder's host may be of any length; its last characters are the uuid. */
TEST(keys, a_tombstone_takes_the_uuid_from_the_end_of_any_holder)
{
    expect_key(rl_key_tombstone("n", 1, UUID), "rlock_undone:{n}:" UUID);
    expect_key(rl_key_tombstone("n", 1, "a-long-host.example.org:99:100:" UUID),
               "rlock_undone:{n}:" UUID);
}

TEST(keys, the_longest_name_fits)
{
    char name[RLOCK_NAME_MAX];
    memset(name, 'n', sizeof name);
    rl_key k = rl_key_tombstone(name, sizeof name, UUID);
    EXPECT(k.len <= sizeof k.text);
    EXPECT_INT(k.len, strlen("rlock_undone:{}:") + sizeof name + strlen(UUID));
    EXPECT(memcmp(k.text + k.len - strlen(UUID), UUID, strlen(UUID)) == 0);
    EXPECT(rl_key_redisson(name, sizeof name).len <= sizeof k.text);
}

static void expect_reserved(const char *name, const char *prefix)
{
    const char *found = rl_name_reserved(name, strlen(name));
    EXPECT_STR(found ? found : "", prefix);
}

TEST(keys, names_of_the_librarys_own_are_reserved)
{
    expect_reserved("rlock_token:{a}", "rlock_token:");
    expect_reserved("rlock_queue:", "rlock_queue:");
    expect_reserved("rlock_undone:x", "rlock_undone:");
    expect_reserved("rlock_bell:x", "rlock_bell:");
    expect_reserved("rlock_probe:x", "rlock_probe:");
    expect_reserved("redisson_lock__channel:{a}", "redisson_lock__channel:");
    expect_reserved("rlock_token", "");
    expect_reserved("my:rlock_token:", "");
    expect_reserved("Rlock_token:", "");
    expect_reserved("a", "");
}
