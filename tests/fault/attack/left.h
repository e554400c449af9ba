/*
 * What is left in Redis when everybody has gone: all locks end with their leases,
 * and all permits are free again.
 */
#ifndef ATTACK_LEFT_H
#define ATTACK_LEFT_H

#include "nemesis.h"

/* Waits until there are none; how many there are still, which are told. */
int keys_left(const nemesis *n);

/* How many of all permits nobody can have any more, or are there twice. */
int permits_leaked(const nemesis *n);

#endif
