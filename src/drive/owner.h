/*
 * Who is calling: a thread, by a serial number that is never used twice. A new
 * thread that gets a dead one's tid, or its pthread_t, does not inherit its
 * holds.
 */
#ifndef RL_DRIVE_OWNER_H
#define RL_DRIVE_OWNER_H

#include <stdbool.h>

#include "base/list.h"
#include "core/owner.h"

/* The calling thread. */
rl_owner *rl_owner_self(void);

/*
 * How many forks made this process from the one in which the library was used
 * first. Unlike a pid, no descendant has the number of its ancestor: it may get
 * that pid in a pid namespace of its own, or when it has become free.
 */
unsigned rl_owner_forks(void);

/*
 * From here on, the calling thread's end is reported to the listeners if it has
 * any holds then. False: out of memory.
 */
bool rl_owner_watch(void);

/* ended() runs on the ending thread, with the listeners' mutex held. */
typedef struct rl_owner_listener {
    rl_link link;
    void (*ended)(void *arg, uint64_t owner);
    void *arg;
} rl_owner_listener;

bool rl_owner_listen(rl_owner_listener *l); /* false: out of pthread keys */
void rl_owner_unlisten(rl_owner_listener *l);

#endif
