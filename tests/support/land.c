#include "land.h"

static void move_in(land *l)
{
    l->ev = events_new();
    events_hook(l->ev, &l->opts);
    EXPECT_STATUS(rlock_client_new(&l->opts, &l->cl), RLOCK_OK);
}

static void move_out(land *l)
{
    rlock_client_free(l->cl);
    events_free(l->ev);
}

void land_settle(land *l, int64_t lease_ms)
{
    land_settle_with(l, lease_ms, NULL);
}

void land_settle_with(land *l, int64_t lease_ms, const char *args)
{
    l->c = cluster_start_with(args);
    l->opts = (rlock_options)RLOCK_OPTIONS_INIT;
    l->opts.uri = cluster_uri(l->c);
    l->opts.watchdog_lease_ms = lease_ms;
    move_in(l);
}

void land_leave(land *l)
{
    move_out(l);
    cluster_stop(l->c);
}

void land_visit(const land *l, land *visitor)
{
    *visitor = *l;
    move_in(visitor);
}

void land_depart(land *visitor)
{
    move_out(visitor);
}

rlock *land_lock(land *l, const char *name)
{
    rlock *lk;
    EXPECT_STATUS(rlock_new(l->cl, name, &lk), RLOCK_OK);
    return lk;
}

long long land_levels(land *l, const char *name)
{
    return levels(cluster_server(l->c, cluster_owner(l->c, name)), name);
}
