/*
 * Jobs that go on by themselves, on the loop, from the first one on: thousands
 * are driven there as run/caller.c drives one.
 */
#ifndef RL_RUN_ASYNC_H
#define RL_RUN_ASYNC_H

#include "base/heap.h"
#include "base/thread.h"
#include "op/job.h"
#include "run/loop.h"
#include "run/owner.h"
#include "run/trunk.h"

struct rl_desk;

/* A job that has been started. */
typedef struct rl_started {
    rl_link link;       /* in one of the lists below, or in none */
    rl_link woken_link; /* in the list of those woken; guarded by the mutex */
    rl_waker waker;
    rl_wake why;            /* guarded by the mutex */
    unsigned rung;          /* likewise */
    rl_heap_node due;       /* while it sleeps */
    rl_job *job;            /* fixed */
    rlock_owner *owner;     /* fixed; counted; whom it is driven as. NULL: it
                               has none */
    bool unlocks;           /* it has yet to let go of what the owner holds;
                               guarded by the mutex of owner.c */
    rl_op *op;              /* under way; NULL: the job says what is next */
    bool sleeps;            /* the operation does */
    bool told;              /* it has been: the client is being freed */
    rl_wake heeded;         /* why it is awake for good, and has been told */
    bool reserved;          /* there is room for `due` in the heap */
    bool ended;             /* it is over; guarded by the mutex */
    struct rl_desk *desk;   /* NULL: it sleeps, or stands in line for one */
    struct rl_async *async; /* fixed; whose it is */
    bool telling; /* an event of it is being told (run/completion.h) */
    /* Once, on the thread that drives, when it is over; it is the callee's. */
    void (*over)(struct rl_started *s);
} rl_started;

typedef struct rl_async {
    rl_watcher watcher;
    rl_loop *loop;     /* fixed; the client's */
    rl_mutex starting; /* held while it is put on the loop */
    atomic_bool started;
    rl_completions *completions; /* fixed; for who dispatches */
    /* When somebody has dispatched last; so he may be relied on. */
    atomic_int_least64_t dispatched_us;
    rl_mutex mutex; /* guards these: */
    rl_list inbox;  /* jobs that have been started */
    rl_list woken;
    bool stopping;     /* waits are to end */
    bool ending;       /* nobody starts anything any more */
    bool called;       /* it will look at the lists before it sleeps */
    int64_t sleeps_us; /* until when it sleeps at most; 0: it is awake */
    /*
     * Who has this mutex drives; the loop, or who starts or dispatches. No
     * other is held when it is taken.
     */
    rl_mutex driving;
    rl_list in_line;  /* jobs that go on as soon as there is a desk */
    rl_list asking;   /* desks whose job has a round under way */
    int64_t first_us; /* none of those has to be looked at before that */
    bool unseen;      /* one has connections that the loop does not poll yet */
    bool broke;       /* a trunk has since they were looked at */
    rl_list idle;     /* desks */
    size_t desks;     /* all of them */
    size_t at_desks;  /* those that are not idle */
    size_t most;      /* that there were, since it was tidied last */
    int64_t left_us;  /* when somebody has left one last */
    int64_t tidied_us;
    size_t jobs;       /* that are not over */
    bool closing;      /* `stopping` has been seen */
    bool attended;     /* who dispatches is expected; until the next turn */
    size_t most_steps; /* of jobs, that who drives goes on with at a time */
    rl_heap sleeping;
    rl_list restless; /* jobs that sleep, too, without memory for the heap */
    struct rl_leg *spare; /* legs of several servers; NULL: a desk has them */
    rl_trunks trunks;
} rl_async;

void rl_async_init(rl_async *a, rl_loop *loop, rl_completions *completions);
/* It has left the loop. forked: that never ran in this process. */
void rl_async_fini(rl_async *a, bool forked);

/* Puts it on the loop, which is started, too. False: it cannot be. */
bool rl_async_run(rl_async *a);

/*
 * It is on the loop; job, owner and over are set. If nobody drives, the calling
 * thread takes the first step: at once, or, within rl_async_dispatch(), when
 * all has been delivered, so that what is started there is sent together.
 */
void rl_async_start(rl_async *a, rl_started *s);

/*
 * Who dispatches has come: goes on with what can go on, if nobody drives, and
 * delivers what there is then, with the thread's last error as it was.
 */
void rl_async_dispatch(rl_async *a);

/* Whose jobs does the calling thread drive at the moment? NULL: nobody's. */
rl_async *rl_async_driven_here(void);

/* Of the job that it drives: is an event being told? */
bool *rl_async_telling_here(void);

/* By over(): who dispatches is told, when he has been told all events. */
void rl_started_post(rl_started *s, rl_completion *l);

/* Ends its wait with RLOCK_CANCELED, if it waits. Any thread, until it is
 * freed.
 */
void rl_started_cancel(rl_started *s);

/* Every wait ends with RLOCK_ECLOSED, soon. Somebody may still be starting a
   job. */
void rl_async_close(rl_async *a);

/* After that, and nobody starts any more: returns when all jobs are over. */
void rl_async_stop(rl_async *a);

/* --- for async.c, who drives, and started.c, the jobs --------------------- */

/* Without memory for a desk, or a descriptor, it is tried again after that. */
#define RL_RETRY_US 10000

/* Into the inbox, by any thread. */
void rl_async_put(rl_async *a, rl_started *s);

/* --- for who drives (started.c) ------------------------------------------- */

void rl_async_take_inbox(rl_async *a);
void rl_async_take_woken(rl_async *a);
void rl_async_take_due(rl_async *a, int64_t now_us);

/* Who stands in line goes on, as far as there are desks. */
void rl_async_admit(rl_async *a);

/* The desk has asked: it is looked at when something comes, or in time. */
void rl_async_await(rl_async *a, struct rl_desk *d);

/* p: what poll() has told, of n descriptors; 0: the caller has not asked it. */
void rl_async_look_at_desks(rl_async *a, const struct pollfd *p, size_t n);

/*
 * Memory that a burst has needed, and nobody has since, is given back: to be
 * called on the loop, in each turn.
 */
void rl_async_tidy(rl_async *a, int64_t now_us);

/*
 * What one job needs, whatever it is: so with that much there is always one
 * that goes on. Before the first is started. False: out of memory.
 */
bool rl_async_furnish(rl_async *a);

/* The client is being freed. */
void rl_async_close_waits(rl_async *a);

/* --- for who has something to do (async.c) -------------------------------- */

/* Whoever is to drive it; or the loop. */
void rl_async_call_locked(rl_async *a) RL_REQUIRES(&a->mutex);
void rl_async_call_loop_locked(rl_async *a) RL_REQUIRES(&a->mutex);

#endif
