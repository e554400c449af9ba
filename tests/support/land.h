/*
 * A Redis Cluster, and a client of it with recorded events.
 */
#ifndef TEST_SUPPORT_LAND_H
#define TEST_SUPPORT_LAND_H

#include "cluster.h"
#include "scene.h"

typedef struct land {
    cluster *c;
    rlock_options opts;
    events *ev;
    rlock_client *cl;
} land;

/* watchdog lease: 0 for the default. */
void land_settle(land *l, int64_t lease_ms);
/* The same, with further arguments for every node. */
void land_settle_with(land *l, int64_t lease_ms, const char *args);
void land_leave(land *l);

/* Another client, with events of its own, of the same cluster. */
void land_visit(const land *l, land *visitor);
void land_depart(land *visitor);

/* A handle, to be freed. */
rlock *land_lock(land *l, const char *name);

/* Hold count of a lock, where its slot is. */
long long land_levels(land *l, const char *name);

#endif
