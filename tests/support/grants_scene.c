#include "grants_scene.h"

static grants_scene start(bool first, const rlock_options *other)
{
    grants_scene p = {.s = scene_server(NULL)};
    p.s.opts.grants = first;
    scene_client(&p.s, 0, 0);
    p.o = other_client_join(&p.s, other);
    return p;
}

grants_scene grants_scene_start(bool first, bool second)
{
    rlock_options opts = RLOCK_OPTIONS_INIT;
    opts.grants = second;
    return start(first, &opts);
}

grants_scene grants_scene_with(rlock_options other)
{
    other.grants = true;
    return start(true, &other);
}

void grants_scene_stop(grants_scene *p)
{
    other_client_leave(&p->o);
    await_all_undone(p->s.sv);
    scene_stop(&p->s);
}

static int asleep(const grants_scene *p)
{
    return (int)(stats_of(p->s.cl).waiting_now + stats_of(p->o.cl).waiting_now);
}

waiter *grants_queue_up(grants_scene *p, rlock *lk, int64_t lease_ms)
{
    waiter *w = waiter_start(lk, 30000, lease_ms);
    EVENTUALLY(SOON, queued(p->s.sv, SCENE_LOCK) == 1 && asleep(p) == 1);
    return w;
}

/* It waits while that one has the lock, which frees it then. */
static waiter *wait_for(grants_scene *p, rlock *waiting, rlock *holder)
{
    EXPECT_STATUS(rlock_lock(holder), RLOCK_OK);
    waiter *w = grants_queue_up(p, waiting, RLOCK_WATCHDOG);
    EXPECT_STATUS(rlock_unlock(holder), RLOCK_OK);
    EXPECT_STATUS(waiter_status(w, NULL), RLOCK_OK);
    EXPECT_INT(queued(p->s.sv, SCENE_LOCK), 0);
    return w;
}

waiter *grants_have_waited(grants_scene *p)
{
    return wait_for(p, p->s.lk, p->o.lk);
}

void grants_hear_bells(grants_scene *p)
{
    EXPECT_STATUS(waiter_end(wait_for(p, p->o.lk, p->s.lk)), RLOCK_OK);
}
