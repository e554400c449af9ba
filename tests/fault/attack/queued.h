/*
 * How long threads were ready to run, and did not: a call that was late by that
 * is none of the library's.
 */
#ifndef ATTACK_QUEUED_H
#define ATTACK_QUEUED_H

#include <stdint.h>

/* To be called by a thread before it asks, and at its end. */
void queued_begin(void);
void queued_end(void);

/* From now on all threads of the process with this name count, too. */
void queued_with(const char *name);

/* The calling thread's time since it began, and that of those with it. */
uint64_t queued_us(void);

#endif
