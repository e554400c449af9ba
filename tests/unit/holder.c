/* Who has a lock, in words, as the answers of acquire and leave tell. */
#include "op/verb_query.h"
#include "test.h"

#define UUID "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c52"

static const char *text_of(const char *who, long long ms)
{
    static rl_fault f;
    rl_item told[] = {
        {.type = REDIS_REPLY_STRING, .str = who, .len = strlen(who)},
        {.type = REDIS_REPLY_INTEGER, .integer = ms}};
    rl_fault_busy(&f, told, 2);
    EXPECT_INT(f.status, RLOCK_BUSY);
    EXPECT_INT(f.sys_errno, 0);
    return f.text;
}

#define SAYS(name, who, ms, says)                                              \
    TEST(holder, name)                                                         \
    {                                                                          \
        EXPECT_STR(text_of(who, ms), says);                                    \
    }

SAYS(a_thread_is_told_without_its_uuid, "web3:18201:18207:" UUID, 2345,
     "held by web3:18201:18207 for 2.3 s")
SAYS(an_owner_is_told_by_its_label, "web3:18201:18207/job-7:" UUID, 12,
     "held by web3:18201:18207/job-7 for 0.0 s")
SAYS(since_when_may_be_unknown, "web3:18201:18207:" UUID, -1,
     "held by web3:18201:18207")
SAYS(another_program_is_told_as_it_calls_itself, UUID ":117", -1,
     "held by " UUID ":117")
SAYS(what_is_no_text_is_made_one, "a\nb\x1b[2J:1:2:" UUID, -1,
     "held by a\\x0ab\\x1b[2J:1:2")
SAYS(nobody_known_is_another, "", -1, "held by another")

TEST(holder, one_that_is_not_told_is_another)
{
    rl_fault f;
    rl_fault_busy(&f, NULL, 0);
    EXPECT_STR(f.text, "held by another");
}

TEST(holder, a_long_one_leaves_room_for_the_rest)
{
    char who[500];
    memset(who, 'x', sizeof who - 1);
    who[sizeof who - 1] = '\0';
    EXPECT(strlen(text_of(who, 1000)) < 150);
    EXPECT_CONTAINS(text_of(who, 1000), " for 1.0 s");
}

/* --- which hold it is ----------------------------------------------------- */

static void expect_same(const char *a, const char *b, bool same)
{
    rlock_holder one = {0}, other = {0};
    snprintf(one.raw, sizeof one.raw, "%s", a);
    snprintf(other.raw, sizeof other.raw, "%s", b);
    rl_parse_holder(&one);
    rl_parse_holder(&other);
    EXPECT_INT(rl_is_same_hold(&one, &other), same);
    EXPECT_INT(rl_is_same_hold(&other, &one), same);
}

#define IS(name, a, b, same) TEST_CASE(holder, name, expect_same(a, b, same))
#define NEXT_UUID            "1f2f9e64-6f0c-4f0e-a1f5-7a8f5a0d3c53"

IS(the_same_hold_is_the_same, "web3:1:2:" UUID, "web3:1:2:" UUID, true)
IS(of_a_host_with_two_names_it_is_the_same_hold, "web3:1:2:" UUID,
   "10.0.0.3:1:2:" UUID, true)
IS(an_owners_next_hold_is_another, "web3:1:2:" UUID, "web3:1:2:" NEXT_UUID,
   false)
IS(another_programs_is_the_same_by_all_it_says, UUID ":117", UUID ":117", true)
IS(another_programs_next_hold_is_another, UUID ":117", UUID ":118", false)
IS(ours_is_not_another_programs, "web3:1:2:" UUID, UUID ":117", false)

/* --- what people say a hold by -------------------------------------------- */

static const char *read_as(rlock_layout layout, const char *text)
{
    static rlock_holder h;
    return rl_read_holder_id(layout, text, &h) ? h.raw : "none";
}

#define OURS  "web3:18201:18207/job-7:" UUID
#define STAMP "1800000000.0"

#define MEANS(name, layout, text, wanted)                                      \
    TEST(holder, name)                                                         \
    {                                                                          \
        EXPECT_STR(read_as(RLOCK_LAYOUT_##layout, text), wanted);              \
    }

MEANS(ours_is_one_in_a_hash, HASH, OURS, OURS)
MEANS(redissons_is_one_in_a_hash, HASH, UUID ":-117", UUID ":-117")
MEANS(redissons_without_its_thread_is_none, HASH, UUID ":", "none")
MEANS(redissons_with_more_behind_it_is_none, HASH, UUID ":1 ", "none")
MEANS(redissons_without_a_part_of_it_is_none, HASH, "1f2f-6f0c-4f0e-a1f5:1",
      "none")
MEANS(redissons_with_an_empty_part_is_none, HASH,
      "1f2f9e64--4f0e-a1f5-7a8f5a0d3c52:1", "none")
MEANS(redissons_with_a_word_for_its_thread_is_none, HASH, UUID ":main", "none")
MEANS(a_uuid_is_none_in_a_hash, HASH, UUID, "none")
MEANS(a_word_is_none_in_a_hash, HASH, "Ada", "none")
MEANS(no_text_is_none, HASH, "", "none")
MEANS(ours_is_one_in_a_string, STRING, OURS, OURS)
MEANS(any_text_is_one_in_a_string, STRING, "Ada", "Ada")
MEANS(no_text_is_none_in_a_string, STRING, "", "none")
MEANS(ours_is_one_in_a_timestamp, TIMESTAMP, OURS, OURS)
MEANS(a_stamp_is_one_by_its_last_digits, TIMESTAMP, STAMP "134756109728850",
      "00000000-0000-0000-0000-7a8f5a0d3c52")
MEANS(a_stamp_of_noughts_is_one, TIMESTAMP, STAMP "000000000000000",
      "00000000-0000-0000-0000-000000000000")
MEANS(a_stamp_of_more_than_48_bits_is_none, TIMESTAMP, STAMP "281474976710656",
      "none")
MEANS(a_stamp_of_fewer_digits_is_none, TIMESTAMP, STAMP "13475610972885",
      "none")
MEANS(a_stamp_of_more_digits_is_none, TIMESTAMP, STAMP "1347561097288500",
      "none")
MEANS(a_time_is_none, TIMESTAMP, "1800000000", "none")
MEANS(a_time_with_a_fraction_is_none, TIMESTAMP, "1800000000.5", "none")
MEANS(redissons_is_none_in_a_timestamp, TIMESTAMP, UUID ":1", "none")

static void expect_longest(size_t len, bool wanted)
{
    char text[600];
    rlock_holder h;
    memset(text, 'x', sizeof text);
    text[len] = '\0';
    EXPECT(rl_read_holder_id(RLOCK_LAYOUT_STRING, text, &h) == wanted);
}

TEST(holder, one_is_as_long_as_can_be_told)
{
    expect_longest(511, true);
    expect_longest(512, false);
}
