#include "hold/server_run.h"

#include <string.h>

#include "base/clock.h"

#define LONGEST_UPTIME_S 1000000000

void rl_server_run_init(rl_server_run *id)
{
    rl_mutex_init(&id->mutex, RL_RANK_RUN);
}

void rl_server_run_fini(rl_server_run *id)
{
    rl_mutex_fini(&id->mutex);
}

void rl_server_run_await(rl_server_run *id)
{
    rl_mutex_lock(&id->mutex);
    id->awaited = true;
    rl_mutex_unlock(&id->mutex);
}

/*
 * The server subtracts two clock readings in whole seconds: 1 may be a few
 * milliseconds.
 */
static int64_t started_by(const rl_item *uptime_s, int64_t now_us)
{
    int64_t s = rl_max(1, rl_item_number(uptime_s));
    return now_us - (rl_min(s, LONGEST_UPTIME_S) - 1) * 1000000;
}

bool rl_server_run_note(rl_server_run *id, const rl_item item[2],
                        int64_t now_us)
{
    const rl_item *run_id = &item[0];
    if (!run_id->str || run_id->len == 0 || run_id->len >= RL_RUN_ID_MAX)
        return false;
    rl_mutex_lock(&id->mutex);
    if (strcmp(id->run_id, run_id->str) != 0) {
        bool another = *id->run_id != '\0';
        id->restarted = another || id->awaited;
        id->awaited = false;
        /* It may have been a replica for long, and have become the master only
           now: its uptime tells nothing of what it has been told. */
        id->started_us = another ? now_us : started_by(&item[1], now_us);
        strcpy(id->run_id, run_id->str);
    }
    rl_mutex_unlock(&id->mutex);
    return true;
}

rl_run rl_server_run_read(rl_server_run *id)
{
    rl_run run;
    rl_mutex_lock(&id->mutex);
    memcpy(run.id, id->run_id, sizeof run.id);
    run.started_us = id->started_us;
    run.restarted = id->restarted;
    run.awaited = id->awaited;
    rl_mutex_unlock(&id->mutex);
    return run;
}
