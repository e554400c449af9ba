/* What a message says of a grant, read strictly; and for how long it is good. */
#include "op/grant.h"

#include <sys/mman.h>
#include <unistd.h>

#include "test.h"
#include "wire/keys.h"

#define UUID "6f1e1e0c-5d07-4f36-9a4e-0123456789ab"
#define SEC  INT64_C(1000000)

/* Read where nothing is behind it, nor may be read. */
static bool reads(rl_notice *n, const char *text, size_t len)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *at = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(at != MAP_FAILED && mprotect(at + page, page, PROT_NONE) == 0);
    char *copy = at + page - len;
    memcpy(copy, text, len);
    bool good = rl_notice_read(n, copy, len);
    if (good)
        n->name = text + (n->name - copy);
    munmap(at, 2 * page);
    return good;
}

TEST(notice, says_whose_it_is_and_since_when_and_for_how_long)
{
    static const char text[] = "rlock_grant:" UUID " 1500 77 3000 a b";
    char id[RL_UUID_LEN + 1];
    rl_notice n;
    EXPECT(reads(&n, text, strlen(text)));
    rl_uuid_write(&n.id, id);
    EXPECT_STR(id, UUID);
    EXPECT_INT(n.beat_us, 1500);
    EXPECT_INT(n.token, 77);
    EXPECT_INT(n.claim_ms, 3000);
    EXPECT_INT(n.len, 3); /* a name may have blanks */
    EXPECT(memcmp(n.name, "a b", 3) == 0);
}

TEST(notice, may_have_any_digit_in_any_place_of_its_uuid)
{
    static const char uuid[] = "01234567-89ab-cdef-1032-547698badcfe";
    static const char text[] =
        "rlock_grant:01234567-89ab-cdef-1032-547698badcfe 1 1 1 a";
    char id[RL_UUID_LEN + 1];
    rl_notice n;
    EXPECT(reads(&n, text, strlen(text)));
    rl_uuid_write(&n.id, id);
    EXPECT_STR(id, uuid);
}

TEST(notice, that_is_cut_says_nothing)
{
    static const char text[] = "rlock_grant:" UUID " 1500 77 3000 a";
    rl_notice n;
    for (size_t len = 0; len + 1 < strlen(text); len++)
        EXPECT(!reads(&n, text, len));
}

static void expect_numbers(const char *text, int64_t beat_us, uint64_t token,
                           int64_t claim_ms)
{
    rl_notice n;
    EXPECT(reads(&n, text, strlen(text)));
    EXPECT_INT(n.beat_us, beat_us);
    EXPECT_INT(n.token, token);
    EXPECT_INT(n.claim_ms, claim_ms);
    EXPECT_INT(n.len, 1);
}

#define NUMBERS(name, text, ...)                                               \
    TEST_CASE(notice, name,                                                    \
              expect_numbers("rlock_grant:" UUID text, __VA_ARGS__))

NUMBERS(may_have_the_least_numbers, " 1 1 1 a", 1, 1, 1)
NUMBERS(may_have_the_largest_claim, " 1 1 3000 a", 1, 1, 3000)
NUMBERS(may_have_numbers_of_18_digits,
        " 999999999999999999 999999999999999999 10 a", 999999999999999999,
        999999999999999999, 10)

static void expect_nothing(const char *text)
{
    rl_notice n;
    EXPECT(!reads(&n, text, strlen(text)));
}

#define NOTHING(name, text) TEST_CASE(notice, name, expect_nothing(text))

NOTHING(of_another_kind, "rlock_grand:" UUID " 1 1 1 a")
NOTHING(with_a_uuid_in_capitals,
        "rlock_grant:6F1E1E0C-5d07-4f36-9a4e-0123456789ab 1 1 1 a")
NOTHING(with_a_uuid_that_is_shifted,
        "rlock_grant:6f1e1e0-c5d07-4f36-9a4e-0123456789ab 1 1 1 a")
NOTHING(with_a_uuid_that_has_a_letter_behind_f,
        "rlock_grant:6f1e1e0c-5d07-4f36-9a4e-g123456789ab 1 1 1 a")
NOTHING(with_a_uuid_that_has_a_sign_behind_9,
        "rlock_grant:6f1e1e0c-5d07-4f36-9a4e-:123456789ab 1 1 1 a")
NOTHING(with_a_uuid_that_has_a_sign_before_0,
        "rlock_grant:6f1e1e0c-5d07-4f36-9a4e-/123456789ab 1 1 1 a")
NOTHING(with_a_uuid_that_has_a_sign_before_a,
        "rlock_grant:6f1e1e0c-5d07-4f36-9a4e-`123456789ab 1 1 1 a")
NOTHING(with_the_uuid_of_who_has_not_asked,
        "rlock_grant:00000000-0000-0000-0000-000000000000 1 1 1 a")
NOTHING(with_a_zero, "rlock_grant:" UUID " 0 1 1 a")
NOTHING(with_a_leading_zero, "rlock_grant:" UUID " 1 01 1 a")
NOTHING(with_a_sign, "rlock_grant:" UUID " -1 1 1 a")
NOTHING(with_two_blanks, "rlock_grant:" UUID " 1  1 1 a")
NOTHING(with_too_long_a_number,
        "rlock_grant:" UUID " 1000000000000000000 1 1 a")
NOTHING(with_too_long_a_number_that_could_be_two,
        "rlock_grant:" UUID " 1111111111111111111 1 1 a")
NOTHING(with_too_long_a_token,
        "rlock_grant:" UUID " 10 1000000000000000000 10 a")
NOTHING(with_a_claim_of_ages, "rlock_grant:" UUID " 1 1 1000000000000000000 a")
NOTHING(with_a_claim_that_no_script_makes, "rlock_grant:" UUID " 1 1 3001 a")
NOTHING(with_no_name, "rlock_grant:" UUID " 1 1 1 ")

TEST(notice, of_a_megabyte_says_nothing)
{
    enum { MEGABYTE = 1 << 20 };
    static char text[MEGABYTE] = "rlock_grant:" UUID " 1500 77 3000 ";
    rl_notice n;
    memset(text + strlen(text), 'x', sizeof text - strlen(text));
    EXPECT(!rl_notice_read(&n, text, sizeof text));
}

TEST(notice, that_begins_like_a_grant_is_no_ring)
{
    rl_rooms rooms = {.closed = false};
    char grant[] = "rlock_grant:what", ring[] = "rlock_gran";
    rl_item a = {REDIS_REPLY_STRING, 0, grant, strlen(grant)},
            b = {REDIS_REPLY_STRING, 0, ring, strlen(ring)},
            cut = {REDIS_REPLY_STRING, 0, grant, strlen(ring)};
    EXPECT(rl_rooms_init(&rooms));
    EXPECT(rl_grant_hear(&rooms, &a));
    EXPECT(!rl_grant_hear(&rooms, &b));
    EXPECT(!rl_grant_hear(&rooms, &cut)); /* whatever is behind it */
    rl_rooms_fini(&rooms, false);
}

TEST(notice, is_good_while_a_quarter_of_its_claim_is_left)
{
    EXPECT(rl_claim_is_good(SEC, 3000, SEC));
    EXPECT(rl_claim_is_good(SEC, 3000, 3 * SEC + 218000));
    EXPECT(!rl_claim_is_good(SEC, 3000, 3 * SEC + 218001));
    EXPECT(!rl_claim_is_good(SEC, 3000, 60 * SEC)); /* late, or doubled */
}

/* No clock of ours has said so. */
TEST(notice, from_the_future_is_not_good)
{
    EXPECT(!rl_claim_is_good(SEC + 1, 3000, SEC));
}
