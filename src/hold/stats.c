#include "hold/stats.h"

#include <stdlib.h>

#include "base/histogram.h"
#include "base/named.h"

bool rl_stats_time(rl_stats *s)
{
    s->times = calloc(RL_TIMES, sizeof *s->times);
    return s->times != NULL;
}

void rl_stats_fini(rl_stats *s, bool forked)
{
    free(s->times);
    s->times = NULL;
    rl_named_free(s->named, forked);
    s->named = NULL;
}

void rl_stats_record(rl_stats *s, rl_time what, int64_t us)
{
    rl_histogram_record(&s->times[what], us);
}

static uint64_t sum(const rl_counter *c, size_t n)
{
    uint64_t all = 0;
    for (size_t i = 0; i < n; i++)
        all += rl_count_of(&c[i]);
    return all;
}

void rl_stats_copy(rlock_stats *to, const rl_stats *from)
{
    *to = (rlock_stats){
        .acquires = rl_count_of(&from->acquires[RL_RESULT_OK]),
        .acquires_contended = rl_count_of(&from->acquires_contended),
        .acquires_failed =
            sum(&from->acquires[RL_RESULT_OK + 1], RL_RESULTS - 1),
        .releases = rl_count_of(&from->releases),
        .renewals = rl_count_of(&from->renewals),
        .renew_failures = rl_count_of(&from->renew_failures),
        .lost = sum(from->lost, RL_LOSSES),
        .wakeups = rl_count_of(&from->wakeups),
        .wakeups_futile = rl_count_of(&from->wakeups_futile),
        .passes = rl_count_of(&from->passes),
        .reconnects = rl_count_of(&from->reconnects),
        .script_loads = rl_count_of(&from->script_loads),
        .held_now = rl_count_of(&from->held_now),
        .waiting_now = rl_count_of(&from->waiting_now),
        .wait_us_total = rl_count_of(&from->wait_us_total),
        .hold_us_total = rl_count_of(&from->hold_us_total),
        .failovers = rl_count_of(&from->failovers),
        .refreshes = rl_count_of(&from->refreshes),
        .redirects = rl_count_of(&from->redirects),
        .nodes = rl_count_of(&from->nodes),
        .replica_shortfalls = rl_count_of(&from->replica_shortfalls),
    };
}
