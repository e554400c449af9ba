#include "engine/engine.h"

#define ATTEMPTS 3

bool rl_engine_start(rl_engine *e)
{
    if (atomic_load(&e->started))
        return true;
    rl_mutex_lock(&e->starting);
    bool ok = rl_notifier_start(e) && rl_watchdog_start(e);
    atomic_store(&e->started, ok);
    rl_mutex_unlock(&e->starting);
    return ok;
}

void rl_ask(rl_engine *e, const rl_call *c, int64_t deadline_us, rl_answer *a)
{
    bool open = false;
    for (int i = 1;; i++) {
        int64_t now_us = rl_now_us();
        int64_t until_us =
            rl_min(deadline_us, rl_after_ms(now_us, e->set.command_timeout_ms));
        rl_script_call(e->source, c, until_us, &e->stats.script_loads, a);
        open = open || a->outcome == RL_UNKNOWN;
        a->open = open;
        if (a->outcome == RL_ANSWERED || !a->fault.transient || i == ATTEMPTS ||
            (open && c->only_once) || rl_now_us() >= deadline_us)
            return;
    }
}

void rl_leave_queue(rl_engine *e, const void *name, size_t len,
                    int64_t deadline_us)
{
    rl_key queue = rl_key_queue(name, len);
    rl_call c;
    rl_call_init(&c, RL_SCRIPT_LEAVE, 2);
    rl_call_bytes(&c, name, len);
    rl_call_bytes(&c, queue.text, queue.len);
    rl_call_text(&c, e->doorbell.channel);
    rl_call_bytes(&c, name, len);
    rl_answer a;
    rl_ask(e, &c, deadline_us, &a);
    /* Somebody may have queued meanwhile, and this has taken him out again. */
    rl_rooms_wake(&e->rooms, name, len, RL_WAKE_LOOK);
}
