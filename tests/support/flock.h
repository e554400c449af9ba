/*
 * The scenes of min_replicas: a master with its replicas, and a client that
 * wants some of them to have what it is told.
 */
#ifndef TEST_SUPPORT_FLOCK_H
#define TEST_SUPPORT_FLOCK_H

#include "scene.h"

/* How long replicas are waited for. */
#define FLOCK_WAIT_MS 200

typedef struct flock {
    scene s; /* of the master */
    server *replica[2];
    int n;
} flock;

/* With so many replicas, which have all. */
flock flock_servers(int n);
/* The same, and a client; also behind a proxy. */
flock flock_start(int n, unsigned min_replicas, int64_t lease_ms);
flock flock_proxied(int n, unsigned min_replicas, int64_t lease_ms);
void flock_stop(flock *f);

/* Replaces the scene's lock by one with options. */
void flock_use(flock *f, const rlock_lock_options *o);

/* The last error says this, of the scene's lock and server. */
void flock_expect_short(const char *why);

/* The replica gets nothing more, and not what is on its way either. */
void flock_cut_off(flock *f, int i);
/* It goes on, as a master by itself. */
void flock_promote(flock *f, int i);

#endif
