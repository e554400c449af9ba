/*
 * What the parts of the second judge share: judge.c reads the histories,
 * judge_locks.c asks about the holds of each lock, judge_notes.c decides on
 * what the first judge has noticed.
 */
#ifndef ATTACK_JUDGING_H
#define ATTACK_JUDGING_H

#include "judge.h"

/* It goes into the verdict. */
void find(verdict *v, offence what, const entry *e, int64_t at_us,
          const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* All zero; ends the process if there is none. */
void *room_for(size_t n, size_t size);

/* Since when did the holder not say "held" any more? A killed process does not
   either. */
int64_t over_us(const arena *a, const entry *e);
int64_t earlier(int64_t x, int64_t y);

void judge_lock(verdict *v, const arena *a, int lock);
void judge_note(verdict *v, const arena *a, int life, const note *n);

#endif
