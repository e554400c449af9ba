/*
 * Latches in a scene, and who waits for them.
 */
#ifndef TEST_SUPPORT_GATE_H
#define TEST_SUPPORT_GATE_H

#include "scene.h"

/* The name of a scene's latch. */
#define GATE "gate"

/* A handle; fails the test. */
rlock_latch *test_latch(rlock_client *cl, const char *name);

/* What is left; fails the test. */
int64_t left_of(rlock_latch *l);

/* A thread that waits. */
typedef struct gate_waiter gate_waiter;
gate_waiter *gate_wait(rlock_latch *l, int64_t wait_ms);
bool gate_has_returned(gate_waiter *w);
/* Joins it: what the wait answered, and when (test_now_ms; or NULL). */
rlock_status gate_end(gate_waiter *w, int64_t *at_ms);

/* Until so many clients stand in the queue of the latch. */
void gate_await_queue(server *sv, const char *name, int clients);

/* Has each bell gone, and is nothing left but marks? */
void expect_gate_gone(server *sv, const char *name);

#endif
