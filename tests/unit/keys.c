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
    expect_key(rl_key_token("a}b", 3), "rlock_token:{a}b}");
}

TEST(keys, a_name_may_hold_any_byte)
{
    rl_key k = rl_key_queue("a\0{", 3);
    EXPECT_INT(k.len, strlen("rlock_queue:") + 3);
    EXPECT(memcmp(k.text + strlen("rlock_queue:"), "a\0{", 3) == 0);
    k = rl_key_queue("\0\r\n", 3);
    EXPECT(memcmp(k.text, "rlock_queue:{\0\r\n}", k.len) == 0);
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
