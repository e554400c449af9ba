#include "core/identity.h"

#include <string.h>

#include "drive/engine.h"

#define LONGEST_UPTIME_S 1000000000

void rl_identity_init(rl_identity *id)
{
    rl_mutex_init(&id->mutex);
}

void rl_identity_fini(rl_identity *id)
{
    rl_mutex_fini(&id->mutex);
}

/*
 * The server subtracts two clock readings in whole seconds: 1 may be a few
 * milliseconds.
 */
static int64_t started_by(const rl_item *uptime_s)
{
    int64_t s = rl_max(1, rl_item_number(uptime_s));
    return rl_now_us() - (rl_min(s, LONGEST_UPTIME_S) - 1) * 1000000;
}

bool rl_identity_note(rl_identity *id, const rl_item item[2])
{
    const rl_item *run_id = &item[0];
    if (!run_id->str || run_id->len == 0 || run_id->len >= RL_RUN_ID_MAX)
        return false;
    rl_mutex_lock(&id->mutex);
    if (strcmp(id->run_id, run_id->str) != 0) {
        id->restarted = *id->run_id != '\0';
        id->started_us = started_by(&item[1]);
        strcpy(id->run_id, run_id->str);
    }
    rl_mutex_unlock(&id->mutex);
    return true;
}

bool rl_identify(rl_engine *e, rl_conn *c, int64_t deadline_us, rl_fault *f)
{
    rl_counter loads = 0; /* not a script that a lock needs */
    rl_call call;
    rl_answer a;
    rl_call_init(&call, RL_SCRIPT_IDENTIFY, 0);
    rl_script_exchange(c, &call, deadline_us, &loads, &a);
    c->known = a.outcome == RL_ANSWERED && a.reply.count == 2 &&
               rl_identity_note(&e->identity, a.reply.item);
    if (a.outcome != RL_ANSWERED)
        *f = a.fault;
    else if (!c->known)
        rl_fault_set(f, RLOCK_EIO, 0, "the server does not tell its run_id");
    return c->known;
}

rl_run rl_identity_run(rl_identity *id)
{
    rl_run run;
    rl_mutex_lock(&id->mutex);
    memcpy(run.id, id->run_id, sizeof run.id);
    run.started_us = id->started_us;
    run.restarted = id->restarted;
    rl_mutex_unlock(&id->mutex);
    return run;
}
