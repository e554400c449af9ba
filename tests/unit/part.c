/* A part among several: how long it is waited for, and that there may be none. */
#include <errno.h>

#include "deed.h"
#include "shim.h"

static void expect_limit(int64_t lease_ms, int64_t patience_us, int64_t way_us)
{
    deed d;
    open_deed(&d);
    rl_part_leave(d.x, core(&d), &play_job, d.p.now_us);
    rl_part_limit(d.x, lease_ms, RL_NEVER);
    EXPECT_INT(d.x->patience_us, patience_us);
    EXPECT_INT(d.x->way_us, way_us);
    EXPECT_BETWEEN(d.x->limit_us, 1, patience_us);
    EXPECT(!d.x->ask.patient);
    close_deed(&d);
}

TEST_CASE(part, a_part_has_a_twentieth_of_the_lease_and_its_way_a_third,
          expect_limit(3000, 150 * MS, 1000 * MS))
TEST_CASE(part, a_part_has_a_twentieth_of_the_watchdogs_lease,
          expect_limit(RLOCK_WATCHDOG, PLAY_LEASE_MS *MS / 20,
                       PLAY_TIMEOUT_MS *MS))
TEST_CASE(part, a_part_of_a_short_lease_has_5_ms,
          expect_limit(60, 5 * MS, 20 * MS))
TEST_CASE(part, a_part_of_a_long_lease_has_a_commands_time,
          expect_limit(3600000, PLAY_TIMEOUT_MS *MS, PLAY_TIMEOUT_MS *MS))

TEST(part, a_part_is_not_asked_for_longer_than_its_call)
{
    deed d;
    open_deed(&d);
    rl_part_leave(d.x, core(&d), &play_job, d.p.now_us);
    int64_t until_us = d.x->until_us;
    rl_part_limit(d.x, RLOCK_WATCHDOG, RL_NEVER);
    EXPECT_INT(d.x->until_us, until_us);
    rl_part_limit(d.x, RLOCK_WATCHDOG, until_us - 1);
    EXPECT_INT(d.x->until_us, until_us - 1);
    close_deed(&d);
}

TEST(part, a_part_that_there_is_no_memory_for_is_lacking)
{
    rl_part *parts[4] = {NULL};
    rl_op op;
    rl_op_init(&op, parts);
    shim_fail(shim_here(), SHIM_ALLOC, 1, 1, ENOMEM);
    EXPECT(!rl_op_new_part(&op, 2));
    shim_clear(shim_here());
    EXPECT_INT(op.lacking, 1u << 2);
    rl_part *x = rl_op_new_part(&op, 3);
    EXPECT(x && parts[3] == x && x->op == &op && x->position == 4);
    EXPECT_INT(op.lacking, 1u << 2);
    rl_part_let_go(x);
}
