/*
 * Time that runs faster for the library, so that leases are renewed, pauses
 * end and deadlines pass within milliseconds. What it reads off its clocks, and
 * how long it waits for a condition or a socket, goes by this time; the kernel
 * and the sanitizers know nothing of it.
 */
#ifndef FUZZ_PACE_H
#define FUZZ_PACE_H

#include <stdint.h>

/* From now on; 1 is the pace of the real clock, and the one to begin with. */
void pace_set(int64_t factor);

/* The library's own time passes by that much. */
void pace_pause_us(int64_t us);

#endif
