/*
 * The loop: the one thread on which a client does what it does by itself and
 * need not wait for. Each thing that it does is a watcher: a few descriptors to
 * be polled, an instant at which it is due, and a turn, which does what there
 * is to do. No turn blocks: what would, is asked of the connector, or of a
 * thread of its own.
 */
#ifndef RL_RUN_LOOP_H
#define RL_RUN_LOOP_H

#include <poll.h>
#include <stdatomic.h>

#include "base/list.h"
#include "base/os.h"
#include "base/thread.h"

/* What a turn returns when it was the last: the watcher leaves the loop. */
#define RL_LOOP_LEAVE INT64_MIN

typedef struct rl_watcher {
    /*
     * A turn: something has come for one of its descriptors, or it is due, or
     * was nudged. Until when the next may wait; RL_NEVER.
     */
    int64_t (*turn)(struct rl_watcher *w, int64_t now_us);
    /* What is to be polled until then goes into p, as far as there is room; how
       many there are. */
    size_t (*look)(struct rl_watcher *w, struct pollfd *p, size_t room);
    /* For so many there is always room; 0: there may be any number, and without
       memory they are not polled. Fixed, like the two above. */
    size_t most;
    atomic_bool nudged;
    /* The loop's own: */
    rl_link link;
    bool called; /* a raise of the loop's signal is for it, too */
    int64_t due_us;
    size_t at;                   /* where its descriptors begin in the loop's */
    const struct pollfd *polled; /* what poll() has told of its descriptors, */
    size_t n;                    /* so many of them, for one turn */
    bool in;    /* it is in the loop, or joins; guarded by that one's mutex, */
    bool again; /* as is that it was added while it was in */
} rl_watcher;

typedef struct rl_loop {
    rl_thread thread;
    rl_signal signal; /* fixed; wakes it, whoever raises it */
    rl_mutex mutex;   /* guards these: */
    rl_cond left;     /* a watcher has */
    rl_list joining;
    size_t promised; /* descriptors of those who are in, or join */
    size_t made;     /* there is memory for so many of these, and the signal */
    struct pollfd *fresh; /* that memory; NULL: the thread has it */
    bool ending;
    atomic_bool sleeps; /* whoever nudges raises the signal */
    /* The thread's own: */
    rl_list watchers;
    struct pollfd *poll;
    size_t room, least; /* it has so many; and always at least these */
} rl_loop;

void rl_loop_init(rl_loop *l);
/* Its descriptors, unless it has them. False with errno. */
bool rl_loop_open(rl_loop *l);
/* The thread has ended; forked: it never was in this process, and what it was
   changing at the fork stays. */
void rl_loop_fini(rl_loop *l, bool forked);

/* No effect when it runs. False: it cannot be started. Any thread. */
bool rl_loop_start(rl_loop *l);
/* Ends the thread; nobody is in, or joins. */
void rl_loop_stop(rl_loop *l);

/*
 * Its first turn comes at once, if the loop runs. When it is in, and about to
 * leave, it stays. False: out of memory. Any thread.
 */
bool rl_loop_add(rl_loop *l, rl_watcher *w);

/* Until it has left; at once, when it is not in. Not on the loop's thread. */
void rl_loop_await_end(rl_loop *l, rl_watcher *w);

/* Its turn comes soon. Any thread, whatever mutexes it has; also while the
   watcher is not in. */
void rl_loop_nudge(rl_loop *l, rl_watcher *w);

#endif
