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
