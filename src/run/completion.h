/*
 * What a client has to deliver on a thread of the program's own: the one that
 * calls rlock_client_dispatch(). Any thread posts. A descriptor is readable
 * while there is something, or while there is something to do for who
 * dispatches.
 */
#ifndef RL_RUN_COMPLETION_H
#define RL_RUN_COMPLETION_H

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
    rl_mutex mutex;        /* guards all below */
    rl_list letters;       /* oldest first */
    atomic_size_t count;   /* of them; may be read without the mutex */
    rl_signal signal;      /* none until the descriptor is asked for */
    atomic_bool raised;    /* the signal is; read without the mutex */
    atomic_uint attending; /* threads that are about to deliver */
    int watch; /* readable while the signal or a connection is; -1 */
    int fd;    /* the program's copy of it; -1: none */
} rl_outbox;

void rl_outbox_init(rl_outbox *b);
/* Nobody posts; what is there is left. forked: in a child. */
void rl_outbox_fini(rl_outbox *b, bool forked);

/* The same number each time; -1 with errno: no descriptors. */
int rl_outbox_fd(rl_outbox *b);

void rl_outbox_post(rl_outbox *b, rl_letter *l);

/* Who dispatches has something to do. */
void rl_outbox_nudge(rl_outbox *b);

/*
 * The descriptor is readable also while this one is, from now on, or until it
 * is closed. False: it cannot be, or nobody has asked for the descriptor.
 */
bool rl_outbox_watch(rl_outbox *b, int fd);
void rl_outbox_unwatch(rl_outbox *b, int fd);

/*
 * Before it is looked what there is to do: it is not readable for that any more,
 * nor for what is posted until rl_outbox_attended(), behind which the caller
 * delivers it. So what he finds to be done himself does not call him once more.
 */
void rl_outbox_attend(rl_outbox *b);
void rl_outbox_attended(rl_outbox *b);

/*
 * Delivers those that were there when it was called, on the calling thread. A
 * delivery may call it again, and gets those behind it.
 */
void rl_outbox_deliver(rl_outbox *b);

#endif
