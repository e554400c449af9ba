/*
 * A Redis Cluster, and a client of it with recorded events.
 */
#ifndef TEST_SUPPORT_CLUSTER_SCENE_H
#define TEST_SUPPORT_CLUSTER_SCENE_H

#include "cluster.h"
#include "scene.h"

typedef struct land {
    cluster *c;
    rlock_options opts;
    events *ev;
    rlock_client *cl;
} cluster_scene;

/* watchdog lease: 0 for the default. */
void cluster_scene_start(cluster_scene *l, int64_t lease_ms);
/* The same, with further arguments for every node. */
void cluster_scene_start_with(cluster_scene *l, int64_t lease_ms,
                              const char *args);
void cluster_scene_stop(cluster_scene *l);

/* Another client, with events of its own, of the same cluster. */
void cluster_scene_join(const cluster_scene *l, cluster_scene *visitor);
void cluster_scene_leave(cluster_scene *visitor);

/* A handle, to be freed. */
rlock *cluster_scene_lock(cluster_scene *l, const char *name);

/* Hold count of a lock, where its slot is. */
long long cluster_scene_levels(cluster_scene *l, const char *name);

#endif
