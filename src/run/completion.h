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

typedef struct rl_completion {
    rl_link link;
    /* Shared by those of one call, its events and behind them its callback,
       which are delivered one after the other, whoever delivers: one of them is
       being delivered. NULL: it is of no call. Guarded by the mutex below. */
    bool *busy;
    bool ends; /* it is the call's last one, and that may go with it */
    /* Once; the completion is the callee's then. */
    void (*deliver)(struct rl_completion *l);
} rl_completion;

typedef struct rl_completions {
    rl_mutex mutex;        /* guards all below */
    rl_list completions;   /* oldest first */
    atomic_size_t count;   /* of them; may be read without the mutex */
    rl_signal signal;      /* none until the descriptor is asked for */
    atomic_bool raised;    /* the signal is; read without the mutex */
    atomic_uint attending; /* threads that are about to deliver */
    int watch; /* readable while the signal or a connection is; -1 */
    int fd;    /* the program's copy of it; -1: none */
} rl_completions;

void rl_completions_init(rl_completions *b);
/* Nobody posts; what is there is left. forked: in a child. */
void rl_completions_fini(rl_completions *b, bool forked);

/* The same number each time; -1 with errno: no descriptors. */
int rl_completions_fd(rl_completions *b);

void rl_completions_post(rl_completions *b, rl_completion *l);

/* Who dispatches has something to do. */
void rl_completions_nudge(rl_completions *b);

/*
 * The descriptor is readable also while this one is, from now on, or until it
 * is closed. False: it cannot be, or nobody has asked for the descriptor.
 */
bool rl_completions_watch(rl_completions *b, int fd);
void rl_completions_unwatch(rl_completions *b, int fd);

/*
 * Before it is looked what there is to do: it is not readable for that any
 * more, nor for what is posted until rl_completions_attended(), behind which
 * the caller delivers it. So what he finds to be done himself does not call him
 * once more.
 */
void rl_completions_attend(rl_completions *b);
void rl_completions_attended(rl_completions *b);

/*
 * Delivers those that were there when it was called, on the calling thread. A
 * delivery may call it again, and gets those behind it, but for its own
 * call's. What has to wait for another thread, that one finds when it has
 * delivered.
 */
void rl_completions_deliver(rl_completions *b);

#endif
