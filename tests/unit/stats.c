/* What rlock_client_stats() tells is what was counted, each by its name. */
#include "hold/stats.h"

#include "test.h"

/* A number for each, no two alike. */
#define EACH(f)                                                                \
    f(acquires, 1) f(acquires_contended, 2) f(acquires_failed, 3)              \
        f(releases, 4) f(renewals, 5) f(renew_failures, 6) f(lost, 7)          \
            f(wakeups, 8) f(wakeups_futile, 9) f(passes, 10) f(reconnects, 11) \
                f(script_loads, 12) f(held_now, 13) f(waiting_now, 14)         \
                    f(wait_us_total, 15) f(hold_us_total, 16) f(failovers, 17) \
                        f(refreshes, 18) f(redirects, 19) f(nodes, 20)         \
                            f(replica_shortfalls, 21)

TEST(stats, each_figure_is_told_by_its_name)
{
    rl_stats counted = {0};
    rlock_stats told;
    memset(&told, 0xff, sizeof told);
#define COUNT(name, n)                                                         \
    rl_add(&counted.name, 100 + (n));                                          \
    rl_sub(&counted.name, 100);
    EACH(COUNT)
    rl_stats_copy(&told, &counted);
#define EXPECT_TOLD(name, n) EXPECT_INT(told.name, n);
    EACH(EXPECT_TOLD)
}

/* Who adds a figure has to add it here, too. */
#define ONE_MORE(name, n) +1
_Static_assert(sizeof(rl_stats) == (EACH(ONE_MORE)) * sizeof(rl_counter),
               "a figure is missing in EACH");
