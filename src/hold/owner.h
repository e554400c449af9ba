/*
 * Who owns. Inside the process an owner is a serial number that is never used
 * twice: a thread, or what the program has made one (rlock/owner.h;
 * run/owner.c). On the server a hold is known by its holder id,
 * host:pid:tid:uuid, or host:pid:tid/label:uuid.
 */
#ifndef RL_HOLD_OWNER_H
#define RL_HOLD_OWNER_H

#include <stdatomic.h>

#include <rlock/owner.h>

#define RL_HOST_MAX   255
#define RL_HOLDER_MAX (RL_HOST_MAX + 64 + RLOCK_LABEL_MAX + 1)

typedef struct rl_owner {
    uint64_t serial; /* of an owner never 0 */
    long tid;
    int holds;         /* locks that it holds; its own, no mutex */
    atomic_bool ended; /* it has been freed: what it is granted is nobody's */
    const char *label; /* NULL: it is a thread */
} rl_owner;

#endif
