/*
 * A thread that asks a server for the holder of a lock, which blocks, on behalf
 * of who must not: one question at a time.
 */
#ifndef ATTACK_CLERK_H
#define ATTACK_CLERK_H

#include <pthread.h>
#include <stdbool.h>

#include <rlock/rlock.h>

typedef struct clerk {
    int fd; /* readable when there is an answer */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t asked;
    /* Guarded by mutex: */
    bool over, busy;
    rlock *lk;
    rlock_holder holder;
    rlock_status status;
    void *who; /* has asked */
} clerk;

void clerk_start(clerk *c);
void clerk_stop(clerk *c);

/* False: somebody else's question is still with him. */
bool clerk_ask(clerk *c, rlock *lk, void *who);
/* When fd is readable: who had asked. He is free again. */
void *clerk_answer(clerk *c, rlock_status *s, rlock_holder *holder);

#endif
