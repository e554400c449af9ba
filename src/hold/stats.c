#include "hold/stats.h"

static uint64_t get(rl_counter *c)
{
    return atomic_load_explicit(c, memory_order_relaxed);
}

void rl_stats_copy(rlock_stats *to, rl_stats *from)
{
    *to = (rlock_stats){
        .acquires = get(&from->acquires),
        .acquires_contended = get(&from->acquires_contended),
        .acquires_failed = get(&from->acquires_failed),
        .releases = get(&from->releases),
        .renewals = get(&from->renewals),
        .renew_failures = get(&from->renew_failures),
        .lost = get(&from->lost),
        .wakeups = get(&from->wakeups),
        .wakeups_futile = get(&from->wakeups_futile),
        .passes = get(&from->passes),
        .reconnects = get(&from->reconnects),
        .script_loads = get(&from->script_loads),
        .held_now = get(&from->held_now),
        .waiting_now = get(&from->waiting_now),
        .wait_us_total = get(&from->wait_us_total),
        .hold_us_total = get(&from->hold_us_total),
        .failovers = get(&from->failovers),
        .refreshes = get(&from->refreshes),
        .redirects = get(&from->redirects),
        .nodes = get(&from->nodes),
        .replica_shortfalls = get(&from->replica_shortfalls),
    };
}
