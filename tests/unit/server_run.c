/* Which run of the server this is, from what its scripts tell. */
#include "hold/server_run.h"

#include "test.h"

#define NOW_US INT64_C(5000000000)

static bool tell(rl_server_run *id, const char *run_id, long long uptime_s,
                 int64_t now_us)
{
    rl_item told[2] = {
        {.type = REDIS_REPLY_STRING, .str = run_id, .len = strlen(run_id)},
        {.type = REDIS_REPLY_INTEGER, .integer = uptime_s},
    };
    return rl_server_run_note(id, told, now_us);
}

static int64_t age_s(long long uptime_s)
{
    rl_server_run id = {0};
    rl_server_run_init(&id);
    EXPECT(tell(&id, "run", uptime_s, NOW_US));
    EXPECT_STR(rl_server_run_read(&id).id, "run");
    int64_t us = NOW_US - rl_server_run_read(&id).started_us;
    rl_server_run_fini(&id);
    return us / 1000000;
}

/* The server's first second may be a few milliseconds. */
TEST(server_run, a_run_is_no_older_than_its_uptime_less_a_second)
{
    EXPECT_INT(age_s(0), 0);
    EXPECT_INT(age_s(1), 0);
    EXPECT_INT(age_s(60), 59);
}

TEST(server_run, an_uptime_that_cannot_be_is_cut)
{
    EXPECT_INT(age_s(-1), 0);
    EXPECT_INT(age_s(INT64_MIN), 0);
    EXPECT_INT(age_s(INT64_MAX), 1000000000 - 1);
}

TEST(server_run, the_first_run_has_not_restarted)
{
    rl_server_run id = {0};
    rl_server_run_init(&id);
    EXPECT(tell(&id, "one", 60, NOW_US));
    EXPECT(!rl_server_run_read(&id).restarted);
    rl_server_run_fini(&id);
}

TEST(server_run, another_run_has_restarted)
{
    rl_server_run id = {0};
    rl_server_run_init(&id);
    EXPECT(tell(&id, "one", 60, NOW_US));
    EXPECT(tell(&id, "two", 1, NOW_US + 10));
    EXPECT_STR(rl_server_run_read(&id).id, "two");
    EXPECT(rl_server_run_read(&id).restarted);
    EXPECT_INT(rl_server_run_read(&id).started_us, NOW_US + 10);
    rl_server_run_fini(&id);
}

/* Its clock is not believed anew each time: the beginning stays. */
TEST(server_run, the_same_run_told_again_changes_nothing)
{
    rl_server_run id = {0};
    rl_server_run_init(&id);
    EXPECT(tell(&id, "one", 61, NOW_US));
    EXPECT(tell(&id, "one", 1, NOW_US + 1000000));
    EXPECT(!rl_server_run_read(&id).restarted);
    EXPECT_INT(rl_server_run_read(&id).started_us, NOW_US - 60 * 1000000);
    rl_server_run_fini(&id);
}

/* It may have restarted while it was away, and others had voted before. */
TEST(server_run, a_server_that_was_away_from_the_beginning_counts_as_restarted)
{
    rl_server_run id = {0};
    rl_server_run_init(&id);
    rl_server_run_await(&id);
    EXPECT(tell(&id, "one", 60, NOW_US));
    EXPECT(rl_server_run_read(&id).restarted);
    EXPECT(!rl_server_run_read(&id).awaited);
    rl_server_run_fini(&id);
}

TEST(server_run, a_server_that_does_not_tell_is_not_known)
{
    static char longer[RL_RUN_ID_MAX + 1];
    rl_server_run id = {0};
    rl_server_run_init(&id);
    EXPECT(!tell(&id, "", 60, NOW_US));
    memset(longer, 'x', RL_RUN_ID_MAX);
    EXPECT(!tell(&id, longer, 60, NOW_US));
    rl_item nil[2] = {{.type = REDIS_REPLY_NIL}, {.type = REDIS_REPLY_NIL}};
    EXPECT(!rl_server_run_note(&id, nil, NOW_US));
    EXPECT_STR(rl_server_run_read(&id).id, "");
    rl_server_run_fini(&id);
}
