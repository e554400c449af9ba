/*
 * Who is calling. Inside the process an owner is a thread's serial number,
 * which is never used twice: a new thread that gets a dead one's tid, or its
 * pthread_t, does not inherit its holds. On the server a hold is known by its
 * holder id, host:pid:tid:uuid.
 */
#ifndef RL_CORE_OWNER_H
#define RL_CORE_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#define RL_HOST_MAX   255
#define RL_HOLDER_MAX (RL_HOST_MAX + 64)

/* The calling thread's serial; never 0. */
uint64_t rl_owner_self(void);

/*
 * A new holder id for the calling thread; false: no randomness. process is the
 * part that does not change, host:pid.
 */
bool rl_holder_id(char out[RL_HOLDER_MAX], const char *process);

/*
 * How many forks made this process from the one in which the library was used
 * first. Unlike a pid, no descendant has the number of its ancestor: it may get
 * that pid in a pid namespace of its own, or when it has become free.
 */
unsigned rl_owner_forks(void);

/*
 * Counts the calling thread's holds up or down. A thread that ends while it
 * has any is reported to the listeners, if it has called rl_owner_watch(),
 * which can fail for lack of memory.
 */
bool rl_owner_watch(void);
void rl_owner_count(int change);

/* ended() runs on the ending thread, with the listeners' mutex held. */
typedef struct rl_owner_listener {
    LIST_ENTRY(rl_owner_listener) link;
    void (*ended)(void *arg, uint64_t owner);
    void *arg;
} rl_owner_listener;

bool rl_owner_listen(rl_owner_listener *l); /* false: out of pthread keys */
void rl_owner_unlisten(rl_owner_listener *l);

#endif
