#include "cluster_scene.h"

static void move_in(cluster_scene *l)
{
    l->ev = events_new();
    events_hook(l->ev, &l->opts);
    EXPECT_STATUS(rlock_client_new(&l->opts, &l->cl), RLOCK_OK);
}

static void move_out(cluster_scene *l)
{
    rlock_client_free(l->cl);
    events_free(l->ev);
}

void cluster_scene_start(cluster_scene *l, int64_t lease_ms)
{
    cluster_scene_start_with(l, lease_ms, NULL);
}

void cluster_scene_start_with(cluster_scene *l, int64_t lease_ms,
                              const char *args)
{
    l->c = cluster_start_with(args);
    l->opts = (rlock_options)RLOCK_OPTIONS_INIT;
    l->opts.uri = cluster_uri(l->c);
    l->opts.watchdog_lease_ms = lease_ms;
    move_in(l);
}

void cluster_scene_stop(cluster_scene *l)
{
    move_out(l);
    cluster_stop(l->c);
}

void cluster_scene_join(const cluster_scene *l, cluster_scene *visitor)
{
    *visitor = *l;
    move_in(visitor);
}

void cluster_scene_leave(cluster_scene *visitor)
{
    move_out(visitor);
}

rlock *cluster_scene_lock(cluster_scene *l, const char *name)
{
    rlock *lk;
    EXPECT_STATUS(rlock_new(l->cl, name, &lk), RLOCK_OK);
    return lk;
}

long long cluster_scene_levels(cluster_scene *l, const char *name)
{
    return levels(cluster_server(l->c, cluster_owner(l->c, name)), name);
}
