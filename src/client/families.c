/*
 * The table of families. Who adds one adds its row to metrics.md, which a test
 * compares with this.
 */
#include "client/figures.h"

#define STR2(x) #x
#define STR(x)  STR2(x)
#define VERSION                                                                \
    STR(RLOCK_VERSION_MAJOR)                                                   \
    "." STR(RLOCK_VERSION_MINOR) "." STR(RLOCK_VERSION_PATCH)

static const char *const results[RL_RESULTS] = {
    [RL_RESULT_OK] = "ok",
    [RL_RESULT_BUSY] = "busy",
    [RL_RESULT_TIMEOUT] = "timeout",
    [RL_RESULT_CANCELED] = "canceled",
    [RL_RESULT_DEADLOCK] = "deadlock",
    [RL_RESULT_LOST] = "lost",
    [RL_RESULT_ERROR] = "error",
};

/* Without RL_LOSS_NONE. */
static const char *const causes[RL_LOSSES - 1] = {
    [RL_LOSS_EXPIRED - 1] = "expired", [RL_LOSS_GONE - 1] = "gone",
    [RL_LOSS_FOREIGN - 1] = "foreign", [RL_LOSS_TOO_LONG - 1] = "too_long",
    [RL_LOSS_GROUP - 1] = "too_few",   [RL_LOSS_CLOSED - 1] = "closed",
};

static const char *const warnings[RL_WARNINGS] = {
    [RL_WARNED_HELD] = "held_long",
    [RL_WARNED_WAIT] = "waited_long",
    [RL_WARNED_RENEWAL] = "renew_late",
};

static const char *const versions[] = {VERSION};

#define COUNTED(member) offsetof(rl_figures, counted.member)
#define FAMILY(of_type, of_unit, called, where, says)                          \
    {                                                                          \
        .name = "rlock_" called, .help = says, .unit = of_unit,                \
        .type = RLOCK_METRIC_##of_type, .samples = 1, .at = where              \
    }
#define COUNTER(called, member, says)                                          \
    FAMILY(COUNTER, "", called, COUNTED(member), says)
#define COUNTER_BY(by, of, called, where, says)                                \
    {                                                                          \
        .name = "rlock_" called, .help = says, .unit = "",                     \
        .type = RLOCK_METRIC_COUNTER, .label = by, .values = of,               \
        .samples = sizeof of / sizeof *of, .at = where                         \
    }

const rl_family rl_families[] = {
    COUNTER_BY("result", results, "acquires", COUNTED(acquires),
               "Calls to acquire a lock, by what came of them."),
    COUNTER("acquires_contended", acquires_contended,
            "Of all calls to acquire, those that had to wait."),
    FAMILY(COUNTER, "seconds", "waited_seconds", COUNTED(wait_us_total),
           "Time that threads have waited for locks."),
    COUNTER("releases", releases, "Unlocks that succeeded."),
    FAMILY(COUNTER, "seconds", "held_seconds", COUNTED(hold_us_total),
           "Time that locks were held, until they were released or lost."),
    COUNTER("renewals", renewals, "Leases that were prolonged in time."),
    COUNTER("renew_failures", renew_failures,
            "Renewals that failed, and were tried again."),
    COUNTER_BY("cause", causes, "lost", COUNTED(lost[1]),
               "Holds that were lost, by why."),
    COUNTER("wakeups", wakeups,
            "Times that a waiting thread was woken, by a ring or with the "
            "lock."),
    COUNTER("wakeups_futile", wakeups_futile,
            "Of these, those that found the lock held again."),
    COUNTER("passes", passes,
            "Unlocks that passed the lock on without asking the server."),
    COUNTER("reconnects", reconnects,
            "Connections that were opened after one broke."),
    COUNTER("failovers", failovers,
            "Masters that have taken the place of another."),
    COUNTER("refreshes", refreshes,
            "Times that Sentinels or a cluster were asked where masters are."),
    COUNTER("redirects", redirects,
            "Answers of a cluster that named another server."),
    COUNTER("replica_shortfalls", replica_shortfalls,
            "Answers that fewer replicas had than min_replicas."),
    COUNTER("script_loads", script_loads,
            "Scripts that were sent whole, as the server lacked them."),
    COUNTER_BY("kind", warnings, "alarms", COUNTED(warned),
               "Alarms that the program has asked for, by kind."),
    FAMILY(HISTOGRAM, "seconds", "acquire_wait_seconds", RL_TIME_WAIT,
           "How long acquires took that succeeded, from their call on."),
    FAMILY(HISTOGRAM, "seconds", "hold_seconds", RL_TIME_HOLD,
           "For how long locks were held, until they were released or lost."),
    FAMILY(HISTOGRAM, "seconds", "call_seconds", RL_TIME_CALL,
           "How long calls of the server took, to its answer."),
    FAMILY(HISTOGRAM, "seconds", "renewal_delay_seconds", RL_TIME_RENEWAL,
           "How long after they were due renewals were confirmed."),
    FAMILY(GAUGE, "", "held", COUNTED(held_now), "Locks that are held."),
    FAMILY(GAUGE, "", "waiting", COUNTED(waiting_now),
           "Threads that wait for a lock."),
    FAMILY(GAUGE, "seconds", "oldest_hold_seconds",
           offsetof(rl_figures, oldest_hold_us),
           "For how long the oldest hold has been held; 0: nothing is held."),
    FAMILY(GAUGE, "seconds", "longest_wait_seconds",
           offsetof(rl_figures, longest_wait_us),
           "For how long the longest wait lasts; 0: nobody waits."),
    FAMILY(GAUGE, "", "nodes", COUNTED(nodes),
           "Masters of the cluster; 0: it is none."),
    {.name = "rlock_build_info",
     .help = "Always 1; the version of the library is a label.",
     .unit = "",
     .type = RLOCK_METRIC_GAUGE,
     .label = "version",
     .values = versions,
     .samples = 1,
     .at = offsetof(rl_figures, one)},
};

const size_t rl_families_count = sizeof rl_families / sizeof *rl_families;
