/*
 * What a client has to deliver on a thread of the program's own: the one that
 * calls rlock_client_dispatch(). Any thread posts; a descriptor is readable
 * while there is something.
 */
#ifndef RL_DRIVE_OUTBOX_H
#define RL_DRIVE_OUTBOX_H

#include <stdatomic.h>

#include "base/list.h"
#include "base/os.h"
#include "base/thread.h"

typedef struct rl_letter {
    rl_link link;
    /* Once; the letter is the callee's then. */
    void (*deliver)(struct rl_letter *l);
} rl_letter;

typedef struct rl_outbox {
    rl_mutex mutex;      /* guards all below */
    rl_list letters;     /* oldest first */
    atomic_size_t count; /* of them; may be read without the mutex */
    rl_signal signal;    /* raised while there are some; none until asked for */
    int fd;              /* the program's copy of its descriptor; -1: none */
} rl_outbox;

void rl_outbox_init(rl_outbox *b);
/* Nobody posts; what is there is left. forked: in a child. */
void rl_outbox_fini(rl_outbox *b, bool forked);

/* The same number each time; -1 with errno: no descriptors. */
int rl_outbox_fd(rl_outbox *b);

void rl_outbox_post(rl_outbox *b, rl_letter *l);

/*
 * Delivers those that were there when it was called, on the calling thread. A
 * delivery may call it again, and gets those behind it.
 */
void rl_outbox_deliver(rl_outbox *b);

#endif
