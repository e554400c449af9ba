/* When COMMAND has to end. */
#include "run.h"

/* A deadline is worked out anew each time, and differs a little. */
#define SAME_US 5000

void run_signal(run_shared *sh, int sig)
{
    int target = atomic_load(&sh->target);
    if (target != 0)
        kill(target, sig);
}

/* By a third of the lease or more, where it was. */
bool run_guard_renewed(const run_shared *sh, int64_t lease_ms)
{
    long long told = atomic_load(&sh->told_us);
    return told && atomic_load(&sh->deadline_us) > told + lease_ms * 1000 / 6;
}

int64_t run_guard(run_shared *sh, int64_t grace_ms)
{
    long long deadline = atomic_load(&sh->deadline_us);
    long long told = atomic_load(&sh->told_us);
    int64_t now = cli_now_us();
    int64_t kills = deadline - RUN_MARGIN_US;
    int64_t tells = deadline - grace_ms * 1000;
    if (now >= kills) {
        atomic_store(&sh->ended, 1);
        run_signal(sh, SIGKILL);
        return CLI_NEVER;
    }
    if (now < tells)
        return tells < kills ? tells : kills;
    /* Once, whoever of the two is first: many programs take a second SIGTERM
       for impatience. */
    if (deadline > told + SAME_US &&
        atomic_compare_exchange_strong(&sh->told_us, &told, deadline)) {
        atomic_store(&sh->ended, 1);
        run_signal(sh, SIGTERM);
        run_signal(sh, SIGCONT);
    }
    return kills;
}
