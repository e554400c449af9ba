/*
 * Allocations and system calls that fail when told to, and clocks that are
 * ahead. It is no part of the test framework: a program that links rlock_shim
 * (see tests/CMakeLists.txt) has its own objects, the static library's and
 * those of a static hiredis call these wrappers instead of libc (the linker's
 * --wrap). What libc and other shared libraries call among themselves is not
 * seen; SHIM_SPARES_HIREDIS is defined where hiredis is one of them.
 *
 * A panel says which calls fail. Every thread has one of its own, and the
 * process has one that all its threads obey; shim_share() puts that one into
 * memory that another process can write, too. All functions are safe to call
 * from any thread, at any time.
 *
 *     shim_fail(shim_here(), SHIM_ALLOC, 3, 3, ENOMEM);
 *     EXPECT_STATUS(rlock_new(cl, "job", &lk), RLOCK_ENOMEM);
 *     shim_clear(shim_here());
 */
#ifndef TEST_SUPPORT_SHIM_H
#define TEST_SUPPORT_SHIM_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef enum shim_call {
    SHIM_ALLOC, /* malloc, calloc, realloc, strdup */
    SHIM_SOCKET,
    SHIM_CONNECT,
    SHIM_SEND,
    SHIM_RECV, /* only those that would not answer EAGAIN: how often one looks
                  in vain is a matter of chance */
    SHIM_POLL,
    SHIM_GETRANDOM,
    SHIM_THREAD, /* pthread_create */
    SHIM_EVENTFD,
    SHIM_FCNTL,
    SHIM_SETSOCKOPT,
    SHIM_LOOKUP,     /* getaddrinfo; its error is one of EAI_... */
    SHIM_SPECIFIC,   /* pthread_setspecific */
    SHIM_WALL_CLOCK, /* CLOCK_REALTIME, time, gettimeofday: only counted */
    SHIM_CALLS
} shim_call;

/* In place of an errno: send and recv do it, but with one byte only. */
#define SHIM_SHORT (-1)
/* The same for pthread_create: it does it, but takes its time. */
#define SHIM_LATE (-2)

/* The last call of a rule without an end. */
#define SHIM_EVER LONG_MAX

typedef struct shim_rule {
    atomic_long first, last; /* calls that fail, from 1; last 0: none */
    atomic_int err;
    atomic_long seen, failed;
} shim_rule;

typedef struct shim_panel {
    shim_rule rules[SHIM_CALLS];
    atomic_llong ahead_ms[3]; /* wall clock, monotonic, boot time */
} shim_panel;

/* The calling thread's panel, and the process's. */
shim_panel *shim_here(void);
shim_panel *shim_everywhere(void);

/* From now on the process's panel is this one, which may be in memory shared
   with others, and is all zero at first. */
void shim_share(shim_panel *p);

/* The process's panel lets the calling thread alone, or no longer. */
void shim_spare_me(bool spared);

/*
 * From now on, counted from 1, calls first to last fail with err. Another
 * rule for this kind of call ends with it, and its counters begin anew.
 */
void shim_fail(shim_panel *p, shim_call call, long first, long last, int err);
/* Nothing fails any more, all counters are 0, and all clocks are right. */
void shim_clear(shim_panel *p);
/* Calls since the rule was set, or the panel cleared, and those that failed. */
long shim_seen(shim_panel *p, shim_call call);
long shim_failed(shim_panel *p, shim_call call);

/*
 * CLOCK_REALTIME, CLOCK_MONOTONIC or CLOCK_BOOTTIME is ahead by so much. Timed
 * waits keep to it; condition variables are taken to be on CLOCK_MONOTONIC.
 * Boot time alone is what moves while a machine is suspended.
 */
void shim_clock(shim_panel *p, clockid_t clock, int64_t ahead_ms);

#endif
