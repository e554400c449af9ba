/*
 * Turns: a scene whose lock has been passed on from one thread to another
 * without asking the server.
 */
#ifndef TEST_SUPPORT_TURNS_H
#define TEST_SUPPORT_TURNS_H

#include "scene.h"

/* The longest that is allowed. */
#define TURN_MS 1000

/* Threads that take the lock, in this order. */
enum { PASSERS = 4 };

typedef struct turns {
    scene s;
    waiter *w[PASSERS]; /* NULL: it has unlocked */
    int owner;          /* which of them has the lock */
    char holder[300];   /* whom the server names: the first */
} turns;

/*
 * The first has been handed the lock, the second has been passed it, and the
 * others wait. prepare may be NULL, and is called before: the test's thread has
 * the lock.
 */
turns turns_passed(int64_t lease_ms, void (*prepare)(scene *s));

/* The owner unlocks, and the next one owns it. */
void turns_go_on(turns *t);
uint64_t turns_token(const turns *t); /* the owner's */
void turns_end(turns *t);             /* all unlock */

#endif
