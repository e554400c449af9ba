/* Which run of the server this is, from what its scripts tell. */
#include "core/identity.h"

#include "base/clock.h"
#include "test.h"

static int64_t age_s(long long uptime_s)
{
    rl_identity id = {0};
    rl_item told[2] = {
        {.type = REDIS_REPLY_STRING, .str = "run", .len = 3},
        {.type = REDIS_REPLY_INTEGER, .integer = uptime_s},
    };
    rl_identity_init(&id);
    EXPECT(rl_identity_note(&id, told));
    EXPECT_STR(rl_identity_run(&id).id, "run");
    int64_t us = rl_now_us() - rl_identity_run(&id).started_us;
    rl_identity_fini(&id);
    return us / 1000000;
}

/* The server's first second may be a few milliseconds. */
TEST(identity, a_run_is_no_older_than_its_uptime_less_a_second)
{
    EXPECT_INT(age_s(0), 0);
    EXPECT_INT(age_s(1), 0);
    EXPECT_INT(age_s(60), 59);
}

TEST(identity, an_uptime_that_cannot_be_is_cut)
{
    EXPECT_INT(age_s(-1), 0);
    EXPECT_INT(age_s(INT64_MIN), 0);
    EXPECT_INT(age_s(INT64_MAX), 1000000000 - 1);
}
