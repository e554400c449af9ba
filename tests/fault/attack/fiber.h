/*
 * A function on a stack of its own: it is left where it would block, and
 * entered there again. All of that is done by one thread.
 */
#ifndef ATTACK_FIBER_H
#define ATTACK_FIBER_H

#include <stdbool.h>
#include <stdlib.h> /* which C library it is */

#if defined(__GLIBC__)
#include <ucontext.h>
#else
typedef struct ucontext_none {
    int none;
} ucontext_t;
#endif

typedef struct fiber {
    ucontext_t own, back;
    void (*call)(void *arg);
    void *arg;
    char *stack;
    bool over;
    /* What the sanitizers know of the two stacks. */
    void *fake, *own_thread, *back_thread;
    const void *back_stack;
    size_t back_size;
} fiber;

/* Has this C library what it takes? */
bool fiber_is_possible(void);

/* False: out of memory. The function begins with the first fiber_enter(). */
bool fiber_init(fiber *f, void (*call)(void *arg), void *arg);
void fiber_fini(fiber *f);

/* Returns when the function leaves, or is over. */
void fiber_enter(fiber *f);
/* By the function. */
void fiber_leave(fiber *f);

#endif
