/* What a client's options make of leases, limits, replicas and events. */
#include "op/core.h"

#include "test.h"

static rlock_event posted, called;
static int posts, calls;
static bool kept;

static void post(rl_core *c, const rlock_event *ev)
{
    (void)c;
    posted = *ev;
    posts++;
}

static void call(const rlock_event *ev, void *arg)
{
    EXPECT(arg == &calls);
    called = *ev;
    calls++;
}

static bool keeps(void)
{
    return kept;
}

static void tell(rl_core *c, rlock_event_type type)
{
    rlock_event ev = {.type = type};
    rl_tell(c, &ev);
}

TEST(core, an_event_is_told_at_once_unless_the_program_fetches_it)
{
    rl_core c = {.post_event = post};
    tell(&c, RLOCK_EVENT_LOST);
    EXPECT(calls == 0 && posts == 0); /* nobody is there */
    c.set.on_event = call;
    c.set.event_arg = &calls;
    tell(&c, RLOCK_EVENT_LOST);
    EXPECT(calls == 1 && posts == 0 && called.type == RLOCK_EVENT_LOST);
    c.set.dispatch_events = true;
    tell(&c, RLOCK_EVENT_RENEWED);
    EXPECT(calls == 1 && posts == 1 && posted.type == RLOCK_EVENT_RENEWED);
}

/* A thread that must not wait calls nobody. */
TEST(core, an_event_is_kept_where_nobody_may_be_called)
{
    rl_core c = {.post_event = post,
                 .keeps_events = keeps,
                 .set = {.on_event = call, .event_arg = &calls}};
    kept = true;
    tell(&c, RLOCK_EVENT_LOST);
    EXPECT(calls == 0 && posts == 1);
    kept = false;
    tell(&c, RLOCK_EVENT_LOST);
    EXPECT(calls == 1 && posts == 1);
}

TEST(core, the_watchdogs_lease_is_the_clients)
{
    rl_core c = {.set = {.watchdog_lease_ms = 7000}};
    EXPECT_INT(rl_lease_of(&c, RLOCK_WATCHDOG), 7000);
    EXPECT_INT(rl_lease_of(&c, 300), 300);
}

TEST(core, replicas_are_the_clients_unless_a_lock_says_otherwise)
{
    rl_core c = {.set = {.min_replicas = 2}};
    EXPECT_INT(rl_replicas_of(&c, 0), 2);
    EXPECT_INT(rl_replicas_of(&c, 5), 5);
    EXPECT_INT(rl_replicas_of(&c, -1), 0);
}

TEST(core, replicas_have_their_time_behind_a_command)
{
    rl_core c = {.set = {.command_timeout_ms = 3000, .replica_wait_ms = 400}};
    EXPECT_INT(rl_command_end(&c, 10), 3000010);
    EXPECT_INT(rl_confirmed_end(&c, 0, 10), 3000010);
    EXPECT_INT(rl_confirmed_end(&c, 1, 10), 3400010);
}

/* Three of them, after a third, two and before the end. */
TEST(core, a_renewal_takes_a_sixth_of_the_lease_at_most)
{
    rl_core c = {
        .set = {.command_timeout_ms = 3000, .watchdog_lease_ms = 30000}};
    EXPECT_INT(rl_renewal_end(&c, 10), 3000010);
    c.set.watchdog_lease_ms = 6000;
    EXPECT_INT(rl_renewal_end(&c, 10), 1000010);
}

static bool hears_one(rl_core *c, const rl_target *what)
{
    (void)c;
    return what->len == 1;
}

/* Who would not hear a ring does not queue. */
TEST(core, a_bell_is_given_once_it_is_heard)
{
    rl_target what = {.name = "a", .len = 1};
    rl_core c = {.bell = "rlock_bell:x"};
    EXPECT_STR(rl_bell_of(&c, &what), "");
    atomic_store(&c.rooms.hears, true);
    EXPECT_STR(rl_bell_of(&c, &what), "rlock_bell:x");
    c.hears = hears_one;
    EXPECT_STR(rl_bell_of(&c, &what), "rlock_bell:x");
    what.len = 2;
    EXPECT_STR(rl_bell_of(&c, &what), "");
}
