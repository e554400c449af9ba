/* SipHash-2-4: as published, spread, and with a key that nobody knows. */
#include "base/hash.h"

#include <rlock/client.h>

#include "test.h"

/* The key and the bytes of the paper's appendix: 00 01 02 ... */
static uint64_t published(size_t len)
{
    static const uint64_t key[2] = {UINT64_C(0x0706050403020100),
                                    UINT64_C(0x0f0e0d0c0b0a0908)};
    unsigned char bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    return rl_hash_keyed(key, bytes, len, 0);
}

TEST(hash, is_as_published)
{
    EXPECT(published(0) == UINT64_C(0x726fdb47dd0e0e31));
    EXPECT(published(1) == UINT64_C(0x74f839c593dc67fd));
    EXPECT(published(8) == UINT64_C(0x93f5f5799a932462));
    EXPECT(published(15) == UINT64_C(0xa129ca6149be45e5));
}

TEST(hash, of_no_bytes_depends_on_the_salt)
{
    EXPECT(rl_hash("", 0, 1) != rl_hash("", 0, 2));
    EXPECT(rl_hash("", 0, 1) == rl_hash("x", 0, 1));
}

TEST(hash, depends_on_every_byte_and_the_salt)
{
    char name[64] = {0};
    uint64_t plain = rl_hash(name, sizeof name, 0);
    EXPECT(rl_hash(name, sizeof name, 1) != plain);
    EXPECT(rl_hash(name, sizeof name - 1, 0) != plain);
    for (size_t i = 0; i < sizeof name; i++) {
        name[i] = 1;
        EXPECT(rl_hash(name, sizeof name, 0) != plain);
        name[i] = 0;
    }
}

TEST(hash, depends_on_the_key)
{
    static const uint64_t one[2] = {1, 0}, other[2] = {0, 1};
    EXPECT(rl_hash_keyed(one, "a", 1, 0) != rl_hash_keyed(other, "a", 1, 0));
}

/* Who knew it could choose names that collide. */
TEST(hash, a_program_with_a_client_has_a_key_of_its_own)
{
    rlock_client *cl;
    rlock_options o = RLOCK_OPTIONS_INIT;
    uint64_t before = rl_hash("a", 1, 0);
    o.uri = "unix:///nowhere";
    o.lazy = true;
    EXPECT_INT(rlock_client_new(&o, &cl), RLOCK_OK);
    EXPECT(rl_hash("a", 1, 0) != before);
    rlock_client_free(cl);
}

/* Names that count up must not share a few buckets. */
TEST(hash, spreads_names_that_look_alike)
{
    enum { BUCKETS = 1024 };
    static unsigned char used[BUCKETS];
    int longest = 0;
    for (int i = 0; i < BUCKETS; i++) {
        char name[32];
        int len = snprintf(name, sizeof name, "order:%d", i);
        uint64_t h = rl_hash(name, (size_t)len, 3);
        int now = ++used[h & (BUCKETS - 1)];
        longest = now > longest ? now : longest;
    }
    EXPECT_BETWEEN(longest, 1, 12);
}
