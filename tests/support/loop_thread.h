/*
 * What the library's thread rlock-loop does in this process: calls that may
 * block it, and its longest turn. A program that links rlock_loop_thread (see
 * tests/CMakeLists.txt) has the calls of its own objects and of the static
 * library looked at, by the linker's --wrap.
 */
#ifndef TEST_SUPPORT_LOOP_THREAD_H
#define TEST_SUPPORT_LOOP_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Is it the calling thread? A thread is named before it does anything else. */
static inline bool loop_thread_is_this(void)
{
    static _Thread_local enum { UNKNOWN, YES, NO } known;
    char name[32];
    if (known == UNKNOWN)
        known = pthread_getname_np(pthread_self(), name, sizeof name) == 0 &&
                        strcmp(name, "rlock-loop") == 0
                    ? YES
                    : NO;
    return known == YES;
}

/* How many calls may have blocked it, but for its own wait in poll(); and the
   name of the last, or "". */
int loop_thread_blocked(void);
const char *loop_thread_blocked_in(void);

/* How often it has waited. */
int loop_thread_turns(void);

/* The most that it has computed from one wait to the next, in us of its own
   time: what others on the machine take does not count. */
int64_t loop_thread_longest_us(void);

#endif
