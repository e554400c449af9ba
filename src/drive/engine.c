#include "drive/engine.h"

static bool start_notifier(rl_engine *e)
{
    if (atomic_load(&e->started))
        return true;
    rl_mutex_lock(&e->starting);
    bool ok = rl_notifier_start(e);
    atomic_store(&e->started, ok);
    rl_mutex_unlock(&e->starting);
    return ok;
}

bool rl_engine_start(rl_engine *e, unsigned slot)
{
    return start_notifier(e) && rl_node_start(rl_node_of(&e->core, slot));
}
