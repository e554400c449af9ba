/* What a client's options become. */
#include <string.h>
#include <unistd.h>

#include "client/options.h"
#include "test.h"

static void hear(const rlock_event *ev, void *arg)
{
    (void)ev, (void)arg;
}

/* Each of them differs from its default, and from the others. */
static rlock_options others(void)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    o.connect_timeout_ms = 1;
    o.command_timeout_ms = 2;
    o.watchdog_lease_ms = 3;
    o.turn_ms = 4;
    o.warn_wait_ms = 5;
    o.min_replicas = 6;
    o.replica_wait_ms = 7;
    o.on_event = hear;
    o.event_arg = &o;
    o.metrics_label = "it";
    o.host_id = "here";
    return o;
}

TEST(settings, are_what_the_options_say)
{
    rl_settings s;
    rlock_options o = others();
    rl_settings_read(&s, &o);
    EXPECT(s.connect_timeout_ms == 1 && s.command_timeout_ms == 2);
    EXPECT(s.watchdog_lease_ms == 3 && s.turn_us == 4000);
    EXPECT(s.warn_wait_ms == 5 && s.min_replicas == 6);
    EXPECT_INT(s.replica_wait_ms, 7);
    EXPECT(s.on_event == hear && s.event_arg == o.event_arg);
    EXPECT_STR(s.metrics_label, "it");
    EXPECT(strncmp(s.process, "here:", 5) == 0);
}

TEST(settings, are_switched_on_one_by_one)
{
    for (int on = 0; on < 4; on++) {
        rl_settings s;
        rlock_options o = RLOCK_OPTIONS_INIT;
        o.redisson_channel = on == 0;
        o.grants = on == 1;
        o.no_deadlock_check = on == 2;
        o.dispatch_events = on == 3;
        memset(&s, 0, sizeof s);
        rl_settings_read(&s, &o);
        EXPECT_INT(s.redisson_channel, on == 0);
        EXPECT_INT(s.grants, on == 1);
        EXPECT_INT(s.no_deadlock_check, on == 2);
        EXPECT_INT(s.dispatch_events, on == 3);
    }
}

TEST(settings, have_the_defaults_of_the_manual)
{
    rl_settings s;
    rlock_options o = RLOCK_OPTIONS_INIT;
    char host[256] = "";
    rl_settings_read(&s, &o);
    EXPECT(s.connect_timeout_ms == 1000 && s.command_timeout_ms == 3000);
    EXPECT(s.watchdog_lease_ms == 30000 && s.replica_wait_ms == 1000);
    EXPECT(s.turn_us == 0 && s.warn_wait_ms == 0 && s.min_replicas == 0);
    EXPECT(!s.on_event && !s.event_arg && !*s.metrics_label);
    EXPECT(gethostname(host, sizeof host - 1) == 0);
    EXPECT(strncmp(s.process, host, strlen(host)) == 0);
}
