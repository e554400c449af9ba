/* The calling thread as a driver: it makes an operation go until it is done. */
#ifndef RL_DRIVE_CALLER_H
#define RL_DRIVE_CALLER_H

#include "core/op.h"

/*
 * Asks the parts that are due, sleeps when told so, and returns when the
 * operation is done. Parts on the heap may be late by then.
 */
void rl_drive(rl_op *op);

#endif
