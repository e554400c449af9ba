/*
 * Clients at rest: each worker has a thread that locks, and then does nothing
 * for seconds. What becomes of its hold the library has to find out by itself.
 */
#ifndef ATTACK_REST_H
#define ATTACK_REST_H

#include <pthread.h>

enum { LEASE_AT_REST_MS = 30000 };

typedef struct rest {
    pthread_t thread;
} rest;

void rest_start(rest *r);
/* The attack is over: joins the thread. */
void rest_stop(rest *r);

#endif
