#include "rw_scene.h"

sides sides_of(rlock_client *cl, const char *name)
{
    sides s;
    EXPECT_STATUS(rlock_rw_new(cl, name, &s.read, &s.write), RLOCK_OK);
    return s;
}

void sides_free(sides *s)
{
    rlock_free(s->read);
    rlock_free(s->write);
}

rw_scene rw_scene_start(int64_t lease_ms)
{
    rlock_options o = RLOCK_OPTIONS_INIT;
    rw_scene r = {.s = scene_start(lease_ms, 0)};
    o.watchdog_lease_ms = lease_ms;
    r.o = other_client_join(&r.s, &o);
    r.mine = sides_of(r.s.cl, SCENE_LOCK);
    r.theirs = sides_of(r.o.cl, SCENE_LOCK);
    return r;
}

void rw_scene_stop(rw_scene *r)
{
    sides_free(&r->mine);
    sides_free(&r->theirs);
    other_client_leave(&r->o);
    /* What was lost may still be released. */
    EVENTUALLY(SOON, !key_exists(r->s.sv, SCENE_LOCK) &&
                         !key_exists(r->s.sv, RW_LINE) &&
                         !key_exists(r->s.sv, RW_WANTS));
    expect_nothing_left(r->s.sv);
    scene_stop(&r->s);
}

long long rw_in_line(server *sv)
{
    return server_int(sv, "ZCARD " RW_LINE);
}

int rw_mode(rlock *either)
{
    rlock_rw_state now = RLOCK_RW_STATE_INIT;
    EXPECT_STATUS(rlock_rw_inspect(either, &now), RLOCK_OK);
    return now.mode;
}

waiter *rw_stand(rw_scene *r, rlock *lk, int64_t wait_ms, int n)
{
    waiter *w = waiter_start(lk, wait_ms, RLOCK_WATCHDOG);
    EVENTUALLY(SOON, rw_in_line(r->s.sv) == n);
    return w;
}
