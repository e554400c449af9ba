/* Side keys: Redisson's rule, with and without a { in the name. */
#include "wire/keys.h"

#include <errno.h>

#include "shim.h"
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

/* Redisson writes that of a latch by another rule: braces around any name. */
TEST(keys, the_channel_of_a_latch_has_its_name_in_braces)
{
    expect_key(rl_key_redisson_latch("a", 1),
               "redisson_countdownlatch__channel__{a}");
    expect_key(rl_key_redisson_latch("{a}b", 4),
               "redisson_countdownlatch__channel__{{a}b}");
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

static void put_token(rl_bytes *to, const char *name)
{
    rl_put_token_key(to, name, strlen(name));
}

static void put_tombstone(rl_bytes *to, const char *name)
{
    rl_put_tombstone_key(to, name, strlen(name), "host:1:2:" UUID);
}

static void put_channel(rl_bytes *to, const char *name)
{
    rl_put_redisson_channel(to, name, strlen(name));
}

TEST(keys, what_is_written_is_what_is_made)
{
    expect_written(put_token, "a", "rlock_token:{a}");
    expect_written(put_token, "{a}b", "rlock_token:{a}b");
    expect_written(put_tombstone, "a", "rlock_undone:{a}:" UUID);
    expect_written(put_tombstone, "{a}b", "rlock_undone:{a}b:" UUID);
    expect_written(put_channel, "a", "redisson_lock__channel:{a}");
    expect_written(put_channel, "{a}b", "redisson_lock__channel:{a}b");
    expect_written(put_sharded_bell, "a", "rlock_sbell:{a}:" UUID);
    expect_written(put_sharded_bell, "{a}b", "rlock_sbell:{a}b:" UUID);
    expect_written(put_bell, "a", "rlock_bell:" UUID);
    expect_written(put_waits, "a", "rlock_undone:{a}:who");
    expect_written(put_waits, "{a}", "rlock_undone:{a}{}:who");
    expect_written(put_waits, "{a}{}", "rlock_undone:{a}{}{}:who");
    expect_written(put_waits, "{a}b", "rlock_undone:{a}b:who");
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

TEST(keys, each_name_has_a_line_of_its_own)
{
    expect_key(rl_key_line("a", 1), "rlock_line:{a}");
    expect_key(rl_key_line("{a}", 3), "rlock_line:{a}{}");
    expect_key(rl_key_wants("a", 1), "rlock_wants:{a}");
    expect_key(rl_key_wants("{a}", 3), "rlock_wants:{a}{}");
}

static void put_line(rl_bytes *to, const char *name)
{
    rl_put_line_keys(to, name, strlen(name));
}

static void put_permits(rl_bytes *to, const char *name)
{
    rl_put_permits_key(to, name, strlen(name));
}

/* Another rule of Redisson's, by which "a" and "{a}" have the same, too. */
TEST(keys, who_has_permits_is_behind_the_name)
{
    expect_written(put_permits, "a", "{a}:timeout");
    expect_written(put_permits, "a}b", "{a}b}:timeout");
    expect_written(put_permits, "{a}b", "{a}b:timeout");
    expect_written(put_permits, "a{b", "a{b:timeout");
    expect_key(rl_key_redisson_semaphore("a", 1), "redisson_sc:{a}");
    expect_key(rl_key_redisson_semaphore("{a}b", 4), "redisson_sc:{a}b");
}

static void expect_braces(const char *name, bool wanted)
{
    EXPECT(rl_name_is_in_braces(name, strlen(name)) == wanted);
}

TEST(keys, a_name_in_braces_as_a_whole_is_known)
{
    expect_braces("{a}", true);
    expect_braces("{a}{}", true);
    expect_braces("{a}b", false);
    expect_braces("a", false);
    expect_braces("{a}{b}", false);
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
    expect_reserved("rlock_line:{a}", "rlock_line:");
    expect_reserved("rlock_wants:{a}", "rlock_wants:");
    expect_reserved("rlock_grant:x", "rlock_grant:");
    expect_reserved("rlock_undone:x", "rlock_undone:");
    expect_reserved("rlock_bell:x", "rlock_bell:");
    expect_reserved("rlock_probe:x", "rlock_probe:");
    expect_reserved("redisson_lock__channel:{a}", "redisson_lock__channel:");
    expect_reserved("redisson_sc:{a}", "redisson_sc:");
    expect_reserved("rlock_token", "");
    expect_reserved("my:rlock_token:", "");
    expect_reserved("Rlock_token:", "");
    expect_reserved("a", "");
}

static void expect_lacking(void (*put)(rl_bytes *to, const char *name),
                           const char *name)
{
    rl_bytes to = {0};
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    put(&to, name);
    shim_clear(shim_here());
    EXPECT(to.lacking && rl_bytes_left(&to) == 0);
    rl_bytes_fini(&to);
}

TEST(keys, without_memory_none_is_written)
{
    expect_lacking(put_token, "a");
    expect_lacking(put_queue, "a");
    expect_lacking(put_queue, "{a}");
    expect_lacking(put_line, "a");
    expect_lacking(put_tombstone, "a");
    expect_lacking(put_permits, "a");
    expect_lacking(put_waits, "a");
    expect_lacking(put_channel, "a");
    expect_lacking(put_bell, "a");
    expect_lacking(put_sharded_bell, "a");
}

/* --- and back: whose queue is it? ------------------------------------------ */

static void expect_read(const char *key, size_t len, const char *wanted)
{
    const char *name = NULL;
    size_t name_len = 0;
    EXPECT(rl_key_read_queue(key, len, &name, &name_len));
    EXPECT_INT(name_len, strlen(wanted));
    EXPECT(memcmp(name, wanted, name_len) == 0);
}

static void expect_none(const char *key)
{
    const char *name;
    size_t name_len;
    EXPECT(!rl_key_read_queue(key, strlen(key), &name, &name_len));
}

/* Behind a key there may be anything. */
static void read_queue(const char *name)
{
    rl_key k = rl_key_queue(name, strlen(name));
    char key[sizeof k.text + 1];
    for (const char *behind = "}{x"; *behind; behind++) {
        memcpy(key, k.text, k.len);
        key[k.len] = *behind;
        expect_read(key, k.len, name);
    }
}

TEST_CASE(keys, the_queue_of_a_name_is_read, read_queue("a"))
TEST_CASE(keys, the_queue_of_one_in_braces_is_read, read_queue("{a}"))
TEST_CASE(keys, the_queue_of_one_with_an_empty_tag_is_read, read_queue("{a}{}"))
TEST_CASE(keys, the_queue_of_two_braces_is_read, read_queue("{}"))
TEST_CASE(keys, the_queue_of_one_with_a_tag_is_read, read_queue("a{b}c"))
TEST_CASE(keys, what_is_no_queue_is_not_read, expect_none("rlock_token:{a}"))
TEST_CASE(keys, the_queue_of_nothing_is_not_read, expect_none("rlock_queue:"))
TEST_CASE(keys, the_queue_of_an_empty_name_is_not_read,
          expect_none("rlock_queue:{}"))
TEST_CASE(keys, the_queue_of_a_reserved_name_is_not_read,
          expect_none("rlock_queue:{rlock_bell:a}"))

/* As somebody else may have made it. */
static void read_long(size_t len, bool found)
{
    char key[RLOCK_NAME_MAX + 100] = "rlock_queue:{";
    const char *name;
    size_t name_len;
    size_t begin = strlen(key);
    memset(key + begin, 'n', len);
    key[begin + len] = '}';
    EXPECT_INT(rl_key_read_queue(key, begin + len + 1, &name, &name_len),
               found);
}

TEST_CASE(keys, the_queue_of_the_longest_name_is_read,
          read_long(RLOCK_NAME_MAX, true))
TEST_CASE(keys, the_queue_of_a_longer_name_is_not_read,
          read_long(RLOCK_NAME_MAX + 1, false))
