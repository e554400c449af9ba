/*
 * The threads of the program, as far as verbs of the library itself run on
 * them. These block in rl_drive(): each owner has a stack of its own, which is
 * left there, and entered again when its operation is over.
 */
#ifndef SIM_THREAD_H
#define SIM_THREAD_H

#include <ucontext.h>

#include <rlock/rlock.h>

typedef struct owner owner;

typedef struct thread {
    ucontext_t own, back;
    char *stack; /* NULL: it has not run yet */
    void (*call)(owner *o);
    rlock_error error; /* what is the thread's own in the library */
} thread;

/* From within the owner's task: calls it on the owner's stack, where it may
   block. */
void thread_call(owner *o, void (*call)(owner *o));
void thread_free(thread *t);

/* Who runs, as seen by the library; NULL: it is nobody's turn. */
void thread_is(owner *o);
owner *thread_self(void);

#endif
