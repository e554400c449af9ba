/*
 * The scenes of min_replicas: a master with its replicas, and a client that
 * wants some of them to have what it is told.
 */
#ifndef TEST_SUPPORT_REPLICA_SCENE_H
#define TEST_SUPPORT_REPLICA_SCENE_H

#include "scene.h"

/* How long replicas are waited for. */
#define REPLICA_SCENE_WAIT_MS 200

typedef struct replica_scene {
    scene s; /* of the master */
    server *replica[2];
    int n;
} replica_scene;

/* With so many replicas, which have all. */
replica_scene replica_scene_servers(int n);
/* The same, and a client; also behind a proxy. */
replica_scene replica_scene_start(int n, unsigned min_replicas,
                                  int64_t lease_ms);
replica_scene replica_scene_proxied(int n, unsigned min_replicas,
                                    int64_t lease_ms);
void replica_scene_stop(replica_scene *f);

/* Replaces the scene's lock by one with options. */
void replica_scene_use(replica_scene *f, const rlock_lock_options *o);

/* The last error says this, of the scene's lock and server. */
void replica_scene_expect_short(const char *why);

/* The replica gets nothing more, and not what is on its way either. */
void replica_scene_cut_off(replica_scene *f, int i);
/* It goes on, as a master by itself. */
void replica_scene_promote(replica_scene *f, int i);

#endif
