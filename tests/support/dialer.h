/*
 * Connect callbacks: a plain one, one that a test can have hang or give the
 * wrong thing, and a scene whose client connects by it.
 */
#ifndef TEST_SUPPORT_DIALER_H
#define TEST_SUPPORT_DIALER_H

#include <stdatomic.h>

#include "scene.h"

/* Connects to the socket at this path. */
struct redisContext *connect_plainly(void *path);

typedef struct dialer {
    char path[128];      /* of the server's socket */
    atomic_int dialed;   /* how often it was called */
    atomic_bool hangs;   /* it does not return while this is set */
    atomic_bool spoiled; /* it returns a context that does not block */
} dialer;

/* d is to be zero; watchdog lease and command timeout, 0 for the defaults. */
scene scene_dialed(dialer *d, int64_t lease_ms, int64_t timeout_ms);

#endif
