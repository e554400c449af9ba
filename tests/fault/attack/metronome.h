/*
 * Whether anybody runs at all. A thread that does nothing but wake up finds out
 * that its process was stopped, or that the machine is too busy; what a call
 * takes longer than that is the library's.
 */
#ifndef ATTACK_METRONOME_H
#define ATTACK_METRONOME_H

#include <pthread.h>

#include "history.h"

typedef struct metronome {
    history *h;
    _Atomic bool over;
    pthread_t thread;
} metronome;

/* Notes stalls in h. */
void metronome_start(metronome *m, history *h);
void metronome_stop(metronome *m);

#endif
