/*
 * What a call of the library goes through on its thread is a trip, and here it is
 * counted. A program that links rlock_traced (see tests/CMakeLists.txt) has a
 * library whose functions tell when they begin and end.
 *
 * Functions of base/, in its headers, too, are no part of the calls, functions and
 * files: they are what the language lacks.
 */
#ifndef TEST_TRIP_TRACE_H
#define TEST_TRIP_TRACE_H

typedef struct figures {
    int calls;     /* of functions outside base/ */
    int functions; /* that were called, each once */
    int files;     /* .c files that these are in */
    int mutexes;   /* that were locked */
    int clocks;    /* readings of one */
    int deepest;   /* calls inside of calls, those of base/ with them */
} figures;

/* What the calling thread does from begin to end is one trip. */
void trace_begin(void);
void trace_end(void);

/* What the thread rlock-loop does from begin to end are n trips alike. */
void trace_loop_begin(void);
void trace_loop_end(int n);

/* Of the trips until now: of each figure the middle one. */
figures trace_figures(void);

#endif
