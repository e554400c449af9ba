/*
 * What the parts of the second judge share: judge.c reads the histories,
 * judge_locks.c asks about the holds of each lock, judge_rw.c about both sides of
 * a read-write lock, judge_permits.c about semaphores, judge_line.c who was served
 * before whom, judge_told.c whether the ends of what several have at a time were
 * told; judge_notes.c decides on what the first judge has noticed.
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

int by_granted(const void *x, const void *y); /* two entries */

/* The older one was still believed in when the other was granted. */
void judge_pair(verdict *v, const arena *a, offence what, const entry *older,
                const entry *e);
/* How many events have to tell of its end, and may. */
int least_told(const arena *a, const entry *e);
int most_told(const entry *e);

/* Of all holds under one name, by granted_us. */
void judge_tokens(verdict *v, const arena *a, const entry *granted, size_t n);
void judge_line(verdict *v, const arena *a, const entry *granted, size_t n);

void judge_lock(verdict *v, const arena *a, int lock);
/* Of a lock that is shared, all but each hold by itself; of both sides of a
   read-write lock. */
void judge_told(verdict *v, const arena *a, int lock);
void judge_permits(verdict *v, const arena *a, int lock);
void judge_rw(verdict *v, const arena *a, int read);
void judge_note(verdict *v, const arena *a, int life, const note *n);

#endif
