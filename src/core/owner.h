/*
 * Who owns. Inside the process an owner is a serial number that is never used
 * twice; today each is a thread (drive/owner.c). On the server a hold is known
 * by its holder id, host:pid:tid:uuid.
 */
#ifndef RL_CORE_OWNER_H
#define RL_CORE_OWNER_H

#include <stdint.h>

#define RL_HOST_MAX   255
#define RL_HOLDER_MAX (RL_HOST_MAX + 64)

typedef struct rl_owner {
    uint64_t serial; /* never 0 */
    long tid;
    int holds; /* locks that it holds; its own, no mutex */
} rl_owner;

#endif
